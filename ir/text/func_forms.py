"""The forms of modules, functions and calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trivium.ir.attributes import Attribute, Dictionary, SymbolRef
from trivium.ir.core import Block, Region
from trivium.ir.declare import Op
from trivium.ir.text.assembly import Draft
from trivium.ir.text.lexer import symbol_text
from trivium.ir.types import FunctionType, Type

if TYPE_CHECKING:
    from trivium.ir.func import Function
    from trivium.ir.location import Location
    from trivium.ir.text.parser import Parser
    from trivium.ir.text.printer import Printer


VISIBILITIES = ("public", "private", "nested")


class ModuleForm:
    """`@name attributes {...} {...}`"""

    def fits(self, op: Op) -> bool:
        return len(op.regions) == 1 and len(op.regions[0].blocks) == 1 and not op.operands and not op.results

    def print(self, op: Op, printer: Printer) -> str:
        name = op.attributes.get("sym_name")
        attributes = printer.optional_dictionary(op, frozenset({"sym_name"}))
        text = f"{symbol_text(name)} " if name is not None else ""
        return text + (f"attributes{attributes} " if attributes else "") + printer.region(op.regions[0], header=False)

    def parse(self, parser: Parser, draft: Draft) -> None:
        if parser.at("@"):
            draft.attributes["sym_name"] = parser.symbol_name()
        if parser.accept_word("attributes"):
            parser.optional_dictionary(draft)
        draft.regions.append(parser.region(isolated=True))


class FunctionForm:
    """`visibility @name(%arg0: type {...}, ...) -> (type {...}, ...) attributes {...} {...}`"""

    SHOWN = frozenset({"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"})

    def fits(self, op: Function) -> bool:
        name, kind = op.attributes.get("sym_name"), op.attributes.get("function_type")
        if not isinstance(name, str) or not isinstance(kind, FunctionType) or len(op.regions) != 1:
            return False
        if op.operands or op.results or op.sym_visibility not in (None, *VISIBILITIES):
            return False
        if any(
            given is not None and len(given) != len(types)
            for given, types in ((op.arg_attrs, kind.inputs), (op.res_attrs, kind.results))
        ):
            return False
        blocks = op.regions[0].blocks
        arguments = tuple(argument.type for block in blocks for argument in block.arguments)
        return not blocks or (len(blocks) == 1 and arguments == kind.inputs)

    def print(self, op: Function, printer: Printer) -> str:
        kind, body = op.function_type, op.regions[0]
        visibility = f"{op.sym_visibility} " if op.sym_visibility else ""
        text = f"{visibility}{symbol_text(op.sym_name)}({self._arguments(op, printer)})"
        if kind.results:
            text += f" -> {self._results(op, printer)}"
        if attributes := printer.optional_dictionary(op, self.SHOWN):
            text += f" attributes{attributes}"
        return f"{text} {printer.region(body, header=False)}" if body.blocks else text

    def _arguments(self, op: Function, printer: Printer) -> str:
        entries = op.arg_attrs or [None] * len(op.function_type.inputs)
        if not op.regions[0].blocks:
            return _typed(op.function_type.inputs, entries, printer)
        arguments = zip(op.regions[0].arguments, entries, strict=True)
        return ", ".join(printer.argument(argument, entry) for argument, entry in arguments)

    def _results(self, op: Function, printer: Printer) -> str:
        kinds, entries = op.function_type.results, op.res_attrs
        plain = len(kinds) == 1 and not isinstance(kinds[0], FunctionType) and not (entries and entries[0])
        text = _typed(kinds, entries or [None] * len(kinds), printer)
        return text if plain else f"({text})"

    def parse(self, parser: Parser, draft: Draft) -> None:
        if not parser.at("@"):
            draft.attributes["sym_visibility"] = _parse_visibility(parser)
        draft.attributes["sym_name"] = parser.symbol_name()
        arguments = parser.listed(lambda: _parse_argument(parser), "(", ")")
        results = _parse_results(parser) if parser.accept("->") else []
        inputs = tuple(kind for _, _, kind, _, _ in arguments)
        draft.attributes["function_type"] = FunctionType(inputs, tuple(kind for kind, _ in results))
        for name, entries in (
            ("arg_attrs", [item[3] for item in arguments]),
            ("res_attrs", [item[1] for item in results]),
        ):
            if any(entries):
                draft.attributes[name] = tuple(entries)
        if parser.accept_word("attributes"):
            parser.optional_dictionary(draft)
        if not parser.at("{"):
            draft.regions.append(Region())
            return
        if any(not item[0] for item in arguments):
            raise parser.unexpected("names of the arguments before a body")
        draft.regions.append(
            parser.region([(name, pos, kind, place) for name, pos, kind, _, place in arguments], isolated=True)
        )
        if not draft.regions[0].blocks:
            draft.regions[0].append(Block())


def _typed(kinds: Sequence[Type], entries: Sequence[Mapping[str, Attribute] | None], printer: Printer) -> str:
    pairs = zip(kinds, entries, strict=True)
    return ", ".join(printer.type(kind) + (f" {printer.dictionary(entry)}" if entry else "") for kind, entry in pairs)


def _parse_visibility(parser: Parser) -> str:
    for word in VISIBILITIES:
        if parser.accept_word(word):
            return word
    raise parser.unexpected("the function's name, as in @main, or one of " + ", ".join(VISIBILITIES))


def _parse_argument(parser: Parser) -> tuple[str, int, Type, Dictionary, Location | None]:
    """Reads name, its position, type, attributes and location; the arguments of a declaration have no names."""
    name, pos = "", parser.pos
    if parser.at("%"):
        name, pos = parser.value_name()
        parser.expect(":")
    kind = parser.type()
    return name, pos, kind, _parse_entry(parser), parser.optional_location()


def _parse_entry(parser: Parser) -> Dictionary:
    return Dictionary(parser.dictionary()) if parser.at("{") else Dictionary()


def _parse_results(parser: Parser) -> list[tuple[Type, Dictionary]]:
    if not parser.at("("):
        return [(parser.type(), Dictionary())]
    return parser.listed(lambda: (parser.type(), _parse_entry(parser)), "(", ")")


class CallForm:
    """`@callee(%0, %1) : (types) -> types`"""

    def fits(self, op: Op) -> bool:
        return isinstance(op.attributes.get("callee"), SymbolRef) and not op.regions

    def print(self, op: Op, printer: Printer) -> str:
        attributes = printer.optional_dictionary(op, frozenset({"callee"}))
        callee = printer.attribute(op.attributes["callee"])
        return f"{callee}({printer.values(op.operands)}){attributes} : {printer.functional_type(op)}"

    def parse(self, parser: Parser, draft: Draft) -> None:
        draft.attributes["callee"] = parser.symbol()
        parser.expect("(")
        parser.operands(draft)
        parser.expect(")")
        parser.optional_dictionary(draft)
        parser.expect(":")
        kind = parser.function_type()
        draft.operand_types, draft.result_types = kind.inputs, kind.results
