"""The form of `chlo.scan`, CHLO's only op with a region."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivium.ir.text.assembly import Draft

if TYPE_CHECKING:
    from trivium.ir.ops.chlo_programs import Scan
    from trivium.ir.text.parser import Parser
    from trivium.ir.text.printer import Printer


class ScanForm:
    """`(%0) inits(%1) dimension=0 attributes {...} {...} : (types) -> types`"""

    def fits(self, op: Scan) -> bool:
        return len(op.regions) == 1 and op.attributes.get("dimension") is not None and len(op.carries) == len(op.inits)

    def print(self, op: Scan, printer: Printer) -> str:
        text = f"({printer.values(op.inputs)}) inits ({printer.values(op.inits)}) dimension={op.dimension}"
        if attributes := printer.optional_dictionary(op, frozenset({"dimension"})):
            text += f" attributes{attributes}"
        return f"{text}  {printer.region(op.regions[0])} : {printer.functional_type(op)}"

    def parse(self, parser: Parser, draft: Draft) -> None:
        parser.expect("(")
        parser.operands(draft)
        parser.expect(")")
        inputs = len(draft.operands)
        parser.expect_word("inits")
        parser.expect("(")
        parser.operands(draft)
        parser.expect(")")
        inits = len(draft.operands) - inputs
        parser.expect_word("dimension")
        parser.expect("=")
        draft.attributes["dimension"] = parser.integer()
        if parser.accept_word("attributes"):
            parser.optional_dictionary(draft)
        draft.regions.append(parser.region())
        parser.expect(":")
        kind = parser.function_type()
        draft.operand_types, draft.result_types = kind.inputs, kind.results
        outputs = max(0, len(kind.results) - inits)
        sizes = {"operands": (inputs, inits), "results": (outputs, len(kind.results) - outputs)}
        draft.segments = {what: counts for what, counts in sizes.items() if counts[0] != counts[1]} or None
