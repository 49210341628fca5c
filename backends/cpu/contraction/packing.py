"""Packing: generated code rearranges an operand into panels, rows of lanes without gaps, so that the micro-kernel reads
memory sequentially; padding, dilation and overlapping windows (im2col) are resolved on the way. Constants are packed in
advance (`plan.Plan.packing`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm.code import I64
from trivium.backends.llvm.displacement import Displacement, Indices, displacement, resolve, unflatten
from trivium.backends.llvm.loops import Loop
from trivium.backends.llvm.numbers import Int, Number, i64, in_lanes, minimum
from trivium.backends.llvm.squares import transposed
from trivium.backends.llvm.vectors import Vectors
from trivium.compiler.contraction.problem import Access, AxisGroup, lies_across

Reader = Callable[[Indices], ll.Value]

MOST_SEGMENTS = 4
"""Vectors that may spread over more separate runs of memory than this are gathered, lane by lane."""


@dataclass(frozen=True)
class Source:
    """An operand viewed as `lines` x `across`, which `e` reads; `base` and `outer` locate the operand and its batch.
    `aligned`: every vector across begins at a multiple of its lanes."""

    e: Vectors
    access: Access
    base: ll.Value
    outer: Displacement
    lines: AxisGroup
    across: AxisGroup
    aligned: bool


def emit_pack(
    e: Vectors,
    source: Source,
    line: tuple[Number, Number],
    lane: tuple[Number, Number],
    vectors: Number,
    target: ll.Value,
    pitch: int,
) -> None:
    """Writes lines [line) x lanes [lane), padded to `vectors` vectors, to target[(i - line[0]) * pitch + (j -
    lane[0])]. Neither range is empty. Up to one vector's worth of further lines may be written to."""
    turned = lies_across(source.access, source.lines, source.across)
    together = 1 if turned else _together(source, vectors)
    with e.loop(0, vectors, step=together, nonempty=True) as across:
        shifts = [(across.index + v) * e.lanes for v in range(together)]
        if turned:
            _transpose(e, source, line, lane[0] + shifts[0], lane[1], e.at(target, shifts[0]), pitch)
            return
        firsts = [lane[0] + shift for shift in shifts]
        readers = [vector_reader(source, first, lane[1] - first) for first in firsts]
        with walk(e, source.lines, *line) as (loop, indices):
            row = e.at(target, (loop.index - line[0]) * pitch)
            for read, shift in zip(readers, shifts, strict=True):
                e.store(read(indices), e.at(row, shift))


def _together(source: Source, vectors: Number) -> int:
    """Returns the number of vectors of a line to read at once: neighbours share cache lines and index arithmetic, but
    their masks need registers."""
    most = 4 if _is_whole(source) or _is_uniform(source) or _runs(source) in (None, 1) else 2
    if not isinstance(vectors, int):
        return 1
    return max(count for count in range(1, most + 1) if vectors % count == 0)


def _transpose(
    e: Vectors,
    source: Source,
    line: tuple[Number, Number],
    first: Number,
    end: Number,
    target: ll.Value,
    pitch: int,
) -> None:
    """Packs by transposing squares of vectors. Lanes beyond `end` repeat the last one."""
    step = source.access.stride(source.across.axes[0])
    base = source.e.at(source.base, source.outer.offset)
    lanes = [minimum(first + j, end - 1) for j in range(e.lanes)]
    columns = [source.e.at(base, lane * step) for lane in lanes]
    with e.loop(*line, step=e.lanes, nonempty=True) as loop:
        mask = e.lanes_below(line[1] - loop.index)
        square = transposed(e, [source.e.load(source.e.at(column, loop.index), mask) for column in columns])
        corner = e.at(target, (loop.index - line[0]) * pitch)
        for i, vector in enumerate(square):
            e.store(vector, e.at(corner, i * pitch))


@contextmanager
def walk(
    e: Vectors, group: AxisGroup, begin: Number, end: Number, carried: Sequence[ll.Value] = ()
) -> Iterator[tuple[Loop, Indices]]:
    """A loop over flat indices of `group` that tracks the index of each axis by counting, without divisions. The range
    is never empty."""
    start, count = unflatten(group, begin), len(carried)
    counters = [i64(start[axis]) for axis in group.axes]
    with e.loop(begin, end, [*carried, *counters], nonempty=True) as loop:
        counters, loop.carried = loop.carried[count:], loop.carried[:count]
        yield loop, {axis: Int(e, value) for axis, value in zip(group.axes, counters, strict=True)}
        loop.next = [*loop.next, *_successor(e, group, counters)]
    loop.carried = loop.carried[:count]


def _successor(e: Vectors, group: AxisGroup, indices: list[ll.Value]) -> list[ll.Value]:
    following: list[ll.Value] = []
    carry: ll.Value | None = None
    for axis, value in zip(reversed(group.axes), reversed(indices), strict=True):
        raised = e.builder.add(value, I64(1) if carry is None else e.builder.zext(carry, value.type))
        carry = e.builder.icmp_signed("==", raised, I64(axis.extent))
        following.append(e.builder.select(carry, I64(0), raised))
    return following[::-1]


def vector_reader(source: Source, first: Number, count: Number) -> Reader:
    """Returns a function that reads `lanes` values across from `first` on, of which `count` exist, for the given
    indices of a line. Everything that does not depend on the line is computed here, before the loop over lines."""
    if _is_whole(source):
        return _whole(source, first)
    if _is_uniform(source):
        return _uniform(source, first)
    e = source.e
    lanes = displacement(source.access, unflatten(source.across, e.spread(first)))
    inside = e.lanes_below(count)
    runs = _runs(source)
    if runs is None or runs > MOST_SEGMENTS:
        return _gathering(source, lanes, inside)
    return _segmented(source, lanes, inside, first, runs)


def _is_whole(source: Source) -> bool:
    """Whether each vector across is one run of memory, or every second element of one, without edges."""
    access = source.access
    return _fills_vectors(source) and access.stride(source.across.axes[-1]) in (1, 2) and not access.windows


def _is_uniform(source: Source) -> bool:
    """Whether each vector across is one run of memory, all of which exists, or is padding."""
    access = source.access
    if not _fills_vectors(source) or access.windowed(source.across.axes[-1]):
        return False
    return access.stride(source.across.axes[-1]) == 1


def _fills_vectors(source: Source) -> bool:
    """Whether no vector extends past the last of the fastest axis across."""
    axes = source.across.axes
    return source.aligned and bool(axes) and axes[-1].extent % source.e.lanes == 0


def _whole(source: Source, first: Number) -> Reader:
    e = source.e
    start = displacement(source.access, unflatten(source.across, first))
    base = e.at(source.base, (source.outer + start).offset)
    step = source.access.stride(source.across.axes[-1])

    def read(indices: Indices) -> ll.Value:
        here = e.at(base, displacement(source.access, indices).offset)
        return e.load(here) if step == 1 else e.load_every_second(here)

    return read


def _uniform(source: Source, first: Number) -> Reader:
    e = source.e
    start = source.outer + displacement(source.access, unflatten(source.across, first))

    def read(indices: Indices) -> ll.Value:
        offset, valid = resolve(e, source.access, start + displacement(source.access, indices))
        if valid is None:
            return e.load(e.at(source.base, offset))
        # The operand has a vector at its beginning, which stands in for padding.
        here = e.builder.select(valid, e.at(source.base, offset), source.base)
        return e.select(e.splat(valid, e.lanes), e.load(here), e.zero)

    return read


def _runs(source: Source) -> int | None:
    """Returns the number of contiguous runs of memory that a vector across may touch; None if neighbours are not
    contiguous at all."""
    if not source.across.axes:
        return 1
    inner = source.across.axes[-1]
    dilated = any(w.dilation != 1 and w.uses(axis) for w in source.access.windows for axis in source.across.axes)
    if source.access.stride(inner) != 1 or dilated:
        return None
    return 1 if len(source.across.axes) == 1 else 1 + -(-(source.e.lanes - 1) // inner.extent)


def _gathering(source: Source, lanes: Displacement, inside: ll.Value) -> Reader:
    e = source.e
    base = e.at(source.base, source.outer.offset)
    elsewhere = Displacement(0, source.outer.positions)

    def read(indices: Indices) -> ll.Value:
        here = elsewhere + displacement(source.access, indices) + lanes
        offset, valid = resolve(e, source.access, here)
        return e.gather(base, offset, e.conjunction(inside, valid) or inside)

    return read


def _segmented(source: Source, lanes: Displacement, inside: ll.Value, first: Number, runs: int) -> Reader:
    """Emits one masked load per run, each of which keeps the lanes of those before it."""
    e, segments = source.e, list(_segments(source, inside, first, runs))

    def read(indices: Indices) -> ll.Value:
        line = source.outer + displacement(source.access, indices)
        here = line + Displacement(0, lanes.positions)
        offset, valid = resolve(e, source.access, here)
        value = None
        for pointer, mask in segments:
            value = e.load(e.at(pointer, offset), e.conjunction(mask, valid), value)
        assert value is not None
        return value

    return read


def _segments(source: Source, inside: ll.Value, first: Number, runs: int) -> Iterator[tuple[ll.Value, ll.Value]]:
    """Yields (the address of lane 0 if it were in the run, the mask of the run's lanes) for each run that the vector at
    `first` may touch."""
    e, axes = source.e, source.across.axes
    if len(axes) < 2:
        offset = displacement(source.access, {axis: first for axis in axes}).offset
        yield e.at(source.base, offset), inside
        return
    inner = axes[-1]
    row, within = divmod(first, inner.extent)
    for number in range(runs):
        indices = unflatten(AxisGroup(axes[:-1]), row + number)
        begin = number * inner.extent - within
        offset = displacement(source.access, indices).offset - begin
        after = e.builder.icmp_signed(">=", e.lane_numbers().value, in_lanes(e, begin, e.lanes))
        before = e.lanes_below(begin + inner.extent)
        yield e.at(source.base, offset), e.conjunction(inside, e.conjunction(after, before))
