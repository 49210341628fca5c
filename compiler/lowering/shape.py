"""Ops that move elements without computing: each rule says where in the operand an element of the result comes from.
Also ops that create tensors without operands."""

from __future__ import annotations

from itertools import accumulate

from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, Indices, constant, delinearize, linearize
from trivium.compiler.lowering.rules import element, indexing
from trivium.compiler.lowering.scalars import Scalar, dtype_of, is_pair
from trivium.ir import ops
from trivium.ir.types import is_float


@indexing(ops.Reshape)
def reshape(op: ops.Reshape, indices: Indices) -> Indices:
    return delinearize(linearize(indices, op.result.type.shape), op.operand.type.shape)


@indexing(ops.BroadcastInDim)
def broadcast_in_dim(op: ops.BroadcastInDim, indices: Indices) -> Indices:
    pairs = zip(op.operand.type.shape, op.broadcast_dimensions, strict=True)
    return tuple(constant(0) if extent == 1 else indices[dimension] for extent, dimension in pairs)


@indexing(ops.Transpose)
def transpose(op: ops.Transpose, indices: Indices) -> Indices:
    of_dimension = dict(zip(op.permutation, indices, strict=True))
    return tuple(of_dimension[dimension] for dimension in range(len(indices)))


@indexing(ops.Reverse)
def reverse(op: ops.Reverse, indices: Indices) -> Indices:
    shape = op.operand.type.shape
    return tuple(
        index * -1 + (shape[dimension] - 1) if dimension in op.dimensions else index
        for dimension, index in enumerate(indices)
    )


@indexing(ops.Slice)
def slice_(op: ops.Slice, indices: Indices) -> Indices:
    steps = zip(indices, op.strides, op.start_indices, strict=True)
    return tuple(index * stride + start for index, stride, start in steps)


@element(ops.Constant)
def constant_element(ctx: LoweringContext, op: ops.Constant, indices: Indices) -> Scalar:
    return ctx.load(op.result, indices)


@element(ops.Iota)
def iota(ctx: LoweringContext, op: ops.Iota, indices: Indices) -> Scalar:
    kind = op.result.type.element_type
    dtype = dtype_of(kind)
    count = ctx.position(indices[op.iota_dimension])
    if is_float(kind) or is_pair(kind):
        real = ctx.b.convert(count, dtype)
        return (real, ctx.b.constant(0.0, dtype)) if is_pair(kind) else real
    return ctx.b.convert(count, dtype)


@element(ops.Concatenate, branches=True)
def concatenate(ctx: LoweringContext, op: ops.Concatenate, indices: Indices) -> Scalar:
    """Emits choices between the halves of the operands, so that they are not nested deeply if there are many."""
    along = indices[op.dimension]
    low, high = along.range
    starts = [0, *accumulate(operand.type.shape[op.dimension] for operand in op.inputs)]

    def among(first: int, last: int) -> Scalar:
        if last - first == 1:
            ctx.narrow(along, starts[first], starts[last] - 1)
            place = (*indices[: op.dimension], along - starts[first], *indices[op.dimension + 1 :])
            return ctx.element(op.inputs[first], place)
        middle = (first + last) // 2
        if high < starts[middle]:
            return among(first, middle)
        if low >= starts[middle]:
            return among(middle, last)
        is_before = ctx.b.compare("LT", ctx.position(along), starts[middle])
        return ctx.choose(is_before, lambda: among(first, middle), lambda: among(middle, last))

    return among(0, len(op.inputs))


@element(ops.Pad, branches=True)
def pad(ctx: LoweringContext, op: ops.Pad, indices: Indices) -> Scalar:
    """Emits the operand's element where there is one, else the padding."""
    condition = None
    inside: list[Index] = []
    dimensions = list(zip(indices, op.operand.type.shape, op.edge_padding_low, op.interior_padding, strict=True))
    for index, extent, low, interior in dimensions:
        place = index - low
        below, above = place.range
        tests = []
        if below < 0:
            tests.append(lambda p=place: ctx.b.compare("GE", ctx.position(p), 0))
        if above > (extent - 1) * (interior + 1):
            tests.append(lambda p=place, e=extent, i=interior: ctx.b.compare("LE", ctx.position(p), (e - 1) * (i + 1)))
        if interior:
            tests.append(lambda p=place, i=interior: ctx.b.compare("EQ", ctx.b.remainder(ctx.position(p), i + 1), 0))
        for test in tests:
            condition = test() if condition is None else ctx.b.apply("and", condition, test())
        inside.append(place // (interior + 1))
    padding = ctx.element(op.padding_value)
    if condition is None:
        return ctx.element(op.operand, tuple(inside))

    def own() -> Scalar:
        for index, extent, low, interior in dimensions:
            ctx.narrow(index, low, low + (extent - 1) * (interior + 1))
        return ctx.element(op.operand, tuple(inside))

    return ctx.choose(condition, own, lambda: padding)
