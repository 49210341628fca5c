"""Contractions absorb transposes of their operands into their dimension numbers, and become multiplications where they
add nothing up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.ops import (
    Add,
    BroadcastInDim,
    Constant,
    Convert,
    Convolution,
    DotDimensionNumbers,
    DotGeneral,
    Multiply,
    Reshape,
    Transpose,
)
from trivium.ir.types import I1, TensorType, is_complex, is_quantized

CONTRACTION = PatternSet()
pattern = CONTRACTION.pattern


@pattern(Convolution)
def convolution_of_nothing_but_padding(op):
    """convolution(x, w) == convolution(zeros, w) without padding, if x has no elements"""
    numbers, kind = op.dimension_numbers, op.lhs.type
    if not (kind.is_static and op.result.type.is_static) or is_quantized(kind.element_type) or not op.result.type.size:
        return None
    shape, padding = list(kind.static_shape), op.padding or ((0, 0),) * len(numbers.input_spatial_dimensions)
    if 0 not in (shape[d] for d in numbers.input_spatial_dimensions):
        return None
    dilations = op.lhs_dilation or (1,) * len(padding)
    for d, (low, high), apart in zip(numbers.input_spatial_dimensions, padding, dilations, strict=True):
        shape[d] = low + max(0, (shape[d] - 1) * apart + 1) + high
    zeros = Constant(DenseElements.splat(np.zeros((), kind.dtype), kind.with_shape(shape))).result
    attributes = op.attributes | {"padding": ((0, 0),) * len(padding), "lhs_dilation": (1,) * len(padding)}
    return type(op).create([zeros, op.rhs], op.result_types, attributes, [], op.extra, op.location, op.segments)


@pattern(DotGeneral)
def dot_of_transposed_lhs(op):
    """dot(transpose(x), y) == dot(x, y) with x's own dimensions   (if the order of the result does not change)"""
    return _without_transpose(op, "lhs")


@pattern(DotGeneral)
def dot_of_transposed_rhs(op):
    """dot(x, transpose(y)) == dot(x, y) with y's own dimensions   (if the order of the result does not change)"""
    return _without_transpose(op, "rhs")


@pattern(DotGeneral)
def dot_of_repeated_rhs(op):
    """dot(x, repeat(y)) == dot(x, y), with the batches of x as further rows   (if y is the same in all batches)"""
    numbers, inner = op.dot_dimension_numbers, op.rhs.defining_op
    batching = numbers.rhs_batching_dimensions
    if not batching or not isinstance(inner, BroadcastInDim) or not op.result.type.is_static:
        return None
    own, repeated = inner.broadcast_dimensions, inner.result.type.static_shape
    kept = [d for d in range(len(repeated)) if d not in batching]
    if list(own) != kept or [repeated[d] for d in kept] != list(inner.operand.type.static_shape):
        return None
    # The batches come before the rows of x in the result, in the order of its batching dimensions.
    free = [d for d in range(op.lhs.type.rank) if d not in numbers.lhs_contracting_dimensions]
    if list(numbers.lhs_batching_dimensions) != free[: len(batching)]:
        return None
    summed = tuple(kept.index(d) for d in numbers.rhs_contracting_dimensions)
    renamed = DotDimensionNumbers((), (), numbers.lhs_contracting_dimensions, summed)
    return with_numbers(op, op.lhs, inner.operand, renamed, op.result.type)


@pattern(DotGeneral)
def dot_of_units(op):
    """dot(x, y) == x * y + 0, with both repeated to the shape of the result   (sums of single products; 0 turns -0 into
    0, as it does where sums begin)"""
    kind, numbers = op.result.type, op.dot_dimension_numbers
    sides = (
        (op.lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (op.rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    )
    if any(value.type.shape[d] != 1 for value, _, contracting in sides for d in contracting):
        return None
    if not kind.is_static or op.algorithm is not None or any(not _is_exact_in(v.type, kind) for v, *_ in sides):
        return None
    first = len(numbers.lhs_batching_dimensions)
    factors = []
    for value, batching, contracting in sides:
        free = [d for d in range(value.type.rank) if d not in (*batching, *contracting)]
        place = dict(zip((*batching, *free), (*range(len(batching)), *range(first, first + len(free))), strict=True))
        first += len(free)
        kept = [d for d in range(value.type.rank) if d not in contracting]
        shape = [value.type.static_shape[d] for d in kept]
        factor = Reshape(value, result=value.type.with_shape(shape)).result
        if factor.type.dtype != kind.dtype:
            factor = Convert(factor, result=kind.with_shape(shape)).result
        dimensions = [place[d] for d in kept]
        factors.append(BroadcastInDim(factor, broadcast_dimensions=dimensions, result=kind).result)
    zero = Constant(DenseElements.splat(0, kind)).result
    return Add(Multiply(*factors).result, zero)


def _is_exact_in(kind: TensorType, result: TensorType) -> bool:
    """Whether products in the type of a dot's result are those that it adds up: its factors are of this type, or of one
    whose numbers it all has. Sums of booleans are disjunctions."""
    types = kind.element_type, result.element_type
    if any(is_quantized(each) or each is I1 for each in types):
        return False
    return types[0] is types[1] or (not any(map(is_complex, types)) and np.can_cast(kind.dtype, result.dtype))


def _without_transpose(op: DotGeneral, side: str) -> DotGeneral | None:
    operands = {"lhs": op.lhs, "rhs": op.rhs}
    inner = operands[side].defining_op
    if not isinstance(inner, Transpose):
        return None
    numbers: DotDimensionNumbers = op.dot_dimension_numbers
    batching = getattr(numbers, f"{side}_batching_dimensions")
    contracting = getattr(numbers, f"{side}_contracting_dimensions")
    # Batching and contracting dimensions are named, so their order is free; the others appear in the result in order.
    free = [inner.permutation[d] for d in range(inner.result.type.rank) if d not in (*batching, *contracting)]
    if free != sorted(free):
        return None
    renamed = replace(
        numbers,
        **{
            f"{side}_batching_dimensions": tuple(inner.permutation[d] for d in batching),
            f"{side}_contracting_dimensions": tuple(inner.permutation[d] for d in contracting),
        },
    )
    operands[side] = inner.operand
    return with_numbers(op, operands["lhs"], operands["rhs"], renamed, op.result.type)


def with_numbers(
    op: DotGeneral, lhs: Value, rhs: Value, numbers: DotDimensionNumbers, result: TensorType
) -> DotGeneral:
    """Returns a product that is computed in the same way, of other operands and dimensions."""
    options = {name: value for name, value in op.attributes.items() if name != "dot_dimension_numbers"}
    return DotGeneral(lhs, rhs, dot_dimension_numbers=numbers, result=result, extra=op.extra, **options)
