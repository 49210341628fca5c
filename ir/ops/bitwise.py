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
    """For integers. The amount counts as unsigned, and may reach or pass the width."""

    def check(lhs, rhs, result):
        expect_element("I1", "lhs", lhs, is_integer)
        expect_element("I2", "rhs", rhs, is_integer)
        Binary.check(lhs, rhs, result)


class Not(Unary, name="stablehlo.not"):
    """Negation of booleans, and of each bit of integers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_boolean, is_integer)
        Unary.check(operand, result)

    def evaluate(operand):
        return compute(np.invert, operand)


class And(BitwiseBinary, name="stablehlo.and", traits={COMMUTATIVE}):
    """Both; bit by bit for integers."""

    def evaluate(lhs, rhs):
        return compute(np.bitwise_and, lhs, rhs)


class Or(BitwiseBinary, name="stablehlo.or", traits={COMMUTATIVE}):
    """Either; bit by bit for integers."""

    def evaluate(lhs, rhs):
        return compute(np.bitwise_or, lhs, rhs)


class Xor(BitwiseBinary, name="stablehlo.xor", traits={COMMUTATIVE}):
    """Either, not both; bit by bit for integers."""

    def evaluate(lhs, rhs):
        return compute(np.bitwise_xor, lhs, rhs)


class Popcnt(IntegerUnary, name="stablehlo.popcnt"):
    """The number of bits that are set."""

    def evaluate(operand):
        return np.bitwise_count(numerics.unsigned(operand)[0]).astype(operand.dtype)


class CountLeadingZeros(IntegerUnary, name="stablehlo.count_leading_zeros"):
    """The number of zero bits above the highest bit that is set."""

    def evaluate(operand):
        return numerics.leading_zeros(operand).astype(operand.dtype)


class ShiftLeft(Shift, name="stablehlo.shift_left"):
    """Moves bits up, zeros follow."""

    def evaluate(lhs, rhs):
        return numerics.shift(np.left_shift, lhs, rhs)


class ShiftRightLogical(Shift, name="stablehlo.shift_right_logical"):
    """Moves bits down, zeros follow."""

    def evaluate(lhs, rhs):
        return numerics.shift(np.right_shift, lhs, rhs)


class ShiftRightArithmetic(Shift, name="stablehlo.shift_right_arithmetic"):
    """Moves bits down, copies of the highest bit follow."""

    def evaluate(lhs, rhs):
        return numerics.shift_arithmetic(lhs, rhs)
