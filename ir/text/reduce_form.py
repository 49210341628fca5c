"""The form of `reduce`: `(%x init: %c) applies stablehlo.add across dimensions = [1] : types`, or with a region at the
end if the body is more than one op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivium.ir.core import Block, Region, Value
from trivium.ir.declare import OPS, Op, Trait
from trivium.ir.text.assembly import Draft, plain_text
from trivium.ir.text.lexer import WORD
from trivium.ir.types import TensorType

if TYPE_CHECKING:
    from trivium.ir.text.parser import Argument, Parser
    from trivium.ir.text.printer import Printer


class ReduceForm:
    def fits(self, op: Op) -> bool:
        if len(op.regions) != 1 or len(op.regions[0].blocks) != 1 or "dimensions" not in op.attributes:
            return False
        count = len(op.operands)
        return count % 2 == 0 and count > 0 and len(op.regions[0].arguments) == count

    def print(self, op: Op, printer: Printer) -> str:
        half = len(op.operands) // 2
        pairs = zip(op.operands[:half], op.operands[half:], strict=True)
        text = ", ".join(f"({printer.value(one)} init: {printer.value(init)})" for one, init in pairs)
        inner = applied_op(op)
        if inner is not None:
            text += f" applies {inner.NAME}"
        text += f" across dimensions = {plain_text(op.attributes['dimensions'])}"
        text += f"{printer.optional_dictionary(op, frozenset({'dimensions'}))} : {printer.functional_type(op)}"
        return text if inner is not None else f"{text}\n{printer.indent} reducer{self._reducer(op, half, printer)}"

    def _reducer(self, op: Op, half: int, printer: Printer) -> str:
        body = op.regions[0]
        arguments = [printer.argument(argument) for argument in body.arguments]
        pairs = zip(arguments[:half], arguments[half:], strict=True)
        text = "".join(f"({one}, {other}) " for one, other in pairs)
        return f"{text} {printer.region(body, header=False)}"

    def parse(self, parser: Parser, draft: Draft) -> None:
        # MLIR's parser of this form uses the position after the op's name, not that of the name.
        draft.location = parser.location_of(parser.pos)
        inner = self._parse_head(parser, draft)
        parser.check_operands(draft)
        draft.regions.append(_applied_body(draft, inner) if inner else _parse_reducer(parser))

    def _parse_head(self, parser: Parser, draft: Draft) -> type[Op] | None:
        inits: list[tuple[Value, int]] = []
        while True:
            parser.expect("(")
            parser.operand(draft)
            parser.expect_word("init")
            parser.expect(":")
            parser.operand(draft)
            inits.append((draft.operands.pop(), draft.places.pop()))
            parser.expect(")")
            if not parser.accept(","):
                break
        draft.operands += [value for value, _ in inits]
        draft.places += [place for _, place in inits]
        inner = _parse_inner(parser) if parser.accept_word("applies") else None
        parser.expect_word("across")
        parser.expect_word("dimensions")
        parser.expect("=")
        draft.attributes["dimensions"] = parser.integers()
        parser.optional_dictionary(draft)
        parser.expect(":")
        kind = parser.function_type()
        draft.operand_types, draft.result_types = kind.inputs, kind.results
        if inner is not None:
            # The op that is applied has the location of the whole op.
            draft.location = parser.optional_location() or draft.location
        return inner


def applied_op(op: Op) -> Op | None:
    """Returns the only op of the body, if the short form can express it."""
    block = op.regions[0].block
    inner = block.first
    if not isinstance(inner, Op) or inner is block.last or inner.next is not block.last or inner.extra:
        return None
    kind = op.operands[0].type
    scalar = TensorType((), kind.element_type) if isinstance(kind, TensorType) else None
    forwards = inner.operands == tuple(block.arguments) and block.terminator.operands == inner.results
    types = {*inner.operand_types, *inner.result_types} == {scalar}
    return inner if _can_apply(type(inner)) and forwards and types and len(inner.results) == 1 else None


def _can_apply(cls: type[Op]) -> bool:
    """Whether StableHLO's short form allows the op: commutative, with two operands and one result."""
    commutative = Trait.COMMUTATIVE in getattr(cls, "TRAITS", ()) and cls.NAME.startswith("stablehlo.")
    return commutative and len(cls.OPERANDS) == 2 and not cls.REGIONS


def _parse_inner(parser: Parser) -> type[Op]:
    pos = parser.pos
    name = parser.take(WORD, "the name of an op")
    cls = OPS.get(name)
    if cls is None or not _can_apply(cls):
        raise parser.error(f"'{name}' is not a commutative op of two operands, such as stablehlo.add", pos)
    return cls


def _applied_body(draft: Draft, inner: type[Op]) -> Region:
    """Builds the body that the short form stands for. As in MLIR, it has the first operand's element type."""
    kind = draft.operand_types[0]
    scalar = TensorType((), kind.element_type) if isinstance(kind, TensorType) else kind
    block = Block()
    for _ in range(2):
        block.add_argument(scalar, location=draft.location)
    made = inner.create(block.arguments, [scalar], location=draft.location)
    block.append(made)
    block.append(OPS["stablehlo.return"].create(made.results, location=draft.location))
    return Region([block])


def _parse_reducer(parser: Parser) -> Region:
    parser.expect_word("reducer")
    groups: tuple[list[Argument], list[Argument]] = ([], [])

    def argument() -> Argument:
        name, pos = parser.value_name()
        parser.expect(":")
        return name, pos, parser.type(), parser.optional_location()

    while parser.accept("("):
        groups[0].append(argument())
        parser.expect(",")
        groups[1].append(argument())
        parser.expect(")")
    return parser.region([*groups[0], *groups[1]])
