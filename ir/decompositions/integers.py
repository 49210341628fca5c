"""Operations on bits: the upper half of a product, and the next float."""

from __future__ import annotations

import math

import ml_dtypes

from trivium.ir.decompositions.table import decomposition
from trivium.ir.decompositions.tensors import Tensor, maximum, where
from trivium.ir.ops import Mulhi, NextAfter, ShiftRightArithmetic
from trivium.ir.types import F64, IntegerType


@decomposition(Mulhi)
def mulhi(lhs, rhs):
    """Multiplies in a type twice as wide, if there is one."""
    kind = lhs.element_type
    if kind.width == 64:
        return _mulhi_of_halves(lhs, rhs)
    wide = IntegerType(max(2 * kind.width, 8), kind.signedness)
    return _shifted(lhs.to(wide) * rhs.to(wide), kind.width).to(kind)


def _mulhi_of_halves(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Uses the products of the halves; only the lower halves are unsigned."""
    mask = (1 << 32) - 1
    high, low = _shifted(lhs, 32), lhs & mask
    other_high, other_low = _shifted(rhs, 32), rhs & mask
    carried = high * other_low + ((low * other_low) >> 32)
    middle = low * other_high + (carried & mask)
    return high * other_high + _shifted(carried, 32) + _shifted(middle, 32)


def _shifted(x: Tensor, count: int) -> Tensor:
    """x / 2^count, rounded down."""
    if x.element_type.signedness == "u":
        return x >> count
    return x.of(ShiftRightArithmetic(x.value, x.like(count).value))


@decomposition(NextAfter)
def next_after(x, y):
    """Takes one step towards `y`, away from zero or back to it."""
    kind = x.element_type
    least = x.like(float(ml_dtypes.finfo(kind.dtype).smallest_subnormal))
    # Types narrower than a byte, or without a sign, take the step in another type.
    found = (_step_by_bits if kind.width >= 8 and kind.name != "f8E8M0FNU" else _step_by_value)(x, y)
    if kind.name != "f8E8M0FNU":
        found = where(x.equals(0), where(y > 0, least, -least), found)
    found = where(x.equals(y), y, found)
    return where(x.differs(x) | y.differs(y), x + y, found)


def _step_by_bits(x: Tensor, y: Tensor) -> Tensor:
    """Adds or subtracts 1 from the float's bits as an integer: a sign bit, followed by the magnitude."""
    kind = x.element_type
    bits = IntegerType(8 * kind.dtype.itemsize, "u")
    sign = 1 << (bits.width - 1)
    number = x.bits_as(bits)
    outwards = (x < y).equals((number & sign).equals(0))
    stepped = where(outwards, number + 1, number - 1)
    if math.isnan(float(kind.dtype.type(-0.0))) or kind.name.endswith("FNUZ"):
        stepped = where(stepped.equals(sign), number.like(0), stepped)  # the bits of -0 are NaN
    return stepped.bits_as(kind)


def _step_by_value(x: Tensor, y: Tensor) -> Tensor:
    """Adds or subtracts the spacing of the type's numbers on that side, computed exactly in f64."""
    limits = ml_dtypes.finfo(x.type.dtype)
    wide = x.to(F64)
    magnitude, negative = abs(wide), wide < 0
    power = (magnitude.bits_as(IntegerType(64, "u")) & (0x7FF << 52)).bits_as(F64)
    above = power * 2.0**-limits.nmant
    below = where(magnitude.equals(power), above * 0.5, above)
    outwards = (x < y).differs(negative)
    smallest = float(limits.smallest_subnormal)
    stepped = where(outwards, magnitude + maximum(above, smallest), magnitude - maximum(below, smallest))
    return where(negative, -stepped, stepped).to(x.element_type)
