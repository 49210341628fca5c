"""Two programs on one page: each as a graph and as text, with differences marked, and equal parts linked and folded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from trivium.debug.diff import ADDED, ALIKE, EQUAL, REMOVED, SIGNS, Comparison, Pair
from trivium.debug.differences import Difference
from trivium.ir.core import Operation, Region
from trivium.ir.types import TensorType
from trivium.page.data import Page, Passes, Stage
from trivium.page.graph import graph_stage
from trivium.page.tags import ops_of

CONTEXT = 2
"""The number of equal lines that are shown around a difference."""

AGREEING = "; its numbers agree"

WORDS = {ALIKE: "the same op, on other operands", REMOVED: "only in the first program", ADDED: "only in the second one"}


def diff_page(
    comparison: Comparison,
    names: tuple[str, str],
    arguments: Sequence[np.ndarray] | None = None,
    passes: Passes | None = None,
) -> Page:
    """Returns the page of two programs. With `arguments`, it says of which ops the results differ; `passes` are those
    that made the second program of the first one, whose ops they number."""
    numbers = {op: number for number, op in enumerate(ops_of([comparison.before.main]))}
    matched = {pair.after: pair.before for pair in comparison.pairs}

    def origins(op: Operation) -> list[int]:
        before = matched.get(op)
        return [numbers[before]] if before is not None else []

    apart = comparison.apart(arguments) if arguments is not None else {}
    first = graph_stage(comparison.before, "before" if passes is None else "program", names[0], lambda op: [])
    second = graph_stage(comparison.after, "after", names[1], origins)
    agree = {pair for pair in comparison.pairs if arguments is not None and _agrees(pair, apart)}
    sides = ((first, comparison.before, "before"), (second, comparison.after, "after"))
    for stage, module, side in sides:
        kinds = {getattr(pair, side): pair.kind for pair in comparison.pairs}
        wrong = {getattr(pair, side): difference for pair, difference in apart.items()}
        _mark(stage, module.main.body, kinds, wrong, {getattr(pair, side) for pair in agree})
    facts = {kind: str(count) for kind, count in comparison.counts.items()}
    if arguments is not None:
        facts["ops whose numbers differ"] = str(len(apart))
        facts["alike ops whose numbers agree"] = str(len(agree))
    return Page(f"{names[0]} and {names[1]}", facts, [first, second], passes=passes)


def _agrees(pair: Pair, apart: Mapping[Pair, Difference]) -> bool:
    """Whether the same op on other operands has the same numbers, or returns them; only tensors are compared."""
    values = [value for op in (pair.before, pair.after) if op is not None for value in op.results or op.operands]
    return pair.kind == ALIKE and pair not in apart and all(isinstance(value.type, TensorType) for value in values)


def _fold(count: int, alike: str) -> str:
    return f"  ⋯ {count} line{'s' if count > 1 else ''} ({alike})"


def _mark(
    stage: Stage,
    body: Region,
    kinds: Mapping[Operation | None, str],
    apart: Mapping[Operation | None, Difference],
    agree: Collection[Operation | None],
) -> None:
    """Marks the items and lines of a program, and folds those of equal ops, and of ops in `agree`, unless their numbers
    are `apart`."""
    every = list(body.walk())
    kind_of = {number: kinds[op] for number, op in enumerate(every) if op in kinds}
    wrong_of = {number: apart[op] for number, op in enumerate(every) if op in apart}
    agreeing = {number for number, op in enumerate(every) if op in agree}
    alike = "equal, or their numbers agree" if agreeing else "equal"
    for number, wrong in wrong_of.items():
        stage.items[number].facts["numbers"] = (
            f"{wrong.expected} in the first program, {wrong.ours} in the second one, at {list(wrong.at)}"
        )
    for number, kind in kind_of.items():
        if kind != EQUAL:
            stage.items[number].facts["difference"] = WORDS[kind] + (AGREEING if number in agreeing else "")
    differs = [
        owner in wrong_of or (kind_of.get(owner, EQUAL) != EQUAL and owner not in agreeing) for owner in stage.owners
    ]
    near = {i + by for i, wrong in enumerate(differs) if wrong for by in range(-CONTEXT, CONTEXT + 1)}
    lines, owners, folded = [], [], 0
    for i, (line, owner) in enumerate(zip(stage.lines, stage.owners, strict=True)):
        if i in near:
            if folded:
                lines.append(_fold(folded, alike))
                owners.append(-1)
            folded = 0
            apart_by = f"  // {wrong_of[owner]}" if owner in wrong_of else ""
            lines.append(f"{SIGNS[kind_of.get(owner, EQUAL)]} {line}{apart_by}")
            owners.append(owner)
        else:
            folded += 1
    stage.lines, stage.owners = lines, owners
    if folded:
        stage.add(_fold(folded, alike))
