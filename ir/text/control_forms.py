"""The forms of `while`, of returns, of the optimization barrier and of constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.ir.attributes import DenseElements
from trivium.ir.declare import Op
from trivium.ir.text.assembly import Draft
from trivium.ir.types import IntegerType

if TYPE_CHECKING:
    from trivium.ir.text.parser import Parser
    from trivium.ir.text.printer import Printer


class WhileForm:
    """`(%iterArg = %0, %iterArg_0 = %1) : types attributes {...} cond {...} do {...}`"""

    def fits(self, op: Op) -> bool:
        if len(op.regions) != 2 or op.result_types != op.operand_types:
            return False
        blocks = [block for region in op.regions for block in region.blocks]
        return len(blocks) == 2 and all(
            tuple(argument.type for argument in block.arguments) == op.operand_types for block in blocks
        )

    def argument_name(self, index: int) -> str:
        return "iterArg"

    def print(self, op: Op, printer: Printer) -> str:
        cond, body = op.regions
        # Both regions are at the same depth, so their arguments have the same names.
        pairs = zip(body.arguments, op.operands, strict=True)
        text = f"({', '.join(f'{printer.value(one)} = {printer.value(other)}' for one, other in pairs)})"
        if op.operands:
            text += f" : {printer.types(op.operand_types)}"
        if attributes := printer.optional_dictionary(op):
            text += f" attributes{attributes}"
        cond_text, body_text = printer.region(cond, header=False), printer.region(body, header=False)
        return f"{text}\n{printer.indent}cond {cond_text} do {body_text}"

    def parse(self, parser: Parser, draft: Draft) -> None:
        names: list[tuple[str, int]] = []

        def pair() -> None:
            names.append(parser.value_name())
            parser.expect("=")
            parser.operand(draft)

        parser.listed(pair, "(", ")")
        if parser.accept(":"):
            draft.operand_types = draft.result_types = parser.types()
        if parser.accept_word("attributes"):
            parser.optional_dictionary(draft)
        parser.check_operands(draft)
        arguments = [(name, pos, value.type, None) for (name, pos), value in zip(names, draft.operands, strict=True)]
        for word in ("cond", "do"):
            parser.expect_word(word)
            draft.regions.append(parser.region(arguments))


@dataclass(frozen=True)
class ReturnForm:
    """`%0, %1 {attributes} : types`, or with `in_front`, `{attributes} %0, %1 : types`"""

    in_front: bool = False

    def fits(self, op: Op) -> bool:
        # If another op followed, a return without operands would read that op's results as its operands.
        return not op.results and not op.regions and op.next is None

    def print(self, op: Op, printer: Printer) -> str:
        attributes = printer.optional_dictionary(op)
        if not op.operands:
            return attributes.lstrip()
        values, types = printer.values(op.operands), printer.types(op.operand_types)
        return f"{attributes} {values} : {types}".lstrip() if self.in_front else f"{values}{attributes} : {types}"

    def parse(self, parser: Parser, draft: Draft) -> None:
        if self.in_front:
            parser.optional_dictionary(draft)
        parser.operands(draft)
        if not self.in_front:
            parser.optional_dictionary(draft)
        if draft.operands:
            parser.expect(":")
            draft.operand_types = parser.types()


class BarrierForm:
    """`{attributes} %0, %1 : types`, or `()` for nothing"""

    def fits(self, op: Op) -> bool:
        return op.operand_types == op.result_types and not op.regions

    def print(self, op: Op, printer: Printer) -> str:
        attributes = printer.optional_dictionary(op).lstrip()
        if not op.operands:
            return f"{attributes} ()".lstrip()
        return f"{attributes} {printer.values(op.operands)} : {printer.types(op.operand_types)}".lstrip()

    def parse(self, parser: Parser, draft: Draft) -> None:
        parser.optional_dictionary(draft)
        if parser.accept("("):
            parser.expect(")")
        parser.operands(draft)
        if draft.operands:
            parser.expect(":")
            draft.operand_types = draft.result_types = parser.types()


class ConstantForm:
    """`{attributes} dense<...> : type`, if the tensor has the type of the result. Otherwise, for a quantized result,
    everything after the name is written generically."""

    def fits(self, op: Op) -> bool:
        return isinstance(op.attributes.get("value"), DenseElements) and len(op.results) == 1 and not op.operands

    def result_name(self, op: Op) -> str:
        """Returns MLIR's name for the value: `c` for integers, otherwise `cst`."""
        kind = getattr(op.results[0].type, "element_type", None) if op.results else None
        return "c" if isinstance(kind, IntegerType) else "cst"

    def print(self, op: Op, printer: Printer) -> str:
        if op.result_types != (op.attributes["value"].type,):
            return printer.generic_body(op)
        attributes = printer.optional_dictionary(op, frozenset({"value"})).lstrip()
        return f"{attributes} {printer.attribute(op.attributes['value'])}".lstrip()

    def parse(self, parser: Parser, draft: Draft) -> None:
        if parser.at("("):
            parser.generic_operation(draft)
            return
        parser.optional_dictionary(draft)
        pos = parser.pos
        value = parser.attribute()
        if not isinstance(value, DenseElements):
            raise parser.error("a constant needs a tensor, as in dense<1.0> : tensor<4xf32>", pos)
        draft.attributes["value"] = value
        draft.result_types = [value.type]
