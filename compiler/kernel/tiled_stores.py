"""Kernels that write across the rows that they read: elementwise work, then a transposition. One dimension is that of
the rows that are read, another one that of the rows that are written, and whichever is in vector lanes, the elements of
some vectors are far apart. In tiles, a small square of results is computed along the rows that are read, and then
copied, transposed, to the rows that are written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from trivium.compiler.kernel.affine import Analysis, accesses, holds
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.dtypes import bit_width, storage_bytes
from trivium.compiler.kernel.index import Index, expression, variable
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import (
    Block,
    Constant,
    Instruction,
    Load,
    Loop,
    MemoryAccess,
    Register,
    Scratch,
    SortKeys,
    Store,
    Update,
    While,
    symbols,
)

LONGEST_SIDE = 256
"""The largest side of a tile, in elements."""
SHORTEST_SIDE = 8
"""The smallest side of a tile that is worth a loop."""
MOST_BYTES = 16 << 10
"""The bytes of the tiles of an iteration, which stay on the stack and in the first-level cache."""
LARGEST_STEP = 2
"""The largest number of elements from one to the next along a row: from a complex number's part to that of the next."""


@dataclass(frozen=True)
class _Tiling:
    """The dimension of the rows that are read, that of the rows that are written, the sides of a tile along these, and
    the stores to be tiled."""

    read: int
    written: int
    columns: int
    rows: int
    stores: tuple[Store, ...]


def tiled_stores(kernel: Kernel, analysis: Analysis, vector_bytes: int) -> Kernel | None:
    """Returns a kernel that does the same in tiles; None if it does not write across the rows that it reads, or if no
    tiles divide its dimensions. Sides are multiples of vectors of `vector_bytes` where possible."""
    constants = [i for i in kernel.body.instructions if isinstance(i, Constant)]
    others = [i for i in kernel.body.instructions if not isinstance(i, Constant)]
    match others:
        case [Loop(kind="parallel") as loop] if kernel.contraction is None and kernel.attention is None:
            tiling = _tiling(loop, analysis, vector_bytes)
            return _tiled(kernel, constants, loop, tiling) if tiling else None
    return None


def _tiling(loop: Loop, analysis: Analysis, vector_bytes: int) -> _Tiling | None:
    """Returns the tiling for the two dimensions along which most loads, and some stores, are contiguous."""
    stores = [i for i in loop.body.instructions if isinstance(i, Store)]
    known = all(isinstance(extent, int) for extent in loop.extents)
    if not known or loop.ends or not stores or holds(loop.body, Update, Scratch, SortKeys, While):
        return None
    loads = [access for access in accesses(loop.body) if isinstance(access, Load)]
    loaded, own = {load.buffer for load in loads}, {result for i in loop.body.instructions for result in i.results}

    def step(access: MemoryAccess, dimension: int) -> int | None:
        return analysis.step(analysis.address(access.buffer, access.indices), loop.indices[dimension])

    def across(dimension: int, other: int) -> int:
        """Returns the number of loads that are contiguous along a dimension, and elsewhere along the other one."""
        moving = [load for load in loads if step(load, other) != 0]
        return sum(1 <= (step(load, dimension) or 0) <= LARGEST_STEP for load in moving)

    pairs = [(d, o) for d, o in itertools.permutations(range(len(loop.extents)), 2) if across(d, o) > across(o, d)]
    for read, written in sorted(pairs, key=lambda pair: across(*pair[::-1]) - across(*pair)):
        chosen = {
            store
            for store in stores
            if 1 <= (step(store, written) or 0) <= LARGEST_STEP and (step(store, read) or 0) >= SHORTEST_SIDE
            if own.isdisjoint(symbols(*store.indices)) and store.buffer not in loaded
            if store.buffer.mode == "out" and bit_width(store.buffer.dtype) >= 8
        }
        others = {one.buffer for one in accesses(loop.body) if isinstance(one, Store) and one not in chosen}
        tiled = tuple(store for store in stores if store in chosen and store.buffer not in others)
        if tiled:
            return _sides(loop, read, written, tiled, vector_bytes)
    return None


def _sides(loop: Loop, read: int, written: int, stores: tuple[Store, ...], vector_bytes: int) -> _Tiling | None:
    """Returns the tiling whose sides divide the loop's extents, and whose rows, both ways, take the least time."""
    each = [storage_bytes(store.buffer.dtype) for store in stores]
    lanes, most = max(1, vector_bytes // max(each)), MOST_BYTES // sum(each)
    pairs = itertools.product(_divisors(loop.extents[read]), _divisors(loop.extents[written]))
    possible = [pair for pair in pairs if math.prod(pair) <= most]

    def at_once(pair: tuple[int, int]) -> float:
        """Returns how many elements of a row run in the time of a vector; to begin a row takes half of that."""
        return math.prod(side / (math.ceil(side / lanes) + 0.5) for side in pair)

    return _Tiling(read, written, *max(possible, key=at_once), stores) if possible else None


def _divisors(extent: int | Register) -> list[int]:
    """Returns the sides that divide an extent."""
    assert isinstance(extent, int), "tiles divide known extents"
    return [side for side in range(SHORTEST_SIDE, LONGEST_SIDE + 1) if extent % side == 0]


def _tiled(kernel: Kernel, constants: Sequence[Constant], loop: Loop, tiling: _Tiling) -> Kernel:
    """Returns the kernel of a loop in tiles."""
    b = KernelBuilder(kernel.name)
    b.params.extend(kernel.params)
    b.body.instructions.extend(constants)
    sides = {tiling.read: tiling.columns, tiling.written: tiling.rows}
    kept: list[Instruction] = [i for i in loop.body.instructions if i not in tiling.stores]
    values = Block(loop.body.parameters, kept, [store.value for store in tiling.stores])
    extents = [extent // sides.get(d, 1) for d, extent in enumerate(loop.extents) if isinstance(extent, int)]
    with b.parallel(*extents) as numbers:

        def places(row: Register, column: Register) -> list[Index]:
            """Returns the loop's indices for an element of a tile."""
            inside = {tiling.read: column, tiling.written: row}
            firsts = [expression([(number, sides.get(d, 1))]) for d, number in enumerate(numbers)]
            return [first + variable(inside[d]) if d in inside else first for d, first in enumerate(firsts)]

        tiles = {store: b.scratch(store.buffer.dtype, (tiling.rows, tiling.columns)) for store in tiling.stores}
        with b.parallel(tiling.rows, tiling.columns) as (row, column):
            computed = b.inline(values, *map(b.position, places(row, column)))
            for (store, tile), value in zip(tiles.items(), computed, strict=True):
                with b.computing(*store.origins):
                    b.store(tile, value, row, column)
        for buffer in dict.fromkeys(store.buffer for store in tiling.stores):
            with b.parallel(tiling.columns, tiling.rows) as (column, row):
                bound = dict(zip(loop.indices, places(row, column), strict=True))
                for store in (store for store in tiling.stores if store.buffer is buffer):
                    with b.computing(*store.origins):
                        target = (index.replace(bound.get) for index in store.indices)  # type: ignore[arg-type]
                        b.store(buffer, b.load(tiles[store], row, column), *target)
    return b.build()
