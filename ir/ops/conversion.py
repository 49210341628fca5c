"""Elementwise ops whose result has another element type, or is one of several operands: comparison and selection,
conversion, parts of complex numbers."""

from __future__ import annotations

from operator import eq, ge, gt, le, lt, ne

import numpy as np

from trivium.ir.attributes import Enumeration, enumeration
from trivium.ir.codecs import I32Int
from trivium.ir.declare import ELEMENTWISE, EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import fail
from trivium.ir.ops import numerics
from trivium.ir.ops.common import (
    bits_of,
    expect_at_least,
    expect_compatible,
    expect_compatible_baseline,
    expect_element,
    expect_element_is,
    expect_same_baseline,
    expect_same_shape,
    expect_tensor,
    most_specific,
    real_type,
)
from trivium.ir.ops.numerics import compute
from trivium.ir.types import (
    F32,
    F64,
    I1,
    ComplexType,
    TensorType,
    Type,
    is_boolean,
    is_complex,
    is_float,
    is_integer,
    is_per_tensor,
    is_quantized,
    shapes_compatible,
    stored,
)

__all__ = [
    "BitcastConvert",
    "Clamp",
    "Compare",
    "ComparisonDirection",
    "ComparisonType",
    "Complex",
    "Convert",
    "Imag",
    "IsFinite",
    "Real",
    "ReducePrecision",
    "Select",
]

# Comparison and selection


@enumeration("stablehlo.comparison_direction")
class ComparisonDirection(Enumeration):
    """How `compare` compares lhs to rhs."""

    EQ = "EQ"
    NE = "NE"
    GE = "GE"
    GT = "GT"
    LE = "LE"
    LT = "LT"


@enumeration("stablehlo.comparison_type")
class ComparisonType(Enumeration):
    """The order that `compare` uses; `NOTYPE` is the default order of the element type."""

    NOTYPE = "NOTYPE"
    FLOAT = "FLOAT"
    TOTALORDER = "TOTALORDER"
    SIGNED = "SIGNED"
    UNSIGNED = "UNSIGNED"


_COMPARE = dict(zip(ComparisonDirection, (eq, ne, ge, gt, le, lt), strict=True))


class Compare(Op, name="stablehlo.compare", traits={PURE, ELEMENTWISE, EXPRESSED}):
    """Compares lhs to rhs in the given direction. Comparisons with NaN are false, except for `NE`; in the order
    `TOTALORDER`, -NaN is below and NaN above everything, and -0 is below 0. Complex numbers are ordered by real, then
    by imaginary part."""

    lhs: Operand
    rhs: Operand
    comparison_direction: ComparisonDirection
    compare_type: ComparisonType | None = None
    result: Result

    def infer(lhs, rhs):
        expect_tensor("I1", "lhs", lhs)
        return most_specific(lhs, rhs).with_element(I1)

    def check(lhs, rhs, compare_type, result):
        expect_tensor("I1", "lhs", lhs)
        expect_tensor("I2", "rhs", rhs)
        expect_same_baseline("C1", lhs=lhs, rhs=rhs)
        expect_same_shape("C2", lhs=lhs, rhs=rhs, result=result)
        expect_element("O1", "result", result, is_boolean)
        allowed = _orders_of(lhs.element_type)
        if compare_type not in (None, ComparisonType.NOTYPE, *allowed):
            words = " or ".join(map(str, allowed))
            fail("C3", f"compare_type has {compare_type} for elements of type {lhs.element_type}, expected {words}")

    def evaluate(lhs, rhs, comparison_direction, compare_type):
        if compare_type is ComparisonType.TOTALORDER:
            lhs, rhs = numerics.total_order(lhs), numerics.total_order(rhs)
        return compute(_COMPARE[comparison_direction], lhs, rhs, dtype=np.bool_)


def _orders_of(element: Type) -> tuple[ComparisonType, ...]:
    if is_float(element) or is_quantized(element):
        return ComparisonType.FLOAT, ComparisonType.TOTALORDER
    if is_integer(element):
        return (ComparisonType.SIGNED if element.is_signed else ComparisonType.UNSIGNED,)
    return (ComparisonType.UNSIGNED if is_boolean(element) else ComparisonType.FLOAT,)


class Select(Op, name="stablehlo.select", traits={PURE, ELEMENTWISE, EXPRESSED}):
    """on_true where `pred` is true, on_false elsewhere. A `pred` of rank 0 applies to all elements."""

    pred: Operand
    on_true: Operand
    on_false: Operand
    result: Result

    def infer(on_true, on_false):
        return most_specific(on_true, on_false)

    def check(pred, on_true, on_false, result):
        expect_element("I1", "pred", pred, is_boolean)
        expect_tensor("I2", "on_true", on_true)
        expect_compatible_baseline("C2", on_true=on_true, on_false=on_false, result=result)
        if pred.rank and not shapes_compatible(pred.shape, on_true.shape):
            fail("C1", f"pred has type {pred}, expected rank 0 or the shape of on_true, {on_true}")

    def evaluate(pred, on_true, on_false):
        return np.where(pred, on_true, on_false)


class Clamp(Op, name="stablehlo.clamp", traits={PURE, ELEMENTWISE, EXPRESSED}):
    """minimum(maximum(operand, min), max). A `min` or `max` of rank 0 applies to all elements."""

    min: Operand
    operand: Operand
    max: Operand
    result: Result

    def infer(operand):
        return operand

    def check(min, operand, max, result):
        for label, name, kind in (("I1", "min", min), ("I2", "operand", operand), ("I3", "max", max)):
            expect_tensor(label, name, kind)
        for label, name, bound in (("C1", "min", min), ("C2", "max", max)):
            if bound.rank and not shapes_compatible(bound.shape, operand.shape):
                fail(label, f"{name} has type {bound}, expected rank 0 or the shape of operand, {operand}")
        expect_same_baseline("C3", min=min, operand=operand, max=max)
        expect_compatible_baseline("C4", operand=operand, result=result)

    def evaluate(min, operand, max):
        return compute(lambda low, x, high: numerics.minimum(numerics.maximum(x, low), high), min, operand, max)


class IsFinite(Op, name="stablehlo.is_finite", traits={PURE, ELEMENTWISE, EXPRESSED}):
    """Whether a float is neither infinite nor NaN."""

    x: Operand
    result: Result

    def infer(x):
        expect_tensor("I1", "x", x)
        return x.with_element(I1)

    def check(x, result):
        expect_element("I1", "x", x, is_float, is_per_tensor)
        expect_element("O1", "result", result, is_boolean)
        expect_same_shape("C1", x=x, result=result)

    def evaluate(x):
        return compute(np.isfinite, x, dtype=np.bool_)


# Conversion


class Convert(Op, name="stablehlo.convert", traits={PURE, ELEMENTWISE}):
    """Converts to the result's element type. Floats are rounded to other floats, and truncated to integers and clamped
    to their range; integers wrap around; nonzero numbers become `true`. An imaginary part is dropped, or added as 0."""

    operand: Operand
    result: Result

    def check(operand, result):
        expect_element("I1", "operand", operand, is_boolean, is_integer, is_float, is_complex)
        expect_element("O1", "result", result, is_boolean, is_integer, is_float, is_complex)
        expect_same_shape("C1", operand=operand, result=result)

    def evaluate(operand, result):
        return numerics.convert(operand, result.dtype)


class BitcastConvert(Op, name="stablehlo.bitcast_convert", traits={PURE}):
    """The same bits as elements of another type. If the widths differ, the last dimension of the narrower tensor has
    the parts of one wide element, lowest first."""

    operand: Operand
    result: Result

    def check(operand, result):
        expect_tensor("I1", "operand", operand, per_axis=True)
        expect_tensor("O1", "result", result, per_axis=True)
        if is_complex(operand.element_type) != is_complex(result.element_type):
            fail("C2", f"result has type {result}, operand {operand}; expected both or neither to be complex")
        bits, new_bits = bits_of(stored(operand).element_type), bits_of(stored(result).element_type)
        wide, narrow = (operand, result) if new_bits < bits else (result, operand)
        parts = () if bits == new_bits else (max(bits, new_bits) // min(bits, new_bits),)
        if max(bits, new_bits) % min(bits, new_bits) or not shapes_compatible((*wide.shape, *parts), narrow.shape):
            fail(
                "C1", f"result has type {result}, operand {operand}; expected the bits of one in the shape of the other"
            )

    def evaluate(operand, result):
        return numerics.bitcast(operand, result.dtype)


class ReducePrecision(Op, name="stablehlo.reduce_precision", traits={PURE, ELEMENTWISE, EXPRESSED}):
    """Rounds floats as if through a format with `exponent_bits` and `mantissa_bits`, and keeps their type."""

    operand: Operand
    exponent_bits: I32Int
    mantissa_bits: I32Int
    result: Result

    def infer(operand):
        return operand

    def check(operand, exponent_bits, mantissa_bits, result):
        expect_element("I1", "operand", operand, is_float, is_per_tensor)
        expect_compatible_baseline("C1", operand=operand, result=result)
        expect_at_least("C2", "exponent_bits", (exponent_bits,), 1)
        expect_at_least("C3", "mantissa_bits", (mantissa_bits,), 0)

    def evaluate(operand, exponent_bits, mantissa_bits):
        return numerics.reduce_precision(operand, exponent_bits, mantissa_bits)


# Parts of complex numbers


class Complex(Op, name="stablehlo.complex", traits={PURE, ELEMENTWISE}):
    """The complex numbers with real part lhs and imaginary part rhs."""

    lhs: Operand
    rhs: Operand
    result: Result

    def infer(lhs, rhs):
        expect_element("I1", "lhs", lhs, is_float)
        return most_specific(lhs, rhs).with_element(ComplexType(lhs.element_type))

    def check(lhs, rhs, result):
        for label, name, part in (("I1", "lhs", lhs), ("I2", "rhs", rhs)):
            if not isinstance(part, TensorType) or part.element_type not in (F32, F64):
                fail(label, f"{name} has type {part}, expected a tensor of f32 or f64")
        expect_compatible("C1", lhs=lhs, rhs=rhs)
        expect_same_shape("C2", lhs=lhs, result=result)
        expect_element_is("C3", "result", result, ComplexType(lhs.element_type))

    def evaluate(lhs, rhs, result):
        number = np.empty(np.broadcast_shapes(lhs.shape, rhs.shape), result.dtype)
        number.real, number.imag = lhs, rhs
        return number


class Real(Op, name="stablehlo.real", traits={PURE, ELEMENTWISE}):
    """The real part of complex numbers; floats are returned unchanged."""

    operand: Operand
    result: Result

    def infer(operand):
        return real_type(operand)

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float, is_complex)
        expect_same_shape("C1", operand=operand, result=result)
        expect_element_is("C2", "result", result, real_type(operand).element_type)

    def evaluate(operand):
        return operand.real if np.iscomplexobj(operand) else operand


class Imag(Op, name="stablehlo.imag", traits={PURE, ELEMENTWISE}):
    """The imaginary part of complex numbers; zero for floats."""

    operand: Operand
    result: Result

    def infer(operand):
        return real_type(operand)

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float, is_complex)
        expect_same_shape("C1", operand=operand, result=result)
        expect_element_is("C2", "result", result, real_type(operand).element_type)

    def evaluate(operand):
        return operand.imag if np.iscomplexobj(operand) else np.zeros_like(operand)
