"""Integers that stand for the steps of a range, in one of three ways: the bounds are steps (MIN_COMBINED), zero is a
step (MIN_FIRST), or the integer 0 stands for zero (SCALED). Numbers are computed in the order of TensorFlow's kernels,
so that results are equal to theirs."""

from __future__ import annotations

import math

from trivium.importers.emit import integer_range
from trivium.importers.tensorflow.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, I32, IntegerType


@rule("QuantizeV2")
def quantize(
    ctx: Context,
    input: Value,
    min_range: Value,
    max_range: Value,
    *,
    mode: str,
    round_mode: str,
    narrow_range: bool,
    axis: int,
    ensure_minimum_range: float,
) -> list[Value]:
    """QuantizeV2(input, min_range, max_range; T, mode="MIN_COMBINED", round_mode="HALF_AWAY_FROM_ZERO",
    narrow_range=false, axis=-1, ensure_minimum_range=0.01) -> output, output_min, output_max. The bounds are NaN if
    they are in the wrong order."""
    kind = ctx.element_type
    assert isinstance(kind, IntegerType), kind
    if round_mode != "HALF_AWAY_FROM_ZERO" and mode != "SCALED":
        ctx.unsupported("round_mode", f"{round_mode} in the mode {mode}", "HALF_AWAY_FROM_ZERO")
    known = [ctx.known_if_possible(x) for x in (min_range, max_range)]
    if known[0] is not None and known[1] is not None and (known[1] < known[0]).any():
        ctx.unsupported("max_range", known[1].tolist(), f"at least min_range, {known[0].tolist()}")
    low, high = _bounds(ctx, mode, min_range, max_range, input, axis)
    low, high = _widened(ctx, low, high, ensure_minimum_range)
    if mode == "MIN_FIRST":
        steps = _steps_from_zero(ctx, input, low, high, kind)
    elif mode == "SCALED":
        low, high, scale = _scaled(ctx, low, high, kind, narrow_range)
        start, end, scale = (_spread(ctx, x, input, axis) for x in (low, high, scale))
        steps = ctx.times(_clamped(ctx, input, start, end), scale)
        steps = ctx.add((ops.RoundNearestEven if round_mode == "HALF_TO_EVEN" else ops.RoundNearestAfz)(steps))
    else:
        start, end = (_spread(ctx, x, input, axis) for x in (low, high))
        steps = _steps_between(ctx, input, start, end, kind)
    return [_stored(ctx, input, steps, kind, mode), low, high]


def _bounds(ctx: Context, mode: str, low: Value, high: Value, input: Value, axis: int) -> tuple[Value, Value]:
    """Returns the bounds, or those of the slices along an axis."""
    if mode == "MIN_FIRST" and axis >= 0 and input.type.shape[axis : axis + 1] != (1,):
        ctx.unsupported("axis", f"{axis} in the mode MIN_FIRST", "-1")
    return _bound(ctx, "min_range", low, input, axis), _bound(ctx, "max_range", high, input, axis)


def _bound(ctx: Context, argument: str, x: Value, input: Value, axis: int) -> Value:
    extents = [ctx.extent(input, axis)] if axis >= 0 else []
    if axis < 0 and x.type.is_static and x.type.size != 1:
        ctx.unsupported(argument, x.type, "one number")
    if axis >= 0 and not (x.type.rank == 1 and x.type.shape[0] in (None, input.type.shape[axis])):
        ctx.unsupported(argument, x.type, f"a number for each slice along dimension {axis} of {input.type}")
    return ctx.reshape(x, extents)


def _spread(ctx: Context, x: Value, input: Value, axis: int) -> Value:
    return ctx.broadcast_in_dim(x, ctx.extents(input), [axis]) if axis >= 0 else x


def _least(ctx: Context, a: Value, b: Value) -> Value:
    """Returns the second number if it is the smaller one, and otherwise, also beside NaN, the first one."""
    return ctx.select(ctx.compare("LT", b, a), b, a)


def _most(ctx: Context, a: Value, b: Value) -> Value:
    """Returns the second number if it is the larger one, and otherwise, also beside NaN, the first one."""
    return ctx.select(ctx.compare("LT", a, b), b, a)


def _widened(ctx: Context, low: Value, high: Value, least_width: float) -> tuple[Value, Value]:
    """Returns bounds that have zero between them, and a distance to each other."""
    zero, nan = ctx.full_like(low, 0), ctx.full_like(low, math.nan)
    largest = _most(ctx, *(ctx.add(ops.Abs(x)) for x in (low, high)))
    margin = ctx.scaled(_most(ctx, ctx.full_like(low, 1), largest), least_width)
    start = _least(ctx, zero, low)
    end = _most(ctx, zero, _most(ctx, high, ctx.plus(start, margin)))
    is_reversed = ctx.compare("LT", high, low)
    return ctx.select(is_reversed, nan, start), ctx.select(is_reversed, nan, end)


def _clamped(ctx: Context, x: Value, low: Value, high: Value) -> Value:
    return ctx.binary(ops.Maximum, ctx.binary(ops.Minimum, x, high), low)


def _steps_between(ctx: Context, x: Value, low: Value, high: Value, kind: IntegerType) -> Value:
    least, _ = integer_range(kind)
    steps = ctx.times(ctx.minus(_clamped(ctx, x, low, high), low), _steps_per_unit(ctx, low, high, kind))
    if not least:
        return ctx.add(ops.Floor(ctx.plus(steps, ctx.full_like(steps, 0.5))))
    return ctx.add(ops.RoundNearestAfz(ctx.minus(steps, ctx.full_like(steps, -least))))


def _steps_per_unit(ctx: Context, low: Value, high: Value, kind: IntegerType) -> Value:
    least, most = integer_range(kind)
    width = ctx.convert(ctx.minus(high, low), F64)
    return ctx.convert(ctx.over(ctx.full_like(width, most - least), width), F32)


def _steps_from_zero(ctx: Context, x: Value, low: Value, high: Value, kind: IntegerType) -> Value:
    least, most = integer_range(kind)
    scale = _steps_per_unit(ctx, low, high, kind)
    start = ctx.minus(ctx.add(ops.RoundNearestAfz(ctx.times(low, scale))), ctx.full_like(low, least))
    steps = ctx.minus(ctx.add(ops.RoundNearestAfz(ctx.times(x, scale))), start)
    # The largest float that a 32-bit integer holds.
    last = min(most, 2**31 - 128)
    return _clamped(ctx, steps, ctx.full_like(steps, least), ctx.full_like(steps, last))


def _scaled(ctx: Context, low: Value, high: Value, kind: IntegerType, narrow: bool) -> tuple[Value, Value, Value]:
    """Returns what the first and the last integer stand for, and the scale, which is that of the bound that is farther
    from zero."""
    least, most = integer_range(kind)
    ends = [ctx.full_like(low, x) for x in (least + narrow, most)]
    none, zero = ctx.full_like(low, LARGEST), ctx.full_like(low, 0)
    sides = []
    for end, bound in zip(ends, (low, high), strict=True):
        is_alike = ctx.compare("GT", ctx.times(end, bound), zero)
        sides.append(ctx.select(is_alike, ctx.over(end, bound), none))
    scale = _least(ctx, *sides)
    return ctx.over(ends[0], scale), ctx.over(ends[1], scale), scale


LARGEST = (2 - 2**-23) * 2.0**127


def _stored(ctx: Context, x: Value, steps: Value, kind: IntegerType, mode: str) -> Value:
    """Returns steps as integers. TensorFlow's kernels convert them by the processor's instruction, which has the lowest
    integer of 32 bits for NaN and for what is too large; of NaN, they keep it, its last bits, or zero."""
    least, _ = integer_range(kind)
    of_nan = least if (kind.width == 32) == (mode == "MIN_FIRST") else 0
    steps = ctx.select(ctx.compare("NE", x, x), ctx.full_like(steps, of_nan), steps)
    if kind.width == 32:
        lowest = ctx.full_like(steps, least)
        steps = ctx.select(ctx.compare("GE", steps, ctx.full_like(steps, -least)), lowest, steps)
    return ctx.convert(ctx.convert(steps, I32), kind)


@rule("Dequantize")
def dequantize(
    ctx: Context, input: Value, min_range: Value, max_range: Value, *, mode: str, narrow_range: bool, axis: int
) -> Value:
    """Dequantize(input, min_range, max_range; mode="MIN_COMBINED", narrow_range=false, axis=-1, dtype=DT_FLOAT) ->
    output"""
    kind = input.type.element_type
    assert isinstance(kind, IntegerType), kind
    low, high = (_spread(ctx, x, input, axis) for x in _bounds(ctx, mode, min_range, max_range, input, axis))
    numbers, (least, most) = ctx.convert(input, F32), integer_range(kind)
    if mode == "SCALED":
        scale = ctx.over(high, ctx.full_like(high, most))
        if least:
            scale = _most(ctx, ctx.over(low, ctx.full_like(low, least + narrow_range)), scale)
        found = ctx.times(numbers, scale)
    elif mode == "MIN_FIRST":
        width = ctx.convert(ctx.minus(high, low), F64)
        scale = ctx.convert(ctx.over(width, ctx.full_like(width, most - least)), F32)
        first = ctx.minus(_nearest_step(ctx, low, scale), ctx.times(ctx.full_like(scale, least), scale))
        found = ctx.plus(first, ctx.times(numbers, scale))
    else:
        scale = ctx.over(ctx.minus(high, low), ctx.full_like(low, most - least))
        found = ctx.plus(ctx.times(ctx.plus(numbers, ctx.full_like(numbers, -least)), scale), low)
    return ctx.convert(found, ctx.element_type)


def _nearest_step(ctx: Context, low: Value, scale: Value) -> Value:
    """Returns the multiple of the scale that is closest to a bound, so that an integer stands for zero; of an empty
    range the bound itself."""
    rounded = ctx.times(ctx.add(ops.RoundNearestAfz(ctx.over(low, scale))), scale)
    return ctx.select(ctx.compare("EQ", scale, ctx.full_like(scale, 0)), low, rounded)
