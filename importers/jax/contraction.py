"""Dot products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from jax import lax
from jax._src.lax.lax import _ragged_dot_general_impl  # products of all groups, which algorithms are for
from jax.typing import DTypeLike

from trivium.importers.convolution import Layout
from trivium.importers.convolution import dimension_numbers as convolution_numbers
from trivium.importers.jax.context import Context, Ints, Padding, rule
from trivium.importers.jax.definitions import Definition
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import ElementType, FloatType, element_type_of

DotNumbers = tuple[tuple[Ints, Ints], tuple[Ints, Ints]]
"""The contracting dimensions of both operands, and the batching ones."""
Precision = lax.Precision | tuple[lax.Precision, lax.Precision] | None
Algorithm = lax.DotAlgorithm | lax.DotAlgorithmPreset


@rule("dot_general")
def dot_general(
    ctx: Context, lhs: Value, rhs: Value, dimension_numbers: DotNumbers, precision: Precision | Algorithm
) -> Value:
    """dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)"""
    contracting, batching = dimension_numbers
    numbers = ops.DotDimensionNumbers(
        lhs_batching_dimensions=tuple(batching[0]),
        rhs_batching_dimensions=tuple(batching[1]),
        lhs_contracting_dimensions=tuple(contracting[0]),
        rhs_contracting_dimensions=tuple(contracting[1]),
    )
    if not isinstance(precision, Algorithm):
        config = _precision(ctx, precision)
        lhs, rhs = _of_one_type(ctx, lhs, rhs)
        dot = ops.DotGeneral(lhs, rhs, dot_dimension_numbers=numbers, precision_config=config, result=ctx.result)
        return ctx.add(dot)
    (left, right, total), algorithm = _algorithm(ctx, precision, lhs, rhs)
    lhs, rhs = _of_one_type(ctx, ctx.convert(lhs, left), ctx.convert(rhs, right))
    result = ctx.result.with_element(total)
    dot = ops.DotGeneral(lhs, rhs, dot_dimension_numbers=numbers, algorithm=algorithm, result=result)
    return ctx.convert(ctx.add(dot), ctx.result.element_type)


@rule("ragged_dot_general")
def ragged_dot_general(
    ctx: Context,
    lhs: Value,
    rhs: Value,
    group_sizes: Value,
    ragged_dot_dimension_numbers: lax.RaggedDotDimensionNumbers,
    precision: Precision | Algorithm,
    group_offset: object,
) -> Value:
    """ragged_dot_general(lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision, preferred_element_type)"""
    if group_offset is not None:
        ctx.unsupported("group_offset", group_offset, "None")
    if isinstance(precision, Algorithm):
        parameters = {"ragged_dot_dimension_numbers": ragged_dot_dimension_numbers, "precision": precision}
        in_full = Definition(partial(_ragged_dot_general_impl, preferred_element_type=ctx.result.dtype, **parameters))
        return in_full(ctx, lhs, rhs, group_sizes)[0]
    contracting, batching = ragged_dot_dimension_numbers.dot_dimension_numbers
    (ragged,) = ragged_dot_dimension_numbers.lhs_ragged_dimensions
    if ragged in batching[0]:
        # Like JAX, without the groups: what is outside of them has no meaning.
        return dot_general(ctx, lhs, rhs, (contracting, batching), precision)
    config = _precision(ctx, precision)
    lhs, rhs = _of_one_type(ctx, lhs, rhs)
    numbers = ops.RaggedDotDimensionNumbers(
        lhs_batching_dimensions=tuple(batching[0]),
        rhs_batching_dimensions=tuple(batching[1]),
        lhs_contracting_dimensions=tuple(contracting[0]),
        rhs_contracting_dimensions=tuple(contracting[1]),
        lhs_ragged_dimensions=(ragged,),
        rhs_group_dimensions=tuple(ragged_dot_dimension_numbers.rhs_group_dimensions),
    )
    given = None if config is None else [ops.ChloPrecision(one.value) for one in config]
    return ctx.add(ops.RaggedDot(lhs, rhs, group_sizes, numbers, precision_config=given, result=ctx.result))


def _of_one_type(ctx: Context, lhs: Value, rhs: Value) -> tuple[Value, Value]:
    """Converts operands of different types to the result's, as JAX does; 8-bit floats to f32, which has all of them."""
    left, right = lhs.type.element_type, rhs.type.element_type
    if left is right:
        return lhs, rhs
    kind = FloatType("f32") if _has_8_bits(left) and _has_8_bits(right) else ctx.result.element_type
    return ctx.convert(lhs, kind), ctx.convert(rhs, kind)


def _has_8_bits(kind: ElementType) -> bool:
    return isinstance(kind, FloatType) and kind.width == 8


def _algorithm(
    ctx: Context, precision: Algorithm, lhs: Value, rhs: Value
) -> tuple[tuple[ElementType, ElementType, ElementType], ops.DotAlgorithm | None]:
    """Returns the types that the algorithm requires of the operands and of their product, and what says it in
    StableHLO."""
    if isinstance(precision, lax.DotAlgorithm):
        left, right, total = map(element_type_of, precision[:3])
        return (left, right, total), ops.DotAlgorithm(left, right, total, *precision[3:])
    dtypes = (
        _supported(lhs.type.dtype, precision.supported_lhs_types),
        _supported(rhs.type.dtype, precision.supported_rhs_types),
    )
    kinds = (*dtypes, _supported(ctx.result.dtype, precision.supported_output_types(*dtypes)))
    left, right, total = map(element_type_of, kinds)
    if precision is lax.DotAlgorithmPreset.DEFAULT:
        return (left, right, total), None
    if not precision.name.startswith("ANY_F8"):
        return (left, right, total), _named(precision.name.lower())
    if not _has_8_bits(left) or not _has_8_bits(right):
        ctx.unsupported("precision", precision, "another one: it is for operands of 8-bit floats")
    is_fast = precision is lax.DotAlgorithmPreset.ANY_F8_ANY_F8_F32_FAST_ACCUM
    return (left, right, total), ops.DotAlgorithm(left, right, FloatType("f32"), 1, 1, 1, is_fast)


def _named(name: str) -> ops.DotAlgorithm:
    """Returns the algorithm with a name such as "bf16_bf16_f32_x3"."""
    types, _, products = name.partition("_x")
    left, right, total = map(FloatType, types.split("_"))
    return ops.DotAlgorithm(left, right, total, 1, 1, int(products or 1), False)


def _supported(dtype: np.dtype, supported: Sequence[DTypeLike] | None) -> np.dtype:
    """Returns the type in which an algorithm takes an array: its own, if the algorithm supports that."""
    return dtype if supported is None or dtype in supported else np.dtype(supported[0])


@rule("conv_general_dilated")
def conv_general_dilated(
    ctx: Context,
    lhs: Value,
    rhs: Value,
    window_strides: Ints,
    padding: Padding,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: Sequence[Ints],
    feature_group_count: int,
    batch_group_count: int,
    precision: Precision,
) -> Value:
    """conv_general_dilated(lhs, rhs, window, dimension_numbers, group counts)"""
    lhs_layout, rhs_layout, out_layout = (Layout(spec[0], spec[1], tuple(spec[2:])) for spec in dimension_numbers)
    return ctx.add(
        ops.Convolution(
            lhs,
            rhs,
            window_strides=window_strides,
            padding=padding,
            lhs_dilation=lhs_dilation,
            rhs_dilation=rhs_dilation,
            dimension_numbers=convolution_numbers(lhs_layout, rhs_layout, out_layout),
            feature_group_count=feature_group_count,
            batch_group_count=batch_group_count,
            precision_config=_precision(ctx, precision),
            result=ctx.result,
        )
    )


def _precision(ctx: Context, precision: Precision) -> tuple[ops.Precision, ...] | None:
    if precision is None:
        return None
    pair = precision if isinstance(precision, tuple) else (precision, precision)
    if not all(isinstance(one, lax.Precision) for one in pair):
        ctx.unsupported("precision", precision, "lax.Precision")
    return tuple(ops.Precision(one.name) for one in pair)
