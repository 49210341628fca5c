"""The few largest elements of a row, in order, without sorting it: they are kept sorted while the row is read, and most
blocks of it have none that is larger than the last of them."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.compiler.kernel import Register
from trivium.compiler.kernel.dtypes import bit_width
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, RunTimeIndex, Variable, constant, variable
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.scalars import dtype_of, register_of
from trivium.ir.types import I32, Type

BLOCK = 64
"""Elements that are first compared as a whole, in vector lanes."""

MOST = 64
"""Elements that are kept sorted: each new one moves half of them, or all of them in the worst case."""


def scratch_bytes(key: Type, count: int) -> int:
    """Returns the scratch memory of what is kept: keys and places."""
    return count * (bit_width(dtype_of(key)) + 32) // 8


def select(ctx: LoweringContext, keys: Row, kind: Type, extent: int, count: int) -> Row:
    """Returns the places of the `count` largest keys, of which equal ones stay in order. `keys` are unsigned
    integers."""
    b = ctx.b
    best, places = Row(ctx.scratch(kind, [count])), Row(ctx.scratch(I32, [count]))

    def scanned(first: Index, length: int, state: Sequence[Register]) -> list[Register]:
        with ctx.inside(b.sequential(length, inits=state), [Variable(length)]) as inner:
            place = first + variable(RunTimeIndex(inner.index, length - 1))
            inner.yield_(*_considered(ctx, (best, places), keys, place, inner.carried, count))
        return inner.results

    state: Sequence[Register] = (_smallest(ctx, kind), b.constant(0, "i64"))
    block, element = Variable(extent // BLOCK), Variable(BLOCK)
    with ctx.inside(b.sequential(block.extent, inits=state), [block]) as outer:
        first = variable(RunTimeIndex(outer.index, block.extent - 1)) * BLOCK
        with ctx.inside(b.reduction(BLOCK, inits=[_smallest(ctx, kind)], combiner="maximum"), [element]) as largest:
            largest.yield_(register_of(keys.load(ctx, first + variable(RunTimeIndex(largest.index, BLOCK - 1)))))
        last, known = outer.carried
        takes = b.apply("or", b.compare("GT", largest.result, last), b.compare("LT", known, count))

        def scan() -> tuple[Register, ...]:
            return tuple(scanned(first, BLOCK, outer.carried))

        outer.yield_(*ctx.choose(takes, scan, lambda: (last, known)))  # type: ignore[misc]
    if extent % BLOCK:
        scanned(constant(extent // BLOCK * BLOCK), extent % BLOCK, outer.results)
    return places


def _considered(
    ctx: LoweringContext, kept: tuple[Row, Row], keys: Row, place: Index, state: list[Register], count: int
) -> tuple[Register, ...]:
    """Takes in an element if it is larger than the last one that is kept, or if fewer are kept; returns the last one
    and how many there are afterwards."""
    b, (last, known) = ctx.b, state
    key = register_of(keys.load(ctx, place))
    takes = b.apply("or", b.compare("GT", key, last), b.compare("LT", known, count))

    def take() -> tuple[Register, ...]:
        end = b.apply("minimum", known, count - 1)
        at = _moved(ctx, kept, key, end, count)
        kept[0].store(ctx, at, key)
        kept[1].store(ctx, at, b.convert(ctx.position(place), "i32"))
        return register_of(kept[0].load(ctx, _known(end, count))), b.apply("minimum", b.add(known, 1), count)

    return ctx.choose(takes, take, lambda: (last, known))  # type: ignore[return-value]


def _moved(ctx: LoweringContext, kept: tuple[Row, Row], key: Register, end: Register, count: int) -> Index:
    """Moves the smaller ones of what is kept by one, and returns the place that is free."""
    b = ctx.b
    with ctx.block(b.while_(end)) as loop:
        (at,) = loop.carried
        before = _known(b.apply("maximum", b.subtract(at, 1), 0), count)
        smaller = b.compare("LT", register_of(kept[0].load(ctx, before)), key)
        loop.condition(b.apply("and", b.compare("GT", at, 0), smaller))
        before = _known(b.apply("maximum", b.subtract(at, 1), 0), count)
        for row in kept:
            row.store(ctx, _known(at, count), row.load(ctx, before))
        loop.yield_(b.subtract(at, 1))
    return _known(loop.results[0], count)


def _known(place: Register, count: int) -> Index:
    return variable(RunTimeIndex(place, count - 1))


def _smallest(ctx: LoweringContext, kind: Type) -> Register:
    return register_of(ctx.literal(0, kind))
