"""The elements of tensors in text: nested lists, splats, or hexadecimal bytes."""

from __future__ import annotations

import re
from binascii import hexlify, unhexlify
from collections.abc import Iterator

import numpy as np

from trivium.ir.attributes import DenseElements
from trivium.ir.bits import view
from trivium.ir.errors import Error
from trivium.ir.numerals import DECIMAL, float_of, integer_of, integer_range, scalar_text
from trivium.ir.text.lexer import SPACE, STRING, token, unescape
from trivium.ir.text.types import TypeReader
from trivium.ir.types import (
    I64,
    ComplexType,
    FloatType,
    IndexType,
    IntegerType,
    OpaqueType,
    QuantizedType,
    TensorType,
    Type,
)

HEX_ABOVE = 100
"""Tensors with more elements are written as hexadecimal bytes, as MLIR does."""
ELIDED = "__elided__"
"""The name of the resource that MLIR writes in place of tensors that are too long for readers."""
_PIECE = 1 << 20

_LITERAL = re.compile(r"[^<>\"]*")
_BARE = re.compile(r"[^\[\]]*")
_COMPLEX = re.compile(r"\(([^(),]*),([^(),]*)\)")
_SMALL = re.compile(r"-?\d{1,18}", re.ASCII)
_MISPLACED = re.compile(r"\]\s*\[|\[\s*,|,\s*\]|,\s*,")
_COMMENT = re.compile(r"//[^\n]*")
_SPARSE_SCALAR = token(r"\([^()]*\)|[^\s<>,\[\]]+")
_MOST_FILLED = 1 << 16


# Writing tensors


def elements_text(elements: DenseElements, hexadecimal: bool = True) -> str:
    """Returns the text inside `dense<...>`. Bytes are little-endian, like all machines that Trivium runs on."""
    array, kind = elements.array, elements.type.element_type
    if not array.size:
        return "" if elements.filler is None else scalar_text(elements.filler[0], kind)
    if is_splat(elements):
        return scalar_text(array[(0,) * array.ndim], kind)
    if hexadecimal and array.size > HEX_ABOVE:
        return f'"0x{"".join(hex_pieces(array))}"'
    return _nested_text(array, kind)


def is_splat(elements: DenseElements) -> bool:
    """Whether all elements are the same, bit for bit; the elements of very large tensors are not compared."""
    return elements.is_splat or (1 < elements.array.size <= 1 << 20 and elements.is_uniform)


def hex_pieces(array: np.ndarray) -> Iterator[str]:
    """Yields the bytes of an array as hexadecimal digits, piece by piece."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    for start in range(0, len(data), _PIECE):
        yield hexlify(data[start : start + _PIECE]).upper().decode("ascii")


def _nested_text(array: np.ndarray, kind: Type) -> str:
    if array.ndim == 0:
        return scalar_text(array[()], kind)
    return f"[{', '.join(_nested_text(part, kind) for part in array)}]"


# Reading tensors


class ElementsReader(TypeReader):
    """Reads the elements of tensors."""

    def dense(self) -> DenseElements:
        """Reads `dense<...> : type`, starting at the `<`."""
        self.expect("<")
        pos = self.pos
        literal = self._hex_literal() or self.try_take(STRING)
        if literal is None:
            match = _LITERAL.match(self.text, self.pos)
            assert match is not None
            literal, self.pos = match[0].rstrip(), match.end()
        self.expect(">")
        self.expect(":")
        return self.elements(literal, self.elements_type(), pos)

    def sparse(self) -> DenseElements:
        """Reads `sparse<[[0, 1], ...], [value, ...]> : type`, starting at the `<`: the elements that are not zero."""
        pos = self.pos
        self.expect("<")
        indices, values = "[]", "[]"
        if not self.accept(">"):
            indices = self._sparse_part()
            self.expect(",")
            values = self._sparse_part()
            self.expect(">")
        self.expect(":")
        kind = self.elements_type()
        try:
            return DenseElements(_filled(indices, values, kind), kind)
        except (ValueError, Error) as error:
            raise self.error(str(error), pos) from None

    def _sparse_part(self) -> str:
        return self.verbatim(self.pos) if self.at("[") else self.take(_SPARSE_SCALAR, "an element")

    def _hex_literal(self) -> str | None:
        """Reads the next string if it is hexadecimal digits. It may be most of the file, so no pattern is used."""
        if not self.at('"0x'):
            return None
        end = self.text.find('"', self.pos + 1) + 1
        if not end or self.text.find("\\", self.pos, end) >= 0 or self.text.find("\n", self.pos, end) >= 0:
            return None
        literal, self.pos = self.text[self.pos : end], SPACE.match(self.text, end).end()  # type: ignore[union-attr]
        return literal

    def elements_type(self) -> TensorType:
        """Reads the type of a tensor of elements."""
        pos = self.pos
        kind = self.tensor_type()
        if isinstance(kind.element_type, OpaqueType | QuantizedType):
            raise self.error(f"has elements of type {kind.element_type}, expected numbers", pos)
        return kind

    def elements(self, literal: str, kind: TensorType, pos: int) -> DenseElements:
        """Converts a literal (a list, a scalar, bytes in quotes) to the elements of a tensor of type `kind`."""
        try:
            shape = kind.static_shape
            if literal.startswith('"'):
                array = bytes_array(hex_bytes(literal), kind)
            elif literal.startswith("["):
                array = _parse_list(_COMMENT.sub("", literal), kind)
            elif literal:
                array = np.broadcast_to(_parse_scalars([literal], kind.element_type)[0], shape)
            else:
                if kind.size:
                    raise ValueError(f"has no elements, {kind} has {kind.size}")
                array = np.zeros(shape, kind.dtype)
            return DenseElements(array, kind)
        except (ValueError, Error) as error:
            raise self.error(str(error), pos) from None


def hex_bytes(literal: str) -> bytes:
    """Returns the bytes of a quoted literal."""
    if "\\" in literal:
        literal = f'"{unescape(literal)}"'
    if not literal.startswith('"0x'):
        raise ValueError('has a string, expected hexadecimal digits, as in "0x00FF"')
    try:
        return unhexlify(literal[3:-1])
    except ValueError as error:  # binascii's own error, for an odd number of digits and for other characters
        raise ValueError(f"has invalid hexadecimal digits: {error}") from None


def bytes_array(data: bytes | memoryview, kind: TensorType) -> np.ndarray:
    """Converts raw bytes to elements. The bytes of a single element stand for all of them."""
    shape, dtype = kind.static_shape, kind.dtype
    size = kind.size
    expected = size * dtype.itemsize
    if len(data) == expected:
        return _viewed(data, kind).reshape(shape)
    if len(data) == dtype.itemsize:
        return np.broadcast_to(_viewed(data, kind)[0], shape)
    if kind.element_type == IntegerType(1) and len(data) == (size + 7) // 8:
        # Older files pack eight booleans into a byte.
        return np.unpackbits(np.frombuffer(data, np.uint8), count=size, bitorder="little").astype(bool).reshape(shape)
    raise ValueError(f"has {len(data)} bytes, {kind} has {expected}")


def _viewed(data: bytes | memoryview, kind: TensorType) -> np.ndarray:
    if kind.element_type == IntegerType(1):
        return np.frombuffer(data, np.uint8) != 0
    return view(data, kind)


def _parse_list(literal: str, kind: TensorType) -> np.ndarray:
    """Reads elements from nested lists. The brackets must match the type's shape."""
    if misplaced := _MISPLACED.search(literal):
        raise ValueError(f"has '{misplaced[0]}' in a list of elements")
    scalars: list[str] = []
    extents: list[int | None] = [None] * kind.rank
    counts: list[int] = []
    pos = 0
    while pos < len(literal):
        character = literal[pos]
        if character == "[":
            counts.append(0)
            if len(counts) > kind.rank:
                raise ValueError(f"has lists {len(counts)} deep, {kind} has {kind.rank} dimensions")
            pos += 1
        elif character == "]":
            count = counts.pop()
            if extents[len(counts)] not in (None, count):
                raise ValueError(f"has lists of {count} and of {extents[len(counts)]} elements at one depth")
            extents[len(counts)] = count
            pos += 1
            if not counts:
                break
            counts[-1] += 1
        else:
            bare = _BARE.match(literal, pos)
            assert bare is not None
            pos = bare.end()
            if len(counts) == kind.rank and bare[0].strip():
                row = _split(bare[0])
                counts[-1] += len(row)
                scalars += row
            elif bare[0].strip(" \t\r\n") not in ("", ","):
                raise ValueError(
                    f"has '{bare[0].strip()}' in a list {len(counts)} deep, {kind} has {kind.rank} dimensions"
                )
    if counts or literal[pos:].strip():
        raise ValueError("has a list that is not closed, or text after it")
    shape = tuple(extent or 0 for extent in extents)
    if shape != kind.shape:
        raise ValueError(f"has elements of shape {list(shape)}, expected {kind}")
    return _parse_scalars(scalars, kind.element_type).reshape(shape)


def _filled(indices: str, values: str, kind: TensorType) -> np.ndarray:
    """Returns zeros, with these values at these indices."""
    if kind.size > _MOST_FILLED:
        raise ValueError(f"has a sparse {kind}, expected at most {_MOST_FILLED} elements")
    places = np.array([integer_of(digits, I64) for digits in re.findall(r"[^\s,\[\]]+", indices)], np.int64)
    if not indices.startswith("["):
        places = np.repeat(places, kind.rank)
    if not kind.rank or places.size % kind.rank:
        raise ValueError(f"has {places.size} numbers for the indices of {kind}")
    rows = places.reshape(-1, kind.rank)
    if ((rows < 0) | (rows >= kind.static_shape)).any():
        raise ValueError(f"has indices outside of {kind}")
    array = np.zeros(kind.static_shape, kind.dtype)
    if values.startswith("["):
        array[tuple(rows.T)] = _parse_list(values, TensorType((len(rows),), kind.element_type))
    else:
        array[tuple(rows.T)] = _parse_scalars([values], kind.element_type)[0]
    return array


def _split(row: str) -> list[str]:
    if "(" not in row:
        return [item.strip() for item in row.split(",")]
    items = [f"({match[1].strip()},{match[2].strip()})" for match in _COMPLEX.finditer(row)]
    if _COMPLEX.sub("", row).replace(",", "").strip() or len(items) != row.count("("):
        raise ValueError(f"'{row.strip()[:40]}' is not a list of complex numbers, as in (1.0,0.0)")
    return items


def _parse_scalars(items: list[str], kind: Type) -> np.ndarray:
    if isinstance(kind, FloatType):
        return _floats(items, kind)
    if isinstance(kind, ComplexType):
        return _complexes(items, kind)
    if isinstance(kind, IntegerType | IndexType):
        return _integers(items, kind)
    raise ValueError(f"elements of type {kind} are not supported")


def _integers(items: list[str], kind: IntegerType | IndexType) -> np.ndarray:
    if kind.dtype.itemsize > 1 and all(map(_SMALL.fullmatch, items)):
        small = np.array([int(item) for item in items], dtype=np.int64)
        low, high = integer_range(kind)
        if small.size and low <= int(small.min()) and int(small.max()) < high:
            return small.astype(kind.dtype)
    values = [integer_of(item, kind) for item in items]
    return np.array(values, dtype=np.int64 if min(values, default=0) < 0 else np.uint64).astype(kind.dtype)


def _floats(items: list[str], kind: FloatType) -> np.ndarray:
    if all(map(DECIMAL.fullmatch, items)):
        with np.errstate(over="ignore"):
            return np.array([float(item) for item in items]).astype(kind.dtype)
    return np.array([float_of(item, kind) for item in items], dtype=kind.dtype)


def _complexes(items: list[str], kind: ComplexType) -> np.ndarray:
    pairs = []
    for item in items:
        match = _COMPLEX.fullmatch(item)
        if match is None:
            raise ValueError(f"'{item}' is not a complex number, as in (1.0,0.0)")
        pairs += [match[1].strip(), match[2].strip()]
    return _floats(pairs, kind.element_type).view(kind.dtype)
