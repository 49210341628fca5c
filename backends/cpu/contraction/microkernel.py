"""The micro-kernel: a tile of accumulators in registers, rows by vectors. Each step of the reduction loads one row of
rhs vectors and adds to every accumulator row the product with one broadcast lhs element. Nothing else runs between the
multiply-adds."""

from __future__ import annotations

from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.cpu.contraction.emission import Emission, Number
from trivium.backends.cpu.contraction.lhs import RowPointers

Tile = list[list[ll.Value]]


def zeros(e: Emission, rows: int, vectors: int) -> Tile:
    return [[e.zero] * vectors for _ in range(rows)]


def load_tile(e: Emission, base: ll.Value, pitch: int, rows: int, vectors: int) -> Tile:
    return [[e.load(e.at(base, r * pitch + v * e.lanes)) for v in range(vectors)] for r in range(rows)]


def store_tile(e: Emission, tile: Tile, base: ll.Value, pitch: int) -> None:
    for r, row in enumerate(tile):
        for v, vector in enumerate(row):
            e.store(vector, e.at(base, r * pitch + v * e.lanes))


@dataclass(frozen=True)
class Stream:
    """What a tile reads. For each of `taps`, `pointers` gives the rows' lhs addresses, which advance by `stride` for
    `steps` steps; rhs rows follow each other from `panel` on by `pitch` elements, over taps and steps. `ahead`: where
    to prefetch a vector each step. `lanewise`: lhs has a lane for every column, and `mask` says which of the last
    vector exist."""

    pointers: RowPointers
    taps: tuple[Number, Number]
    steps: Number
    stride: int
    panel: ll.Value
    pitch: int
    ahead: ll.Value | None = None
    lanewise: bool = False
    mask: ll.Value | None = None


def accumulate(e: Emission, tile: Tile, stream: Stream) -> Tile:
    """Adds lhs * rhs to `tile`."""
    taps = stream.taps
    if isinstance(taps[0], int) and taps[1] == taps[0] + 1:
        return _run(e, tile, stream, stream.pointers(taps[0]), stream.panel)[0]
    flat = [vector for row in tile for vector in row]
    with e.loop(*taps, carried=[stream.panel, *flat], nonempty=True) as loop:
        inner = shaped(tile, loop.carried[1:])
        inner, following = _run(e, inner, stream, stream.pointers(loop.index), loop.carried[0])
        loop.next = [following, *(vector for row in inner for vector in row)]
    return shaped(tile, loop.carried[1:])


def _run(e: Emission, tile: Tile, stream: Stream, rows: list[ll.Value], panel: ll.Value) -> tuple[Tile, ll.Value]:
    """The innermost loop; also gives the panel's next row."""
    flat = [vector for row in tile for vector in row]
    with e.loop(0, stream.steps, carried=[panel, *flat], nonempty=True) as loop:
        place, totals = loop.carried[0], shaped(tile, loop.carried[1:])
        rhs = [e.load(e.at(place, v * e.lanes)) for v in range(len(tile[0]))]
        if stream.ahead is not None:
            e.prefetch(e.at(stream.ahead, e.mul(loop.index, e.lanes)))
        loop.next = [e.at(place, stream.pitch)]
        for pointer, row in zip(rows, totals, strict=True):
            lhs = _factors(e, stream, e.at(pointer, e.mul(loop.index, stream.stride)), len(rhs))
            loop.next += [e.fma(*operands) for operands in zip(lhs, rhs, row, strict=True)]
    return shaped(tile, loop.carried[1:]), loop.carried[0]


def _factors(e: Emission, stream: Stream, pointer: ll.Value, count: int) -> list[ll.Value]:
    """One lhs element for all vectors, or, lane by lane, one vector for each, the last masked."""
    if not stream.lanewise:
        return [e.broadcast(pointer)] * count
    masks = [None] * (count - 1) + [stream.mask]
    return [e.load(e.at(pointer, v * e.lanes), mask) for v, mask in enumerate(masks)]


def shaped(tile: Tile, flat: list[ll.Value]) -> Tile:
    """`flat` as rows like those of `tile`."""
    width = len(tile[0])
    return [flat[i : i + width] for i in range(0, len(flat), width)]
