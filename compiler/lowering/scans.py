"""Running folds for devices whose threads share scratch memory in groups. A group folds a tile of a row: each thread a
few neighbours, then all threads together the totals of these, in steps that double in width. Long rows have several
tiles: one launch finds their totals, these are folded in the same way, and another launch begins each tile where the
one before it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trivium.compiler.kernel import Register
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, RunTimeIndex, Variable, indices_of, variable
from trivium.compiler.lowering.launches import Launches, Temporary
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.scalars import Scalar
from trivium.ir.core import Operation
from trivium.ir.types import Type, tensor

SHORTEST = 64
"""Rows of fewer elements are one thread's work."""

LONG = 1 << 14
"""The elements of a row from which on one group of threads for each needs many rows."""

MANY = 1 << 7
"""The number of rows from which on one group for each keeps a device busy."""

PLENTY = 1 << 14
"""The number of rows from which on a thread for each keeps a device busy."""

EACH = 7
"""The neighbours that one thread folds: an odd number, so that threads do not wait for one bank of memory."""

MOST = 256
"""The most threads of a group."""


@dataclass(frozen=True)
class Scan:
    """Rows of `extent` elements of one type, which an operation, `combiner`, folds; `neutral` does not change them."""

    op: Operation
    outer: Sequence[Variable]
    extent: int
    kind: Type
    combiner: str
    neutral: np.ndarray

    @property
    def chunks(self) -> int:
        """The number of threads that fold a tile: a power of two."""
        return min(MOST, 1 << (-(-self.extent // EACH) - 1).bit_length())

    @property
    def tile(self) -> int:
        return self.chunks * EACH

    @property
    def tiles(self) -> int:
        return -(-self.extent // self.tile)

    def combine(self, ctx: LoweringContext, one: Scalar, other: Scalar) -> Register:
        return ctx.b.apply(self.combiner, one, other)  # type: ignore[arg-type]

    def begin(self, ctx: LoweringContext) -> Register:
        return ctx.literal(self.neutral, self.kind)  # type: ignore[return-value]


Read = Callable[[LoweringContext, Index], Scalar]
Write = Callable[[LoweringContext, Index, Scalar], None]
"""Reads an element of a row, or writes one of the result, at a place along it."""


def emit(launches: Launches, scan: Scan, read: Read, write: Write, level: int = 0) -> None:
    """Emits the launches of a scan; the names of those for the totals of its tiles contain their level."""
    suffix = f"_level{level}" if level else ""
    if scan.tiles == 1:
        _scan_tiles(launches, scan, read, write, None, suffix)
        return
    shape = (*(v.extent for v in scan.outer), scan.tiles)
    totals, starts = (Row(Temporary(tensor(*shape, of=scan.kind), scan.op), indices_of(scan.outer)) for _ in range(2))
    _fold_tiles(launches, scan, read, totals, f"_totals{suffix}")
    inner = Scan(scan.op, scan.outer, scan.tiles, scan.kind, scan.combiner, scan.neutral)
    emit(launches, inner, lambda ctx, at: totals.load(ctx, at), starts.store, level + 1)
    _scan_tiles(launches, scan, read, write, starts, suffix)


def _fold_tiles(launches: Launches, scan: Scan, read: Read, totals: Row, suffix: str) -> None:
    """Stores the fold of each tile."""
    tiles, each = Variable(scan.tiles), Variable(scan.tile)
    with launches.kernel(suffix) as ctx, ctx.nest([*scan.outer, tiles]):
        begin = scan.begin(ctx)
        with ctx.inside(ctx.b.reduction(scan.tile, inits=[begin], combiner=scan.combiner), [each]) as frame:
            frame.yield_(_element(ctx, scan, read, tiles, each))  # type: ignore[arg-type]
        totals.store(ctx, indices_of([tiles])[0], frame.result)


def _element(ctx: LoweringContext, scan: Scan, read: Read, tiles: Variable, each: Variable) -> Scalar:
    """Returns an element of a tile; beyond the end of the row, the neutral one."""
    (number,), (index,) = indices_of([tiles]), indices_of([each])
    at = number * scan.tile + index
    if scan.extent % scan.tile == 0:
        return read(ctx, at)
    inside = ctx.b.compare("LT", ctx.position(at), scan.extent)
    return ctx.choose(inside, lambda: read(ctx, _within(ctx, scan, at)), lambda: scan.begin(ctx))


def _within(ctx: LoweringContext, scan: Scan, at: Index) -> Index:
    return variable(RunTimeIndex(ctx.position(at), scan.extent - 1))


def _scan_tiles(launches: Launches, scan: Scan, read: Read, write: Write, starts: Row | None, suffix: str) -> None:
    """Stores the running fold of each tile, after the fold of all tiles before it, which `starts` has."""
    tiles = Variable(scan.tiles)
    with launches.kernel(suffix) as ctx, ctx.nest([*scan.outer, tiles]):
        values = Row(ctx.scratch(scan.kind, [scan.tile]))
        each = Variable(scan.tile)
        with ctx.parallel([each]):
            values.store(ctx, indices_of([each])[0], _element(ctx, scan, read, tiles, each))
        before = _scan_chunks(ctx, scan, values)
        start = None if starts is None else _start(ctx, scan, starts, tiles)
        each = Variable(scan.tile)
        with ctx.parallel([each]):
            _finish(ctx, scan, (values, before), start, (tiles, each), write)


def _scan_chunks(ctx: LoweringContext, scan: Scan, values: Row) -> Row:
    """Folds each thread's neighbours, in place; returns the folds up to the end of each thread's."""
    source, target = (Row(ctx.scratch(scan.kind, [scan.chunks])) for _ in range(2))
    chunk, step = Variable(scan.chunks), Variable(EACH)
    with ctx.parallel([chunk]):
        (number,) = indices_of([chunk])
        with ctx.inside(ctx.b.sequential(EACH, inits=[scan.begin(ctx)]), [step]) as frame:
            at = number * EACH + indices_of([step])[0]
            total = scan.combine(ctx, frame.carried[0], values.load(ctx, at))
            values.store(ctx, at, total)
            frame.yield_(total)
        source.store(ctx, number, frame.result)
    width = 1
    while width < scan.chunks:
        chunk = Variable(scan.chunks)
        with ctx.parallel([chunk]):
            _double(ctx, scan, source, target, chunk, width)
        source, target, width = target, source, 2 * width
    return source


def _double(ctx: LoweringContext, scan: Scan, source: Row, target: Row, chunk: Variable, width: int) -> None:
    """Folds in what is `width` chunks before, if anything is."""
    (number,), b = indices_of([chunk]), ctx.b
    place = ctx.position(number)
    other = variable(RunTimeIndex(b.apply("maximum", b.subtract(place, width), 0), scan.chunks - 1))
    own = source.load(ctx, number)
    both = scan.combine(ctx, source.load(ctx, other), own)
    target.store(ctx, number, b.select(b.compare("GE", place, width), both, own))  # type: ignore[arg-type]


def _start(ctx: LoweringContext, scan: Scan, starts: Row, tiles: Variable) -> Register:
    """Returns the fold of all tiles before this one."""
    (number,), b = indices_of([tiles]), ctx.b
    place = ctx.position(number)
    before = variable(RunTimeIndex(b.apply("maximum", b.subtract(place, 1), 0), scan.tiles - 1))
    return b.select(b.compare("GT", place, 0), starts.load(ctx, before), scan.begin(ctx))  # type: ignore[arg-type]


def _finish(
    ctx: LoweringContext,
    scan: Scan,
    folds: tuple[Row, Row],
    start: Register | None,
    place: tuple[Variable, Variable],
    write: Write,
) -> None:
    """Stores one result: the fold of the tiles before, of the chunks before, and of the elements in its own chunk."""
    (values, before), (tiles, each), b = folds, place, ctx.b
    (number,), (index,) = indices_of([tiles]), indices_of([each])
    total = values.load(ctx, index)
    if scan.chunks > 1:
        chunk = ctx.position(index // EACH)
        last = variable(RunTimeIndex(b.apply("maximum", b.subtract(chunk, 1), 0), scan.chunks - 1))
        both = scan.combine(ctx, before.load(ctx, last), total)
        total = b.select(b.compare("GT", chunk, 0), both, total)  # type: ignore[arg-type]
    if start is not None:
        total = scan.combine(ctx, start, total)
    at = number * scan.tile + index
    if scan.extent % scan.tile == 0:
        write(ctx, at, total)
        return
    with ctx.block(b.if_(b.compare("LT", ctx.position(at), scan.extent))):
        write(ctx, _within(ctx, scan, at), total)
