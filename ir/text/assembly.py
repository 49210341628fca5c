"""Pretty forms of ops. A form is a line that reads like the text that it describes:

    "$operand, dims = $permutation"                          %0 = stablehlo.transpose %x, dims = [1, 0] : (...) -> ...
    "$comparison_direction, $lhs, $rhs(, $compare_type)?"    %1 = stablehlo.compare LT, %0, %y : (...) -> ...
    "dim = $iota_dimension : result"                         %2 = stablehlo.iota dim = 0 : tensor<4xi32>

`$field` is a field of the op (`$operands`: all operands), `<name>` is a directive from `DIRECTIVES`, and `(...)?` is
written only if its field is set. All other attributes follow in braces, then the types, by one of `TYPE_RULES`
(`functional` if none is named). A form is compiled into pieces that print and parse. An op that does not fit its form
is written generically."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from trivium.ir.attributes import Enumeration, SymbolRef
from trivium.ir.codecs import coerce
from trivium.ir.core import Operation, Region, Value
from trivium.ir.declare import REQUIRED, AttributeField, Field, Op, Role, Trait
from trivium.ir.errors import Error, VerificationError
from trivium.ir.location import Location
from trivium.ir.numerals import float_text
from trivium.ir.text.lexer import NUMBER, WORD, quote
from trivium.ir.types import F64, FunctionType, Type

if TYPE_CHECKING:
    from trivium.ir.text.parser import Parser
    from trivium.ir.text.printer import Printer


@dataclass(slots=True)
class Draft:
    """An op as read so far. `places` has the position of each operand in the text."""

    cls: type[Op]
    pos: int
    location: Location
    operands: list[Value] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    operand_types: Sequence[Type] = ()
    result_types: Sequence[Type] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    segments: dict[str, tuple[int, ...]] | None = None


class Form(Protocol):
    """How the ops of a class are written after their name, and read back."""

    def fits(self, op: Op) -> bool:
        """Whether this op can be written in this form."""
        ...

    def print(self, op: Op, printer: Printer) -> str: ...

    def parse(self, parser: Parser, draft: Draft) -> None: ...


class Piece(Protocol):
    """A part of a form."""

    @property
    def shows(self) -> tuple[str, ...]:
        """The names of the attributes that it writes."""
        ...

    def fits(self, op: Op) -> bool: ...

    def print(self, op: Op, printer: Printer) -> str: ...

    def parse(self, parser: Parser, draft: Draft) -> None: ...


# Pieces


@dataclass(frozen=True)
class Literal:
    """Words and punctuation."""

    text: str
    shows: tuple[str, ...] = ()

    def fits(self, op: Op) -> bool:
        return True

    def print(self, op: Op, printer: Printer) -> str:
        return self.text

    def parse(self, parser: Parser, draft: Draft) -> None:
        for mark in re.findall(r"\w+|->|\S", self.text):
            if mark.isidentifier():
                parser.expect_word(mark)
            else:
                parser.expect(mark)


@dataclass(frozen=True)
class OperandPiece:
    """One operand, or a list of them."""

    field: Field
    shows: tuple[str, ...] = ()

    def fits(self, op: Op) -> bool:
        # A literal follows every list, and MLIR cannot read a comma after an empty list.
        return not self.field.arity or bool(getattr(op, self.field.name))

    def print(self, op: Op, printer: Printer) -> str:
        value = getattr(op, self.field.name)
        return printer.values(value) if self.field.arity else printer.value(value)

    def parse(self, parser: Parser, draft: Draft) -> None:
        parser.operand(draft)
        while self.field.arity and parser.accept_before_value(","):
            parser.operand(draft)


@dataclass(frozen=True)
class AllOperands:
    """Every operand, with commas between them."""

    shows: tuple[str, ...] = ()

    def fits(self, op: Op) -> bool:
        return True

    def print(self, op: Op, printer: Printer) -> str:
        return printer.values(op.operands)

    def parse(self, parser: Parser, draft: Draft) -> None:
        parser.operands(draft)


@dataclass(frozen=True)
class AttributePiece:
    """One attribute, without its type."""

    field: AttributeField

    @property
    def shows(self) -> tuple[str, ...]:
        return (self.field.name,)

    def fits(self, op: Op) -> bool:
        return op.attributes.get(self.field.name) is not None

    def print(self, op: Op, printer: Printer) -> str:
        return plain_text(op.attributes[self.field.name])

    def parse(self, parser: Parser, draft: Draft) -> None:
        pos = parser.pos
        set_plain(parser, draft, self.field, read_plain(parser), pos)


@dataclass(frozen=True)
class Directive:
    """A piece that is defined by functions."""

    shows: tuple[str, ...]
    print_: Callable[[Any, Printer], str]
    parse_: Callable[[Parser, Draft], None]
    fits_: Callable[[Any], bool] = lambda op: True

    def fits(self, op: Op) -> bool:
        return self.fits_(op)

    def print(self, op: Op, printer: Printer) -> str:
        return self.print_(op, printer)

    def parse(self, parser: Parser, draft: Draft) -> None:
        self.parse_(parser, draft)


@dataclass(frozen=True)
class OptionalPieces:
    """Pieces that are written only if the attribute among them differs from its default. The first piece is a comma or
    a word."""

    pieces: tuple[Piece, ...]

    @property
    def shows(self) -> tuple[str, ...]:
        return tuple(name for piece in self.pieces for name in piece.shows)

    def fits(self, op: Op) -> bool:
        return True

    def print(self, op: Op, printer: Printer) -> str:
        defaults = {field.name: field.default for field in op.ATTRIBUTES}
        if all(op.attributes.get(name) in (None, defaults[name]) for name in self.shows):
            return ""
        return "".join(piece.print(op, printer) for piece in self.pieces)

    def parse(self, parser: Parser, draft: Draft) -> None:
        opening = self.pieces[0]
        if not isinstance(opening, Literal) or parser.at(opening.text.split()[0]):
            for piece in self.pieces:
                piece.parse(parser, draft)


def plain_text(value: object) -> str:
    """Formats an attribute whose type is implied: `3`, `0.5`, `[1, 2]`, `LT`, `true`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value, F64)
    if isinstance(value, tuple):
        return f"[{', '.join(map(plain_text, value))}]"
    return quote(value) if isinstance(value, str) and not isinstance(value, Enumeration) else str(value)


def read_plain(parser: Parser) -> Any:
    """Reads what `plain_text` writes."""
    if parser.at("["):
        with parser.nested():
            return tuple(parser.listed(lambda: read_plain(parser), "[", "]"))
    if parser.at('"'):
        return parser.string()
    if parser.at("@"):
        return SymbolRef(parser.symbol_name())
    if (text := parser.try_take(NUMBER)) is not None:
        return float(text) if "." in text else parser.to_integer(text)
    word = parser.take(WORD, "a word, a number or a list")
    return {"true": True, "false": False}.get(word, word)


def set_plain(parser: Parser, draft: Draft, kind: AttributeField, value: object, pos: int) -> None:
    """Sets a declared attribute that was read at `pos`."""
    try:
        draft.attributes[kind.name] = coerce(kind.codec, draft.cls.NAME, kind.name, value)
    except VerificationError as error:
        raise parser.error(error.message, pos) from None


# Types


@dataclass(frozen=True)
class TypeRule:
    """How the types of operands and results are written after the colon."""

    print: Callable[[Any, Printer], str]
    parse: Callable[[Parser, Draft], None]


def functional_text(op: Op, printer: Printer) -> str:
    results = printer.types(op.result_types)
    arrow = f"({printer.types(op.operand_types)}) -> "
    is_plain = len(op.results) == 1 and not isinstance(op.result_types[0], FunctionType)
    return arrow + (results if is_plain else f"({results})")


def parse_functional(parser: Parser, draft: Draft) -> None:
    kind = parser.function_type()
    draft.operand_types, draft.result_types = kind.inputs, kind.results


TYPE_RULES: dict[str, TypeRule] = {"functional": TypeRule(functional_text, parse_functional)}
DIRECTIVES: dict[str, Directive] = {}
FORMS: dict[str, str | Form] = {}
"""Forms by op name: lines, or objects."""
GENERIC: set[str] = set()
"""Ops without regions that are written generically, as in StableHLO."""


# Forms


@dataclass(frozen=True)
class Line:
    """A form that was compiled from a line."""

    pieces: tuple[Piece, ...]
    types: TypeRule
    cls: type[Op]
    shown: frozenset[str] = frozenset()
    plain: bool = False
    """Whether the form is just operands and one type. Most ops of a program have such a form, and the parser has a fast
    path for it."""

    def fits(self, op: Op) -> bool:
        if op.regions or len(op.operands) not in self._operands or len(op.results) not in self._results:
            return False
        given = all([op.attributes.get(name) is not None for name in self._required])
        return given and all([piece.fits(op) for piece in self._choosy])

    @cached_property
    def _choosy(self) -> list[Piece]:
        """The pieces that do not fit every op."""
        return [piece for piece in self.pieces if not isinstance(piece, Literal | AllOperands | OptionalPieces)]

    @cached_property
    def _required(self) -> list[str]:
        return [field.name for field in self.cls.ATTRIBUTES if field.default is REQUIRED]

    @cached_property
    def _operands(self) -> range:
        return _counts(self.cls.OPERANDS)

    @cached_property
    def _results(self) -> range:
        return _counts(self.cls.RESULTS)

    def print(self, op: Op, printer: Printer) -> str:
        text = "".join([piece.print(op, printer) for piece in self.pieces])
        return f"{text}{printer.optional_dictionary(op, self.shown)} : {self.types.print(op, printer)}".lstrip()

    def parse(self, parser: Parser, draft: Draft) -> None:
        for piece in self.pieces:
            piece.parse(parser, draft)
        parser.optional_dictionary(draft)
        parser.expect(":")
        self.types.parse(parser, draft)


def _counts(fields: tuple[Field, ...]) -> range:
    """The numbers of values that an op with these fields may have."""
    least = sum(not field.arity for field in fields)
    return range(least, sys.maxsize if any(field.arity == "*" for field in fields) else len(fields) + 1)


_forms: dict[type[Operation], Form | None] = {}


def form_of(cls: type[Operation]) -> Form | None:
    """Returns the pretty form of a class of ops, or `None` if it is always written generically."""
    if cls not in _forms:
        _forms[cls] = _find_form(cls)
    return _forms[cls]


def register_form(cls: type[Op], form: str | Form) -> None:
    """Registers a form for the ops of a class from an external dialect: a line, as above, or an object."""
    _forms[cls] = compile_line(cls, form) if isinstance(form, str) else form


def _find_form(cls: type[Operation]) -> Form | None:
    if not issubclass(cls, Op):
        return None
    form = FORMS.get(cls.NAME)
    if form is None and (cls.REGIONS or cls.NAME in GENERIC):
        return None
    if form is None:
        dialect = cls.NAME.partition(".")[0]
        elementwise = Trait.ELEMENTWISE in cls.TRAITS
        rule = {"stablehlo": "same", "chlo": "arrow"}.get(dialect, "functional") if elementwise else "functional"
        form = f"$operands : {rule}"
    return compile_line(cls, form) if isinstance(form, str) else form


_PIECE = re.compile(r"\$(\w+)|<([\w-]+)>|\(([^()]*)\)\?")


def compile_line(cls: type[Op], line: str) -> Line:
    """Compiles the form that a line describes."""
    text, _, rule = line.partition(" : ")
    pieces = _pieces(cls, text)
    shown = frozenset(name for piece in pieces for name in piece.shows)
    return Line(pieces, TYPE_RULES[rule or "functional"], cls, shown, text == "$operands" and rule == "same")


def _pieces(cls: type[Op], text: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    pos = 0
    for match in _PIECE.finditer(text):
        if pos < match.start():
            pieces.append(Literal(text[pos : match.start()]))
        pos = match.end()
        name, directive, optional = match.groups()
        if optional is not None:
            pieces.append(OptionalPieces(_pieces(cls, optional)))
        else:
            pieces.append(DIRECTIVES[directive] if directive else _field_piece(cls, name))
    if pos < len(text):
        pieces.append(Literal(text[pos:]))
    return tuple(pieces)


def _field_piece(cls: type[Op], name: str) -> Piece:
    if name == "operands":
        return AllOperands()
    for kind in cls.FIELDS:
        if kind.name == name and kind.role is Role.OPERAND:
            return OperandPiece(kind)
        if kind.name == name and isinstance(kind, AttributeField):
            return AttributePiece(kind)
    raise Error(f"the form of {cls.NAME} names {name}, which is not an operand or attribute of the op")
