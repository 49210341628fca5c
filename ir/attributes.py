"""Attributes: the compile-time data of ops, functions and modules.

Where a Python value says everything, it is the attribute: a `bool`, a `str`, a `Type`, a `Location`, a tuple (an
array), a `Dictionary`, an `Enumeration` member or a `Struct`. The other classes here are values that carry an MLIR
type. Ops declare attributes as plain Python types (`dimension: int`); `trivium.ir.codecs` translates to and from the
forms of this module.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np

from trivium.ir.errors import Error
from trivium.ir.location import Location
from trivium.ir.types import F64, Bounds, IndexType, TensorType, Type, type_of

MAX_DEPTH = 105
"""How deep attributes, types and locations may be nested, in text and in artifacts. Only call stacks come near: JAX
records up to 100 callers of an op, with the name, file and line of each."""
MAX_EXPANSION = 1 << 20
"""The number of characters, or bytes, that a definition may expand to with everything that it refers to, in files that
are not longer themselves. A few definitions that each refer to the previous one twice would exhaust any machine."""


@dataclass(frozen=True)
class Unit:
    """An attribute whose presence is its meaning."""


UNIT = Unit()


@dataclass(frozen=True)
class Integer:
    """An integer with its type: `5 : i64`."""

    value: int
    type: Type


@dataclass(frozen=True)
class Float:
    """A float with its type: `1.0 : f32`."""

    value: float
    type: Type

    def __eq__(self, other: object) -> bool:
        # Bit for bit: NaN equals itself, and the two zeros differ.
        return isinstance(other, Float) and self.type is other.type and self._bits() == other._bits()

    def __hash__(self) -> int:
        return hash((self._bits(), self.type))

    def _bits(self) -> bytes:
        return np.float64(self.value).tobytes()


@dataclass(frozen=True)
class SymbolRef:
    """A reference to a symbol, `@main`; `nested` has the rest of the path of `@outer::@inner`."""

    name: str
    nested: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "::".join(f"@{part}" for part in (self.name, *self.nested))


class Dictionary(Mapping[str, "Attribute"]):
    """An immutable, hashable dictionary of attributes."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Attribute] | None = None, **more: Attribute):
        self._items = {**(items or {}), **more}

    def __getitem__(self, key: str) -> Attribute:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"Dictionary({self._items!r})"


class DenseArray:
    """A short list of numbers of one element type: `array<i64: 1, 2>`."""

    __slots__ = ("element_type", "values")

    def __init__(self, element_type: Type, values: tuple[int | float | bool, ...]):
        self.element_type = element_type
        self.values = tuple(values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DenseArray) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        # Bit for bit, as for `Float`.
        return self.element_type, tuple(Float(x, F64) if isinstance(x, float) else x for x in self.values)

    def __repr__(self) -> str:
        return f"DenseArray({self.element_type}, {self.values})"


_SAMPLED = 64
"""The largest number of a tensor's elements that go into its hash."""
MAX_EXPANDED = 1 << 16
"""The largest number of elements of a splat that is used element by element."""


class DenseElements:
    """The elements of a tensor: a read-only view of their source (a file, a framework's tensor, an array).

    A splat is an array with zero strides. Nothing is copied or hashed until the elements are compared, folded or saved.
    `resource` is the name under which MLIR text stores the bytes separately (`dense_resource<name>`), if any.
    """

    __slots__ = ("_digest", "_hash", "array", "resource", "type")

    def __init__(self, array: np.ndarray, type: TensorType | None = None, resource: str = ""):
        array = np.asarray(array)
        self.type = type if type is not None else type_of(array)
        if array.shape != self.type.shape:
            raise Error(f"elements have shape {array.shape}, their type is {self.type}")
        if array.dtype != self.type.dtype:
            raise Error(f"elements have dtype {array.dtype}, their type is {self.type}")
        self.array = array.view()
        self.array.flags.writeable = False
        self.resource = resource
        self._digest: bytes | None = None
        self._hash: int | None = None

    @classmethod
    def splat(cls, value: Any, type: TensorType) -> DenseElements:
        """Returns elements that are all `value`."""
        element = np.asarray(value, dtype=type.dtype)
        try:
            return cls(np.broadcast_to(element, type.static_shape), type)
        except ValueError as error:
            raise Error(f"{type} is too large for an array: {error}") from None

    @property
    def is_splat(self) -> bool:
        """Whether all elements are known to be the same without looking at the bytes."""
        return self.array.size == 1 or (self.array.size > 1 and not any(self.array.strides))

    @property
    def filler(self) -> np.ndarray | None:
        """The value of an empty splat, as an array of one element; otherwise `None`. MLIR keeps this value."""
        base = self.array.base
        if self.array.size or not isinstance(base, np.ndarray) or base.nbytes != self.array.itemsize:
            return None
        return base.reshape(1).view(self.array.dtype)  # bytes read from a file may be viewed as another type

    @property
    def is_uniform(self) -> bool:
        """Whether all elements are the same, bit for bit: like `is_splat`, but compares the bytes if needed."""
        if self.is_splat or not self.array.size:
            return self.is_splat
        array = np.ascontiguousarray(self.array).reshape(-1)
        rows = array.view(np.uint8).reshape(array.size, array.itemsize)
        # A few first: most large tensors differ there.
        return bool((rows[:64] == rows[0]).all() and (rows == rows[0]).all())

    @property
    def digest(self) -> bytes:
        """A hash of type and content, computed once."""
        if self._digest is None:
            content = hashlib.blake2b(str(self.type).encode(), digest_size=16)
            # A splat has only one element in memory, no matter how many its type has.
            array = self.array[(0,) * self.array.ndim].reshape(1) if self.is_uniform else self.array
            array = array if self.filler is None else self.filler
            content.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
            self._digest = content.digest()
        return self._digest

    def expanded(self) -> np.ndarray:
        """Returns the array, for use element by element. Raises `ValueError` for a splat of too many elements."""
        count = math.prod(max(extent, 1) for extent in self.array.shape)
        if count > MAX_EXPANDED and (self.is_splat or not self.array.size):
            raise ValueError(f"{self.type} has {count} elements, expected at most {MAX_EXPANDED} of a splat")
        return self.array

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, DenseElements) or self.type is not other.type:
            return False
        same = self.array.__array_interface__ == other.array.__array_interface__
        return same or (hash(self) == hash(other) and self.digest == other.digest)

    def __hash__(self) -> int:
        """Hashes a few elements; `digest`, which reads them all, is needed only if those are equal."""
        if self._hash is None:
            array = self.array if self.filler is None else self.filler
            if array.size > _SAMPLED:
                picked = [number * (array.size - 1) // (_SAMPLED - 1) for number in range(_SAMPLED)]
                array = array[np.unravel_index(picked, array.shape)]
            self._hash = hash((self.type, array.tobytes()))
        return self._hash

    def __repr__(self) -> str:
        return f"DenseElements({self.type})"


@dataclass(frozen=True)
class OpaqueAttribute:
    """An attribute of a dialect that is not registered, kept as its text (`#dialect.name<...>`)."""

    text: str

    def __str__(self) -> str:
        return self.text


class Enumeration(Enum):
    """A StableHLO enum; the values of its members are the words in text. Subclasses set `MNEMONIC`, as in
    `#stablehlo<comparison_direction LT>`."""

    MNEMONIC: ClassVar[str]

    def __str__(self) -> str:
        return self.value


AnEnumeration = TypeVar("AnEnumeration", bound=Enumeration)


STRUCTS: dict[str, type[Struct]] = {}
"""Every struct attribute by its mnemonic, `stablehlo.gather`."""

ENUMERATIONS: dict[str, type[Enumeration]] = {}
"""Every enum attribute by dialect and mnemonic, `stablehlo.comparison_direction`."""


@dataclass(frozen=True)
class Struct:
    """A dialect's attribute with named fields, `#stablehlo.gather<offset_dims = [0], index_vector_dim = 1>`. Subclasses
    are frozen dataclasses declared with their mnemonic; fields are ints, bools and tuples of ints. A field with its
    default value is not printed."""

    MNEMONIC: ClassVar[str] = ""

    def __init_subclass__(cls, mnemonic: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.MNEMONIC = mnemonic
        STRUCTS[mnemonic] = cls

    def items(self) -> list[tuple[str, Any]]:
        """Field names and values, in order."""
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


def enumeration(mnemonic: str) -> Callable[[type[AnEnumeration]], type[AnEnumeration]]:
    """Registers an `Enumeration` under its dialect and mnemonic, and keeps the name on the class."""

    def register(cls: type[AnEnumeration]) -> type[AnEnumeration]:
        cls.MNEMONIC = mnemonic
        ENUMERATIONS[mnemonic] = cls
        return cls

    return register


def integer_array(values: tuple[int, ...], element_type: Type) -> DenseElements:
    """Returns a rank-1 tensor of integers, which older files use where newer ones have `array<i64: ...>`."""
    dtype = np.int64 if isinstance(element_type, IndexType) else element_type.dtype  # type: ignore[attr-defined]
    return DenseElements(np.array(values, dtype=dtype), TensorType((len(values),), element_type))


Attribute = (
    bool
    | str
    | Type
    | Bounds
    | Location
    | Unit
    | Integer
    | Float
    | SymbolRef
    | Dictionary
    | DenseArray
    | DenseElements
    | OpaqueAttribute
    | Enumeration
    | Struct
    | tuple["Attribute", ...]
)
"""An attribute in the form of files."""


def is_attribute(hint: object) -> bool:
    """Whether a declared type is `Attribute`, or `Attribute | None`: no other one includes opaque attributes."""
    return OpaqueAttribute in get_args(hint)
