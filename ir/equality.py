"""Structural equality of programs: same ops, attributes, types and flow of values. Names of values and locations are
ignored."""

from __future__ import annotations

from typing import Any

from trivium.ir.core import Block, Operation, Region, Value
from trivium.ir.errors import shortened

_DICTIONARIES = ("arg_attrs", "res_attrs")
"""Lists with one dictionary per argument or result; a list of empty dictionaries is equal to no list."""


def equal(one: Operation, other: Operation) -> bool:
    """Whether two ops, with everything inside them, are the same program."""
    return not difference(one, other)


def difference(one: Operation, other: Operation) -> str:
    """Describes the first difference between two ops; empty if there is none."""
    return _Comparison().run(one, other)


class _Comparison:
    """Walks two programs side by side. `partner` maps the values of one to those of the other."""

    def __init__(self) -> None:
        self.partner: dict[Value, Value] = {}
        self.partnered: set[Value] = set()

    def run(self, one: Operation, other: Operation) -> str:
        pairs = [(one, other)]
        while pairs:
            mine, theirs = pairs.pop()
            if found := self._operations(mine, theirs) or self._regions(mine, theirs, pairs):
                return found
        return ""

    def _operations(self, one: Operation, other: Operation) -> str:
        if one.NAME != other.NAME:
            return f"{one.NAME} is in the place of the other's {other.NAME}"
        if one.result_types != other.result_types:
            return f"{one.NAME} has results {_types(one)}, the other {_types(other)}"
        for mine, theirs in ((one.attributes, other.attributes), (one.extra, other.extra)):
            for name in sorted({*mine, *theirs}):
                if not _agree(name, mine.get(name), theirs.get(name)):
                    return f"{one.NAME}: {name} has {_shown(mine.get(name))}, the other {_shown(theirs.get(name))}"
        if one.segments != other.segments:
            return f"{one.NAME} has groups of {one.segments}, the other {other.segments}"
        if len(one.operands) != len(other.operands):
            return f"{one.NAME} has {len(one.operands)} operands, the other {len(other.operands)}"
        for index, (mine, theirs) in enumerate(zip(one.operands, other.operands, strict=True)):
            if not self._same(mine, theirs):
                return f"{one.NAME}: operand {index} is a different value"
        for mine, theirs in zip(one.results, other.results, strict=True):
            self._pair(mine, theirs)
        return ""

    def _regions(self, one: Operation, other: Operation, pairs: list[tuple[Operation, Operation]]) -> str:
        if len(one.regions) != len(other.regions):
            return f"{one.NAME} has {len(one.regions)} regions, the other {len(other.regions)}"
        inner: list[tuple[Operation, Operation]] = []
        for mine, theirs in zip(one.regions, other.regions, strict=True):
            if found := self._blocks(mine, theirs, inner):
                return f"{one.NAME}: {found}"
        # The walk follows the order of the text: ops inside an op come before the ops after it.
        pairs += reversed(inner)
        return ""

    def _blocks(self, one: Region, other: Region, inner: list[tuple[Operation, Operation]]) -> str:
        if len(one.blocks) != len(other.blocks):
            return f"a region has {len(one.blocks)} blocks, the other {len(other.blocks)}"
        for mine, theirs in zip(one.blocks, other.blocks, strict=True):
            if found := self._arguments(mine, theirs):
                return found
            ops, others = list(mine), list(theirs)
            if len(ops) != len(others):
                longer = max(ops, others, key=len)
                return f"a block ends before {longer[min(len(ops), len(others))].NAME}"
            inner += zip(ops, others, strict=True)
        return ""

    def _arguments(self, one: Block, other: Block) -> str:
        mine, theirs = ([argument.type for argument in block.arguments] for block in (one, other))
        if mine != theirs:
            return f"a block has arguments ({', '.join(map(str, mine))}), the other ({', '.join(map(str, theirs))})"
        for argument, its in zip(one.arguments, other.arguments, strict=True):
            self._pair(argument, its)
        return ""

    def _same(self, one: Value, other: Value) -> bool:
        if one in self.partner:
            return self.partner[one] is other
        # Values from outside are paired when they are first seen.
        if other in self.partnered or one.type is not other.type:
            return False
        self._pair(one, other)
        return True

    def _pair(self, one: Value, other: Value) -> None:
        self.partner[one] = other
        self.partnered.add(other)


def _agree(name: str, one: Any, other: Any) -> bool:
    return one is other or one == other or (name in _DICTIONARIES and not any(one or ()) and not any(other or ()))


def _shown(value: object) -> str:
    return shortened(repr(value))


def _types(op: Operation) -> str:
    return f"({', '.join(map(str, op.result_types))})"
