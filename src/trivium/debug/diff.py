"""Compares two programs op by op. Ops are equal if they compute the same from the same arguments, regardless of names
and positions. Of the others, those of the same kind are paired."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from trivium.compiler.pipeline import inline
from trivium.debug.differences import Difference, difference
from trivium.debug.values import evaluated
from trivium.ir import ops
from trivium.ir.core import Operation, Value
from trivium.ir.func import Module
from trivium.ir.text import print_op
from trivium.ir.text.printer import Printer

EQUAL, ALIKE, REMOVED, ADDED = "equal", "alike", "removed", "added"
SIGNS = {EQUAL: " ", ALIKE: "~", REMOVED: "-", ADDED: "+"}
FOLDED = 4
"""The number of consecutive equal ops from which on only their count is shown."""


@dataclass(frozen=True)
class Pair:
    """An op of the first program, and one of the second; None where only the other program has it. `alike`: the same op
    with the same type and attributes, on different operands."""

    kind: str
    before: Operation | None
    after: Operation | None


class Comparison:
    """Two programs, without calls, and the pairs of their ops in order."""

    def __init__(self, before: Module, after: Module):
        self.before, self.after = inline(before), inline(after)
        self.pairs = list(_pairs(self.before, self.after))

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs there are of each kind."""
        return {kind: sum(pair.kind == kind for pair in self.pairs) for kind in SIGNS}

    def lines(self) -> Iterator[str]:
        """Yields the pairs as text, with equal ops folded."""
        waiting: list[Pair] = []
        for pair in [*self.pairs, None]:
            if pair is not None and pair.kind == EQUAL:
                waiting.append(pair)
                continue
            if len(waiting) > FOLDED:
                yield f"  ... {len(waiting)} equal ops"
            else:
                yield from (_line(equal) for equal in waiting)
            waiting = []
            if pair is not None:
                yield _line(pair)

    def numbers(
        self, arguments: Sequence[np.ndarray], tolerance: float | None = None
    ) -> tuple[Pair, Difference] | None:
        """Evaluates both programs on the same arguments. Returns `None` if their results agree, otherwise the first
        pair whose own results differ; the last pair is that of the results of the programs."""
        found = self.apart(arguments, tolerance)
        return next(iter(found.items())) if any(_is_end(pair) for pair in found) else None

    def apart(self, arguments: Sequence[np.ndarray], tolerance: float | None = None) -> dict[Pair, Difference]:
        """Evaluates both programs on the same arguments. Returns the pairs whose own results differ, in order; the last
        one is that of the results of the programs."""
        first, second = (evaluated(module, arguments) for module in (self.before, self.after))
        ends = Pair(ALIKE, self.before.main.body.terminator, self.after.main.body.terminator)
        others = [pair for pair in self.pairs if not _is_end(pair)]
        found = ((pair, _differing(pair, first, second, tolerance)) for pair in [*others, ends])
        return {pair: wrong for pair, wrong in found if wrong is not None}


def _is_end(pair: Pair) -> bool:
    """Whether a pair is that of the results of the programs."""
    op = pair.before or pair.after
    return op is not None and not op.results and op.block is not None and op is op.block.last


def _differing(
    pair: Pair, first: Mapping[Value, np.ndarray], second: Mapping[Value, np.ndarray], tolerance: float | None
) -> Difference | None:
    """Returns how the results of two ops, or the values that two terminators return, differ; `None` if they do not, or
    if one op is missing."""
    if pair.before is None or pair.after is None:
        return None
    values = ((op.results or op.operands) for op in (pair.after, pair.before))
    for ours, expected in zip(*values, strict=False):
        a, b = second[ours], first[expected]
        if isinstance(a, np.ndarray) and a.shape == b.shape and (found := difference(a, b, tolerance)) is not None:
            return found
    return None


def _line(pair: Pair) -> str:
    op = pair.after or pair.before
    assert op is not None
    place = op.location.describe()
    return f"{SIGNS[pair.kind]} {print_op(op)}{f'  // {place}' if place and pair.kind != EQUAL else ''}"


def _pairs(before: Module, after: Module) -> Iterator[Pair]:
    first, second = list(before.main.body.block), list(after.main.body.block)
    same = _blocks([*_meanings(before).values()], [*_meanings(after).values()])
    for tag, a, b, c, d in same:
        if tag == "equal":
            yield from (Pair(EQUAL, x, y) for x, y in zip(first[a:b], second[c:d], strict=True))
        else:
            yield from _unequal(first[a:b], second[c:d])


def _unequal(first: Sequence[Operation], second: Sequence[Operation]) -> Iterator[Pair]:
    for tag, a, b, c, d in _blocks([_form(op) for op in first], [_form(op) for op in second]):
        if tag == "equal":
            yield from (Pair(ALIKE, x, y) for x, y in zip(first[a:b], second[c:d], strict=True))
        else:
            yield from (Pair(REMOVED, op, None) for op in first[a:b])
            yield from (Pair(ADDED, None, op) for op in second[c:d])


def _blocks(first: Sequence[bytes], second: Sequence[bytes]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, first, second, autojunk=False).get_opcodes()


def _meanings(module: Module) -> dict[Operation, bytes]:
    """Returns, for every op, a digest of everything that its results depend on."""
    known: dict[Value, bytes] = {argument: b"%d" % argument.index for argument in module.main.arguments}
    found: dict[Operation, bytes] = {}
    for op in module.main.body.block:
        digest = hashlib.sha256(_form(op))
        for value in [*op.operands, *(free for region in op.regions for free in region.free_values())]:
            digest.update(known.get(value, b"?"))
        if isinstance(op, ops.Constant):
            digest.update(np.ascontiguousarray(op.value.array).tobytes())
        found[op] = digest.digest()
        known |= {result: found[op] + b"%d" % result.index for result in op.results}
    return found


def _form(op: Operation) -> bytes:
    """Returns an op as text without the names of its operands: its kind, attributes, regions and types."""
    values = dict.fromkeys([*op.operands, *op.results, *(v for r in op.regions for v in r.free_values())], "%")
    return Printer(values, generic=True, elide=True).operation(op).encode()
