"""Reads types in text; `str(type)` writes them. A program contains few different types many times: each spelling is
read once, and then looked up by its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from trivium.ir.attributes import Attribute
from trivium.ir.errors import Error
from trivium.ir.numerals import float_of
from trivium.ir.text.lexer import ALIAS, NUMBER, WORD, Lexer, token
from trivium.ir.types import (
    F64,
    FLOATS,
    INDEX,
    MAX_STORAGE_WIDTH,
    NONE,
    TOKEN,
    WITNESS,
    BufferType,
    ComplexType,
    FloatType,
    FunctionType,
    FutureType,
    IndexType,
    IntegerType,
    OpaqueType,
    PerAxisType,
    PerTensorType,
    QuantizedType,
    SubChannelType,
    TensorType,
    TupleType,
    Type,
    UnrankedTensorType,
    UnsignedStorageType,
    storage_range,
)

_TENSOR = r"tensor<[^<>]*(?:<[^<>]*>[^<>]*)?>"
# Matches at most the text of one type. A match is only used to look up text that was already read as a type.
SPELLING = token(rf"{_TENSOR}|\([^()]*\) -> (?:{_TENSOR}|\([^()]*\))")
_UNRANKED = token(r"\*\s*x")
_NAMED = {"!stablehlo.token": TOKEN, "!shape.witness": WITNESS}
_KNOWN = ("!stablehlo.", "!quant.", "!chlo.")
_KEPT = frozenset({"!quant.uniform", "!quant.any", "!quant.calibrated"})
"""The types of these dialects that have no meaning for StableHLO, and are kept as text."""
_EXTENTS = re.compile(r"(?:(?:\d+|\?)\s*x\s*)*", re.ASCII)
_EXTENT = re.compile(r"\d+|\?", re.ASCII)
_INTEGER_TYPE = re.compile(r"([su]?)i0*([1-9]\d{0,3})", re.ASCII)
_STORAGE_TYPE = re.compile(r"(u|[su]?i)([1-9]\d?)", re.ASCII)
# MLIR allows floats as storage, StableHLO does not: such types are kept as text.
_FLOAT_STORAGE = re.compile(r"<\s*f\dE\dM", re.ASCII)
_MAX_EXTENT = 2**63 - 1

AType = TypeVar("AType", bound=Type)


class TypeReader(Lexer):
    """Reads types."""

    def __init__(self, text: str, file: str = ""):
        super().__init__(text, file)
        self._spellings: dict[str, Type] = {}

    def attribute(self, expected_type: Type | None = None) -> Attribute:
        raise NotImplementedError

    def alias_type(self, name: str, pos: int) -> Type:
        raise NotImplementedError

    def type(self) -> Type:
        match = SPELLING.match(self.text, self.pos)
        if match is not None:
            known = self._spellings.get(match[1])
            if known is not None:
                self.pos = match.end()
                return known
        kind = self._type()
        if match is not None and match.end() == self.pos:
            self._spellings[match[1]] = kind
        return kind

    def types(self) -> list[Type]:
        """Reads comma-separated types."""
        kinds = [self.type()]
        while self.accept(","):
            kinds.append(self.type())
        return kinds

    def tensor_type(self) -> TensorType:
        pos = self.pos
        kind = self.type()
        if not isinstance(kind, TensorType):
            raise self.error(f"has type {kind}, expected a tensor type", pos)
        return kind

    def function_type(self) -> FunctionType:
        pos = self.pos
        kind = self.type()
        if not isinstance(kind, FunctionType):
            raise self.error(f"has type {kind}, expected a function type, as in (tensor<f32>) -> tensor<f32>", pos)
        return kind

    def type_list(self) -> list[Type]:
        """Reads what follows an arrow: one type, or several in parentheses."""
        return self.listed(self.type, "(", ")") if self.at("(") else [self.type()]

    def _type(self) -> Type:
        if self.at("!"):
            return self._dialect_type()
        if self.at("("):
            with self.nested():
                inputs = self.listed(self.type, "(", ")")
                self.expect("->")
                return FunctionType(tuple(inputs), tuple(self.type_list()))
        pos = self.pos
        word = self.take(WORD, "a type")
        if word == "tensor":
            return self._tensor()
        if word == "memref":
            return self._buffer(pos)
        if word in FLOATS:
            return FLOATS[word]
        if match := _INTEGER_TYPE.fullmatch(word):
            return IntegerType(int(match[2]), match[1])
        if word == "index":
            return INDEX
        if word == "none":
            return NONE
        if word in ("complex", "tuple"):
            return self._complex() if word == "complex" else self._tuple()
        raise self.error(f"'{word}' is not a type of StableHLO", pos)

    def _tensor(self) -> TensorType | UnrankedTensorType:
        self.expect("<")
        if unranked := _UNRANKED.match(self.text, self.pos):
            self.pos = unranked.end()
            with self.nested():
                element = self._element_type()
            self.expect(">")
            return UnrankedTensorType(element)
        shape = self._extents()
        with self.nested():
            element = self._element_type()
            pos = self.pos
            encoding = self.attribute() if self.accept(",") else None
        self.expect(">")
        return self._built(pos, TensorType, shape, element, encoding)

    def _built(self, pos: int, kind: Callable[..., AType], *fields: Any) -> AType:
        """Builds a type from these fields; its errors are raised for this position in the text."""
        try:
            return kind(*fields)
        except Error as error:
            raise self.error(error.message, pos) from None

    def _extents(self) -> tuple[int | None, ...]:
        """Reads `2x?x`, the extents before an element type."""
        match = _EXTENTS.match(self.text, self.pos)
        assert match is not None
        pieces = _EXTENT.findall(match[0])
        if any(len(piece) > 19 or (piece != "?" and int(piece) > _MAX_EXTENT) for piece in pieces):
            raise self.error(f"has an extent above {_MAX_EXTENT}")
        self.pos = match.end()
        return tuple([None if piece == "?" else int(piece) for piece in pieces])

    def _element_type(self) -> Type:
        pos = self.pos
        element = self._type()
        if not isinstance(element, FloatType | IntegerType | IndexType | ComplexType | QuantizedType | OpaqueType):
            raise self.error(f"has element type {element}, expected a number's type", pos)
        return element

    def _buffer(self, start: int) -> Type:
        bracket = self.pos
        self.expect("<")
        if not self.at("*"):
            shape = self._extents()
            with self.nested():
                element = self._element_type()
            if self.accept(">"):
                return self._built(start, BufferType, shape, element)
        # Layouts, memory spaces and unknown ranks do not exist in StableHLO.
        self.pos = bracket
        return OpaqueType(self.verbatim(start))

    def _complex(self) -> Type:
        self.expect("<")
        pos = self.pos
        with self.nested():
            element = self._type()
        if not isinstance(element, FloatType):
            raise self.error(f"has complex numbers of {element}, expected a float type", pos)
        self.expect(">")
        return ComplexType(element)

    def _tuple(self) -> Type:
        with self.nested():
            return TupleType(tuple(self.listed(self.type, "<", ">")))

    def _dialect_type(self) -> Type:
        start = self.pos
        name = self.take(ALIAS, "a type")
        if name in _NAMED:
            return _NAMED[name]
        if name == "!stablehlo.future":
            with self.nested():
                return self._built(start, FutureType, tuple(self.listed(self.type, "<", ">")))
        if name == "!quant.uniform" and not _FLOAT_STORAGE.match(self.text, self.pos):
            return self._quantized(start)
        if name.startswith(_KNOWN) and name not in _KEPT:
            raise self.error(f"{name} is not a type of its dialect", start)
        if self.at("<"):
            return OpaqueType(self.verbatim(start))
        if "." in name:
            return OpaqueType(name)
        return self.alias_type(name, start)

    def _quantized(self, start: int) -> QuantizedType:
        """Reads `<i8<-8:7>:f32:0, {0.1:-30,0.5}>`: the storage type, the expressed type, and the parameters."""
        self.expect("<")
        storage = self._storage_type()
        limits = storage_range(storage)
        if self.accept("<"):
            limits = self.integer(), self._after_colon()
            self.expect(">")
        self.expect(":")
        pos = self.pos
        with self.nested():
            expressed = self._type()
        if not isinstance(expressed, FloatType):
            raise self.error(f"has expressed type {expressed}, expected a float type", pos)
        return self._quantized_by(start, storage, expressed, *limits)

    def _quantized_by(self, start: int, *common: Any) -> QuantizedType:
        """Reads the rest of a quantized type; what follows the expressed type determines its class."""
        along: Any = None
        if self.accept(":"):
            along = self._block_sizes() if self.at("{") else self.integer()
        self.expect(",")
        if along is None:
            parameters = self._parameter()
            self.expect(">")
            return self._built(start, PerTensorType, *common, *parameters)
        items: list[tuple[float, int]] = []
        blocks = self._parameter_list(items)
        self.expect(">")
        lists = zip(*items, strict=True)
        if isinstance(along, tuple):
            return self._built(start, SubChannelType, *common, along, blocks, *lists)
        return self._built(start, PerAxisType, *common, along, *lists)

    def _storage_type(self) -> IntegerType:
        pos = self.pos
        word = self.take(WORD, "a storage type")
        match = _STORAGE_TYPE.fullmatch(word)
        if match is None or int(match[2]) > MAX_STORAGE_WIDTH:
            raise self.error(f"has storage type {word}, expected an integer of at most {MAX_STORAGE_WIDTH} bits", pos)
        width = int(match[2])
        return UnsignedStorageType(width) if match[1] == "u" else IntegerType(width, match[1][:-1])

    def _block_sizes(self) -> tuple[tuple[int, int], ...]:
        return tuple(self.listed(lambda: (self.integer(), self._after_colon()), "{", "}"))

    def _after_colon(self) -> int:
        self.expect(":")
        return self.integer()

    def _parameter_list(self, items: list[tuple[float, int]]) -> tuple[int, ...]:
        """Reads parameters in braces, nested as deep as the blocks have dimensions; returns the extents."""
        with self.nested():
            pos = self.pos
            inner = self.listed(
                lambda: self._parameter_list(items) if self.at("{") else items.append(self._parameter()), "{", "}"
            )
            if not inner:
                raise self.error("has no scales, expected at least one", pos)
            if any(extents != inner[0] for extents in inner):
                raise self.error("has lists of unequal lengths or depths at one depth", pos)
        return (len(inner), *(inner[0] or ()))

    def _parameter(self) -> tuple[float, int]:
        """Reads `0.5:-20`: a scale, and a zero point unless it is 0."""
        pos = self.pos
        digits = self.take(NUMBER, "a scale")
        if not digits.startswith("0x") and "." not in digits:
            raise self.error(f"has scale {digits}, expected a float, as in {digits}.0", pos)
        try:
            scale = float(float_of(digits, F64))
        except ValueError as error:
            raise self.error(str(error), pos) from None
        return scale, self._after_colon() if self.at(":") else 0
