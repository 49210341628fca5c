"""Accesses that together read or write whole vectors, if a loop index is in lanes: those of the three coordinates of
points, for example, each of which alone would be scattered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from trivium.compiler.kernel.affine import Analysis, accesses
from trivium.compiler.kernel.index import Atom
from trivium.compiler.kernel.structure import Block, Buffer, Instruction, Load, Register, Store

MOST = 16
"""The largest number of vectors that are interleaved, or taken apart, in registers."""

Groups = Mapping[Instruction, Sequence[Load | Store]]
"""For each instruction of a group, nothing, but for the one that stands for all of them, all, in the order of their
elements."""


def interleaved(block: Block, index: Register, analysis: Analysis) -> Groups:
    """Returns the loads and stores of a block that can be done together: as many as there are elements from one
    iteration of `index` to the next, of neighbours. The first load stands for all of its group, since nothing writes
    what it reads, and the last store: nothing else accesses its buffer since the first one."""
    alike = defaultdict[tuple[Buffer, bool, frozenset[tuple[Atom, int]]], dict[int, Load | Store]](dict)
    for access in block.instructions:
        if isinstance(access, Store) or (isinstance(access, Load) and access.buffer.mode == "in"):
            place = analysis.address(access.buffer, access.indices)
            if 2 <= (analysis.step(place, index) or 0) <= MOST:
                key = access.buffer, isinstance(access, Load), frozenset(place.terms.items())
                alike[key].setdefault(place.offset, access)
    groups = dict[Instruction, Sequence[Load | Store]]()
    for (_, reads, terms), found in alike.items():
        step = dict(terms)[index]
        for first in sorted(found):
            group = [found[place] for place in range(first, first + step) if place in found]
            if len(group) == step and groups.keys().isdisjoint(group) and (reads or _alone(block, group)):
                chosen = (min if reads else max)(group, key=block.instructions.index)
                groups |= {each: group if each is chosen else () for each in group}
    return groups


def _alone(block: Block, group: Sequence[Load | Store]) -> bool:
    """Whether only the stores of a group access their buffer from the first to the last of them."""
    places = [block.instructions.index(store) for store in group]
    between = Block(instructions=block.instructions[min(places) : max(places) + 1])
    return all(access.buffer is not group[0].buffer or access in group for access in accesses(between))


def shuffles(count: int) -> int:
    """Returns the number of instructions that interleave `count` vectors, or take them apart."""
    return count * (count - 1) if count % 2 else count + 2 * shuffles(count // 2)
