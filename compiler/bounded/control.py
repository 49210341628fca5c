"""Conditionals and loops: their regions are written like the program around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trivium.compiler.bounded.program import write
from trivium.compiler.bounded.writer import Bounded, Writer, rule
from trivium.ir.core import Block, Region
from trivium.ir.ops import Case, If, While
from trivium.ir.terminators import Return


@rule(If, Case)
def conditional(w: Writer, op: Any) -> list[Bounded]:
    """Which branch runs may differ between combinations; what it returns has the same extents."""
    condition = w.values[op.operands[0]]
    blocks: list[Block] = []
    returned: list[Bounded] = []
    for region in op.regions:
        blocks.append(Block())
        inner = w.inside(blocks[-1])
        found = write(inner, region.block)
        found = _fitted(inner, found, returned) if returned else [inner.with_simple(x) for x in found]
        inner.add(Return([x.value for x in found]))
        returned = returned or found
    regions = [Region([block]) for block in blocks]
    made = Case(condition.value, regions) if isinstance(op, Case) else If(condition.value, *regions)
    w.add(made)
    return [Bounded(value, x.axes) for value, x in zip(made.results, returned, strict=True)]


def _fitted(w: Writer, found: Sequence[Bounded], wanted: Sequence[Bounded]) -> list[Bounded]:
    return [w.aligned(x, like.axes) for x, like in zip(found, wanted, strict=True)]


@rule(While)
def loop(w: Writer, op: While) -> list[Bounded]:
    """What a loop carries keeps its extents."""
    carried = [w.with_simple(w.values[value]) for value in op.operands]
    kinds = [x.value.type for x in carried]
    blocks = []
    for region in op.regions:
        block = Block(kinds)
        inner = w.inside(block)
        for old, new, x in zip(region.arguments, block.arguments, carried, strict=True):
            inner.values[old] = Bounded(new, x.axes)
        found = write(inner, region.block)
        if region is op.body:
            found = _fitted(inner, found, carried)
        inner.add(Return([x.value for x in found]))
        blocks.append(block)
    made = While([x.value for x in carried], *(Region([block]) for block in blocks))
    w.add(made)
    return [Bounded(value, x.axes) for value, x in zip(made.results, carried, strict=True)]
