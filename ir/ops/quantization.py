"""Quantized elements: the ops that quantize and dequantize, and the meaning of all other ops for such elements.

An op either moves elements, and then acts on the stored integers unchanged, or it computes with the expressed values,
which is the trait `EXPRESSED`. Such an op is evaluated on dequantized operands, and its results are quantized.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trivium.ir.arrays import Datum
from trivium.ir.core import Value
from trivium.ir.declare import ELEMENTWISE, EXPRESSED, PURE, Op, Operand, Result, Trait
from trivium.ir.errors import ExecutionError, fail
from trivium.ir.ops.common import expect_element, expect_element_is, expect_same_shape
from trivium.ir.ops.numerics import compute, convert
from trivium.ir.types import (
    ElementType,
    QuantizedType,
    TensorType,
    Type,
    expressed,
    is_float,
    is_per_axis,
    is_per_tensor,
)

if TYPE_CHECKING:
    from trivium.ir.interpreter import Interpreter, RegionCallable

__all__ = ["UniformDequantize", "UniformQuantize"]


class UniformQuantize(Op, name="stablehlo.uniform_quantize", traits={PURE, ELEMENTWISE, EXPRESSED}):
    """Quantizes floats or other quantized elements, each to the nearest number that the result's type can express."""

    operand: Operand
    result: Result

    def check(operand, result):
        expect_element("I1", "operand", operand, is_float, is_per_tensor, is_per_axis)
        expect_element("O1", "result", result, is_per_tensor, is_per_axis)
        expect_same_shape("C1", operand=operand, result=result)
        kind, wanted = result.element_type.expressed_type, expressed(operand).element_type
        if kind is not wanted:
            fail("C2", f"result has type {result}, which expresses {kind}, expected {wanted}, as of operand")

    def evaluate(operand):
        return operand


class UniformDequantize(Op, name="stablehlo.uniform_dequantize", traits={PURE, ELEMENTWISE, EXPRESSED}):
    """The values that quantized elements express."""

    operand: Operand
    result: Result

    def infer(operand):
        return expressed(operand)

    def check(operand, result):
        expect_element("I1", "operand", operand, is_per_tensor, is_per_axis)
        expect_same_shape("C1", operand=operand, result=result)
        expect_element_is("C2", "result", result, operand.element_type.expressed_type)

    def evaluate(operand):
        return operand


# Arrays


def dequantize(array: np.ndarray, kind: QuantizedType) -> np.ndarray:
    """Returns the values that stored integers express. The difference from the zero point is exact, the rest is rounded
    at each step."""
    scales, zero_points = _parameters(kind, np.shape(array))
    dtype = kind.expressed_type.dtype
    difference = np.asarray(array).astype(np.int64) - zero_points
    return compute(np.multiply, difference.astype(dtype), scales.astype(dtype))


def quantize(array: np.ndarray, kind: QuantizedType) -> np.ndarray:
    """Returns the stored integers that express floats best: rounded at each step, clamped to the storage range, and
    finally rounded to an integer, ties to even."""
    scales, zero_points = _parameters(kind, np.shape(array))
    dtype = kind.expressed_type.dtype
    least, zero_points, greatest = (
        convert(np.asarray(number), dtype) for number in (kind.storage_min, zero_points, kind.storage_max)
    )
    moved = compute(np.add, compute(np.divide, array, scales.astype(dtype)), zero_points)
    held = compute(lambda value, low, high: np.minimum(np.maximum(value, low), high), moved, least, greatest)
    return convert(compute(np.rint, held), kind.dtype)


def _parameters(kind: QuantizedType, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    scales, zero_points = kind.parameters(shape)
    if any(count not in (1, extent) for count, extent in zip(scales.shape, shape, strict=False)):
        raise ExecutionError(f"an array has shape {shape}, expected one that fits the scales of {kind}")
    return scales, zero_points


def to_destination_type(array: np.ndarray, kind: ElementType, destination: ElementType) -> np.ndarray:
    """Converts a tensor of element type `kind` to another element type, by quantizing, dequantizing or converting."""
    if kind is destination:
        return array
    if isinstance(kind, QuantizedType):
        array = dequantize(array, kind)
    return quantize(array, destination) if isinstance(destination, QuantizedType) else convert(array, destination.dtype)


def promoted(
    arrays: Sequence[np.ndarray], kinds: Sequence[TensorType], results: Sequence[TensorType]
) -> list[np.ndarray]:
    """Converts arrays to the element types of the results, in which they are reduced."""
    return [
        to_destination_type(array, kind.element_type, result.element_type)
        for array, kind, result in zip(arrays, kinds, results, strict=True)
    ]


def zeros(kind: TensorType, shape: Sequence[int]) -> np.ndarray:
    """Returns zeros of an element type; quantized zeros are stored as the zero point."""
    number = expressed(kind)
    return to_destination_type(np.zeros(shape, number.dtype), number.element_type, kind.element_type)


# Any op


def evaluate_op(
    op: Op,
    operands: Sequence[Datum],
    regions: Sequence[RegionCallable] = (),
    context: Interpreter | None = None,
) -> Any:
    """Evaluates an op. If it computes with the values that quantized elements express, its operands are dequantized and
    its results are quantized."""
    if Trait.EXPRESSED in op.TRAITS and op.is_quantized:
        return _evaluate_expressed(op, operands, context)
    return op.EVALUATE(op, operands, regions, context)


def _evaluate_expressed(op: Op, operands: Sequence[Datum], context: Interpreter | None) -> Datum | Sequence[Datum]:
    arrays = [
        _cast(array, value.type, expressed(value.type)) for array, value in zip(operands, op.operands, strict=True)
    ]
    twin = with_types(op, [Value(expressed(kind)) for kind in op.operand_types], map(expressed, op.result_types))
    returned = twin.EVALUATE(twin, arrays, (), context)
    if len(op.results) == 1:
        return _cast(returned, twin.results[0].type, op.results[0].type)
    return [_cast(array, *kinds) for array, *kinds in zip(returned, twin.result_types, op.result_types, strict=True)]


def with_types(op: Op, operands: Sequence[Value], result_types: Iterable[Type]) -> Op:
    """Returns the same op with other operands and result types, without regions."""
    return type(op).create(operands, tuple(result_types), dict(op.attributes), (), op.extra, op.location, op.segments)


def _cast(array: Datum, kind: Type, other: Type) -> Datum:
    if not isinstance(kind, TensorType) or kind.element_type is other.element_type:
        return array
    return to_destination_type(array, kind.element_type, other.element_type)
