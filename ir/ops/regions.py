"""The types that a region takes and returns, and checks of them."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.ir.core import Region
from trivium.ir.errors import fail
from trivium.ir.types import (
    ComplexType,
    FloatType,
    IntegerType,
    QuantizedType,
    TensorType,
    Type,
    alike,
    is_boolean,
)


def inputs_of(region: Region) -> tuple[Type, ...]:
    """Returns the types of the region's arguments."""
    return tuple(argument.type for argument in _block(region).arguments)


def outputs_of(region: Region) -> tuple[Type, ...]:
    """Returns the types that the region returns."""
    return _block(region).terminator.operand_types


def check_region(label: str, name: str, region: Region, inputs: Sequence[Type], outputs: Sequence[Type]) -> None:
    """Checks that a region maps `inputs` to `outputs`."""
    have_in, have_out = inputs_of(region), outputs_of(region)
    if not (_all_compatible(have_in, inputs) and _all_compatible(have_out, outputs)):
        fail(label, f"{name} has type {_signature(have_in, have_out)}, expected {_signature(inputs, outputs)}")


def check_reducer(label: str, name: str, region: Region, elements: Sequence[Type]) -> None:
    """Checks for `(tensor<E0>, ..., tensor<E0>, ...) -> (tensor<E0>, ...)`, where each of `elements` is promotable to
    its Ei."""
    outputs = outputs_of(region)
    if len(outputs) != len(elements):
        fail(label, f"{name} returns {len(outputs)} values, expected {len(elements)}")
    for kind in outputs:
        if not isinstance(kind, TensorType):
            fail(label, f"{name} returns {kind}, expected a tensor")
    scalars = [TensorType((), kind.element_type) for kind in outputs]
    check_region(label, name, region, [*scalars, *scalars], scalars)
    for index, (element, scalar) in enumerate(zip(elements, scalars, strict=True)):
        if not is_promotable(element, scalar.element_type):
            fail(label, f"{name} reduces value {index} as {scalar.element_type}, to which {element} does not promote")


def is_promotable(element: Type, other: Type) -> bool:
    """Whether a reduction may accumulate values of one element type in another."""
    if is_boolean(element) or is_boolean(other):
        return element is other
    if isinstance(element, IntegerType) and isinstance(other, IntegerType):
        return element.width <= other.width
    if isinstance(element, FloatType) and isinstance(other, FloatType):
        return element.width <= other.width
    if isinstance(element, ComplexType) and isinstance(other, ComplexType):
        return element.element_type.width <= other.element_type.width
    if isinstance(element, QuantizedType) and isinstance(other, QuantizedType):
        return element.expressed_type is other.expressed_type and element.storage_type.width <= other.storage_type.width
    return element is other


def _block(region: Region):
    if len(region.blocks) != 1 or region.block.last is None:
        fail("", f"has a region of {len(region.blocks)} blocks, expected one block that ends in a return")
    return region.block


def _all_compatible(one: Sequence[Type], other: Sequence[Type]) -> bool:
    return len(one) == len(other) and all(map(alike, one, other))


def _signature(inputs: Sequence[Type], outputs: Sequence[Type]) -> str:
    return f"({', '.join(map(str, inputs))}) -> ({', '.join(map(str, outputs))})"
