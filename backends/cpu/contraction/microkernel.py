"""The micro-kernel: a tile of accumulators in registers, rows by vectors. Each step of the reduction loads one row of
rhs vectors and adds to every accumulator row its product with one broadcast lhs element. Nothing else runs between the
multiply-adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import llvmlite.ir as ll

from trivium.backends.cpu.contraction.lhs import RowPointers, TapTest
from trivium.backends.cpu.contraction.requests import Requests
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I8, I64
from trivium.backends.llvm.numbers import Int, Number
from trivium.backends.llvm.vectors import Vectors

Tile = list[list[ll.Value]]

StepReader = Callable[[Number], list[ll.Value]]
"""Returns a row of rhs vectors at a step of a run."""


@dataclass(frozen=True)
class RunReader:
    """How the rows of the run of a tap are read: by `masked` or, where `inside` holds and no vector needs a mask, by
    `whole`, if there is one. Both emit what precedes the run."""

    masked: Callable[[], StepReader]
    inside: ll.Value | None = None
    whole: Callable[[], StepReader] | None = None


TapReader = Callable[[Number], RunReader]

MOST_UNROLLED = 32
"""The maximal number of unrolled steps of all taps: a window of 5 x 5, or of 3 x 3 over three features."""
MOST_STEPS = 8
"""The maximal number of unrolled steps of one tap."""


def zeros(e: Vectors, rows: int, vectors: int) -> Tile:
    return [[e.zero] * vectors for _ in range(rows)]


def load_tile(e: Vectors, base: ll.Value, pitch: int, rows: int, vectors: int) -> Tile:
    return [[e.load(e.at(base, r * pitch + v * e.lanes)) for v in range(vectors)] for r in range(rows)]


def store_tile(e: Vectors, tile: Tile, base: ll.Value, pitch: int) -> None:
    for r, row in enumerate(tile):
        for v, vector in enumerate(row):
            e.store(vector, e.at(base, r * pitch + v * e.lanes))


@dataclass(frozen=True)
class Ahead:
    """Lines of rhs that are read later: each step requests `lines` of them from `place` on, `step` elements after those
    of the step before, into the caches from the `nearest`-th level on."""

    place: ll.Value
    step: int
    lines: int = 1
    nearest: int = 2

    def request(self, e: Vectors, rhs: Vectors, number: Number) -> None:
        """Requests the lines of a step."""
        first = rhs.at(self.place, number * self.step)
        for line in range(self.lines):
            place = e.builder.gep(first, [I64(line * e.target.alignment)], source_etype=I8) if line else first
            memory.prefetch(e, place, nearest=self.nearest)


@dataclass(frozen=True)
class Stream:
    """The operands of a tile. For each of `taps`, `pointers` returns the rows' lhs addresses, which advance by `stride`
    for `steps` steps; rhs rows follow each other from `panel` on, `pitch` elements apart, over taps and steps. `ahead`
    is what each step requests. `lanewise`: lhs has one lane for every column, and `mask` says which lanes of the last
    vector exist; `rhs_mask` does so where rows of rhs end within it. Taps that are not `needed` may be left out.
    `lhs` and `rhs` read the operands; `vectors`, if present, reads rhs, not the panel. `requests` are spread over the
    steps. Rows of rhs are also stored where the stream `packs` reads them."""

    lhs: Vectors
    rhs: Vectors
    pointers: RowPointers
    taps: tuple[Number, Number]
    steps: Number
    stride: int
    panel: ll.Value
    pitch: int
    ahead: Ahead | None = None
    lanewise: bool = False
    mask: ll.Value | None = None
    rhs_mask: ll.Value | None = None
    needed: TapTest | None = None
    vectors: TapReader | None = None
    requests: Requests | None = None
    packs: Stream | None = None


def accumulate(e: Vectors, tile: Tile, stream: Stream) -> Tile:
    """Adds lhs * rhs to `tile`. Taps are a loop, unless they are few with few steps each: then there is no other loop,
    and computing their addresses would cost as much as the products."""
    first, last = stream.taps
    most = MOST_UNROLLED // stream.steps if _is_unrolled(stream.steps) else 0
    if isinstance(first, int) and isinstance(last, int) and last - first <= max(1, most):
        panel = stream.panel
        for tap in range(first, last):
            tile, panel = _run(e, tile, stream, tap, panel)
        return tile
    with e.loop(first, last, carried=[stream.panel, *_flat(tile)], nonempty=True) as loop:
        inner, following = _run(e, shaped(tile, loop.carried[1:]), stream, loop.index, loop.carried[0])
        loop.next = [following, *_flat(inner)]
    return shaped(tile, loop.carried[1:])


def _is_unrolled(steps: Number) -> TypeGuard[int]:
    return isinstance(steps, int) and steps <= MOST_STEPS


def _run(e: Vectors, tile: Tile, stream: Stream, tap: Number, panel: ll.Value) -> tuple[Tile, ll.Value]:
    """The innermost loop, unless the tap is not needed; also returns the panel's next row."""
    if stream.needed is None or _is_unrolled(stream.steps):
        return _steps(e, tile, stream, tap, panel)
    # The loop inside has a known number of steps, which takes no register from the rows' addresses.
    with e.loop(0, Int(e, e.select(stream.needed(tap), I64(1), I64(0))), carried=_flat(tile)) as once:
        once.next = _flat(_steps(e, shaped(tile, once.carried), stream, tap, panel)[0])
    return shaped(tile, once.carried), stream.rhs.at(panel, stream.steps * stream.pitch)


def _steps(e: Vectors, tile: Tile, stream: Stream, tap: Number, panel: ll.Value) -> tuple[Tile, ll.Value]:
    """The innermost loop; also returns the panel's next row."""
    rows = stream.pointers(tap)
    if stream.vectors is not None:
        return _either(e, tile, stream, rows, stream.vectors(tap)), stream.rhs.at(panel, stream.steps * stream.pitch)
    ahead = stream.ahead
    passed = (tap - stream.taps[0]) * stream.steps

    def step(tile: Tile, panel: ll.Value, number: Number) -> tuple[Tile, ll.Value]:
        rhs = _panel_row(stream, panel, len(tile[0]))
        if stream.packs is not None:
            row = e.at(stream.packs.panel, (passed + number) * stream.packs.pitch)
            store_tile(e, [rhs], row, stream.packs.pitch)
        if ahead is not None:
            ahead.request(e, stream.rhs, passed + number)
        return _products(e, tile, stream, rows, rhs, number), stream.rhs.at(panel, stream.pitch)

    if _is_unrolled(stream.steps):
        for number in range(stream.steps):
            tile, panel = step(tile, panel, number)
        return tile, panel

    def repeat(begin: Number, end: Number, carried: list[ll.Value], first: Number = 0) -> list[ll.Value]:
        with e.loop(begin, end, carried=carried, nonempty=True) as loop:
            inner, following = step(shaped(tile, loop.carried[1:]), loop.carried[0], first + loop.index)
            loop.next = [following, *_flat(inner)]
        return loop.carried

    carried, begin = [panel, *_flat(tile)], 0
    if stream.requests is not None and (gap := stream.requests.gap(stream.steps)):
        begin = stream.requests.count * gap
        with e.loop(0, stream.requests.count, carried=carried, nonempty=True) as loop:
            stream.requests.emit(e, loop.index)
            loop.next = repeat(0, gap, loop.carried, loop.index * gap)
        carried = loop.carried
    if begin != stream.steps:
        carried = repeat(begin, stream.steps, carried)
    return shaped(tile, carried[1:]), carried[0]


def _either(e: Vectors, tile: Tile, stream: Stream, rows: list[ll.Value], reader: RunReader) -> Tile:
    """The innermost loop, without masks where none is needed."""

    def run(reads: Callable[[], StepReader]) -> list[ll.Value]:
        read = reads()
        # Masked loads that are unrolled are all moved to the beginning, where registers are too few for them.
        with e.loop(0, stream.steps, carried=_flat(tile), nonempty=True) as loop:
            before = shaped(tile, loop.carried)
            loop.next = _flat(_products(e, before, stream, rows, read(loop.index), loop.index))
        return loop.carried

    whole, masked = reader.whole, reader.masked
    if whole is None:
        return shaped(tile, run(masked))
    return shaped(tile, e.cond(reader.inside, lambda: run(whole), lambda: run(masked)))


def _panel_row(stream: Stream, panel: ll.Value, width: int) -> list[ll.Value]:
    """Reads the row of a panel at its address."""
    masks = [None] * (width - 1) + [stream.rhs_mask]
    rhs = stream.rhs
    return [rhs.load(rhs.at(panel, v * rhs.lanes), mask) for v, mask in enumerate(masks)]


def _products(e: Vectors, tile: Tile, stream: Stream, rows: list[ll.Value], rhs: list[ll.Value], step: Number) -> Tile:
    """Adds one product to every sum."""
    result: Tile = []
    for pointer, row in zip(rows, tile, strict=True):
        lhs = _factors(stream, stream.lhs.at(pointer, step * stream.stride), len(rhs))
        result.append([e.fused(*operands) for operands in zip(lhs, rhs, row, strict=True)])
    return result


def _factors(stream: Stream, pointer: ll.Value, count: int) -> list[ll.Value]:
    """Returns one lhs element for all vectors, or, lane by lane, one vector for each, the last one masked."""
    e = stream.lhs
    if not stream.lanewise:
        return [e.broadcast(pointer)] * count
    masks = [None] * (count - 1) + [stream.mask]
    return [e.load(e.at(pointer, v * e.lanes), mask) for v, mask in enumerate(masks)]


def shaped(tile: Tile, flat: list[ll.Value]) -> Tile:
    """Returns `flat` as rows like those of `tile`."""
    width = len(tile[0])
    return [flat[i : i + width] for i in range(0, len(flat), width)]


def _flat(tile: Tile) -> list[ll.Value]:
    return [vector for row in tile for vector in row]
