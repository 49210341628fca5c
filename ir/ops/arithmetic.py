"""Elementwise arithmetic. Its meaning for narrow types, zero divisors and the like is defined once, in
`trivium.ir.ops.numerics`."""

from __future__ import annotations

import numpy as np

from trivium.ir.declare import COMMUTATIVE, ELEMENTWISE, EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import Error
from trivium.ir.ops import numerics
from trivium.ir.ops.common import (
    expect_compatible,
    expect_element,
    expect_same_baseline,
    expect_same_shape,
    expect_tensor,
    is_signed,
    real_type,
)
from trivium.ir.ops.elementwise import Binary, Unary
from trivium.ir.ops.numerics import accurate, compute
from trivium.ir.ops.parameters import check_sum
from trivium.ir.types import is_complex, is_float, is_integer, is_per_tensor, is_quantized

__all__ = [
    "Abs",
    "Add",
    "Ceil",
    "Divide",
    "Floor",
    "Maximum",
    "Minimum",
    "Multiply",
    "Negate",
    "Power",
    "Remainder",
    "RoundNearestAfz",
    "RoundNearestEven",
    "Sign",
    "Subtract",
]


# Families, by the element types that they accept


class NumericUnary(Unary):
    """For integers, floats, complex and quantized numbers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_integer, is_float, is_complex, is_per_tensor)
        Unary.check(operand, result)


class SignedUnary(Unary):
    """For signed integers, floats, complex and quantized numbers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_signed, is_float, is_complex, is_per_tensor)
        Unary.check(operand, result)


class RoundingUnary(Unary):
    """For floats and quantized numbers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float, is_per_tensor)
        Unary.check(operand, result)


class NumericBinary(Binary):
    """For integers, floats, complex and quantized numbers."""

    def check(lhs, rhs, result):
        expect_element("I1", "lhs", lhs, is_integer, is_float, is_complex, is_per_tensor)
        expect_element("I2", "rhs", rhs, is_integer, is_float, is_complex, is_per_tensor)
        Binary.check(lhs, rhs, result)


# One operand


class Negate(NumericUnary, name="stablehlo.negate"):
    """-x. Integers wrap."""

    def evaluate(operand):
        return compute(np.negative, operand)


class Sign(SignedUnary, name="stablehlo.sign"):
    """-1, 0 or 1; for a complex number, the number of modulus 1 in its direction."""

    def evaluate(operand):
        return compute(numerics.sign, operand)


class Abs(Op, name="stablehlo.abs", traits={PURE, ELEMENTWISE, EXPRESSED}):
    """|x|. The modulus of a complex number is real."""

    operand: Operand
    result: Result

    def infer(operand):
        return real_type(operand)

    def check(operand, result):
        expect_element("I1", "operand", operand, is_signed, is_float, is_complex, is_per_tensor)
        expect_same_shape("C1", operand=operand, result=result)
        expect_same_baseline("C2", parts=real_type(operand), result=result)

    def evaluate(operand, result):
        return compute(np.abs, operand, dtype=result.dtype)


class Ceil(RoundingUnary, name="stablehlo.ceil"):
    """The smallest integer that is not less than x."""

    def evaluate(operand):
        return compute(np.ceil, operand)


class Floor(RoundingUnary, name="stablehlo.floor"):
    """The largest integer that is not greater than x."""

    def evaluate(operand):
        return compute(np.floor, operand)


class RoundNearestAfz(RoundingUnary, name="stablehlo.round_nearest_afz"):
    """The nearest integer, ties away from zero."""

    def evaluate(operand):
        return compute(numerics.round_half_away, operand)


class RoundNearestEven(RoundingUnary, name="stablehlo.round_nearest_even"):
    """The nearest integer, ties to even."""

    def evaluate(operand):
        return compute(np.rint, operand)


# Two operands


class Add(Binary, name="stablehlo.add", traits={COMMUTATIVE}):
    """lhs + rhs. Integers wrap around; for booleans it is `or`."""

    def check(lhs, rhs, result):
        expect_tensor("I1", "lhs", lhs, per_axis=True)
        expect_tensor("I2", "rhs", rhs, per_axis=True)
        elements = lhs.element_type, rhs.element_type, getattr(result, "element_type", None)
        if not any(map(is_quantized, elements)):
            return expect_compatible("C1", lhs=lhs, rhs=rhs, result=result)
        expect_same_shape("C1", lhs=lhs, rhs=rhs, result=result)
        return check_sum(("C2", "C3", "C4", "C5", "C6", "C7"), lhs, rhs, result)

    def evaluate(lhs, rhs):
        return compute(np.add, lhs, rhs)


class Subtract(NumericBinary, name="stablehlo.subtract"):
    """lhs - rhs. Integers wrap."""

    def evaluate(lhs, rhs):
        return compute(np.subtract, lhs, rhs)


class Multiply(Binary, name="stablehlo.multiply", traits={COMMUTATIVE}):
    """lhs * rhs. Integers wrap; for booleans it is `and`."""

    def evaluate(lhs, rhs):
        return compute(np.multiply, lhs, rhs)


class Divide(NumericBinary, name="stablehlo.divide"):
    """lhs / rhs. Integers are rounded towards zero; x / 0 is -1 (all bits set), and the least integer / -1 is
    itself."""

    def evaluate(lhs, rhs):
        whole = np.issubdtype(numerics.widen(lhs).dtype, np.integer)
        return compute(numerics.integer_quotient if whole else numerics.quotient, lhs, rhs)


class Remainder(NumericBinary, name="stablehlo.remainder"):
    """The remainder of a division that is rounded towards zero; it has the sign of lhs. For integers, x % 0 is x."""

    def evaluate(lhs, rhs):
        if np.iscomplexobj(lhs):
            raise Error("remainder has complex operands, for which the specification defines no meaning")
        whole = np.issubdtype(numerics.widen(lhs).dtype, np.integer)
        return compute(numerics.modulus if whole else np.fmod, lhs, rhs)


class Power(NumericBinary, name="stablehlo.power"):
    """lhs to the power of rhs. Integers wrap around; with a negative exponent, 1 and -1 have their powers, others are
    0.
    """

    def evaluate(lhs, rhs):
        whole = np.issubdtype(numerics.widen(lhs).dtype, np.integer)
        return compute(numerics.integer_power, lhs, rhs) if whole else accurate(np.power, lhs, rhs)


class Maximum(Binary, name="stablehlo.maximum", traits={COMMUTATIVE}):
    """The larger of two numbers; NaN if either is NaN. Complex numbers are ordered by real, then by imaginary part."""

    def evaluate(lhs, rhs):
        return compute(numerics.maximum, lhs, rhs)


class Minimum(Binary, name="stablehlo.minimum", traits={COMMUTATIVE}):
    """The smaller of two numbers; NaN if either is NaN. Complex numbers are ordered by real, then by imaginary part."""

    def evaluate(lhs, rhs):
        return compute(numerics.minimum, lhs, rhs)
