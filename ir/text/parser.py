"""Parses MLIR text into a `Module`: operations, regions and the file around them. Ops are built without checks, because
`verify` reports their errors later, and better. Text that is not a program raises `ParseError` with the line and a
caret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import trivium.ir.ops  # noqa: F401  (declares the ops)
from trivium.ir.attributes import Attribute, DenseArray, DenseElements
from trivium.ir.codecs import decode
from trivium.ir.collection import collection_paused
from trivium.ir.core import MAX_NESTING, Block, Operation, Region, Value
from trivium.ir.declare import OPS, AttributeField, Op, Trait, group_sizes
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError, VerificationError, shortened
from trivium.ir.func import Module
from trivium.ir.location import FileLocation, Location
from trivium.ir.stack import with_stack
from trivium.ir.text import forms  # noqa: F401  (registers the pretty forms)
from trivium.ir.text.assembly import Draft, Line, form_of
from trivium.ir.text.attributes import AttributeWriter
from trivium.ir.text.definitions import DefinitionReader
from trivium.ir.text.lexer import BLANKS, VALUE, WORD
from trivium.ir.types import I32, Type

_NAME = r"%(?:\d+|[A-Za-z_$.-][\w$.-]*)"
_GROUP = rf"{_NAME}(?:{BLANKS}:{BLANKS}\d+)?"
_RESULTS = rf"{_GROUP}(?:{BLANKS},{BLANKS}{_GROUP})*"
_NAMED = re.compile(rf"({_NAME})(?:\s*:\s*(\d+))?", re.ASCII)
_COMMENT = re.compile(r"//[^\n]*")
# An operation up to its name, `%0:2, %x = stablehlo.name`; a generic one has its name in quotes.
_HEAD = re.compile(rf'(?:({_RESULTS}){BLANKS}={BLANKS})?(?:"([^"\n]+)"|([A-Za-z_][\w$.]*)){BLANKS}', re.ASCII)
# ` %a, %b : tensor<4xf32>`, the text of most operations after their name.
_PLAIN = re.compile(
    rf"({_NAME}(?:#\d+)?(?:, {_NAME}(?:#\d+)?)*) : (tensor<[^<>]*(?:<[^<>]*>[^<>]*)?>){BLANKS}", re.ASCII
)
_AUTOMATIC_NAME = re.compile(r"%(?:\d+|arg\d+|(?:cst|c|iterArg)(?:_\d+)?)", re.ASCII)
_BEFORE_VALUE = re.compile(rf",{BLANKS}(?=%)")
_MENTION = re.compile(
    rf'^[ \t]*(?:{_RESULTS}\s*=\s*)?("?)([A-Za-z_][\w$-]*(?:\.[\w$-]+)+)\1(?=[\s(]|$)', re.ASCII | re.MULTILINE
)
_SHORT_NAMES = {"module": "builtin.module", **{name: f"func.{name}" for name in ("func", "return", "call")}}
_SEGMENTS = {
    **dict.fromkeys(("operandSegmentSizes", "operand_segment_sizes"), "operands"),
    **dict.fromkeys(("resultSegmentSizes", "result_segment_sizes"), "results"),
}

Argument = tuple[str, int, Type, Location | None]
"""A block argument as read: its name, the position of the name, its type and location."""


@with_stack
@collection_paused()
def parse(text: str, file: str = "") -> Module:
    """Reads a module, or the contents of one, from MLIR text. `file` is its name in errors and locations."""
    parser = Parser(text, file)
    try:
        return parser.module()
    except RecursionError:
        raise parser.error("nested too deep for the rest of Python's stack") from None


class Parser(DefinitionReader):
    """Reads one text."""

    def __init__(self, text: str, file: str = ""):
        super().__init__(text, file)
        self._values: dict[str, Value] = {}
        self._opened: list[str] = []
        self._regions = 0

    # The file

    def module(self) -> Module:
        """Reads the whole text: one module, or operations that are put into a new module."""
        block = Block()
        while self.pos < len(self.text):
            if not self.definition():
                start = self.pos
                self.operation(block)
                if not hasattr(block.last, "sym_name"):
                    raise self.error("is outside of any function, expected a module, function or other symbol", start)
        first = block.first
        if first is None and not self.text.strip():  # comments alone are an empty module, no text is an error
            raise self.error("the text contains no module and no function")
        if isinstance(first, Module) and first is block.last:
            return first.detach()
        return Module.create(regions=[Region([block])], location=FileLocation(self.file or "<text>"))

    # Operations

    def operation(self, block: Block) -> None:
        """Reads one operation and appends it to `block`."""
        start = self.pos
        match = _HEAD.match(self.text, start)
        if match is None:
            raise self.unexpected("an operation")
        results, quoted, name = match.groups()
        cls = self._op_class(quoted or name, start)
        self.pos = match.end()
        draft = Draft(cls, start, self.location_of(match.start(3) if name else match.start(2) - 1))
        form = form_of(cls)
        if quoted:
            self.generic_operation(draft)
        elif form is None:
            raise self.error(f'{name} has no pretty form, expected it in quotes: "{name}"(...)', start)
        elif not (isinstance(form, Line) and form.plain and self._plain_operation(draft)):
            form.parse(self, draft)
        self.check_operands(draft)
        op = self._made(draft)
        block.append(op)
        self._define_results(op, results, start)

    def location_of(self, pos: int) -> Location:
        """Returns the position of an op in this text, as its location if it states none. As in MLIR, `pos` is the
        position of the op's name."""
        line, column = self.place(pos)
        return FileLocation(self.file or "<text>", line, column)

    def _op_class(self, name: str, pos: int) -> type[Op]:
        cls = OPS.get(name) or OPS.get(_SHORT_NAMES.get(name, ""))
        if cls is None:
            raise self._unsupported(name, pos)
        return cls

    def _plain_operation(self, draft: Draft) -> bool:
        """The fast path for `%a, %b : type`; takes nothing if anything is unusual."""
        match = _PLAIN.match(self.text, self.pos)
        if match is None:
            return False
        kind = self._spellings.get(match[2])
        operands = [self._values.get(name) for name in match[1].split(", ")]
        if kind is None or None in operands:
            return False
        draft.operands = operands  # type: ignore[assignment]
        draft.places = [self.pos] * len(operands)
        draft.operand_types, draft.result_types = [kind] * len(operands), [kind]
        self.pos = match.end()
        return True

    def generic_operation(self, draft: Draft) -> None:
        """`(%a, %b) <{properties}> ({regions}) {attributes} : (types) -> types`"""
        self.expect("(")
        self.operands(draft)
        self.expect(")")
        if self.at("["):
            raise self.error(f"{draft.cls.NAME} has successors; programs of several blocks are not supported")
        if self.accept("<"):
            self.optional_dictionary(draft)
            self.expect(">")
        if self.at("("):
            isolated = Trait.ISOLATED in draft.cls.TRAITS
            draft.regions = self.listed(lambda: self.region(isolated=isolated), "(", ")")
        self.optional_dictionary(draft)
        self.expect(":")
        kind = self.function_type()
        draft.operand_types, draft.result_types = kind.inputs, kind.results

    def _made(self, draft: Draft) -> Op:
        location = self.optional_location() or draft.location
        op = draft.cls.create(
            draft.operands,
            draft.result_types,
            draft.attributes,
            draft.regions,
            draft.extra,
            location,
            draft.segments,
        )
        if draft.cls is Module and op.regions and not op.regions[0].blocks:
            op.regions[0].append(Block())
        return op

    # Attributes of operations

    def optional_dictionary(self, draft: Draft) -> None:
        """Reads `{...}` if it is next. Declared attributes are decoded, others kept unchanged."""
        if not self.at("{"):
            return
        places: dict[str, int] = {}
        declared = {field.name: field for field in draft.cls.ATTRIBUTES}
        for name, value in self.dictionary(places).items():
            pos = places[name]
            if name in draft.attributes or name in draft.extra:
                raise self.error(f"{draft.cls.NAME}: the attribute {name} is given twice", pos)
            if name in declared:
                draft.attributes[name] = self._decode(draft, declared[name], value, pos)
            elif name in _SEGMENTS:
                self._set_segments(draft, _SEGMENTS[name], value, pos)
            else:
                draft.extra[name] = value

    def _decode(self, draft: Draft, field: AttributeField, value: Attribute, pos: int) -> Any:
        try:
            return decode(field.codec, draft.cls.NAME, field.name, value)
        except VerificationError:
            has = shortened(AttributeWriter(brief=True).attribute(value))
            message = f"{draft.cls.NAME}: attribute {field.name} has {has}, expected {field.codec.what}"
            raise self.error(message, pos) from None

    def _set_segments(self, draft: Draft, what: str, value: Attribute, pos: int) -> None:
        """Sets the sizes of the groups of operands or results. Sizes that follow from the counts are not kept."""
        fields = draft.cls.OPERANDS if what == "operands" else draft.cls.RESULTS
        values = value.values if isinstance(value, DenseArray) else ()
        if isinstance(value, DenseArray) and value.element_type != I32:
            kind = value.element_type
            raise self.error(f"{draft.cls.NAME} has the sizes of its groups of {what} in {kind}, expected i32", pos)
        if isinstance(value, DenseElements):
            values = value.array.reshape(-1)[: len(fields) + 1].tolist()
        sizes = tuple(map(int, values))
        if len(sizes) != len(fields) or any(size < 0 for size in sizes):
            raise self.error(f"{draft.cls.NAME} has groups of {list(sizes)} {what}, expected {len(fields)} sizes", pos)
        if sizes != group_sizes(fields, sum(sizes)):
            draft.segments = {**(draft.segments or {}), what: sizes}

    # Values

    def operand(self, draft: Draft) -> None:
        """Reads one operand, `%0` or `%0#1`, which must be defined."""
        pos = self.pos
        name = self.take(VALUE, "a value, as in %0")
        value = self._values.get(name)
        if value is None and name.endswith("#0"):
            value = self._values.get(name[:-2])
        if value is None:
            raise self.error(f"{name} is not defined before its use, in this region or one around it", pos)
        draft.operands.append(value)
        draft.places.append(pos)

    def operands(self, draft: Draft) -> None:
        """Reads comma-separated operands, if any."""
        if self.at("%"):
            self.operand(draft)
            while self.accept(","):
                self.operand(draft)

    def accept_before_value(self, literal: str) -> bool:
        """Takes a comma if a value follows it."""
        match = _BEFORE_VALUE.match(self.text, self.pos)
        if match is None:
            return False
        self.pos = match.end()
        return True

    def accept_before_word(self, literal: str, word: str) -> bool:
        """Takes a punctuation mark and a word if both are next."""
        start = self.pos
        if self.accept(literal) and self.accept_word(word):
            return True
        self.pos = start
        return False

    def value_name(self) -> tuple[str, int]:
        """Reads the name of a value that is defined here; returns it with its position."""
        pos = self.pos
        name = self.take(VALUE, "the name of a value, as in %0")
        if "#" in name:
            raise self.error(f"{name} cannot be defined, expected a name without a number", pos)
        return name, pos

    def check_operands(self, draft: Draft) -> None:
        """Checks that the types that were read are those of the operands."""
        kinds = draft.operand_types
        if len(kinds) != len(draft.operands):
            raise self.error(
                f"{draft.cls.NAME} has {len(draft.operands)} operands and types for {len(kinds)}", draft.pos
            )
        for value, kind, pos in zip(draft.operands, kinds, draft.places, strict=True):
            if value.type is not kind:
                raise self.error(f"the operand has type {value.type}, its use says {kind}", pos)

    def _define(self, name: str, value: Value, pos: int) -> None:
        if name in self._values:
            raise self.error(f"{name} is defined twice", pos)
        self._values[name] = value
        self._opened.append(name)

    def _define_results(self, op: Operation, names: str | None, pos: int) -> None:
        if names is None:
            return
        if len(op.results) == 1 and "," not in names and ":" not in names:
            # The common case.
            self._define(names, op.results[0], pos)
            _hint(names, op.results)
            return
        index = 0
        for group in _NAMED.finditer(_COMMENT.sub("", names)):
            name, count = group.groups()
            size = self.to_integer(count) if count else 1
            values = op.results[index : index + size]
            index += size
            if len(values) != size or not size:
                raise self.error(f"{op.NAME} has {len(op.results)} results, the text names others", pos)
            self._define(name, values[0], pos)
            _hint(name, values)
            for number, value in enumerate(values if size > 1 else ()):
                self._define(f"{name}#{number}", value, pos)
        if index != len(op.results):
            raise self.error(f"{op.NAME} has {len(op.results)} results, {index} are named", pos)

    # Regions

    def region(self, arguments: Sequence[Argument] | None = None, isolated: bool = False) -> Region:
        """Reads `{ operations }`. `arguments` are those that the op's form names; without them the block may name its
        own, as in `^bb0(%arg0: type):`. An isolated region does not see values from outside."""
        outer, mark = self._values, len(self._opened)
        if isolated:
            self._values = {}
        with self._inside_region():
            self.expect("{")
            if self.at("..."):
                raise self.error("the region was left out when the text was printed, expected all of it")
            region = Region()
            if arguments or not self.at("}"):
                block = region.append(Block())
                if arguments and self.at("^"):
                    raise self.error("the block has a label, expected none where its arguments are named already")
                self._define_arguments(block, arguments or self._block_header())
                while not self.accept("}"):
                    if self.at("^"):
                        raise self.error("the region has a second block; programs of several blocks are not supported")
                    if self.pos >= len(self.text):
                        raise self.unexpected("'}'")
                    self.operation(block)
            else:
                self.expect("}")
        closed, self._opened[mark:] = self._opened[mark:], []
        self._values = outer
        if not isolated:
            for name in closed:
                del outer[name]
        return region

    @contextmanager
    def _inside_region(self) -> Iterator[None]:
        """Enters one more region; attributes and types count their own levels."""
        if self._regions == MAX_NESTING:
            raise self.error(f"nested more than {MAX_NESTING} levels deep")
        self._regions += 1
        yield
        self._regions -= 1

    def _block_header(self) -> list[Argument]:
        if not self.accept("^"):
            return []
        self.take(WORD, "the name of a block")
        arguments = self.listed(self._block_argument, "(", ")") if self.at("(") else []
        self.expect(":")
        return arguments

    def _block_argument(self) -> Argument:
        name, pos = self.value_name()
        self.expect(":")
        return name, pos, self.type(), self.optional_location()

    def _define_arguments(self, block: Block, arguments: Sequence[Argument]) -> None:
        for name, pos, kind, location in arguments:
            argument = block.add_argument(kind, "", location or self.location_of(pos))
            self._define(name, argument, pos)
            _hint(name, [argument])

    # Errors

    def _unsupported(self, name: str, pos: int) -> Error:
        """Returns an error that lists all unknown ops of the text, found by searching its lines."""
        mentions: dict[str, list[int]] = {}  # the positions of each name
        for match in _MENTION.finditer(self.text, self.text.rfind("\n", 0, pos) + 1):
            if match[2] not in OPS:
                mentions.setdefault(match[2], []).append(match.start(2))
        if name not in mentions:
            if "." not in name:
                return self.error(f"'{name}' is not an operation", pos)
            mentions = {name: [pos], **mentions}
        unknown = [
            Unsupported(op, len(places), self.location_of(places[0]).describe()) for op, places in mentions.items()
        ]
        return UnsupportedOpError("unknown ops:", unknown)


def _hint(name: str, values: Sequence[Value]) -> None:
    """Keeps a name that somebody chose; printers generate the others again."""
    if not name[1:].isdigit() and not _AUTOMATIC_NAME.fullmatch(name):
        for value in values:
            value.name_hint = name[1:]
