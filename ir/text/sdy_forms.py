"""The forms of Shardy's ops, `sdy`. Their attributes are kept as text. The generic form has the name of the attribute
before it, which the forms here add when they parse and remove when they print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivium.ir.attributes import OpaqueAttribute
from trivium.ir.declare import Op
from trivium.ir.text.assembly import DIRECTIVES, Directive, Draft
from trivium.ir.text.lexer import symbol_text
from trivium.ir.types import Type

if TYPE_CHECKING:
    from trivium.ir.location import Location
    from trivium.ir.text.parser import Parser
    from trivium.ir.text.printer import Printer

MESH, SHARDING, SHARDINGS = "#sdy.mesh", "#sdy.sharding", "#sdy.sharding_per_value<"
AXES = "#sdy<manual_axes"


def _holds(op: Op, name: str, opening: str) -> bool:
    value = op.attributes.get(name)
    return isinstance(value, OpaqueAttribute) and value.text.startswith(opening)


def _read(parser: Parser, opening: str, closing: str = "") -> OpaqueAttribute:
    """Reads the brackets at the cursor, and adds the text that the generic form has around them."""
    return OpaqueAttribute(opening + parser.verbatim(parser.pos) + closing)


# `<@mesh, [{"x"}, {}]>`


def _parse_sharding(parser: Parser, draft: Draft) -> None:
    draft.attributes["sharding"] = _read(parser, SHARDING)


DIRECTIVES["sharding"] = Directive(
    ("sharding",),
    lambda op, printer: op.sharding.text.removeprefix(SHARDING),
    _parse_sharding,
    lambda op: _holds(op, "sharding", SHARDING),
)


class MeshForm:
    """`@name = <["x"=2, "y"=4]> {attributes}`"""

    def fits(self, op: Op) -> bool:
        plain = not (op.operands or op.results or op.regions)
        return plain and isinstance(op.attributes.get("sym_name"), str) and _holds(op, "mesh", MESH)

    def print(self, op: Op, printer: Printer) -> str:
        attributes = printer.optional_dictionary(op, frozenset({"sym_name", "mesh"}))
        return f"{symbol_text(op.attributes['sym_name'])} = {op.attributes['mesh'].text.removeprefix(MESH)}{attributes}"

    def parse(self, parser: Parser, draft: Draft) -> None:
        draft.attributes["sym_name"] = parser.symbol_name()
        parser.expect("=")
        draft.attributes["mesh"] = _read(parser, MESH)
        parser.optional_dictionary(draft)


class ManualForm:
    """`(%0) in_shardings=[...] out_shardings=[...] manual_axes={"x"} (%arg0: type) {...} : (types) -> types`"""

    PARTS = (("in_shardings", SHARDINGS, ">"), ("out_shardings", SHARDINGS, ">"), ("manual_axes", AXES, ">"))

    def fits(self, op: Op) -> bool:
        known = all(_holds(op, name, opening) for name, opening, _ in self.PARTS)
        return known and len(op.regions) == 1 and len(op.regions[0].blocks) == 1

    def print(self, op: Op, printer: Printer) -> str:
        text = f"({printer.values(op.operands)})"
        for name, opening, closing in self.PARTS:
            text += f" {name}={op.attributes[name].text.removeprefix(opening).removesuffix(closing)}"
        arguments = ", ".join(map(printer.argument, op.regions[0].arguments))
        attributes = printer.optional_dictionary(op, frozenset(name for name, _, _ in self.PARTS))
        body = printer.region(op.regions[0], header=False)
        return f"{text} ({arguments}) {body}{attributes} : {printer.functional_type(op)}"

    def parse(self, parser: Parser, draft: Draft) -> None:
        parser.expect("(")
        parser.operands(draft)
        parser.expect(")")
        for name, opening, closing in self.PARTS:
            parser.expect_word(name)
            parser.expect("=")
            draft.attributes[name] = _read(parser, opening, closing)
        arguments = parser.listed(lambda: _parse_argument(parser), "(", ")")
        draft.regions.append(parser.region(arguments))
        parser.optional_dictionary(draft)
        parser.expect(":")
        kind = parser.function_type()
        draft.operand_types, draft.result_types = kind.inputs, kind.results


def _parse_argument(parser: Parser) -> tuple[str, int, Type, Location | None]:
    name, pos = parser.value_name()
    parser.expect(":")
    return name, pos, parser.type(), parser.optional_location()
