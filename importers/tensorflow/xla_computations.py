"""Ops of XLA inside TensorFlow that apply a function to elements or windows, or run it in a loop: the function becomes
their region."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow.compiler.xla.xla_data_pb2 import ScatterDimensionNumbers

from trivium.importers.tensorflow.calls import conditional, while_loop
from trivium.importers.tensorflow.context import Context, Known, Operand, rule
from trivium.ir import ops
from trivium.ir.core import Region, Value
from trivium.ir.types import TensorType


def _applied(ctx: Context, function: str, elements: Sequence[Value]) -> Region:
    """Returns the region that calls a function of 0-d tensors, one for each of `elements`, of its element type."""

    def body(emit: Context, *scalars: Value) -> list[Value]:
        return [emit.value(x) for x in emit.inline(function, *scalars)]

    return ctx.region([TensorType((), x.type.element_type) for x in elements], body)


@rule("XlaReduce")
def reduce(
    ctx: Context, input: Value, init_value: Value, *, dimensions_to_reduce: tuple[int, ...], reducer: str
) -> Value:
    """XlaReduce(input, init_value; dimensions_to_reduce, reducer) -> output"""
    return variadic_reduce(ctx, [input], [init_value], dimensions_to_reduce=dimensions_to_reduce, reducer=reducer)[0]


@rule("XlaVariadicReduce", "XlaVariadicReduceV2")
def variadic_reduce(
    ctx: Context,
    inputs: list[Value],
    init_values: list[Value],
    *,
    dimensions_to_reduce: tuple[int, ...],
    reducer: str,
) -> list[Value]:
    """XlaVariadicReduceV2(inputs..., init_values...; dimensions_to_reduce, reducer) -> outputs..."""
    body = _applied(ctx, reducer, [*init_values, *inputs])
    return list(ctx.add(ops.Reduce(inputs, init_values, dimensions=dimensions_to_reduce, body=body)))


@rule("XlaReduceWindow")
def reduce_window(
    ctx: Context,
    input: Value,
    init_value: Value,
    window_dimensions: Known,
    window_strides: Known,
    base_dilations: Known,
    window_dilations: Known,
    padding: Known,
    *,
    computation: str,
) -> Value:
    """XlaReduceWindow(input, init_value, window_dimensions, window_strides, base_dilations, window_dilations, padding;
    computation) -> output"""
    window = ops.ReduceWindow(
        [input],
        [init_value],
        window_dimensions=window_dimensions.tolist(),
        window_strides=window_strides.tolist(),
        base_dilations=base_dilations.tolist(),
        window_dilations=window_dilations.tolist(),
        padding=padding.reshape(-1, 2).tolist(),
        body=_applied(ctx, computation, [init_value, input]),
    )
    return ctx.add(window)[0]


@rule("XlaSelectAndScatter")
def select_and_scatter(
    ctx: Context,
    operand: Value,
    window_dimensions: Known,
    window_strides: Known,
    padding: Known,
    source: Value,
    init_value: Value,
    *,
    select: str,
    scatter: str,
) -> Value:
    """XlaSelectAndScatter(operand, window_dimensions, window_strides, padding, source, init_value; select, scatter)
    -> output"""
    return ctx.add(
        ops.SelectAndScatter(
            operand,
            source,
            init_value,
            window_dimensions=window_dimensions.tolist(),
            window_strides=window_strides.tolist(),
            padding=padding.reshape(-1, 2).tolist(),
            select=_applied(ctx, select, [operand, operand]),
            scatter=_applied(ctx, scatter, [source, init_value]),
        )
    )


@rule("XlaScatter")
def xla_scatter(
    ctx: Context,
    operand: Value,
    scatter_indices: Value,
    updates: Value,
    *,
    update_computation: str,
    dimension_numbers: str,
    indices_are_sorted: bool,
) -> Value:
    """XlaScatter(operand, scatter_indices, updates; update_computation, dimension_numbers, indices_are_sorted)
    -> output"""
    given = ScatterDimensionNumbers.FromString(dimension_numbers.encode())
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=tuple(given.update_window_dims),
        inserted_window_dims=tuple(given.inserted_window_dims),
        input_batching_dims=tuple(given.input_batching_dims),
        scatter_indices_batching_dims=tuple(given.scatter_indices_batching_dims),
        scatter_dims_to_operand_dims=tuple(given.scatter_dims_to_operand_dims),
        index_vector_dim=given.index_vector_dim,
    )
    scattered = ops.Scatter(
        [operand],
        scatter_indices,
        [updates],
        scatter_dimension_numbers=numbers,
        indices_are_sorted=indices_are_sorted,
        update_computation=_applied(ctx, update_computation, [operand, updates]),
    )
    return ctx.add(scattered)[0]


@rule("XlaVariadicSort")
def variadic_sort(
    ctx: Context, inputs: list[Value], dimension: Known, *, comparator: str, is_stable: bool
) -> list[Value]:
    """XlaVariadicSort(inputs..., dimension; comparator, is_stable) -> outputs..."""
    body = _applied(ctx, comparator, [x for x in inputs for _ in range(2)])
    return list(ctx.add(ops.Sort(inputs, dimension=int(dimension), is_stable=is_stable, comparator=body)))


# Control flow


@rule("XlaWhile")
def xla_while(ctx: Context, input: list[Operand], *, cond: str, body: str) -> list[Operand]:
    """XlaWhile(input...; cond, body) -> output..."""
    return while_loop(ctx, input, cond=cond, body=body)


@rule("XlaIf")
def xla_if(
    ctx: Context, cond: Operand, inputs: list[Operand], *, then_branch: str, else_branch: str
) -> Sequence[Operand]:
    """XlaIf(cond, inputs...; then_branch, else_branch) -> output..."""
    return conditional(ctx, cond, inputs, then_branch=then_branch, else_branch=else_branch)
