"""The first tile of a panel as the one that packs it: it reads rhs in place, and stores each row for the next tiles.
With few rows, reading rhs once only to pack it takes a tenth to a fifth of a product."""

from __future__ import annotations

from dataclasses import dataclass, replace

import llvmlite.ir as ll

from trivium.backends.cpu.contraction import microkernel
from trivium.backends.cpu.contraction.microkernel import Ahead, Stream
from trivium.backends.cpu.contraction.needed import Needed
from trivium.backends.cpu.contraction.tiling import SOON_DONE, Rhs, Tiling, rhs_step
from trivium.backends.llvm.numbers import Number, i64
from trivium.backends.llvm.vectors import Vectors
from trivium.compiler.contraction.problem import Problem

DISTANCE = 12
"""The number of rows of rhs that are requested ahead. The processor does not do so itself: they are on different
pages."""


def packs_as_it_reads(problem: Problem, tiling: Tiling, needed: Needed) -> bool:
    """Whether panels are packed whose rows are contiguous, for several tiles that each read all of them in one run. Of
    more rows than a few hundred, packing is a small part. If some are not needed, the first tile may be left out."""
    if tiling.rhs is not Rhs.PACKED or tiling.matrix is not None or tiling.skips_padding or problem.elementwise:
        return False
    few = tiling.tiles.count > 1 and problem.rows.extent <= SOON_DONE and not needed.digits.get("rows")
    return few and tiling.reduction.taps == 1 and rhs_step(problem) > 0


@dataclass(frozen=True)
class Origin:
    """Where the rows of a panel are before they are packed: from `place` on, `pitch` elements apart. `rhs` reads them,
    and `mask` are the lanes of their last vector that exist. The tile with the number `first` packs them."""

    rhs: Vectors
    place: ll.Value
    pitch: int
    mask: ll.Value | None
    first: Number

    def accumulate(self, e: Vectors, sums: microkernel.Tile, packed: Stream, number: Number) -> microkernel.Tile:
        """Adds the products of a tile to `sums`. It reads the stream `packed`, unless it packs what that reads."""
        lines = -(-len(sums[0]) * self.rhs.target.vector_bytes // self.rhs.target.alignment)
        ahead = Ahead(self.rhs.at(self.place, DISTANCE * self.pitch), self.pitch, lines, nearest=1)
        in_place = replace(packed, rhs=self.rhs, panel=self.place, pitch=self.pitch, rhs_mask=self.mask, ahead=ahead)

        def added(stream: Stream) -> list[ll.Value]:
            return [vector for row in microkernel.accumulate(e, sums, stream) for vector in row]

        is_first = e.icompare("==", i64(number), i64(self.first))
        packs = replace(in_place, packs=packed)
        return microkernel.shaped(sums, e.cond(is_first, lambda: added(packs), lambda: added(packed)))
