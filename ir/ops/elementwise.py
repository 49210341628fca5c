"""Arithmetic and logic on each element. What it means for narrow types, for zero divisors and the like is stated in
`trivium.ir.ops.numerics`, once for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import Enumeration, Struct, enumeration
from trivium.ir.codecs import Ints
from trivium.ir.core import Region
from trivium.ir.declare import (
    COMMUTATIVE,
    ELEMENTWISE,
    EXPRESSED,
    PURE,
    RECURSIVE_EFFECTS,
    Op,
    Operand,
    Operands,
    Result,
)
from trivium.ir.errors import Error, fail
from trivium.ir.ops import numerics
from trivium.ir.ops.common import (
    expect_compatible,
    expect_compatible_baseline,
    expect_element,
    expect_same_baseline,
    expect_same_shape,
    expect_tensor,
    is_signed,
    most_specific,
    real_type,
)
from trivium.ir.ops.numerics import accurate, compute
from trivium.ir.ops.parameters import check_sum
from trivium.ir.ops.regions import check_region, outputs_of
from trivium.ir.types import (
    TensorType,
    is_boolean,
    is_complex,
    is_float,
    is_integer,
    is_per_tensor,
    is_quantized,
)

__all__ = [
    "Abs",
    "Add",
    "And",
    "Atan2",
    "Cbrt",
    "Ceil",
    "Cosine",
    "CountLeadingZeros",
    "Divide",
    "Exponential",
    "ExponentialMinusOne",
    "Floor",
    "Log",
    "LogPlusOne",
    "Logistic",
    "Map",
    "Maximum",
    "Minimum",
    "Multiply",
    "Negate",
    "Not",
    "Or",
    "Popcnt",
    "Power",
    "Remainder",
    "ResultAccuracy",
    "ResultAccuracyMode",
    "RoundNearestAfz",
    "RoundNearestEven",
    "Rsqrt",
    "ShiftLeft",
    "ShiftRightArithmetic",
    "ShiftRightLogical",
    "Sign",
    "Sine",
    "Sqrt",
    "Subtract",
    "Tan",
    "Tanh",
    "Xor",
]

# Families of unary ops


class Unary(Op, traits={PURE, ELEMENTWISE, EXPRESSED}):
    """One tensor in, one of the same type out."""

    operand: Operand
    result: Result

    def infer(operand):
        return operand

    def check(operand, result):
        expect_compatible_baseline("C1", operand=operand, result=result)


class NumericUnary(Unary):
    """For integers, floats, complex numbers and quantized ones."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_integer, is_float, is_complex, is_per_tensor)
        Unary.check(operand, result)


class SignedUnary(Unary):
    """For signed integers, floats, complex numbers and quantized ones."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_signed, is_float, is_complex, is_per_tensor)
        Unary.check(operand, result)


class RoundingUnary(Unary):
    """For floats and quantized numbers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float, is_per_tensor)
        Unary.check(operand, result)


class IntegerUnary(Unary):
    """For integers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_integer)
        Unary.check(operand, result)


@enumeration("stablehlo.result_accuracy_mode")
class ResultAccuracyMode(Enumeration):
    """How exact a transcendental function shall be: as the compiler likes, as it can, or as tolerances say."""

    DEFAULT = "DEFAULT"
    HIGHEST = "HIGHEST"
    TOLERANCE = "TOLERANCE"


@dataclass(frozen=True)
class ResultAccuracy(Struct, mnemonic="stablehlo.result_accuracy"):
    """The accuracy asked of a transcendental function; tolerances count in mode `TOLERANCE` only."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    mode: ResultAccuracyMode = ResultAccuracyMode.DEFAULT

    def __post_init__(self) -> None:
        tolerances = (self.atol, self.rtol, self.ulps)
        if min(tolerances) < 0 or (any(tolerances) and self.mode is not ResultAccuracyMode.TOLERANCE):
            fail("", f"has tolerances {tolerances}, expected positive ones, and only in mode TOLERANCE")


class Transcendental(Unary):
    """For floats, complex numbers and quantized ones, with an accuracy that may be asked for."""

    result_accuracy: ResultAccuracy = ResultAccuracy()

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float, is_complex, is_per_tensor)
        Unary.check(operand, result)


# Unary ops


class Negate(NumericUnary, name="stablehlo.negate"):
    """-x. Integers wrap."""

    def evaluate(operand):
        return compute(np.negative, operand)


class Sign(SignedUnary, name="stablehlo.sign"):
    """-1, 0 or 1; for a complex number, the one of modulus 1 in its direction."""

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


class Not(Unary, name="stablehlo.not"):
    """Negation of booleans, and of each bit of integers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_boolean, is_integer)
        Unary.check(operand, result)

    def evaluate(operand):
        return compute(np.invert, operand)


class Popcnt(IntegerUnary, name="stablehlo.popcnt"):
    """The number of bits that are set."""

    def evaluate(operand):
        return np.bitwise_count(numerics.unsigned(operand)[0]).astype(operand.dtype)


class CountLeadingZeros(IntegerUnary, name="stablehlo.count_leading_zeros"):
    """The number of zero bits above the highest bit that is set."""

    def evaluate(operand):
        return numerics.leading_zeros(operand).astype(operand.dtype)


class Ceil(RoundingUnary, name="stablehlo.ceil"):
    """The least integer that is not less."""

    def evaluate(operand):
        return compute(np.ceil, operand)


class Floor(RoundingUnary, name="stablehlo.floor"):
    """The greatest integer that is not greater."""

    def evaluate(operand):
        return compute(np.floor, operand)


class RoundNearestAfz(RoundingUnary, name="stablehlo.round_nearest_afz"):
    """The nearest integer; of two, the one away from zero."""

    def evaluate(operand):
        return compute(numerics.round_half_away, operand)


class RoundNearestEven(RoundingUnary, name="stablehlo.round_nearest_even"):
    """The nearest integer; of two, the even one."""

    def evaluate(operand):
        return compute(np.rint, operand)


class Exponential(Transcendental, name="stablehlo.exponential"):
    """e to the power of x."""

    def evaluate(operand):
        return accurate(numerics.exponential, operand)


class ExponentialMinusOne(Transcendental, name="stablehlo.exponential_minus_one"):
    """exp(x) - 1, exact near 0."""

    def evaluate(operand):
        return accurate(numerics.exponential_minus_one, operand)


class Log(Transcendental, name="stablehlo.log"):
    """The natural logarithm."""

    def evaluate(operand):
        return accurate(np.log, operand)


class LogPlusOne(Transcendental, name="stablehlo.log_plus_one"):
    """log(1 + x), exact near 0."""

    def evaluate(operand):
        return accurate(numerics.log_plus_one, operand)


class Logistic(Transcendental, name="stablehlo.logistic"):
    """1 / (1 + exp(-x)), the sigmoid."""

    def evaluate(operand):
        return accurate(numerics.logistic, operand)


class Sqrt(Transcendental, name="stablehlo.sqrt"):
    """The square root."""

    def evaluate(operand):
        return accurate(np.sqrt, operand)


class Rsqrt(Transcendental, name="stablehlo.rsqrt"):
    """1 / sqrt(x)."""

    def evaluate(operand):
        return accurate(numerics.reciprocal_square_root, operand)


class Cbrt(Transcendental, name="stablehlo.cbrt"):
    """The cube root."""

    def evaluate(operand):
        return accurate(numerics.cube_root, operand)


class Sine(Transcendental, name="stablehlo.sine"):
    """The sine of an angle in radians."""

    def evaluate(operand):
        return accurate(np.sin, operand)


class Cosine(Transcendental, name="stablehlo.cosine"):
    """The cosine of an angle in radians."""

    def evaluate(operand):
        return accurate(np.cos, operand)


class Tan(Transcendental, name="stablehlo.tan"):
    """The tangent of an angle in radians."""

    def evaluate(operand):
        return accurate(np.tan, operand)


class Tanh(Transcendental, name="stablehlo.tanh"):
    """The hyperbolic tangent."""

    def evaluate(operand):
        return accurate(np.tanh, operand)


# Families of binary ops


class Binary(Op, traits={PURE, ELEMENTWISE, EXPRESSED}):
    """Two tensors of one type in, one of the same type out."""

    lhs: Operand
    rhs: Operand
    result: Result

    def infer(lhs, rhs):
        return most_specific(lhs, rhs)

    def check(lhs, rhs, result):
        expect_tensor("I1", "lhs", lhs)
        expect_tensor("I2", "rhs", rhs)
        expect_compatible_baseline("C1", lhs=lhs, rhs=rhs, result=result)


class NumericBinary(Binary):
    """For integers, floats, complex numbers and quantized ones."""

    def check(lhs, rhs, result):
        expect_element("I1", "lhs", lhs, is_integer, is_float, is_complex, is_per_tensor)
        expect_element("I2", "rhs", rhs, is_integer, is_float, is_complex, is_per_tensor)
        Binary.check(lhs, rhs, result)


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


# Binary ops


class Add(Binary, name="stablehlo.add", traits={COMMUTATIVE}):
    """lhs + rhs. Integers wrap; for booleans it is `or`."""

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
    """lhs / rhs. Integers are rounded towards zero; x / 0 is -1 (all bits set), the least integer / -1 is itself."""

    def evaluate(lhs, rhs):
        whole = np.issubdtype(numerics.widen(lhs).dtype, np.integer)
        return compute(numerics.integer_quotient if whole else numerics.quotient, lhs, rhs)


class Remainder(NumericBinary, name="stablehlo.remainder"):
    """What `divide`, rounded towards zero, leaves of lhs; it has the sign of lhs. For integers, x % 0 is x."""

    def evaluate(lhs, rhs):
        if np.iscomplexobj(lhs):
            raise Error("remainder has complex operands, for which the specification defines no meaning")
        whole = np.issubdtype(numerics.widen(lhs).dtype, np.integer)
        return compute(numerics.modulus if whole else np.fmod, lhs, rhs)


class Power(NumericBinary, name="stablehlo.power"):
    """lhs to the power of rhs. Integers wrap; their negative powers are those of 1 and -1, or 0."""

    def evaluate(lhs, rhs):
        whole = np.issubdtype(numerics.widen(lhs).dtype, np.integer)
        return compute(numerics.integer_power, lhs, rhs) if whole else accurate(np.power, lhs, rhs)


class Maximum(Binary, name="stablehlo.maximum", traits={COMMUTATIVE}):
    """The greater one; NaN if either is. Complex numbers are ordered by real, then by imaginary part."""

    def evaluate(lhs, rhs):
        return compute(numerics.maximum, lhs, rhs)


class Minimum(Binary, name="stablehlo.minimum", traits={COMMUTATIVE}):
    """The smaller one; NaN if either is. Complex numbers are ordered by real, then by imaginary part."""

    def evaluate(lhs, rhs):
        return compute(numerics.minimum, lhs, rhs)


class Atan2(Binary, name="stablehlo.atan2"):
    """The angle of the point whose ordinate is lhs and whose abscissa is rhs."""

    def check(lhs, rhs, result):
        expect_element("I1", "lhs", lhs, is_float, is_complex, is_per_tensor)
        expect_element("I2", "rhs", rhs, is_float, is_complex, is_per_tensor)
        Binary.check(lhs, rhs, result)

    def evaluate(lhs, rhs):
        return accurate(numerics.arctangent2, lhs, rhs)


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


class Map(Op, name="stablehlo.map", traits={ELEMENTWISE, RECURSIVE_EFFECTS}):
    """Applies `computation` to the elements of `inputs` that stand at the same index."""

    inputs: Operands
    dimensions: Ints
    computation: Region
    result: Result

    def infer(inputs, computation):
        if not inputs:
            fail("C2", "inputs has no entries, expected at least one")
        expect_tensor("I1", "inputs[0]", inputs[0])
        outputs = outputs_of(computation)
        if len(outputs) != 1 or not isinstance(outputs[0], TensorType):
            fail("C4", f"computation returns ({', '.join(map(str, outputs))}), expected one tensor")
        return most_specific(*inputs).with_element(outputs[0].element_type)

    def check(inputs, dimensions, computation, result):
        if not inputs:
            fail("C2", "inputs has no entries, expected at least one")
        for index, kind in enumerate(inputs):
            expect_same_shape("C1", **{f"inputs[{index}]": kind, "inputs[0]": inputs[0], "result": result})
        if dimensions != tuple(range(inputs[0].rank)):
            fail("C3", f"dimensions has {list(dimensions)}, expected all {inputs[0].rank} dimensions in order")
        scalars = [TensorType((), kind.element_type) for kind in (*inputs, result)]
        check_region("C4", "computation", computation, scalars[:-1], scalars[-1:])

    def evaluate(inputs, computation):
        return computation.map(*inputs)[0]
