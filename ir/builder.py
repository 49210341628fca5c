"""Building and rewriting: a cursor in a block, and the changes that are made there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from trivium.ir.core import Block, Operation, Region, Value
from trivium.ir.declare import Op
from trivium.ir.location import UNKNOWN, Location
from trivium.ir.terminators import Return
from trivium.ir.types import Type


class Builder:
    """Inserts operations at a cursor: at the end of `block`, or before the operation `before`.

    `location` is given to operations that have none of their own.
    """

    def __init__(self, block: Block, before: Operation | None = None, location: Location = UNKNOWN):
        self.block = block
        self.before = before
        self.location = location

    @classmethod
    def in_front_of(cls, op: Operation) -> Builder:
        """Returns a builder that inserts ops before `op` and gives them its location."""
        assert op.block is not None, f"{op.NAME} is not in a block"
        return cls(op.block, op, op.location)

    def add(self, op: Operation) -> Any:
        """Inserts `op`. Returns its result, or the tuple of its results if the op is declared with several or none."""
        if op.location is UNKNOWN:
            op.location = self.location
        self.block.insert(op, self.before)
        fields = type(op).RESULTS if isinstance(op, Op) else ()
        return op.results[0] if len(fields) == 1 and not fields[0].arity else op.results

    @contextmanager
    def at(self, location: Location) -> Iterator[None]:
        """Gives ops that are added inside `location`, unless they have their own."""
        saved, self.location = self.location, location
        try:
            yield
        finally:
            self.location = saved


class Rewriter(Builder):
    """A builder that inserts before the op that is being rewritten, and can replace that op."""

    def __init__(self, op: Operation):
        assert op.block is not None, f"{op.NAME} is not in a block"
        super().__init__(op.block, op, op.location)
        self.op = op

    def replace(self, *values: Value) -> None:
        """Replaces every use of the op's results by `values`, and erases the op."""
        assert len(values) == len(self.op.results), f"{self.op.NAME} is replaced by {len(values)} values"
        for old, new in zip(self.op.results, values, strict=True):
            if not new.name_hint:
                new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        self.op.erase()


def region(argument_types: Sequence[Type], body: Callable[..., Any], location: Location = UNKNOWN) -> Region:
    """Builds a region of one block: `body(builder, *arguments)` adds its ops and returns the value or values that the
    region returns."""
    block = Block(argument_types)
    builder = Builder(block, location=location)
    returned = body(builder, *block.arguments)
    builder.add(Return([returned] if isinstance(returned, Value) else list(returned)))
    return Region([block])


def inline_block(block: Block, arguments: Sequence[Value], rewriter: Builder) -> list[Value]:
    """Copies the operations of a block, except its terminator, to the cursor. Returns the values that the terminator
    would return."""
    mapping: dict[Value, Value] = dict(zip(block.arguments, arguments, strict=True))
    for op in block:
        if op is not block.last:
            rewriter.block.insert(op.clone(mapping), rewriter.before)
    return [mapping.get(value, value) for value in block.terminator.operands]
