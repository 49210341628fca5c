"""Iterations away from the edges. A padded window checks for every element whether it is inside the array, and with all
lanes of a vector at once, the masks take longer than the elements. In the interior, where the check succeeds for all
indices of the window itself, nothing is checked."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from trivium.backends.llvm.jammed import Tile
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.dtypes import INDEX
from trivium.compiler.kernel.index import Index, Symbol, variable
from trivium.compiler.kernel.structure import Apply, Block, If, Loop, Register, walk
from trivium.compiler.schedule import Schedule


@dataclass(frozen=True)
class Interior:
    """The iterations [begin, end) of a loop's index for which the comparisons `guards` are true. Those of `around` do
    not depend on the index: they are true for all iterations, provided that none of `margins`, which depend on the
    indices around it, is negative."""

    guards: tuple[Register, ...]
    around: tuple[Register, ...]
    begin: int
    end: int
    margins: tuple[Index, ...]


def interior(
    block: Block,
    index: Register,
    extent: int,
    schedule: Schedule,
    analysis: Analysis,
    known: Container[object],
    tile: Tile | None = None,
) -> Interior | None:
    """Returns the interior of a loop with body `block` along one of its indices; None if it is not more than half of
    the loop, or if no check depends on the index. `known` contains the values that are known before the loop;
    if iterations of another index run in a `tile`, those of all of them are meant."""
    extents, number = _extents_within(block, schedule), Register(INDEX)
    places = tile.places(variable(number)) if tile else {}
    extents[number] = tile.size if tile else 1
    begin, end, checked = 0, extent, False
    guards: list[Register] = []
    around: list[Register] = []
    margins: dict[Index, None] = {}
    for guard, margin in _guards(block, analysis):
        least = _least(margin.replace(places.get), extents)
        if any(symbol is not index and symbol not in known for symbol in least.terms):
            continue
        factor = least.terms.get(index, 0)
        if factor == 0:
            margins[least] = None
            around.append(guard)
            continue
        if len(least.terms) > 1:
            continue
        elif factor > 0:
            begin, checked = max(begin, -(least.offset // factor)), True
        else:
            end, checked = min(end, least.offset // -factor + 1), True
        guards.append(guard)
    if not checked or 2 * (end - begin) <= extent:
        return None
    if tile is not None and not _is_ever_inside(tile, margins):
        around, margins = [], {}
    return Interior(tuple(guards), tuple(around), begin, end, tuple(margins))


def _is_ever_inside(tile: Tile, margins: Iterable[Index]) -> bool:
    """Whether no margin is negative in one of the tiles, as far as margins depend on nothing else."""
    known = [margin for margin in margins if margin.terms.keys() == {tile.first}]
    return any(all(m.terms[tile.first] * first + m.offset >= 0 for m in known) for first in tile.firsts)


def _extents_within(block: Block, schedule: Schedule) -> dict[Symbol, int]:
    """Returns the extents of the indices of loops in the block, if they are numbers."""
    loops = (loop for loop in walk(block) if isinstance(loop, Loop))
    pairs = (pair for loop in loops for pair in zip(loop.indices, schedule.loops[loop].extents, strict=True))
    return {index: extent for index, extent in pairs if isinstance(extent, int)}


def _guards(block: Block, analysis: Analysis) -> Iterator[tuple[Register, Index]]:
    """Yields the comparisons of index expressions that branches depend on, each with an expression that is not negative
    if it is true."""
    wanted = {branch.condition for branch in walk(block) if isinstance(branch, If)}
    for instruction in reversed([i for i in walk(block) if isinstance(i, Apply)]):
        if instruction.result not in wanted:
            continue
        if instruction.op == "and":
            wanted.update(instruction.arguments)
        elif instruction.op == "compare" and instruction.arguments[0].dtype == INDEX:
            a, b = (analysis.form(argument) for argument in instruction.arguments)
            margins = {"GE": a - b, "GT": a - b - 1, "LE": b - a, "LT": b - a - 1}
            margin = margins.get(str(instruction.attributes["direction"]))
            if margin is not None:
                yield instruction.result, margin


def _least(margin: Index, extents: dict[Symbol, int]) -> Index:
    """Returns the lowest value for all indices that have `extents`, as an expression of the other terms."""
    terms, offset = {}, margin.offset
    for atom, factor in margin.terms.items():
        if atom in extents:
            offset += min(0, factor * (extents[atom] - 1))  # type: ignore[index]
        else:
            terms[atom] = factor
    return Index(terms, offset)
