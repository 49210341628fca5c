"""The types of StableHLO: tensors and the other types of values. The types of numbers are re-exported here. Types are
interned: equal types are one object, so that `is` compares them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from trivium.ir.element_types import (  # noqa: F401
    BF16,
    C64,
    C128,
    F16,
    F32,
    F64,
    FLOATS,
    I1,
    I8,
    I16,
    I32,
    I64,
    INDEX,
    UI8,
    UI16,
    UI32,
    UI64,
    ComplexType,
    FloatType,
    IndexType,
    IntegerType,
    Interned,
    Type,
    UnsignedStorageType,
    dtype_of,
    element_type_of,
)
from trivium.ir.errors import Error
from trivium.ir.quantized_types import (  # noqa: F401
    MAX_STORAGE_WIDTH,
    PerAxisType,
    PerTensorType,
    QuantizedType,
    SubChannelType,
    scale_range,
    storage_range,
)
from trivium.ir.services import SERVICES

DYNAMIC = None
"""The extent of a dimension known only at run time, `?` in text."""


ElementType = FloatType | IntegerType | IndexType | ComplexType | QuantizedType


@dataclass(frozen=True, eq=False)
class Bounds(metaclass=Interned):
    """The largest extent of each dynamic dimension, where one is known; an encoding of a tensor type."""

    bounds: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"#stablehlo.bounds<{', '.join('?' if bound is None else str(bound) for bound in self.bounds)}>"

    __reduce__ = Type.__reduce__  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class TensorType(Type):
    """An array: extents (`None` where dynamic), element type, and an encoding (bounds, or any attribute)."""

    shape: tuple[int | None, ...]
    element_type: Any
    encoding: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _checked_shape(self.shape))
        _check_element(self.element_type)
        if isinstance(self.encoding, Bounds):
            self._check_bounds(self.encoding)

    def _check_bounds(self, bounds: Bounds) -> None:
        if len(bounds.bounds) != len(self.shape):
            raise Error(f"a tensor type has {len(bounds.bounds)} bounds for {len(self.shape)} dimensions")
        for dimension, (bound, extent) in enumerate(zip(bounds.bounds, self.shape, strict=True)):
            if bound is not None and bound < 0:
                raise Error(f"a tensor type has the bound {bound}, expected at least 0")
            if bound is not None and extent is not None:
                raise Error(f"a tensor type has the bound {bound} for dimension {dimension}, of static extent {extent}")

    def __str__(self) -> str:
        encoding = "" if self.encoding is None else f", {SERVICES.attribute_text(self.encoding)}"
        return f"tensor<{_extents_text(self.shape)}{self.element_type}{encoding}>"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return None not in self.shape

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape if every extent is known; raises an `Error` otherwise."""
        if None in self.shape:
            raise Error(f"{self} has dynamic dimensions, expected a static shape")
        return self.shape  # type: ignore[return-value]

    @property
    def size(self) -> int:
        """The number of elements of a static tensor."""
        return math.prod(self.static_shape)

    @property
    def dtype(self) -> np.dtype:
        return self.element_type.dtype

    @property
    def bounds(self) -> tuple[int | None, ...]:
        """The bound of each dimension; `None` where there is none."""
        return self.encoding.bounds if isinstance(self.encoding, Bounds) else (None,) * len(self.shape)

    def with_shape(self, shape) -> TensorType:
        return TensorType(tuple(shape), self.element_type)

    def with_element(self, element_type) -> TensorType:
        return TensorType(self.shape, element_type, self.encoding)


@dataclass(frozen=True, eq=False)
class UnrankedTensorType(Type):
    """An array whose number of dimensions is unknown. No op of StableHLO accepts it: functions only pass it on."""

    element_type: Any

    def __post_init__(self) -> None:
        _check_element(self.element_type)

    def __str__(self) -> str:
        return f"tensor<*x{self.element_type}>"


@dataclass(frozen=True, eq=False)
class BufferType(Type):
    """An array in memory. Custom calls convert tensors to buffers, write to them, and convert them back."""

    shape: tuple[int | None, ...]
    element_type: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _checked_shape(self.shape))
        _check_element(self.element_type)
        if isinstance(self.element_type, QuantizedType):
            raise Error(f"a buffer has element type {self.element_type}, expected a number's type")

    def __str__(self) -> str:
        return f"memref<{_extents_text(self.shape)}{self.element_type}>"


@dataclass(frozen=True, eq=False)
class WitnessType(Type):
    """A proof that a condition on shapes is true, from MLIR's `shape` dialect."""

    def __str__(self) -> str:
        return "!shape.witness"


@dataclass(frozen=True, eq=False)
class TokenType(Type):
    """Orders ops that have effects."""

    def __str__(self) -> str:
        return "!stablehlo.token"


@dataclass(frozen=True, eq=False)
class NoneType(Type):
    """MLIR's `none`."""

    def __str__(self) -> str:
        return "none"


@dataclass(frozen=True, eq=False)
class TupleType(Type):
    """Several values as one."""

    types: tuple[Type, ...]

    def __post_init__(self) -> None:
        _check_types("tuple", self.types)

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.types))}>"


@dataclass(frozen=True, eq=False)
class FutureType(Type):
    """Values that are still being computed; `async_done` waits for them."""

    types: tuple[Type, ...]

    def __post_init__(self) -> None:
        if not self.types or not all(isinstance(kind, TensorType) for kind in self.types):
            raise Error(f"a future has types ({', '.join(map(str, self.types))}), expected one tensor type or more")

    def __str__(self) -> str:
        return f"!stablehlo.future<{', '.join(map(str, self.types))}>"


@dataclass(frozen=True, eq=False)
class FunctionType(Type):
    """The types of a function's arguments and results."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __post_init__(self) -> None:
        _check_types("function", (*self.inputs, *self.results))

    def __str__(self) -> str:
        results = ", ".join(map(str, self.results))
        if len(self.results) != 1 or isinstance(self.results[0], FunctionType):
            results = f"({results})"
        return f"({', '.join(map(str, self.inputs))}) -> {results}"


@dataclass(frozen=True, eq=False)
class OpaqueType(Type):
    """A type of an unregistered dialect, kept as text (`!dialect.name<...>`)."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def dtype(self) -> np.dtype:
        return dtype_of(self)


def _extents_text(shape: tuple[int | None, ...]) -> str:
    return "".join("?x" if extent is None else f"{extent}x" for extent in shape)


def _checked_shape(shape: Iterable[SupportsIndex | None]) -> tuple[int | None, ...]:
    """Converts extents to plain integers. Types are interned, so an equal object such as `True` or a NumPy integer
    would otherwise become the extent of all tensors of that type."""
    return tuple([None if extent is None else _extent(extent) for extent in shape])


def _extent(extent: SupportsIndex) -> int:
    try:
        return int(operator.index(extent))
    except TypeError:
        raise Error(f"a tensor type has the extent {extent!r}, expected an integer, or None where dynamic") from None


def _check_element(kind: object) -> None:
    if not isinstance(kind, FloatType | IntegerType | IndexType | ComplexType | QuantizedType | OpaqueType):
        raise Error(f"has element type {kind}, expected a number's type")


def _check_types(what: str, kinds: Iterable[object]) -> None:
    for kind in kinds:
        if not isinstance(kind, Type):
            raise Error(f"a {what} type has {kind!r} among its types")


TOKEN, NONE, WITNESS = TokenType(), NoneType(), WitnessType()


def tensor(*shape: int | None, of: Any = F32) -> TensorType:
    """`tensor(2, 3, of=F32)`: the type of a 2x3 array of `of`, an element type or a NumPy dtype."""
    return TensorType(tuple(shape), of if isinstance(of, Type) else element_type_of(of))


def type_of(array: np.ndarray) -> TensorType:
    """Returns the type of an array."""
    return TensorType(tuple(int(extent) for extent in array.shape), element_type_of(array.dtype))


def is_float(kind: Type) -> bool:
    return isinstance(kind, FloatType)


def accumulation_type(kind: ElementType) -> ElementType:
    """Returns the type in which sums are kept: f32 for narrower floats, otherwise the type itself."""
    return F32 if isinstance(kind, FloatType) and kind.width < 32 else kind


def is_integer(kind: Type) -> bool:
    """Whether a type is an integer, signed or unsigned, and not a boolean."""
    return isinstance(kind, IntegerType) and kind.width > 1


def is_boolean(kind: Type) -> bool:
    return kind is I1


def is_complex(kind: Type) -> bool:
    return isinstance(kind, ComplexType)


def is_quantized(kind: Type) -> bool:
    return isinstance(kind, QuantizedType)


def is_per_tensor(kind: Type) -> bool:
    """Whether a type is quantized, with one scale and one zero point for all elements."""
    return isinstance(kind, PerTensorType)


def is_per_axis(kind: Type) -> bool:
    """Whether a type is quantized, with a scale and a zero point for each slice along one dimension."""
    return isinstance(kind, PerAxisType)


def expressed(kind: Any) -> Any:
    """Returns the type of the values that a tensor's elements stand for: floats if they are quantized. Other types are
    returned unchanged."""
    quantized = isinstance(kind, TensorType) and isinstance(kind.element_type, QuantizedType)
    return kind.with_element(kind.element_type.expressed_type) if quantized else kind


def stored(kind: Any) -> Any:
    """Returns the type in which a tensor's elements are stored: integers if they are quantized. Other types are
    returned unchanged."""
    quantized = isinstance(kind, TensorType) and isinstance(kind.element_type, QuantizedType)
    return kind.with_element(kind.element_type.storage_type) if quantized else kind


def stated(kind: Any) -> Any:
    """Returns the type of an attribute with a tensor's elements: the type in which they are stored, with MLIR's `i8` in
    place of a quantized type's `u8`."""
    kind = stored(kind)
    unsigned = isinstance(kind, TensorType) and isinstance(kind.element_type, UnsignedStorageType)
    return kind.with_element(IntegerType(kind.element_type.width)) if unsigned else kind


def same_baseline(one: Type, other: Type) -> bool:
    """Whether element types are equal except for the parameters of quantized types: scales, zero points, and the
    dimensions that these belong to."""
    if not isinstance(one, QuantizedType) or not isinstance(other, QuantizedType):
        return one is other
    names = ("storage_type", "storage_min", "storage_max", "expressed_type")
    return type(one) is type(other) and all(getattr(one, name) == getattr(other, name) for name in names)


def dimensions_compatible(one: int | None, other: int | None) -> bool:
    """Whether two extents can be the same at run time."""
    return one is None or other is None or one == other


def shapes_compatible(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    """Whether two shapes can be the same at run time."""
    return one == other or (len(one) == len(other) and all(map(dimensions_compatible, one, other)))


def compatible(one: Type, other: Type) -> bool:
    """Whether the same value can have both types. As in MLIR, dynamic dimensions, their bounds, and the parameters of
    quantized elements may differ."""
    if one is other:
        return True
    if isinstance(one, TensorType) and isinstance(other, TensorType):
        equal = one.element_type is other.element_type or same_baseline(one.element_type, other.element_type)
        return equal and _bounded_compatible(one, other)
    lists = TupleType if isinstance(one, TupleType) else FutureType
    if isinstance(one, lists) and isinstance(other, lists):
        return len(one.types) == len(other.types) and all(map(compatible, one.types, other.types))
    return False


def alike(one: Type, other: Type) -> bool:
    """Whether two types are compatible and have the same quantization parameters."""
    same = getattr(one, "element_type", None) is getattr(other, "element_type", None)
    return same and compatible(one, other)


def _bounded_compatible(one: TensorType, other: TensorType) -> bool:
    if not shapes_compatible(one.shape, other.shape):
        return False
    limits = zip(one.shape, one.bounds, other.shape, other.bounds, strict=True)
    return all(
        (bound is None or theirs is None or theirs <= bound) and (limit is None or mine is None or mine <= limit)
        for mine, bound, theirs, limit in limits
    )
