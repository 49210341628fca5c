"""Windows that overlap: neighbouring iterations of a loop read many of the same elements, each of them at a different
position of its window."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.index import Index, Symbol, constant, variable
from trivium.compiler.kernel.structure import Load, Loop, Register, walk


@dataclass(frozen=True)
class Term:
    """A term of one of several windows: the number of the iteration, and the position in its window."""

    iteration: int
    position: tuple[int, ...]

    def places(self, window: Loop, index: Register, first: Register) -> dict[Symbol, Index]:
        """Returns the values of a window's indices and of `index`, which is `first` in iteration 0."""
        inside = zip(window.indices, map(constant, self.position), strict=True)
        return {index: variable(first) + self.iteration, **dict(inside)}


def overlap(
    window: Loop, extents: Sequence[int], index: Register, size: int, along: Register, analysis: Analysis
) -> list[list[Term]]:
    """Returns the terms of the windows of `size` neighbouring iterations of `index`: in the order of the elements that
    they read, and together those that read the same ones. Only elements that change with `along` count; `extents` are
    those of the window."""
    loads = [load for load in walk(window.body) if isinstance(load, Load)]
    moving = [load for load in loads if any(along in analysis.depends(symbol) for symbol in load.operands)]
    addresses = [analysis.address(load.buffer, load.indices) for load in moving]
    positions = itertools.product(*map(range, extents))
    terms = [Term(iteration, position) for position in positions for iteration in range(size)]
    bound = (term.places(window, index, index).get for term in terms)
    read = {term: [a.replace(places) for a in addresses] for term, places in zip(terms, bound, strict=True)}
    if not addresses:
        return [[term] for term in terms]
    terms.sort(key=lambda term: [address.offset for address in read[term]])
    return [list(group) for _, group in itertools.groupby(terms, key=read.__getitem__)]
