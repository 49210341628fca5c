"""CHLO's ops that broadcast implicitly: each is an elementwise op on operands of different shapes. Dimensions of extent
1 are repeated. The dimensions of an operand of lower rank are the last dimensions of the result, or those that
`broadcast_dimensions` names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.ir.attributes import Enumeration, enumeration
from trivium.ir.codecs import Ints
from trivium.ir.declare import EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import fail
from trivium.ir.ops.arithmetic import Add, Divide, Maximum, Minimum, Multiply, Power, Remainder, Subtract
from trivium.ir.ops.bitwise import And, Or, ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Xor
from trivium.ir.ops.chlo import NextAfter, Polygamma, Zeta
from trivium.ir.ops.common import (
    Shape,
    expect_compatible,
    expect_element,
    expect_element_is,
    expect_same_baseline,
    expect_same_element,
    expect_shape,
    expect_tensor,
)
from trivium.ir.ops.conversion import Compare, ComparisonDirection, ComparisonType, Complex, Select
from trivium.ir.ops.transcendental import Atan2
from trivium.ir.types import F32, F64, I1, ComplexType, TensorType, is_boolean, is_float, is_integer

__all__ = [
    "BroadcastAdd",
    "BroadcastAnd",
    "BroadcastAtan2",
    "BroadcastBinary",
    "BroadcastCompare",
    "BroadcastComplex",
    "BroadcastDivide",
    "BroadcastMaximum",
    "BroadcastMinimum",
    "BroadcastMultiply",
    "BroadcastNextAfter",
    "BroadcastOr",
    "BroadcastPolygamma",
    "BroadcastPower",
    "BroadcastRemainder",
    "BroadcastSelect",
    "BroadcastShiftLeft",
    "BroadcastShiftRightArithmetic",
    "BroadcastShiftRightLogical",
    "BroadcastSubtract",
    "BroadcastXor",
    "BroadcastZeta",
    "ChloComparisonDirection",
    "ChloComparisonType",
]


def aligned(rank: int, result_rank: int, broadcast_dimensions: Ints | None) -> tuple[int, ...]:
    """Returns the dimensions of the result that an operand's dimensions correspond to."""
    if rank == result_rank or broadcast_dimensions is None:
        return tuple(range(result_rank - rank, result_rank))
    return broadcast_dimensions


def broadcast_shape(shapes: Sequence[Shape], broadcast_dimensions: Ints | None = None) -> Shape:
    """Returns the shape to which all shapes are broadcast."""
    rank = max(map(len, shapes))
    result: list[int | None] = [1] * rank
    for shape in shapes:
        for extent, dimension in zip(shape, aligned(len(shape), rank, broadcast_dimensions), strict=True):
            known = result[dimension]
            if known is not None and extent is not None and known != extent and 1 not in (known, extent):
                fail(
                    "C3",
                    f"dimension {dimension} of the result has extents {known} and {extent}, expected one, or 1",
                )
            if known == 1 or (known is None and extent not in (None, 1)):
                result[dimension] = extent
    return tuple(result)


class BroadcastBinary(Op, traits={PURE, EXPRESSED}):
    """For two operands with the same element type. `STATIC` is the op for operands of the same shape."""

    STATIC = Op

    lhs: Operand
    rhs: Operand
    broadcast_dimensions: Ints | None = None
    result: Result

    def infer(lhs, rhs, broadcast_dimensions):
        _check_operands(lhs, rhs, broadcast_dimensions)
        return TensorType(broadcast_shape((lhs.shape, rhs.shape), broadcast_dimensions), lhs.element_type)

    def check(lhs, rhs, broadcast_dimensions, result):
        _check_operands(lhs, rhs, broadcast_dimensions)
        expect_same_baseline("C1", lhs=lhs, rhs=rhs, result=result)
        expect_shape("C4", "result", result, broadcast_shape((lhs.shape, rhs.shape), broadcast_dimensions))

    def evaluate(op, lhs, rhs, broadcast_dimensions):
        return op.STATIC.evaluate(*_broadcast((lhs, rhs), broadcast_dimensions))


def _check_operands(lhs: TensorType, rhs: TensorType, broadcast_dimensions: Ints | None) -> None:
    expect_tensor("I1", "lhs", lhs, per_axis=True)
    expect_tensor("I2", "rhs", rhs, per_axis=True)
    if broadcast_dimensions is None:
        return
    low, high = sorted((lhs.rank, rhs.rank))
    wrong = low != high and (len(broadcast_dimensions) != low or len(set(broadcast_dimensions)) != low)
    if wrong or any(not 0 <= dimension < high for dimension in broadcast_dimensions):
        expected = f"{low} different numbers below {high}"
        fail("C2", f"broadcast_dimensions has {list(broadcast_dimensions)}, expected {expected}")


def _broadcast(arrays: Sequence[np.ndarray], broadcast_dimensions: Ints | None = None) -> list[np.ndarray]:
    shape = broadcast_shape([array.shape for array in arrays], broadcast_dimensions)
    result = []
    for array in arrays:
        dimensions = aligned(array.ndim, len(shape), broadcast_dimensions)
        extents = dict(zip(dimensions, array.shape, strict=True))
        ordered = array.transpose(np.argsort(dimensions))
        result.append(np.broadcast_to(ordered.reshape([extents.get(axis, 1) for axis in range(len(shape))]), shape))
    return result


class BroadcastBitwise(BroadcastBinary):
    """For booleans, or the bits of integers."""

    def check(lhs, rhs, broadcast_dimensions, result):
        expect_element("I1", "lhs", lhs, is_boolean, is_integer)
        BroadcastBinary.check(lhs, rhs, broadcast_dimensions, result)


class BroadcastAdd(BroadcastBinary, name="chlo.broadcast_add"):
    """`add` of broadcast operands."""

    STATIC = Add


class BroadcastSubtract(BroadcastBinary, name="chlo.broadcast_subtract"):
    """`subtract` of broadcast operands."""

    STATIC = Subtract


class BroadcastMultiply(BroadcastBinary, name="chlo.broadcast_multiply"):
    """`multiply` of broadcast operands."""

    STATIC = Multiply


class BroadcastDivide(BroadcastBinary, name="chlo.broadcast_divide"):
    """`divide` of broadcast operands."""

    STATIC = Divide


class BroadcastRemainder(BroadcastBinary, name="chlo.broadcast_remainder"):
    """`remainder` of broadcast operands."""

    STATIC = Remainder


class BroadcastPower(BroadcastBinary, name="chlo.broadcast_power"):
    """`power` of broadcast operands."""

    STATIC = Power


class BroadcastMaximum(BroadcastBinary, name="chlo.broadcast_maximum"):
    """`maximum` of broadcast operands."""

    STATIC = Maximum


class BroadcastMinimum(BroadcastBinary, name="chlo.broadcast_minimum"):
    """`minimum` of broadcast operands."""

    STATIC = Minimum


class BroadcastAtan2(BroadcastBinary, name="chlo.broadcast_atan2"):
    """`atan2` of broadcast operands."""

    STATIC = Atan2


class BroadcastAnd(BroadcastBitwise, name="chlo.broadcast_and"):
    """`and` of broadcast operands."""

    STATIC = And


class BroadcastOr(BroadcastBitwise, name="chlo.broadcast_or"):
    """`or` of broadcast operands."""

    STATIC = Or


class BroadcastXor(BroadcastBitwise, name="chlo.broadcast_xor"):
    """`xor` of broadcast operands."""

    STATIC = Xor


class BroadcastShiftLeft(BroadcastBinary, name="chlo.broadcast_shift_left"):
    """`shift_left` of broadcast operands."""

    STATIC = ShiftLeft


class BroadcastShiftRightArithmetic(BroadcastBinary, name="chlo.broadcast_shift_right_arithmetic"):
    """`shift_right_arithmetic` of broadcast operands."""

    STATIC = ShiftRightArithmetic


class BroadcastShiftRightLogical(BroadcastBinary, name="chlo.broadcast_shift_right_logical"):
    """`shift_right_logical` of broadcast operands."""

    STATIC = ShiftRightLogical


class BroadcastNextAfter(BroadcastBinary, name="chlo.broadcast_next_after"):
    """`next_after` of broadcast operands."""

    STATIC = NextAfter


class BroadcastPolygamma(BroadcastBinary, name="chlo.broadcast_polygamma"):
    """`polygamma` of broadcast operands."""

    STATIC = Polygamma


class BroadcastZeta(BroadcastBinary, name="chlo.broadcast_zeta"):
    """`zeta` of broadcast operands."""

    STATIC = Zeta

    def check(lhs, rhs, broadcast_dimensions, result):
        expect_element("I1", "lhs", lhs, is_float)
        BroadcastBinary.check(lhs, rhs, broadcast_dimensions, result)


# Ops with other element types


@enumeration("chlo.comparison_direction")
class ChloComparisonDirection(Enumeration):
    """How `broadcast_compare` compares lhs to rhs."""

    EQ = "EQ"
    NE = "NE"
    GE = "GE"
    GT = "GT"
    LE = "LE"
    LT = "LT"


@enumeration("chlo.comparison_type")
class ChloComparisonType(Enumeration):
    """The order that `broadcast_compare` uses."""

    NOTYPE = "NOTYPE"
    FLOAT = "FLOAT"
    TOTALORDER = "TOTALORDER"
    SIGNED = "SIGNED"
    UNSIGNED = "UNSIGNED"


class BroadcastCompare(Op, name="chlo.broadcast_compare", traits={PURE, EXPRESSED}):
    """`compare` of broadcast operands."""

    lhs: Operand
    rhs: Operand
    broadcast_dimensions: Ints | None = None
    comparison_direction: ChloComparisonDirection
    compare_type: ChloComparisonType | None = None
    result: Result

    def infer(lhs, rhs, broadcast_dimensions):
        _check_operands(lhs, rhs, broadcast_dimensions)
        return TensorType(broadcast_shape((lhs.shape, rhs.shape), broadcast_dimensions), I1)

    def check(lhs, rhs, broadcast_dimensions, result):
        _check_operands(lhs, rhs, broadcast_dimensions)
        expect_same_baseline("C1", lhs=lhs, rhs=rhs)
        expect_element_is("O1", "result", result, I1)
        expect_shape("C4", "result", result, broadcast_shape((lhs.shape, rhs.shape), broadcast_dimensions))

    @property
    def static_attributes(self) -> dict[str, Enumeration | None]:
        """The corresponding attributes of `stablehlo.compare`."""
        order = ComparisonType(self.compare_type.value) if self.compare_type else None
        return {"comparison_direction": ComparisonDirection(self.comparison_direction.value), "compare_type": order}

    def evaluate(op, lhs, rhs, broadcast_dimensions):
        return Compare.evaluate(*_broadcast((lhs, rhs), broadcast_dimensions), **op.static_attributes)


class BroadcastComplex(Op, name="chlo.broadcast_complex", traits={PURE}):
    """`complex` of broadcast parts."""

    lhs: Operand
    rhs: Operand
    broadcast_dimensions: Ints | None = None
    result: Result

    def infer(lhs, rhs, broadcast_dimensions):
        _check_parts(lhs, rhs)
        _check_operands(lhs, rhs, broadcast_dimensions)
        shape = broadcast_shape((lhs.shape, rhs.shape), broadcast_dimensions)
        return TensorType(shape, ComplexType(lhs.element_type))

    def check(lhs, rhs, broadcast_dimensions, result):
        expected = BroadcastComplex.infer(lhs, rhs, broadcast_dimensions)
        expect_same_element("C1", lhs=lhs, rhs=rhs)
        expect_compatible("C4", expected=expected, result=result)

    def evaluate(lhs, rhs, broadcast_dimensions, result):
        return Complex.evaluate(*_broadcast((lhs, rhs), broadcast_dimensions), result)


def _check_parts(lhs: TensorType, rhs: TensorType) -> None:
    for label, name, part in (("I1", "lhs", lhs), ("I2", "rhs", rhs)):
        if not isinstance(part, TensorType) or part.element_type not in (F32, F64):
            fail(label, f"{name} has type {part}, expected a tensor of f32 or f64")


class BroadcastSelect(Op, name="chlo.broadcast_select", traits={PURE}):
    """`select` of operands that are broadcast to each other as in NumPy."""

    pred: Operand
    on_true: Operand
    on_false: Operand
    result: Result

    def infer(pred, on_true, on_false):
        for label, name, kind in (("I1", "pred", pred), ("I2", "on_true", on_true), ("I3", "on_false", on_false)):
            expect_tensor(label, name, kind)
        shape = broadcast_shape((pred.shape, on_true.shape, on_false.shape))
        return TensorType(shape, on_true.element_type)

    def check(pred, on_true, on_false, result):
        expect_element_is("I1", "pred", pred, I1)
        expected = BroadcastSelect.infer(pred, on_true, on_false)
        expect_same_element("C1", on_true=on_true, on_false=on_false)
        expect_compatible("C4", expected=expected, result=result)

    def evaluate(pred, on_true, on_false):
        return Select.evaluate(*_broadcast((pred, on_true, on_false)))
