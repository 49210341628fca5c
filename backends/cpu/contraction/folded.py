"""The micro-kernel for operands that are both contiguous along the reduction, like the weights of a linear layer: the
lanes hold terms of one sum, and are folded when it is complete. It reads rhs once, as it lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ll

from trivium.backends.cpu.contraction.microkernel import Tile
from trivium.backends.cpu.contraction.tiling import columns_at_once
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I1, literal, shaped
from trivium.backends.llvm.numbers import Number
from trivium.backends.llvm.squares import exchange
from trivium.backends.llvm.vectors import Vectors


def sums(
    e: Vectors,
    readers: tuple[Vectors, Vectors],
    rows: list[ll.Value],
    column: Callable[[Number], ll.Value],
    length: int,
    room: ll.Value,
    prefetch: bool,
) -> Tile:
    """Returns a vector of sums for each of `rows`, with one lane for each of the columns that `column` locates.
    `readers` read lhs and rhs. The sums pass through `room`, which has the rows of one column after those of the other,
    and a spare vector. With `prefetch`, the columns that are read next are requested."""
    count, step = len(rows), columns_at_once(len(rows), e.lanes, e.target.vector_registers)
    with e.loop(0, e.lanes, step=step) as loop:
        columns = [column(loop.index + j) for j in range(step)]
        following = [column(loop.index + step + j) for j in range(step if prefetch else 0)]
        found = _products(e, readers, rows, columns, following, length)
        for first in range(0, len(found), e.lanes):
            place = e.at(room, loop.index * count + first)
            e.store(fold(e, found[first : first + e.lanes]), place)
    everywhere = literal(shaped(I1, e.vector), 1)
    return [[e.gather(room, e.lane_numbers() * count + r, everywhere)] for r in range(count)]


def _products(
    e: Vectors,
    readers: tuple[Vectors, Vectors],
    rows: Sequence[ll.Value],
    columns: Sequence[ll.Value],
    following: Sequence[ll.Value],
    length: int,
) -> list[ll.Value]:
    """Returns the sums of products of each column with each row, still in lanes: all rows of a column, then those of
    the next one. Requests the columns that follow."""
    rest = length % e.lanes

    def step(at: Number, totals: Sequence[ll.Value], mask: ll.Value | None = None) -> list[ll.Value]:
        for pointer in following:
            memory.prefetch(e, readers[1].at(pointer, at), nearest=2)
        sides = zip(readers, (rows, columns), strict=True)
        lhs, rhs = ([reader.load(reader.at(pointer, at), mask) for pointer in pointers] for reader, pointers in sides)
        pairs = ((factor, other) for other in rhs for factor in lhs)
        return [e.fused(*pair, total) for pair, total in zip(pairs, totals, strict=True)]

    with e.loop(0, length - rest, [e.zero] * (len(rows) * len(columns)), step=e.lanes, nonempty=True) as loop:
        loop.next = step(loop.index, loop.carried)
    return step(length - rest, loop.carried, memory.leading_mask(e.lanes, rest)) if rest else loop.carried


def fold(e: Vectors, vectors: Sequence[ll.Value]) -> ll.Value:
    """Returns the sum of the lanes of each vector, in the lane of its number. In each round, pairs of vectors exchange
    every other block of lanes and are added."""
    rows = [*vectors, *[vectors[-1]] * (e.lanes - len(vectors))]
    size = 1
    while size < e.lanes:
        low, high = exchange(e.lanes, size)
        pairs = zip(rows[::2], rows[1::2], strict=True)
        rows = [e.add(e.shuffle(a, low, b), e.shuffle(a, high, b)) for a, b in pairs]
        size *= 2
    return rows[0]
