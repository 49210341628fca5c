"""Elements as those of other types: by their values, or by their bits."""

from __future__ import annotations

import math

import ml_dtypes

from trivium.importers.extents import scalar_of
from trivium.importers.tensorflow.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import BF16, C128, F32, F64, I1, I64, ElementType, IntegerType, is_boolean, is_complex, is_float


@rule("Cast")
def cast(ctx: Context, x: Value, *, Truncate: bool) -> Value:
    """Cast(x; Truncate=false) -> y"""
    kind = ctx.element_type
    if is_boolean(kind) and is_complex(x.type.element_type):
        x = ctx.add(ops.Real(x))
    if Truncate and is_float(kind) and x.type.element_type in ((F32,) if kind is BF16 else (F32, F64)):
        x = _without_last_bits(ctx, x, kind)
    return ctx.convert(x, kind)


def _without_last_bits(ctx: Context, x: Value, kind: ElementType) -> Value:
    """Returns floats whose last bits are zero: those for which another type has no room, so that none is rounded."""
    lost = ml_dtypes.finfo(x.type.dtype).nmant - ml_dtypes.finfo(kind.dtype).nmant
    if lost <= 0:
        return x
    integer = IntegerType(8 * x.type.dtype.itemsize, "u")
    mask = ctx.scalar((1 << integer.width) - (1 << lost), integer)
    return _bits(ctx, ctx.binary(ops.And, _bits(ctx, x, integer), mask), x.type.element_type)


@rule("Bitcast")
def bitcast(ctx: Context, x: Value) -> Value:
    """Bitcast(input) -> output"""
    kind = ctx.element_type
    if is_complex(kind) is is_complex(x.type.element_type):
        return _bits(ctx, x, kind)
    if is_complex(kind):
        # The parts of a complex number lie side by side.
        half = F64 if kind is C128 else F32
        count = half.dtype.itemsize // x.type.dtype.itemsize
        rows = ctx.reshape(x, (*ctx.extents(x)[:-1], 2, count)) if count > 1 else x
        parts = _bits(ctx, rows, half)
        last = parts.type.rank - 1
        real, imaginary = (ctx.squeeze(ctx.slice(parts, last, i, i + 1), [last]) for i in range(2))
        return ctx.binary(ops.Complex, real, imaginary)
    last = x.type.rank
    both = ctx.concatenate([ctx.unsqueeze(ctx.add(part(x)), [last]) for part in (ops.Real, ops.Imag)], last)
    return ctx.reshape(_bits(ctx, both, kind), ctx.result.static_shape)


def _bits(ctx: Context, x: Value, kind: ElementType) -> Value:
    """Returns the same bits as elements of another type, which add a dimension or take one away."""
    old, new = x.type.dtype.itemsize, kind.dtype.itemsize
    shape = x.type.shape
    if new < old:
        shape = (*shape, old // new)
    elif new > old:
        shape = shape[:-1]
    return ctx.add(ops.BitcastConvert(x, result=x.type.with_shape(shape).with_element(kind)))


@rule("ToBool")
def to_bool(ctx: Context, input: Value) -> Value:
    """ToBool(input) -> output: of a tensor with dimensions, whether it has elements"""
    if input.type.rank:
        return ctx.compare("GT", scalar_of(ctx, math.prod(ctx.extents(input))), ctx.scalar(0, I64))
    return ctx.convert(input, I1)
