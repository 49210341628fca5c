"""Two programs on one page: each as a graph and as text, with differences marked, and equal parts linked and folded."""

from __future__ import annotations

from collections.abc import Mapping

from trivium.debug.diff import ADDED, ALIKE, EQUAL, REMOVED, SIGNS, Comparison
from trivium.ir.core import Operation, Region
from trivium.page.data import Page, Stage
from trivium.page.graph import graph_stage
from trivium.page.tags import ops_of

CONTEXT = 2
"""The number of equal lines that are shown around a difference."""

WORDS = {ALIKE: "the same op, on other operands", REMOVED: "only in the first program", ADDED: "only in the second one"}


def diff_page(comparison: Comparison, names: tuple[str, str]) -> Page:
    """Returns the page of two programs."""
    numbers = {op: number for number, op in enumerate(ops_of([comparison.before.main]))}
    matched = {pair.after: pair.before for pair in comparison.pairs}

    def origins(op: Operation) -> list[int]:
        before = matched.get(op)
        return [numbers[before]] if before is not None else []

    first = graph_stage(comparison.before, "before", names[0], lambda op: [])
    second = graph_stage(comparison.after, "after", names[1], origins)
    _mark(first, comparison.before.main.body, {pair.before: pair.kind for pair in comparison.pairs})
    _mark(second, comparison.after.main.body, {pair.after: pair.kind for pair in comparison.pairs})
    facts = {kind: str(count) for kind, count in comparison.counts.items()}
    return Page(f"{names[0]} and {names[1]}", facts, [first, second])


def _mark(stage: Stage, body: Region, kinds: Mapping[Operation | None, str]) -> None:
    """Marks the items and lines of a program, and folds the equal lines."""
    kind_of = {number: kinds[op] for number, op in enumerate(body.walk()) if op in kinds}
    for number, kind in kind_of.items():
        if kind != EQUAL:
            stage.items[number].facts["difference"] = WORDS[kind]
    differs = [kind_of.get(owner, EQUAL) != EQUAL for owner in stage.owners]
    near = {i + by for i, wrong in enumerate(differs) if wrong for by in range(-CONTEXT, CONTEXT + 1)}
    lines, owners, folded = [], [], 0
    for i, (line, owner) in enumerate(zip(stage.lines, stage.owners, strict=True)):
        if i in near:
            if folded:
                lines.append(f"  ⋯ {folded} equal lines")
                owners.append(-1)
            folded = 0
            lines.append(f"{SIGNS[kind_of.get(owner, EQUAL)]} {line}")
            owners.append(owner)
        else:
            folded += 1
    stage.lines, stage.owners = lines, owners
    if folded:
        stage.add(f"  ⋯ {folded} equal lines")
