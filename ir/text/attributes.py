"""Writes and reads attributes in text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trivium.ir.attributes import (
    UNIT,
    Attribute,
    DenseArray,
    DenseElements,
    Dictionary,
    Enumeration,
    Float,
    Integer,
    OpaqueAttribute,
    Struct,
    SymbolRef,
    Unit,
)
from trivium.ir.bits import widen
from trivium.ir.errors import Error
from trivium.ir.location import Location
from trivium.ir.numerals import float_of, float_text, integer_of, scalar_text
from trivium.ir.services import SERVICES
from trivium.ir.text.elements import ELIDED, HEX_ABOVE, bytes_array, elements_text, hex_pieces, is_splat
from trivium.ir.text.lexer import ALIAS, NUMBER, STRING, WORD, quote, symbol_text, token, unescape
from trivium.ir.text.locations import LocationReader, location_text
from trivium.ir.text.structs import enumeration_text, read_enumeration, read_struct, struct_text
from trivium.ir.types import F64, I1, I64, FloatType, IndexType, IntegerType, Type

_KEYWORDS = frozenset({"dense", "dense_resource", "sparse", "array", "distinct", "strided", "true", "false", "unit"})
_AFFINE = token(r"affine_(?:map|set)<(?:->|>=|<=|[^<>])*>")
_SHORTENED_ABOVE = 16
ELIDED_ABOVE = 64
"""Tensors with more elements are elided in text for readers."""
_APART_ABOVE = 1 << 12


# Writing


class AttributeWriter:
    """Writes attributes. `resources` collects the tensors that are written separately. `brief` shortens everything that
    is long, for messages; `elide` leaves out the elements of large tensors, like the corresponding option of MLIR.

    With a `mark`, the bytes of large tensors are left out too, and listed in `apart`: the caller writes them in place
    of the marks, without copying the text around them.
    """

    def __init__(self, brief: bool = False, elide: bool = False, mark: str = ""):
        self.brief = brief
        self.elide = elide
        self.mark = mark
        self.apart: list[np.ndarray] = []
        self.resources: dict[str, DenseElements] = {}
        self._resource_names: dict[tuple[str, DenseElements], str] = {}
        self._resource_counts: dict[str, int] = {}

    def attribute(self, value: Attribute) -> str:
        match value:
            case bool():
                return "true" if value else "false"
            case str():
                return self.string(value)
            case Integer():
                return f"{value.value} : {value.type}"
            case Float():
                return f"{float_text(value.value, value.type)} : {value.type}"  # type: ignore[arg-type]
            case DenseElements():
                return self.elements(value)
            case DenseArray():
                kind = value.element_type
                items = ", ".join(scalar_text(item, kind) for item in value.values)
                return f"array<{kind}: {items}>" if items else f"array<{kind}>"
            case Struct():
                return struct_text(value, self.attribute)
            case Enumeration():
                return enumeration_text(value)
            case SymbolRef():
                return "::".join(symbol_text(part) for part in (value.name, *value.nested))
            case tuple() | list():
                return f"[{', '.join(map(self._listed, value))}]"
            case Mapping():
                return self.dictionary(value)
            case Unit():
                return "unit"
            case Location():
                return f"loc({location_text(value, self.attribute)})"
        return str(value)

    def _listed(self, value: Attribute) -> str:
        """Writes an item of a list, in which the default types of numbers are omitted."""
        text = self.attribute(value)
        if isinstance(value, Integer) and value.type is I64:
            return text.removesuffix(" : i64")
        return text.removesuffix(" : f64") if isinstance(value, Float) and "." in text else text

    def string(self, value: str) -> str:
        return quote(value if not self.brief or len(value) <= 80 else f"{value[:80]}...")

    def elements(self, value: DenseElements) -> str:
        size = value.array.size
        if self.brief and size > _SHORTENED_ABOVE and not value.is_splat:
            return f"dense<...> : {value.type}"
        if self.elide and size > ELIDED_ABOVE and not is_splat(value):
            return f"dense_resource<{ELIDED}> : {value.type}"
        if value.resource and size and not self.brief:
            return f"dense_resource<{self._resource_name(value)}> : {value.type}"
        if size > HEX_ABOVE and not is_splat(value):
            return f'dense<"0x{self.hexadecimal(value.array)}"> : {value.type}'
        return f"dense<{elements_text(value)}> : {value.type}"

    def hexadecimal(self, array: np.ndarray) -> str:
        """Returns the bytes of an array as digits, or the mark in their place."""
        if self.mark and array.nbytes > _APART_ABOVE:
            self.apart.append(array)
            return self.mark
        return "".join(hex_pieces(array))

    def _resource_name(self, value: DenseElements) -> str:
        """Returns the tensor's own name, with a number appended if another tensor already has that name."""
        name = self._resource_names.get((value.resource, value))
        if name is None:
            name, count = value.resource, self._resource_counts.get(value.resource, 0)
            while name in self.resources:
                count += 1
                name = f"{value.resource}_{count}"
            self._resource_counts[value.resource] = count
            self._resource_names[value.resource, value] = name
            self.resources[name] = value
        return key_text(name)

    def dictionary(self, entries: Mapping[str, Attribute]) -> str:
        """Writes `{name = value, flag}`, sorted by name as in MLIR."""
        items = (
            key_text(name) if isinstance(value, Unit) else f"{key_text(name)} = {self.attribute(value)}"
            for name, value in sorted(entries.items())
        )
        return f"{{{', '.join(items)}}}"


def key_text(name: str) -> str:
    """Writes a name in a dictionary, quoted unless it is a plain word."""
    match = WORD.fullmatch(name)
    return name if match is not None and match[1] == name else quote(name)


def attribute_text(value: Attribute) -> str:
    """Returns the full text of an attribute."""
    return AttributeWriter().attribute(value)


SERVICES.attribute_text = attribute_text


# Reading


class AttributeReader(LocationReader):
    """Reads attributes."""

    def alias_attribute(self, name: str) -> Attribute:
        raise NotImplementedError

    def resource(self, name: str, pos: int) -> bytes:
        raise NotImplementedError

    def attribute(self, expected_type: Type | None = None) -> Attribute:
        start = self.pos
        match self.text[start : start + 1]:
            case '"':
                return self.string()
            case "[":
                with self.nested():
                    return tuple(self.listed(self.attribute, "[", "]"))
            case "{":
                with self.nested():
                    return Dictionary(self.dictionary())
            case "@":
                return self.symbol()
            case "#":
                return self._dialect_attribute()
            case "(" | "!":
                return self.type()
        if number := self.try_take(NUMBER):
            return self._number(number, start)
        match = WORD.match(self.text, start)
        if match is None:
            raise self.unexpected("an attribute")
        return self._keyword(match[1], match.end())

    def _keyword(self, word: str, end: int) -> Attribute:
        start = self.pos
        if word == "loc":
            return self.location()
        if word in ("affine_map", "affine_set"):
            return OpaqueAttribute(self.take(_AFFINE, f"an affine expression, as in {word}<(d0) -> (d0)>"))
        if word not in _KEYWORDS:
            return self.type()
        self.pos = end
        match word:
            case "dense":
                return self.dense()
            case "dense_resource":
                return self._dense_resource()
            case "sparse":
                return self.sparse()
            case "array":
                return self._array()
            case "distinct":
                self.listed(self.integer, "[", "]")
                return OpaqueAttribute(self.verbatim(start))
            case "strided":
                return OpaqueAttribute(self.verbatim(start))
        return UNIT if word == "unit" else word == "true"

    def symbol(self) -> SymbolRef:
        """`@outer::@inner`"""
        name, nested = self.symbol_name(), []
        while self.accept("::"):
            nested.append(self.symbol_name())
        return SymbolRef(name, tuple(nested))

    def dictionary(self, places: dict[str, int] | None = None) -> dict[str, Attribute]:
        """Reads `{name = value, flag}`, and records in `places` the position of each name."""
        entries: dict[str, Attribute] = {}

        def entry() -> None:
            pos = self.pos
            name = self.key()
            if name in entries:
                raise self.error(f"the attribute {name} is given twice", pos)
            entries[name] = self.attribute() if self.accept("=") else UNIT
            if places is not None:
                places[name] = pos

        self.listed(entry, "{", "}")
        return entries

    def key(self) -> str:
        """Reads a name in a dictionary, either a word or a quoted string."""
        if literal := self.try_take(STRING):
            return unescape(literal)
        return self.take(WORD, "a name")

    def _number(self, text: str, pos: int) -> Attribute:
        kind: Any = self.type() if self.accept(":") else F64 if "." in text else I64
        try:
            if isinstance(kind, FloatType):
                return Float(widen(float_of(text, kind)), kind)
            if isinstance(kind, IntegerType | IndexType):
                value = integer_of(text, kind)
                return bool(value) if kind is I1 else Integer(value, kind)
        except ValueError as error:
            raise self.error(str(error), pos) from None
        raise self.error(f"a number has type {kind}, expected that of a number", pos)

    def _array(self) -> DenseArray:
        self.expect("<")
        pos = self.pos
        kind = self.type()
        if not isinstance(kind, IntegerType | FloatType):
            raise self.error(f"has an array of {kind}, expected integers or floats", pos)
        if self.accept(">"):
            return DenseArray(kind, ())
        self.expect(":")
        values = [self._array_element(kind)]
        while self.accept(","):
            values.append(self._array_element(kind))
        self.expect(">")
        return DenseArray(kind, tuple(values))

    def _array_element(self, kind: IntegerType | FloatType) -> int | float | bool:
        pos = self.pos
        text = self.try_take(NUMBER) or self.take(WORD, "a number")
        try:
            if isinstance(kind, FloatType):
                return widen(float_of(text, kind))
            value = integer_of(text, kind)
        except ValueError as error:
            raise self.error(str(error), pos) from None
        return bool(value) if kind is I1 else value

    def _dense_resource(self) -> DenseElements:
        self.expect("<")
        pos = self.pos
        name = self.key()
        self.expect(">")
        self.expect(":")
        kind = self.elements_type()
        data = self.resource(name, pos)
        try:
            return DenseElements(bytes_array(data, kind), kind, name)
        except (ValueError, Error) as error:
            raise self.error(str(error), pos) from None

    def _dialect_attribute(self) -> Attribute:
        start = self.pos
        name = self.take(ALIAS, "an attribute")[1:]
        if not self.at("<"):
            return OpaqueAttribute(f"#{name}") if "." in name else self.alias_attribute(f"#{name}")
        with self.nested():
            value = read_struct(self, name) if "." in name else read_enumeration(self, name)
        return OpaqueAttribute(self.verbatim(start)) if value is None else value
