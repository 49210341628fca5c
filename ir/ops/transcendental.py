"""Elementwise exponentials, logarithms, roots and angles, computed in 64 bits and rounded once. A program may request
an accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import Enumeration, Struct, enumeration
from trivium.ir.errors import fail
from trivium.ir.ops import numerics
from trivium.ir.ops.common import expect_element
from trivium.ir.ops.elementwise import Binary, Unary
from trivium.ir.ops.numerics import accurate
from trivium.ir.types import is_complex, is_float, is_per_tensor

__all__ = [
    "Atan2",
    "Cbrt",
    "Cosine",
    "Exponential",
    "ExponentialMinusOne",
    "Log",
    "LogPlusOne",
    "Logistic",
    "ResultAccuracy",
    "ResultAccuracyMode",
    "Rsqrt",
    "Sine",
    "Sqrt",
    "Tan",
    "Tanh",
]


@enumeration("stablehlo.result_accuracy_mode")
class ResultAccuracyMode(Enumeration):
    """The accuracy of a transcendental function: as the compiler chooses, the best possible, or within tolerances."""

    DEFAULT = "DEFAULT"
    HIGHEST = "HIGHEST"
    TOLERANCE = "TOLERANCE"


@dataclass(frozen=True)
class ResultAccuracy(Struct, mnemonic="stablehlo.result_accuracy"):
    """The requested accuracy of a transcendental function; tolerances apply only in mode `TOLERANCE`."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    mode: ResultAccuracyMode = ResultAccuracyMode.DEFAULT

    def __post_init__(self) -> None:
        tolerances = (self.atol, self.rtol, self.ulps)
        if min(tolerances) < 0 or (any(tolerances) and self.mode is not ResultAccuracyMode.TOLERANCE):
            fail("", f"has tolerances {tolerances}, expected positive ones, and only in mode TOLERANCE")


class Transcendental(Unary):
    """For floats, complex and quantized numbers, with an accuracy that may be requested."""

    result_accuracy: ResultAccuracy = ResultAccuracy()

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float, is_complex, is_per_tensor)
        Unary.check(operand, result)


class Exponential(Transcendental, name="stablehlo.exponential"):
    """e to the power of x."""

    def evaluate(operand):
        return accurate(numerics.exponential, operand)


class ExponentialMinusOne(Transcendental, name="stablehlo.exponential_minus_one"):
    """exp(x) - 1, accurate near 0."""

    def evaluate(operand):
        return accurate(numerics.exponential_minus_one, operand)


class Log(Transcendental, name="stablehlo.log"):
    """The natural logarithm."""

    def evaluate(operand):
        return accurate(np.log, operand)


class LogPlusOne(Transcendental, name="stablehlo.log_plus_one"):
    """log(1 + x), accurate near 0."""

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


class Atan2(Binary, name="stablehlo.atan2"):
    """The angle of the point with ordinate lhs and abscissa rhs."""

    def check(lhs, rhs, result):
        expect_element("I1", "lhs", lhs, is_float, is_complex, is_per_tensor)
        expect_element("I2", "rhs", rhs, is_float, is_complex, is_per_tensor)
        Binary.check(lhs, rhs, result)

    def evaluate(lhs, rhs):
        return accurate(numerics.arctangent2, lhs, rhs)
