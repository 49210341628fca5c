"""Ops of XLA inside TensorFlow, which are ops of the language."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tensorflow.compiler.xla.xla_data_pb2 import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    GatherDimensionNumbers,
)
from tensorflow.python.framework.tensor_shape import as_shape

from trivium.importers.convolution import Layout, dimension_numbers
from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.contraction import einsum
from trivium.importers.tensorflow.random import THREE_FRY
from trivium.importers.tensorflow.state import read_value, variable_of
from trivium.importers.tensorflow.types import element_type_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import BF16, F32, UI8, UI32, TensorType


@rule("XlaOptimizationBarrier")
def optimization_barrier(ctx: Context, input: list[Value]) -> Sequence[Value]:
    """XlaOptimizationBarrier(input...) -> output..."""
    return list(ctx.add(ops.OptimizationBarrier(input)))


@rule("XlaSharding")
def sharding(ctx: Context, input: Tensor, *, sharding: str, unspecified_dims: tuple[int, ...]) -> Tensor:
    """XlaSharding(input; sharding="", unspecified_dims=[]) -> output: on one device, the operand"""
    return input


@rule("XlaPad")
def pad(
    ctx: Context,
    input: Value,
    padding_value: Value,
    padding_low: Known,
    padding_high: Known,
    padding_interior: Known,
) -> Value:
    """XlaPad(input, padding_value, padding_low, padding_high, padding_interior) -> output"""
    low, high, interior = (x.tolist() for x in (padding_low, padding_high, padding_interior))
    return ctx.pad(input, low, high, padding_value, interior)


@rule("XlaEinsum")
def xla_einsum(ctx: Context, a: Value, b: Value, *, equation: str) -> Value:
    """XlaEinsum(a, b; equation) -> product"""
    return einsum(ctx, [a, b], equation=equation)


@rule("XlaReducePrecision")
def reduce_precision(ctx: Context, operand: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    """XlaReducePrecision(operand; exponent_bits, mantissa_bits) -> output"""
    return ctx.add(ops.ReducePrecision(operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits))


@rule("XlaSort")
def sort(ctx: Context, input: Value) -> Value:
    """XlaSort(input) -> output"""
    return _sorted(ctx, input)[0]


@rule("XlaKeyValueSort")
def key_value_sort(ctx: Context, keys: Value, values: Value) -> Sequence[Value]:
    """XlaKeyValueSort(keys, values) -> sorted_keys, sorted_values"""
    return _sorted(ctx, keys, values)


def _sorted(ctx: Context, *keys: Value) -> Sequence[Value]:
    rank = keys[0].type.rank
    return ctx.sort(keys, rank - 1, total=True) if rank else keys


# Products and gathers: their dimension numbers are serialized protocol buffers


@rule("XlaDot", "XlaDotV2")
def dot(ctx: Context, lhs: Value, rhs: Value, *, dimension_numbers: str, precision_config: str) -> Value:
    """XlaDotV2(lhs, rhs; dimension_numbers, precision_config, preferred_element_type) -> output"""
    given = DotDimensionNumbers.FromString(dimension_numbers.encode())
    contracting = (given.lhs_contracting_dimensions, given.rhs_contracting_dimensions)
    batching = (given.lhs_batch_dimensions, given.rhs_batch_dimensions)
    lhs, rhs = _of_one_type(ctx, lhs, rhs)
    return ctx.dot(lhs, rhs, contracting, batching, ctx.element_type)


@rule("XlaConv")
def convolution(
    ctx: Context,
    lhs: Value,
    rhs: Value,
    *settings: Known,
    dimension_numbers: str,
    precision_config: str,
) -> Value:
    """XlaConv(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, feature_group_count; dimension_numbers,
    precision_config) -> output"""
    return _convolved(ctx, lhs, rhs, settings, dimension_numbers, 1)


@rule("XlaConvV2")
def convolution_v2(
    ctx: Context,
    lhs: Value,
    rhs: Value,
    *settings: Known,
    dimension_numbers: str,
    precision_config: str,
    batch_group_count: int,
) -> Value:
    """XlaConvV2(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, feature_group_count; dimension_numbers,
    precision_config, preferred_element_type, batch_group_count=1) -> output"""
    return _convolved(ctx, lhs, rhs, settings, dimension_numbers, batch_group_count)


def _convolved(
    ctx: Context, lhs: Value, rhs: Value, settings: Sequence[Known], numbers: str, batch_group_count: int
) -> Value:
    strides, padding, lhs_dilation, rhs_dilation, groups = settings
    lhs, rhs = _of_one_type(ctx, lhs, rhs)
    result = ops.Convolution(
        lhs,
        rhs,
        window_strides=strides.tolist(),
        padding=padding.reshape(-1, 2).tolist(),
        lhs_dilation=lhs_dilation.tolist(),
        rhs_dilation=rhs_dilation.tolist(),
        dimension_numbers=dimension_numbers(*_layouts(numbers)),
        feature_group_count=int(groups),
        batch_group_count=batch_group_count,
    )
    return ctx.convert(ctx.add(result), ctx.element_type)


def _layouts(numbers: str) -> list[Layout]:
    """Returns the layouts of the operand, of the filter and of the result."""
    x = ConvolutionDimensionNumbers.FromString(numbers.encode())
    roles = (
        (x.input_batch_dimension, x.input_feature_dimension, x.input_spatial_dimensions),
        (x.kernel_output_feature_dimension, x.kernel_input_feature_dimension, x.kernel_spatial_dimensions),
        (x.output_batch_dimension, x.output_feature_dimension, x.output_spatial_dimensions),
    )
    return [Layout(batch, channels, tuple(space)) for batch, channels, space in roles]


def _of_one_type(ctx: Context, lhs: Value, rhs: Value) -> list[Value]:
    """Returns operands in the type of the result, unless that is the narrower one."""
    widest = max((x.type.element_type for x in (lhs, rhs)), key=lambda kind: kind.dtype.itemsize)
    wide = ctx.element_type if ctx.element_type.dtype.itemsize > widest.dtype.itemsize else widest
    return [ctx.convert(x, wide) for x in (lhs, rhs)]


@rule("XlaGather")
def gather(
    ctx: Context,
    operand: Value,
    start_indices: Value,
    slice_sizes: Known,
    *,
    dimension_numbers: str,
    indices_are_sorted: bool,
) -> Value:
    """XlaGather(operand, start_indices, slice_sizes; dimension_numbers, indices_are_sorted) -> output"""
    given = GatherDimensionNumbers.FromString(dimension_numbers.encode())
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(given.offset_dims),
        collapsed_slice_dims=tuple(given.collapsed_slice_dims),
        operand_batching_dims=tuple(given.operand_batching_dims),
        start_indices_batching_dims=tuple(given.start_indices_batching_dims),
        start_index_map=tuple(given.start_index_map),
        index_vector_dim=given.index_vector_dim,
    )
    sizes = slice_sizes.tolist()
    return ctx.add(
        ops.Gather(
            operand,
            start_indices,
            dimension_numbers=numbers,
            slice_sizes=sizes,
            indices_are_sorted=indices_are_sorted,
        )
    )


# Tiles


@rule("XlaSplitND")
def split_nd(ctx: Context, input: Value, *, num_splits: tuple[int, ...], paddings: tuple[int, ...]) -> list[Value]:
    """XlaSplitND(input; num_splits, paddings=[]) -> outputs...: in rows"""
    high = paddings or (0,) * len(num_splits)
    padded = ctx.pad(input, (0,) * len(high), high)
    sizes = [extent // count for extent, count in zip(padded.type.static_shape, num_splits, strict=True)]
    tiles = []
    for place in np.ndindex(*num_splits):
        starts = [i * size for i, size in zip(place, sizes, strict=True)]
        limits = [start + size for start, size in zip(starts, sizes, strict=True)]
        ones = (1,) * len(sizes)
        tiles.append(ctx.add(ops.Slice(padded, start_indices=starts, limit_indices=limits, strides=ones)))
    return tiles


@rule("XlaConcatND")
def concat_nd(ctx: Context, inputs: list[Value], *, num_concats: tuple[int, ...], paddings: tuple[int, ...]) -> Value:
    """XlaConcatND(inputs...; num_concats, paddings=[]) -> output: of tiles in rows"""
    for dimension, count in reversed(list(enumerate(num_concats))):
        rows = [inputs[start : start + count] for start in range(0, len(inputs), count)]
        inputs = [ctx.concatenate(row, dimension) for row in rows]
    (whole,) = inputs
    return ctx.pad(whole, (0,) * whole.type.rank, [-n for n in paddings or (0,) * whole.type.rank])


@rule("ReadVariableXlaSplitND")
def read_split_nd(
    ctx: Context, resource: Operand, *, num_splits: tuple[int, ...], paddings: tuple[int, ...]
) -> list[Value]:
    """ReadVariableXlaSplitND(resource; num_splits, paddings=[]) -> outputs..."""
    return split_nd(ctx, read_value(ctx, resource), num_splits=num_splits, paddings=paddings)


@rule("AssignVariableXlaConcatND")
def assign_concat_nd(
    ctx: Context, resource: Operand, inputs: list[Value], *, num_concats: tuple[int, ...], paddings: tuple[int, ...]
) -> None:
    """AssignVariableXlaConcatND(resource, inputs...; num_concats, paddings=[])"""
    whole = concat_nd(ctx, inputs, num_concats=num_concats, paddings=paddings)
    ctx.state.write(variable_of(ctx, resource), whole)


# Others


@rule("XlaBroadcastHelper")
def broadcast_helper(ctx: Context, lhs: Value, rhs: Value, broadcast_dims: Known) -> tuple[Value, Value]:
    """XlaBroadcastHelper(lhs, rhs, broadcast_dims) -> lhs_output, rhs_output: of one rank"""
    if not broadcast_dims.size:
        return lhs, rhs
    shape = max(lhs, rhs, key=lambda x: x.type.rank).type.static_shape

    def placed(x: Value) -> Value:
        if x.type.rank == len(shape):
            return x
        extents = [shape[i] if i in broadcast_dims else 1 for i in range(len(shape))]
        return ctx.broadcast_in_dim(x, extents, broadcast_dims.tolist())

    return placed(lhs), placed(rhs)


@rule("XlaRngBitGenerator")
def rng_bit_generator(ctx: Context, algorithm: Known, initial_state: Value, shape: Known) -> Sequence[Value]:
    """XlaRngBitGenerator(algorithm, initial_state, shape; dtype) -> output_key, output"""
    is_three_fry = int(algorithm) == THREE_FRY
    output = TensorType(tuple(shape.tolist()), element_type_of(ctx.node.outputs[1].dtype))
    drawn = ops.RngBitGenerator(
        initial_state,
        rng_algorithm=ops.RngAlgorithm.THREE_FRY if is_three_fry else ops.RngAlgorithm.PHILOX,
        output_state=initial_state.type,
        output=output,
    )
    return list(ctx.add(drawn))


@rule("XlaSpmdFullToShardShape", "XlaSpmdShardToFullShape")
def spmd_shape(
    ctx: Context, input: Value, *, manual_sharding: str, dim: int, unspecified_dims: tuple[int, ...]
) -> Value:
    """XlaSpmdFullToShardShape(input; manual_sharding, dim=-1, unspecified_dims=[]) -> output: one device has all"""
    if tuple(ctx.result.shape) != input.type.shape:
        ctx.unsupported("manual_sharding", "a part of a tensor", "one device, which holds the whole")
    return input


@rule("XlaSetBound")
def set_bound(ctx: Context, input: Tensor, bound: Tensor) -> Tensor:
    """XlaSetBound(input, bound) -> output: the input, which a compiler may assume to be at most that"""
    return input


@rule("XlaRemoveDynamicDimensionSize")
def remove_dynamic_size(ctx: Context, input: Tensor, dim_index: Tensor) -> Tensor:
    """XlaRemoveDynamicDimensionSize(input, dim_index) -> output: sizes are static here"""
    return input


@rule("XlaDequantize")
def dequantize(
    ctx: Context, input: Value, *, min_range: float, max_range: float, mode: str, transpose_output: bool
) -> Value:
    """XlaDequantize(input; min_range, max_range, mode, transpose_output) -> output: of four bytes in each integer, the
    highest first"""
    if mode != "MIN_COMBINED":
        ctx.unsupported("mode", mode, "MIN_COMBINED")
    *others, count = input.type.static_shape
    shifts = ctx.elements(np.array([24, 16, 8, 0], np.uint32))
    words = ctx.unsqueeze(input, [input.type.rank])
    parts = ctx.convert(ctx.binary(ops.ShiftRightLogical, words, shifts), UI32)
    parts = ctx.convert(ctx.binary(ops.And, parts, ctx.scalar(255, UI32)), UI8)
    numbers = ctx.convert(ctx.reshape(parts, (*others, 4 * count)), F32)
    scaled = ctx.plus(ctx.scaled(numbers, (max_range - min_range) / 255), ctx.scalar(min_range, F32))
    result = ctx.convert(scaled, BF16)
    return ctx.transpose(result, range(result.type.rank)[::-1]) if transpose_output else result


@rule("XlaCustomCall")
def custom_call(ctx: Context, args: list[Value], *, target_name: str, backend_config: str) -> Value:
    """XlaCustomCall(args...; target_name, backend_config, T, dtype, shape) -> output"""
    return ctx.add(
        ops.CustomCall(args, call_target_name=target_name, backend_config=backend_config, results=[_of_node(ctx)[0]])
    )[0]


@rule("XlaCustomCallV2")
def custom_call_v2(
    ctx: Context, operands: list[Value], *, call_target_name: str, backend_config: str, has_side_effect: bool
) -> Sequence[Value]:
    """XlaCustomCallV2(operands...; call_target_name, backend_config, has_side_effect, result_dtypes, result_shapes)
    -> results..."""
    return ctx.add(
        ops.CustomCall(
            operands,
            call_target_name=call_target_name,
            has_side_effect=has_side_effect,
            backend_config=backend_config,
            results=_of_node(ctx),
        )
    )


def _of_node(ctx: Context) -> list[TensorType]:
    """Returns the types that the node says its results have."""
    single = "shape" in ctx.node.node_def.attr
    shapes = [ctx.node.get_attr("shape")] if single else ctx.node.get_attr("result_shapes")
    dtypes = [ctx.node.get_attr("dtype")] if single else ctx.node.get_attr("result_dtypes")
    return [TensorType(tuple(as_shape(x).as_list()), element_type_of(y)) for x, y in zip(shapes, dtypes, strict=True)]
