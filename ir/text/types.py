"""Types in text. Writing is `str(type)`; this is the reader. A program spells few types many times: each spelling is
read once, and found by its text afterwards."""

from __future__ import annotations

import re
from typing import Any

from trivium.ir.attributes import Attribute, OpaqueAttribute, Struct
from trivium.ir.errors import Error, ParseError
from trivium.ir.text.lexer import ALIAS, NUMBER, WORD, Lexer, token
from trivium.ir.text.numbers import float_of
from trivium.ir.types import (
    F64,
    FLOATS,
    INDEX,
    MAX_STORAGE_WIDTH,
    NONE,
    TOKEN,
    Bounds,
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
    UnsignedStorageType,
    storage_range,
)

_TENSOR = r"tensor<[^<>]*(?:<[^<>]*>[^<>]*)?>"
# Spans at most what one type spells; only a text that was read as a type before is taken by it.
SPELLING = token(rf"{_TENSOR}|\([^()]*\) -> (?:{_TENSOR}|\([^()]*\))")
_EXTENTS = re.compile(r"(?:(?:\d+|\?)x)*", re.ASCII)
_INTEGER_TYPE = re.compile(r"([su]?)i([1-9]\d{0,3})", re.ASCII)
_STORAGE_TYPE = re.compile(r"(u|[su]?i)([1-9]\d?)", re.ASCII)
# MLIR knows floats as storage, StableHLO does not: such types are kept as their text.
_FLOAT_STORAGE = re.compile(r"<\s*f\dE\dM", re.ASCII)
_MAX_EXTENT = 2**63 - 1


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
        """Types with commas between them."""
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
        """One type, or several in parentheses: what stands behind an arrow."""
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
        raise self.error(f"'{word}' is no type of StableHLO", pos)

    def _tensor(self) -> TensorType:
        self.expect("<")
        if self.at("*"):
            raise self.error("unranked tensors are not supported, expected extents, as in tensor<2x?xf32>")
        match = _EXTENTS.match(self.text, self.pos)
        assert match is not None
        pieces = match[0].split("x")[:-1]
        if any(len(piece) > 19 or (piece != "?" and int(piece) > _MAX_EXTENT) for piece in pieces):
            raise self.error(f"has an extent above {_MAX_EXTENT}")
        self.pos = match.end()
        pos = self.pos
        with self.nested():
            element = self._type()
            if not isinstance(element, FloatType | IntegerType | IndexType | ComplexType | QuantizedType | OpaqueType):
                raise self.error(f"has element type {element}, expected a number's type", pos)
            encoding = self.attribute() if self.accept(",") else None
        self.expect(">")
        shape = tuple(None if piece == "?" else int(piece) for piece in pieces)
        if isinstance(encoding, Bounds) and len(encoding.bounds) != len(shape):
            raise self.error(f"has {len(encoding.bounds)} bounds for {len(shape)} dimensions", pos)
        if isinstance(encoding, Bounds) and any(
            bound is not None and extent is not None for bound, extent in zip(encoding.bounds, shape, strict=True)
        ):
            raise self.error(f"has bounds {encoding} for static dimensions, expected ? there", pos)
        if encoding is not None and not isinstance(encoding, Bounds | OpaqueAttribute | str | Struct):
            raise self.error("has an encoding of an unknown kind", pos)
        return TensorType(shape, element, encoding)

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
        if name == "!stablehlo.token":
            return TOKEN
        if name == "!stablehlo.future":
            with self.nested():
                return FutureType(tuple(self.listed(self.type, "<", ">")))
        if name == "!quant.uniform" and not _FLOAT_STORAGE.match(self.text, self.pos):
            return self._quantized(start)
        if self.at("<"):
            return OpaqueType(self.verbatim(start))
        if "." in name:
            return OpaqueType(name)
        return self.alias_type(name, start)

    def _quantized(self, start: int) -> QuantizedType:
        """`<i8<-8:7>:f32:0, {0.1:-30,0.5}>`: how integers are stored, what they express, and the parameters."""
        self.expect("<")
        storage = self._storage_type()
        limits = storage_range(storage)
        if self.accept("<"):
            limits = self.integer(), self._behind_colon()
            self.expect(">")
        self.expect(":")
        pos = self.pos
        expressed = self._type()
        if not isinstance(expressed, FloatType):
            raise self.error(f"has expressed type {expressed}, expected a float type", pos)
        try:
            return self._quantized_by(storage, expressed, *limits)
        except ParseError:
            raise
        except Error as error:
            raise self.error(error.message, start) from None

    def _quantized_by(self, *common: Any) -> QuantizedType:
        """The kind of a quantized type is told by what follows the expressed type."""
        along: Any = None
        if self.accept(":"):
            along = self._block_sizes() if self.at("{") else self.integer()
        self.expect(",")
        if along is None:
            parameters = self._parameter()
            self.expect(">")
            return PerTensorType(*common, *parameters)
        items: list[tuple[float, int]] = []
        blocks = self._parameter_list(items)
        self.expect(">")
        scales, zero_points = zip(*items, strict=True)
        if isinstance(along, tuple):
            return SubChannelType(*common, along, blocks, scales, zero_points)
        return PerAxisType(*common, along, scales, zero_points)

    def _storage_type(self) -> IntegerType:
        pos = self.pos
        word = self.take(WORD, "a storage type")
        match = _STORAGE_TYPE.fullmatch(word)
        if match is None or int(match[2]) > MAX_STORAGE_WIDTH:
            raise self.error(f"has storage type {word}, expected an integer of at most {MAX_STORAGE_WIDTH} bits", pos)
        width = int(match[2])
        return UnsignedStorageType(width) if match[1] == "u" else IntegerType(width, match[1][:-1])

    def _block_sizes(self) -> tuple[tuple[int, int], ...]:
        return tuple(self.listed(lambda: (self.integer(), self._behind_colon()), "{", "}"))

    def _behind_colon(self) -> int:
        self.expect(":")
        return self.integer()

    def _parameter_list(self, items: list[tuple[float, int]]) -> tuple[int, ...]:
        """Parameters in braces, which stand inside one another as deep as the blocks have dimensions; their extents."""
        with self.nested():
            pos = self.pos
            inner = self.listed(
                lambda: self._parameter_list(items) if self.at("{") else items.append(self._parameter()), "{", "}"
            )
            if not inner:
                raise self.error("has no scales, expected one at least", pos)
            if any(extents != inner[0] for extents in inner):
                raise self.error("has lists of unequal lengths or depths at one depth", pos)
        return (len(inner), *(inner[0] or ()))

    def _parameter_item(self, items: list[tuple[float, int]]) -> tuple[int, ...] | None:
        return self._parameter_list(items) if self.at("{") else items.append(self._parameter())

    def _parameter(self) -> tuple[float, int]:
        """`0.5:-20`: a scale, and a zero point unless it is 0."""
        pos = self.pos
        digits = self.take(NUMBER, "a scale")
        if not digits.startswith("0x") and "." not in digits:
            raise self.error(f"has scale {digits}, expected a float, as in {digits}.0", pos)
        try:
            scale = float(float_of(digits, F64))
        except ValueError as error:
            raise self.error(str(error), pos) from None
        return scale, self._behind_colon() if self.at(":") else 0
