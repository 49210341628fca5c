"""Logic on booleans and on the bits of integers, shifts and counts of bits."""

from __future__ import annotations

import numpy as np

from trivium.ir.declare import COMMUTATIVE
from trivium.ir.ops import numerics
from trivium.ir.ops.common import expect_element
from trivium.ir.ops.elementwise import Binary, Unary
from trivium.ir.ops.numerics import compute
from trivium.ir.types import is_boolean, is_integer

__all__ = [
    "And",
    "CountLeadingZeros",
    "Not",
    "Or",
    "Popcnt",
    "ShiftLeft",
    "ShiftRightArithmetic",
    "ShiftRightLogical",
    "Xor",
]


class IntegerUnary(Unary):
    """For integers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_integer)
        Unary.check(operand, result)


class BitwiseBinary(Binary):
    """For booleans and the bits of integers."""

    def check(lhs, rhs, result):
        expect_element("I1", "lhs", lhs, is_boolean, is_integer)
        expect_element("I2", "rhs", rhs, is_boolean, is_integer)
        Binary.check(lhs, rhs, result)


class Shift(Binary):
    """For integers. The amount is treated as unsigned, and may be the width or more."""

    def check(lhs, rhs, result):
        expect_element("I1", "lhs", lhs, is_integer)
        expect_element("I2", "rhs", rhs, is_integer)
        Binary.check(lhs, rhs, result)


class Not(Unary, name="stablehlo.not"):
    """Negates booleans, or each bit of integers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_boolean, is_integer)
        Unary.check(operand, result)

    def evaluate(operand):
        return compute(np.invert, operand)


class And(BitwiseBinary, name="stablehlo.and", traits={COMMUTATIVE}):
    """Logical and; bitwise for integers."""

    def evaluate(lhs, rhs):
        return compute(np.bitwise_and, lhs, rhs)


class Or(BitwiseBinary, name="stablehlo.or", traits={COMMUTATIVE}):
    """Logical or; bitwise for integers."""

    def evaluate(lhs, rhs):
        return compute(np.bitwise_or, lhs, rhs)


class Xor(BitwiseBinary, name="stablehlo.xor", traits={COMMUTATIVE}):
    """Exclusive or; bitwise for integers."""

    def evaluate(lhs, rhs):
        return compute(np.bitwise_xor, lhs, rhs)


class Popcnt(IntegerUnary, name="stablehlo.popcnt"):
    """The number of bits that are set."""

    def evaluate(operand):
        return np.bitwise_count(numerics.unsigned(operand)[0]).astype(operand.dtype)


class CountLeadingZeros(IntegerUnary, name="stablehlo.count_leading_zeros"):
    """The number of zero bits above the highest set bit."""

    def evaluate(operand):
        return numerics.leading_zeros(operand).astype(operand.dtype)


class ShiftLeft(Shift, name="stablehlo.shift_left"):
    """Shifts bits up, and fills with zeros."""

    def evaluate(lhs, rhs):
        return numerics.shift(np.left_shift, lhs, rhs)


class ShiftRightLogical(Shift, name="stablehlo.shift_right_logical"):
    """Shifts bits down, and fills with zeros."""

    def evaluate(lhs, rhs):
        return numerics.shift(np.right_shift, lhs, rhs)


class ShiftRightArithmetic(Shift, name="stablehlo.shift_right_arithmetic"):
    """Shifts bits down, and fills with copies of the highest bit."""

    def evaluate(lhs, rhs):
        return numerics.shift_arithmetic(lhs, rhs)
