"""Packing of an lhs whose rows are neighbours in memory and whose steps are far apart, as in the product with a
transposed matrix, or in gradients of weights. In memory, the steps of a tile fall on few sets of the caches, and on a
page each. Packed, tiles follow one another, and each holds its rows of one step after those of the step before."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.cpu.contraction.split_loops import first_of, parts
from trivium.backends.cpu.contraction.tiling import Split
from trivium.backends.llvm.numbers import Number
from trivium.backends.llvm.vectors import Vectors

STEPS_TOGETHER = 8
"""The number of steps that are copied for one tile before the next tile. The processor then reads this many rows of
memory at the same time, and most cache lines are written as a whole."""


def emit_tiles(
    reader: Vectors,
    e: Vectors,
    tiles: Split,
    numbers: tuple[Number, Number],
    steps: Number,
    source: tuple[ll.Value, int],
    target: tuple[ll.Value, int],
) -> None:
    """Writes `steps` steps of the tiles with these numbers, as elements of `e`, from what `reader` reads. `source` is
    the address of their first row at the first step, and the distance between steps, in elements. `target` is the
    address of the first tile, and the distance to the next one for each of its rows: the number of steps and a vector's
    lanes, or more."""
    (start, stride), (room, pitch) = source, target
    first = first_of(tiles, numbers[0])

    def copy(step: Number, together: int) -> None:
        for count, number in parts(e, tiles, numbers):
            row = first_of(tiles, number) - first
            for j in range(together):
                here, there = row + (step + j) * stride, row * pitch + (step + j) * count
                _copy_rows(reader, e, count, reader.at(start, here), e.at(room, there))

    whole = steps // STEPS_TOGETHER * STEPS_TOGETHER
    with e.loop(0, whole, step=STEPS_TOGETHER) as loop:
        copy(loop.index, STEPS_TOGETHER)
    with e.loop(whole, steps) as loop:
        copy(loop.index, 1)


def _copy_rows(reader: Vectors, e: Vectors, count: int, source: ll.Value, target: ll.Value) -> None:
    """Copies the rows of a tile at one step, in the shortest vectors that hold them. What follows them, up to the end
    of a vector, is overwritten."""
    lanes = min(e.lanes, 1 << (count - 1).bit_length())
    reader, e = reader.with_lanes(lanes), e.with_lanes(lanes)
    for row in range(0, count, lanes):
        mask = e.lanes_below(count - row) if count - row < lanes else None
        e.store(reader.load(reader.at(source, row), mask), e.at(target, row))
