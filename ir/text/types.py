"""Types in text. Writing is `str(type)`; this is the reader. A program spells few types many times: each spelling is
read once, and found by its text afterwards."""

from __future__ import annotations

import re

from trivium.ir.attributes import Attribute, OpaqueAttribute, Struct
from trivium.ir.text.lexer import ALIAS, WORD, Lexer, token
from trivium.ir.types import (
    FLOATS,
    INDEX,
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
    TensorType,
    TupleType,
    Type,
)

_TENSOR = r"tensor<[^<>]*(?:<[^<>]*>[^<>]*)?>"
# Spans at most what one type spells; only a text that was read as a type before is taken by it.
SPELLING = token(rf"{_TENSOR}|\([^()]*\) -> (?:{_TENSOR}|\([^()]*\))")
_EXTENTS = re.compile(r"(?:(?:\d+|\?)x)*", re.ASCII)
_INTEGER_TYPE = re.compile(r"([su]?)i([1-9]\d{0,3})", re.ASCII)
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
            if not isinstance(element, FloatType | IntegerType | IndexType | ComplexType | OpaqueType):
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
        if self.at("<"):
            return OpaqueType(self.verbatim(start))
        if "." in name:
            return OpaqueType(name)
        return self.alias_type(name, start)
