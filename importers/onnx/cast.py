"""Conversion between element types as ONNX defines it, where that differs from StableHLO's `convert`: floats of 8 bits
saturate by default, integers of 2 and 4 bits wrap, and powers of two (`f8E8M0FNU`) have rounding modes."""

from __future__ import annotations

import ml_dtypes

from trivium.importers.onnx.context import Context, element_type, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, FLOATS, I32, UI8, UI32, ElementType, FloatType, IntegerType, is_boolean, is_float

SATURATING = {FLOATS[name] for name in ("f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ")}
POWER_OF_TWO = FLOATS["f8E8M0FNU"]
ROUND_MODES = ("up", "down", "nearest")


@rule("Cast", since=6)
def cast(ctx: Context, x: Value, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    """Cast(input, to, saturate, round_mode)"""
    return converted(ctx, x, element_type(to), bool(saturate), round_mode)


@rule("CastLike")
def cast_like(ctx: Context, x: Value, target: Value, saturate: int = 1, round_mode: str = "up") -> Value:
    """CastLike(input, target_type, saturate, round_mode)"""
    return converted(ctx, x, target.type.element_type, bool(saturate), round_mode)


def converted(ctx: Context, x: Value, kind: ElementType, saturate: bool, round_mode: str) -> Value:
    """Returns `x` converted to another element type."""
    given = x.type.element_type
    if round_mode not in ROUND_MODES:
        ctx.unsupported("round_mode", round_mode, f"one of {', '.join(ROUND_MODES)}")
    if is_boolean(kind):
        return x if is_boolean(given) else ctx.compare("NE", x, ctx.full_like(x, 0))
    if kind in SATURATING and saturate:
        return _saturated(ctx, x, kind)
    if kind is POWER_OF_TWO and given is not kind:
        return _power_of_two(ctx, ctx.convert(x, F32), saturate, round_mode)
    if isinstance(kind, IntegerType) and kind.width < 8 and is_float(given):
        x = ctx.convert(x, I32)  # first drops the fraction, and then the high bits
    return ctx.convert(x, kind)


def _saturated(ctx: Context, x: Value, kind: FloatType) -> Value:
    """Replaces values beyond the largest finite number, including infinity, by that number."""
    wide = ctx.convert(x, F64 if x.type.element_type is F64 else F32)
    largest = float(ml_dtypes.finfo(kind.dtype).max)
    low, high = (ctx.scalar(bound, wide.type.element_type) for bound in (-largest, largest))
    return ctx.convert(ctx.add(ops.Clamp(low, wide, high)), kind)


def _power_of_two(ctx: Context, x: Value, saturate: bool, round_mode: str) -> Value:
    """Returns the exponent of each element, rounded. The least value, 2^-127, is subnormal in 32 bits: 0x400000.

    Values out of range (zero, less than the least, more than the greatest, infinity) become the nearest value if
    `saturate`, otherwise NaN. The sign is ignored: ONNX leaves the conversion of negative numbers open."""

    def number(value: int) -> Value:
        return ctx.full(x.type.static_shape, value, UI32)

    bits = ctx.add(ops.BitcastConvert(ctx.add(ops.Abs(x)), result=x.type.with_element(UI32)))
    # The number that is added to a value between two powers carries it to the upper one: `up` from the first bit of its
    # fraction on, `nearest` from its highest one on. Below the least normal number, two powers are half as far apart.
    carry, carry_below = {"up": (0x7FFFFF, 0x3FFFFF), "nearest": (0x400000, 0x200000), "down": (0, 0)}[round_mode]
    is_normal = ctx.compare("GE", bits, number(0x800000))
    raised = ctx.plus(bits, ctx.select(is_normal, number(carry), number(carry_below)))
    exponent = ctx.add(ops.ShiftRightLogical(raised, number(23)))
    if saturate:
        exponent = ctx.add(ops.Minimum(exponent, number(0xFE)))
        no_number = ctx.compare("GT", bits, number(0x7F800000))
    else:
        no_number = ctx.compare("LT", bits, number(0x400000))
        no_number = ctx.add(ops.Or(no_number, ctx.compare("GE", bits, number(0x7F800000))))
    exponent = ctx.select(no_number, number(0xFF), exponent)
    return ctx.add(ops.BitcastConvert(ctx.convert(exponent, UI8), result=x.type.with_element(POWER_OF_TWO)))
