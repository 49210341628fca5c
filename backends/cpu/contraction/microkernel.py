"""The micro-kernel: a tile of accumulators in registers, rows by vectors. Each step of the reduction loads one row of rhs vectors and adds
to every accumulator row the product with one broadcast lhs element. Nothing else runs between the multiply-adds."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.cpu.contraction.emission import Emission, Number

Tile = list[list[ll.Value]]
RowPointers = Callable[[Number], list[ll.Value]]


def zeros(e: Emission, rows: int, vectors: int) -> Tile:
    return [[e.zero] * vectors for _ in range(rows)]


def load_tile(e: Emission, base: ll.Value, pitch: int, rows: int, vectors: int) -> Tile:
    return [[e.load(e.at(base, r * pitch + v * e.lanes)) for v in range(vectors)] for r in range(rows)]


def store_tile(e: Emission, tile: Tile, base: ll.Value, pitch: int) -> None:
    for r, row in enumerate(tile):
        for v, vector in enumerate(row):
            e.store(vector, e.at(base, r * pitch + v * e.lanes))


def accumulate(
    e: Emission, tile: Tile, pointers: RowPointers, taps: tuple[Number, Number], steps: Number, stride: int, panel: ll.Value, pitch: int
) -> Tile:
    """Adds lhs * rhs to `tile`. For each tap, `pointers` gives the rows' lhs addresses, which advance by `stride` for `steps` steps; rhs rows
    follow each other in `panel` by `pitch` elements, over taps and steps."""
    if isinstance(taps[0], int) and taps[1] == taps[0] + 1:
        return _run(e, tile, pointers(taps[0]), steps, stride, panel, pitch)[0]
    flat = [vector for row in tile for vector in row]
    with e.loop(*taps, carried=[panel, *flat], nonempty=True) as loop:
        inner = shaped(tile, loop.carried[1:])
        inner, following = _run(e, inner, pointers(loop.index), steps, stride, loop.carried[0], pitch)
        loop.next = [following, *(vector for row in inner for vector in row)]
    return shaped(tile, loop.carried[1:])


def _run(
    e: Emission, tile: Tile, rows: list[ll.Value], steps: Number, stride: int, panel: ll.Value, pitch: int
) -> tuple[Tile, ll.Value]:
    """The innermost loop; also gives the panel's next row."""
    flat = [vector for row in tile for vector in row]
    with e.loop(0, steps, carried=[panel, *flat], nonempty=True) as loop:
        current = shaped(tile, loop.carried[1:])
        place = loop.carried[0]
        rhs = [e.load(e.at(place, v * e.lanes)) for v in range(len(tile[0]))]
        for r, pointer in enumerate(rows):
            lhs = e.broadcast(e.at(pointer, e.mul(loop.index, stride)))
            current[r] = [e.fma(lhs, vector, total) for vector, total in zip(rhs, current[r], strict=True)]
        loop.next = [e.at(place, pitch), *(vector for row in current for vector in row)]
    return shaped(tile, loop.carried[1:]), loop.carried[0]


def shaped(tile: Tile, flat: list[ll.Value]) -> Tile:
    width = len(tile[0])
    return [flat[i : i + width] for i in range(0, len(flat), width)]
