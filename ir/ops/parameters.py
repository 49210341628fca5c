"""The constraints on the parameters of quantized elements: they must fit their tensor, match where numbers are added or
multiplied, and follow elements that move. The ops pass the labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.ir.errors import fail
from trivium.ir.types import (
    PerAxisType,
    PerTensorType,
    QuantizedType,
    TensorType,
    dimensions_compatible,
    is_per_axis,
    is_per_tensor,
    is_quantized,
    same_baseline,
)


def expect_fitting(label: str, name: str, kind: TensorType, per_axis: bool) -> None:
    """Checks that quantized elements are quantized per tensor, or per axis if that is allowed, and that there are
    parameters for each slice."""
    element = kind.element_type
    if not isinstance(element, QuantizedType):
        return
    if not isinstance(element, (PerTensorType, PerAxisType) if per_axis else PerTensorType):
        fail(label, f"{name} has type {kind}, expected quantization per tensor{' or per axis' if per_axis else ''}")
    zero_points = element.zero_points if isinstance(element, PerAxisType) else (element.zero_point,)
    if any(not element.storage_min <= zero_point <= element.storage_max for zero_point in zero_points):
        fail(label, f"{name} has type {kind}, expected zero points that can be stored")
    if isinstance(element, PerAxisType) and not _covers(element, kind.shape):
        fail(label, f"{name} has type {kind}, expected a scale for each slice along its quantization dimension")


def _covers(element: PerAxisType, shape: Sequence[int | None]) -> bool:
    dimension = element.quantization_dimension
    return dimension < len(shape) and dimensions_compatible(shape[dimension], len(element.scales))


# Arithmetic


def check_sum(labels: Sequence[str], lhs: TensorType, rhs: TensorType, result: TensorType) -> None:
    """Checks the constraints of `add`: all are quantized, with the same storage type and expressed type; if an operand
    is quantized per axis, so is the result, along the same dimension."""
    all_quantized, storage, expressed, per_axis, lhs_dimension, rhs_dimension = labels
    kinds = {"lhs": lhs, "rhs": rhs, "result": result}
    _expect_quantized(all_quantized, kinds)
    _expect_same(storage, "storage_type", kinds)
    _expect_same(expressed, "expressed_type", kinds)
    sliced = [name for name in ("lhs", "rhs") if is_per_axis(kinds[name].element_type)]
    if bool(sliced) != is_per_axis(result.element_type):
        fail(per_axis, f"lhs has type {lhs}, rhs {rhs}, result {result}; expected a result quantized like those")
    for label, name in ((lhs_dimension, "lhs"), (rhs_dimension, "rhs")):
        if name in sliced:
            _expect_same(label, "quantization_dimension", {name: kinds[name], "result": result})


def check_products(labels: Sequence[str], lhs: TensorType, rhs: TensorType, result: TensorType) -> None:
    """Checks the shared constraints of `dot_general` and `convolution`: operands and result are all quantized, or only
    `rhs` is."""
    all_quantized, storage, expressed, per_tensor, hybrid = labels
    if not is_quantized(rhs.element_type) or is_quantized(lhs.element_type) != is_quantized(result.element_type):
        fail(all_quantized, f"lhs has type {lhs}, rhs {rhs}, result {result}; expected all quantized, or rhs alone")
    if not is_quantized(lhs.element_type):
        number = rhs.element_type.expressed_type
        if lhs.element_type is not number or result.element_type is not number:
            fail(hybrid, f"lhs has type {lhs}, result {result}; expected elements of {number}, as rhs expresses")
        return
    _expect_same(storage, "storage_type", {"lhs": lhs, "rhs": rhs})
    _expect_same(expressed, "expressed_type", {"lhs": lhs, "rhs": rhs, "result": result})
    if is_per_tensor(rhs.element_type) and not is_per_tensor(result.element_type):
        fail(per_tensor, f"result has type {result}, rhs {rhs}; expected quantization per tensor, as of rhs")


def expect_dimension(label: str, name: str, kind: TensorType, dimension: int, what: str) -> None:
    """Checks that quantization per axis is along this dimension; `what` says which one it is."""
    element = kind.element_type
    if isinstance(element, PerAxisType) and element.quantization_dimension != dimension:
        fail(label, f"{name} has type {kind}, expected quantization along dimension {dimension}, {what}")


def _expect_quantized(label: str, kinds: dict[str, TensorType]) -> None:
    for name, kind in kinds.items():
        if not is_quantized(kind.element_type):
            fail(label, f"{name} has type {kind}, expected quantized elements, like the others")


def _expect_same(label: str, what: str, kinds: dict[str, TensorType]) -> None:
    (first, kind), *others = kinds.items()
    wanted = getattr(kind.element_type, what)
    for name, other in others:
        found = getattr(other.element_type, what)
        if found != wanted:
            fail(label, f"{name} has {what} {found}, {first} has {wanted}; expected the same")


# Movement


def expect_moved(label: str, operand: TensorType, result: TensorType) -> None:
    """Checks that the element types are equal; parameters per slice may be along another dimension."""
    one, other = operand.element_type, result.element_type
    if one is other:
        return
    if not (isinstance(one, PerAxisType) and isinstance(other, PerAxisType)) or _slices(one) != _slices(other):
        fail(label, f"result has element type {other}, operand has {one}; expected the same")


def _slices(element: PerAxisType) -> tuple[object, ...]:
    """Returns a type's fields except its quantization dimension."""
    return tuple(value for name, value in vars(element).items() if name != "quantization_dimension")


def expect_reshaped(label: str, operand: TensorType, result: TensorType) -> None:
    """Checks that the slices with their own scales have the same elements in another shape."""
    one, other = operand.element_type, result.element_type
    if not (isinstance(one, PerAxisType) and isinstance(other, PerAxisType)):
        return
    parts = zip(_around(one, operand), _around(other, result), strict=True)
    if any(None not in pair and pair[0] != pair[1] for pair in parts):
        fail(label, f"result has type {result}, operand {operand}; expected the same elements in each slice")


def _around(element: PerAxisType, kind: TensorType) -> list[int | None]:
    """Returns the number of elements before, along and after the quantization dimension; `None` if unknown."""
    dimension, shape = element.quantization_dimension, kind.shape
    parts = (shape[:dimension], shape[dimension : dimension + 1], shape[dimension + 1 :])
    return [None if None in part else math.prod(part) for part in parts]  # type: ignore[arg-type]


def expect_broadcast(
    labels: Sequence[str], operand: TensorType, result: TensorType, broadcast_dimensions: Sequence[int]
) -> None:
    """Checks that the element types are equal; parameters per slice move with their dimension, and are repeated with
    it.
    """
    same, along = labels
    one, other = operand.element_type, result.element_type
    if not (isinstance(one, PerAxisType) and isinstance(other, PerAxisType)):
        return expect_moved(same, operand, result)
    if not same_baseline(one, other):
        fail(same, f"result has element type {other}, operand has {one}; expected the same except for parameters")
    dimension = one.quantization_dimension
    expect_dimension(along, "result", result, broadcast_dimensions[dimension], "that of operand in the result")
    repeated = len(one.scales) == 1 and operand.shape[dimension] == 1
    if repeated and (set(other.scales) != set(one.scales) or set(other.zero_points) != set(one.zero_points)):
        fail(along, f"result has element type {other}, operand has {one}; expected its parameters for all slices")
    return None
