"""CHLO, the higher-level ops that frameworks emit: special, inverse and hyperbolic functions, and `top_k`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trivium.ir.declare import ELEMENTWISE, EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import fail
from trivium.ir.ops import numerics, special
from trivium.ir.ops.common import (
    expect_compatible,
    expect_compatible_baseline,
    expect_element,
    expect_same_shape,
    expect_tensor,
)
from trivium.ir.ops.elementwise import Unary
from trivium.ir.ops.numerics import compute, total_order
from trivium.ir.types import I1, I32, TensorType, is_boolean, is_complex, is_float

__all__ = [
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BesselI1e",
    "ChloTan",
    "Conj",
    "Cosh",
    "Digamma",
    "Erf",
    "ErfInv",
    "Erfc",
    "IsInf",
    "IsNegInf",
    "IsPosInf",
    "Lgamma",
    "NextAfter",
    "Polygamma",
    "Sinh",
    "Square",
    "TopK",
    "Zeta",
]

# Families


class FloatUnary(Unary):
    """For floats."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float)
        Unary.check(operand, result)


class ComplexUnary(Unary):
    """For floats and complex numbers."""

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float, is_complex)
        Unary.check(operand, result)


class FloatTest(Op, traits={PURE, ELEMENTWISE}):
    """A test of each float."""

    operand: Operand
    result: Result

    def infer(operand):
        expect_tensor("I1", "operand", operand)
        return operand.with_element(I1)

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float)
        expect_element("O1", "result", result, is_boolean)
        expect_same_shape("C1", operand=operand, result=result)


def widely(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """Computes in float64 or complex128, and rounds once."""

    def wide(*operands: np.ndarray) -> np.ndarray:
        return function(*(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64) for array in operands))

    return compute(wide, *arrays)


# Special functions


class Erf(FloatUnary, name="chlo.erf"):
    """The error function."""

    def evaluate(operand):
        return widely(special.erf, operand)


class Erfc(FloatUnary, name="chlo.erfc"):
    """1 - erf(x), accurate where that is small."""

    def evaluate(operand):
        return widely(special.erfc, operand)


class ErfInv(FloatUnary, name="chlo.erf_inv"):
    """The inverse of the error function."""

    def evaluate(operand):
        return widely(special.erf_inv, operand)


class Lgamma(FloatUnary, name="chlo.lgamma"):
    """The logarithm of the absolute value of the gamma function."""

    def evaluate(operand):
        return widely(special.lgamma, operand)


class Digamma(FloatUnary, name="chlo.digamma"):
    """The derivative of the logarithm of the gamma function."""

    def evaluate(operand):
        return widely(special.digamma, operand)


class BesselI1e(FloatUnary, name="chlo.bessel_i1e"):
    """The modified Bessel function of order 1, times exp(-|x|)."""

    def evaluate(operand):
        return widely(special.bessel_i1e, operand)


class Polygamma(Op, name="chlo.polygamma", traits={PURE, ELEMENTWISE}):
    """The `n`-th derivative of digamma at `x`."""

    n: Operand
    x: Operand
    result: Result

    def infer(n):
        return n

    def check(n, x, result):
        expect_element("I1", "n", n, is_float)
        expect_compatible("C1", n=n, x=x, result=result)

    def evaluate(n, x):
        return widely(special.polygamma, n, x)


class Zeta(Op, name="chlo.zeta", traits={PURE, ELEMENTWISE}):
    """The Hurwitz zeta function: the sum of (q + n)^-x over n = 0, 1, 2, ..."""

    x: Operand
    q: Operand
    result: Result

    def infer(x):
        return x

    def check(x, q, result):
        expect_element("I1", "x", x, is_float)
        expect_compatible("C1", x=x, q=q, result=result)

    def evaluate(x, q):
        return widely(special.zeta, x, q)


# Trigonometric and hyperbolic functions


class Acos(ComplexUnary, name="chlo.acos"):
    """The inverse cosine."""

    def evaluate(operand):
        return widely(np.arccos, operand)


class Acosh(ComplexUnary, name="chlo.acosh"):
    """The inverse hyperbolic cosine."""

    def evaluate(operand):
        return widely(np.arccosh, operand)


class Asin(ComplexUnary, name="chlo.asin"):
    """The inverse sine."""

    def evaluate(operand):
        return widely(np.arcsin, operand)


class Asinh(ComplexUnary, name="chlo.asinh"):
    """The inverse hyperbolic sine."""

    def evaluate(operand):
        return widely(np.arcsinh, operand)


class Atan(ComplexUnary, name="chlo.atan"):
    """The inverse tangent."""

    def evaluate(operand):
        return widely(np.arctan, operand)


class Atanh(ComplexUnary, name="chlo.atanh"):
    """The inverse hyperbolic tangent."""

    def evaluate(operand):
        return widely(np.arctanh, operand)


class Cosh(ComplexUnary, name="chlo.cosh"):
    """The hyperbolic cosine."""

    def evaluate(operand):
        return widely(np.cosh, operand)


class Sinh(ComplexUnary, name="chlo.sinh"):
    """The hyperbolic sine."""

    def evaluate(operand):
        return widely(np.sinh, operand)


class ChloTan(ComplexUnary, name="chlo.tan"):
    """The tangent, as written in older files."""

    def evaluate(operand):
        return widely(np.tan, operand)


# Arithmetic


class Square(ComplexUnary, name="chlo.square"):
    """x * x."""

    def evaluate(operand):
        return widely(numerics.square, operand)


class Conj(ComplexUnary, name="chlo.conj"):
    """The complex conjugate."""

    def evaluate(operand):
        return compute(np.conj, operand)


class NextAfter(Op, name="chlo.next_after", traits={PURE, ELEMENTWISE}):
    """The float next to `x` in the direction of `y`."""

    x: Operand
    y: Operand
    result: Result

    def infer(x):
        return x

    def check(x, y, result):
        expect_element("I1", "x", x, is_float)
        expect_compatible("C1", x=x, y=y, result=result)

    def evaluate(x, y):
        # NumPy's and ml_dtypes' functions step in the type itself. Not all return y if it equals x, as for 0 and -0.
        return np.where(x == y, y, np.nextafter(x, y))


class IsInf(FloatTest, name="chlo.is_inf"):
    """Whether a float is infinite."""

    def evaluate(operand):
        return compute(np.isinf, operand, dtype=np.bool_)


class IsPosInf(FloatTest, name="chlo.is_pos_inf"):
    """Whether a float is positive infinity."""

    def evaluate(operand):
        return compute(np.isposinf, operand, dtype=np.bool_)


class IsNegInf(FloatTest, name="chlo.is_neg_inf"):
    """Whether a float is negative infinity."""

    def evaluate(operand):
        return compute(np.isneginf, operand, dtype=np.bool_)


# Selection


class TopK(Op, name="chlo.top_k", traits={PURE, EXPRESSED}):
    """The `k` largest elements along the last dimension, in descending order, and their indices. Equal elements keep
    their order, whether or not `is_stable` is set; floats are in total order, so that NaN is the largest."""

    operand: Operand
    k: int
    is_stable: bool = True
    values: Result
    indices: Result

    def infer(operand, k):
        expect_tensor("I1", "operand", operand, per_axis=True)
        if operand.rank < 1:
            fail("C1", f"operand has type {operand}, expected rank 1 or more")
        shape = (*operand.shape[:-1], k)
        return TensorType(shape, operand.element_type), TensorType(shape, I32)

    def check(operand, k, values, indices):
        expected = TopK.infer(operand, k)
        last = operand.shape[-1]
        if k < 0 or (last is not None and k > last):
            fail("C2", f"k has {k}, expected at least 0 and at most {last}, the last extent of operand")
        expect_compatible_baseline("C3", expected=expected[0], values=values)
        expect_compatible("C4", expected=expected[1], indices=indices)

    def evaluate(operand, k):
        keys = operand if operand.dtype.kind in "biu" else total_order(operand)
        # Reversed, so that a stable ascending sort leaves equal elements in descending order of index.
        order = operand.shape[-1] - 1 - np.argsort(keys[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        order = order[..., :k]
        return np.take_along_axis(operand, order, -1), order.astype(np.int32)
