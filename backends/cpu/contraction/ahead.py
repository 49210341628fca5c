"""Requests for rhs: while a tile adds up products, its steps request lines of memory that are read next. Without this,
a product of few rows waits for memory and multiplies by turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.cpu.contraction.microkernel import Ahead
from trivium.backends.cpu.contraction.tiling import Rhs, Tiling
from trivium.backends.llvm.numbers import Number
from trivium.backends.llvm.vectors import Vectors

if TYPE_CHECKING:
    from trivium.backends.cpu.contraction.template import Panel, Tile


def ahead_of(
    tiling: Tiling, rhs: Vectors, panel: Panel, data: ll.Value, tile: Tile, steps: Number, all_steps: int
) -> Ahead | None:
    """Returns what a tile requests: its share of the next block of its panel, or of the same block of the next panel of
    a packed constant, if the unit has several. `rhs` reads the panel, which is at `data`; a block has `steps` of
    `all_steps` steps."""
    if not tiling.prefetch:
        return None
    if tiling.rhs is Rhs.IN_PLACE:
        line = rhs.target.alignment
        lines = -(-panel.width * rhs.target.vector_bytes // (line * tiling.tiles.count))
        share = tile.number * (lines * line * tiling.lanes // rhs.target.vector_bytes)
        return Ahead(rhs.at(data, steps * panel.pitch + share), panel.pitch, lines)
    distance = all_steps if tiling.groups.size > 1 else steps
    number = divmod(tile.number, panel.width)[1] if tiling.tiles.count > panel.width else tile.number
    return Ahead(rhs.at(data, distance * panel.pitch + number * (steps * tiling.lanes)), tiling.lanes)
