"""Shared by the declarations of all op families: checks of types and dimension lists that raise labelled errors, and
the types that follow from several others. Messages are formatted only when a constraint fails.

Labels are those of the specification: C1, C2, ... for constraints, and I1, I2, ... for the types in its table of
inputs. O1 stands for the type in its table of outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from trivium.ir.errors import fail
from trivium.ir.ops.parameters import expect_fitting
from trivium.ir.types import (
    C64,
    C128,
    FLOATS,
    I1,
    Bounds,
    ComplexType,
    ElementType,
    IndexType,
    IntegerType,
    QuantizedType,
    TensorType,
    TokenType,
    TupleType,
    Type,
    UnsignedStorageType,
    alike,
    compatible,
    is_boolean,
    is_complex,
    is_float,
    is_integer,
    is_per_axis,
    is_per_tensor,
    same_baseline,
    shapes_compatible,
)

Shape = tuple[int | None, ...]

ELEMENTS = frozenset(
    {
        *(kind for name, kind in FLOATS.items() if name != "tf32"),
        *(IntegerType(width, sign) for width in (2, 4, 8, 16, 32, 64) for sign in ("", "u")),
        *(I1, C64, C128),
    }
)
"""The element types of tensors in the language, besides quantized types."""
STORED = frozenset(
    kind
    for width in (2, 4, 8, 16, 32)
    for kind in (IntegerType(width), IntegerType(width, "u"), UnsignedStorageType(width))
)
"""The storage types of quantized elements."""


def is_element(kind: Type) -> bool:
    """Whether tensors of the language can have this element type."""
    return kind in ELEMENTS or (isinstance(kind, QuantizedType) and kind.storage_type in STORED)


def is_signed(kind: Type) -> bool:
    """Whether a type is a signed integer."""
    return isinstance(kind, IntegerType) and kind.is_signed


_WORDS: dict[Callable[[Type], bool], str] = {
    is_boolean: "boolean",
    is_integer: "integer",
    is_signed: "signed integer",
    is_float: "floating-point",
    is_complex: "complex",
    is_per_tensor: "per-tensor quantized",
    is_per_axis: "per-axis quantized",
}


def bits_of(kind: Type) -> int:
    """Returns the number of bits of one element; a complex number has the bits of both parts."""
    return 2 * kind.element_type.width if isinstance(kind, ComplexType) else kind.width


# Types that follow from others


def shaped(shape: Sequence[int | None], element_type: ElementType, bounds: Sequence[int | None] = ()) -> TensorType:
    """Returns a tensor type whose dynamic dimensions keep their known bounds."""
    limits = tuple(bound if extent is None else None for extent, bound in zip(shape, bounds, strict=False))
    encoding = Bounds(limits) if any(limit is not None for limit in limits) else None
    return TensorType(tuple(shape), element_type, encoding)


def real_type(kind: TensorType) -> TensorType:
    """Returns the type of the real parts; for real numbers, the type itself."""
    expect_tensor("I1", "operand", kind, per_axis=True)
    element = kind.element_type
    return kind.with_element(element.element_type) if isinstance(element, ComplexType) else kind


def most_specific(*types: TensorType) -> TensorType:
    """Combines compatible types: a static extent wins over `?`, and a smaller bound over a larger one. Returns the
    first type if they are not compatible, because `check` reports the error."""
    first = types[0]
    if all(other is first for other in types) or not all(compatible(first, other) for other in types):
        return first
    shape = map(_known, zip(*(other.shape for other in types), strict=True))
    bounds = map(_least, zip(*(other.bounds for other in types), strict=True))
    return shaped(tuple(shape), first.element_type, tuple(bounds))


def _known(extents: Sequence[int | None]) -> int | None:
    return next((extent for extent in extents if extent is not None), None)


def _least(bounds: Sequence[int | None]) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


# Constraints on types


def expect_tensor(label: str, name: str, kind: Type, rank: int | None = None, per_axis: bool = False) -> None:
    """Checks for a tensor of the language, and its rank if one is given."""
    if not isinstance(kind, TensorType) or (rank is not None and kind.rank != rank):
        fail(label, f"{name} has type {kind}, expected a tensor{'' if rank is None else f' of rank {rank}'}")
    expect_fitting(label, name, kind, per_axis)
    if not is_element(kind.element_type):
        fail(label, f"{name} has element type {kind.element_type}, which tensors of the language cannot have")


def expect_values(label: str, name: str, kinds: Sequence[Type], *others: type, per_axis: bool = True) -> None:
    """Checks for tensors, tokens, and the `others` that may pass through an op; tuples contain values of the same
    kinds.
    """
    for index, kind in enumerate(kinds):
        if isinstance(kind, TupleType) and TupleType in others:
            expect_values(label, f"{name}[{index}]", kind.types, *others, per_axis=per_axis)
        elif not isinstance(kind, (TokenType, *others)):
            expect_tensor(label, f"{name}[{index}]", kind, per_axis=per_axis)


def expect_sizes(label: str, name: str, kind: Type) -> None:
    """Checks for a list of integers, as a tensor of known length."""
    if not isinstance(kind, TensorType) or kind.rank != 1 or not kind.is_static:
        fail(label, f"{name} has type {kind}, expected a static tensor of rank 1")
    element = kind.element_type
    if not (isinstance(element, IndexType) or (is_integer(element) and is_element(element))):
        fail(label, f"{name} has element type {element}, expected integer or index")


def expect_static(label: str, name: str, kind: Type, bounded: bool = False) -> None:
    """Checks for a tensor without dynamic dimensions; `bounded` allows one dimension with a bound."""
    expect_tensor(label, name, kind, per_axis=True)
    if kind.is_static or (bounded and kind.shape.count(None) == 1 and None not in limits_of(kind)):
        return
    fail(label, f"{name} has type {kind}, expected static extents{', or one with a bound' if bounded else ''}")


def expect_element(label: str, name: str, kind: Type, *allowed: Callable[[Type], bool]) -> None:
    """Checks for a tensor whose element type satisfies one of the predicates of `trivium.ir.types`."""
    expect_tensor(label, name, kind, per_axis=True)
    if not any(allows(kind.element_type) for allows in allowed):
        words = " or ".join(_WORDS[allows] for allows in allowed)
        fail(label, f"{name} has element type {kind.element_type}, expected {words}")


def expect_element_is(label: str, name: str, kind: Type, element: Type) -> None:
    """Checks for a tensor of one element type."""
    expect_tensor(label, name, kind, per_axis=True)
    if kind.element_type is not element:
        fail(label, f"{name} has element type {kind.element_type}, expected {element}")


def expect_compatible(label: str, **types: Type) -> None:
    """Checks that the value of the first type can have all other types."""
    (first_name, first), *others = types.items()
    for name, kind in others:
        if not alike(first, kind):
            fail(label, f"{name} has type {kind}, {first_name} has {first}; expected compatible types")


def expect_compatible_baseline(label: str, **types: Type) -> None:
    """Checks that the value of the first type can have all other types, except for the parameters of quantized
    elements."""
    (first_name, first), *others = types.items()
    for name, kind in others:
        if not compatible(first, kind):
            fail(label, f"{name} has type {kind}, {first_name} has {first}; expected compatible types")


def expect_same_shape(label: str, **types: Type) -> None:
    """Checks that all shapes are compatible with the first."""
    (first_name, first), *others = types.items()
    expect_tensor(label, first_name, first, per_axis=True)
    for name, kind in others:
        expect_tensor(label, name, kind, per_axis=True)
        if not shapes_compatible(first.shape, kind.shape):
            fail(label, f"{name} has type {kind}, {first_name} has {first}; expected the same shape")


def expect_same_element(label: str, **types: Type) -> None:
    """Checks that all element types are equal."""
    (first_name, first), *others = types.items()
    expect_tensor(label, first_name, first, per_axis=True)
    for name, kind in others:
        expect_tensor(label, name, kind, per_axis=True)
        if kind.element_type is not first.element_type:
            fail(label, f"{name} has element type {kind.element_type}, {first_name} has {first.element_type}")


def expect_same_baseline(label: str, **types: Type) -> None:
    """Checks that all element types are equal except for the parameters of quantized types."""
    (first_name, first), *others = types.items()
    expect_tensor(label, first_name, first, per_axis=True)
    for name, kind in others:
        expect_tensor(label, name, kind, per_axis=True)
        if not same_baseline(kind.element_type, first.element_type):
            fail(label, f"{name} has element type {kind.element_type}, {first_name} has {first.element_type}")


def expect_shape(label: str, name: str, kind: Type, shape: Sequence[int | None]) -> None:
    """Checks for a tensor that can have this shape."""
    expect_tensor(label, name, kind, per_axis=True)
    if not shapes_compatible(kind.shape, tuple(shape)):
        extents = "x".join("?" if extent is None else str(extent) for extent in shape)
        fail(label, f"{name} has type {kind}, expected shape {extents or '()'}")


# Constraints on lists of dimensions and sizes


def expect_size(label: str, name: str, values: Sequence[object], size: int, what: str) -> None:
    """Checks the length of a list; `what` says where the expected length comes from."""
    if len(values) != size:
        fail(label, f"{name} has {len(values)} entries, expected {size}, {what}")


def expect_unique(label: str, name: str, values: Sequence[int]) -> None:
    """Checks that no entry occurs twice."""
    if len(set(values)) != len(values):
        fail(label, f"{name} has repeated entries, {list(values)}, expected unique ones")


def expect_sorted(label: str, name: str, values: Sequence[int]) -> None:
    """Checks that entries do not decrease."""
    if any(left > right for left, right in pairwise(values)):
        fail(label, f"{name} has {list(values)}, expected sorted entries")


def expect_within(label: str, name: str, values: Sequence[int], limit: int) -> None:
    """Checks for entries within `range(limit)`: dimensions of a tensor of that rank."""
    for value in values:
        if not 0 <= value < limit:
            fail(label, f"{name} has {value}, expected at least 0 and less than {limit}")


def expect_at_least(label: str, name: str, values: Sequence[int], least: int) -> None:
    """Checks that no entry is less than `least`."""
    for value in values:
        if value < least:
            fail(label, f"{name} has {value}, expected at least {least}")


def expect_at_most(label: str, name: str, values: Sequence[int], limits: Sequence[int | None], what: str) -> None:
    """Checks that no entry is greater than its limit; `None` is no limit. `what` says where limits come from."""
    for index, (value, limit) in enumerate(zip(values, limits, strict=True)):
        if limit is not None and value > limit:
            fail(label, f"{name}[{index}] has {value}, expected at most {limit}, {what}")


def limits_of(kind: TensorType) -> Shape:
    """Returns the largest possible value of each extent: itself, its bound, or `None`."""
    return tuple(bound if extent is None else extent for extent, bound in zip(kind.shape, kind.bounds, strict=True))
