"""The few largest elements of a row, in order, on devices that sort integers by vectors (`Target.sorts_keys`): elements
that may be among them are collected, and sorted when there are many. Most blocks of the row have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trivium.compiler.kernel import Buffer, Register
from trivium.compiler.kernel.dtypes import DType, bit_width
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, RunTimeIndex, Variable, constant, indices_of, variable
from trivium.compiler.lowering.place_sort import Places, bits_of_places
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.scalars import Scalar, dtype_of, register_of
from trivium.compiler.target import Target
from trivium.ir.types import I32, I64, Type

BLOCK = 16
"""Elements that are first compared as a whole, in vector lanes."""

ROOM = 32
"""The fewest candidates for which there is room."""

MOST = 1024
"""Elements that are wanted, at most: their sorting takes longer than that of the row if they are many."""


@dataclass(frozen=True)
class Candidates:
    """Room for candidates. Each is one integer, smaller for a larger key, with its place in the lowest bits: sorted,
    they are in order, also those of equal keys. The first `count` are those that are wanted."""

    memory: Buffer
    count: int
    key: DType
    place_bits: int

    @classmethod
    def of(cls, ctx: LoweringContext, key: Type, extent: int, count: int) -> Candidates:
        dtype, bits = dtype_of(key), bits_of_places(extent)
        kind = I32 if bit_width(dtype) + bits < 32 else I64
        return cls(ctx.scratch(kind, [_room(count)]), count, dtype, bits)

    @property
    def room(self) -> int:
        return self.memory.shape[0]

    def put(self, ctx: LoweringContext, slot: Index, key: Scalar, place: Index) -> None:
        b, dtype = ctx.b, self.memory.dtype
        above = b.apply("shift_left", b.convert(b.apply("not", register_of(key)), dtype), self.place_bits)
        ctx.write(self.memory, (slot,), b.apply("or", above, b.convert(ctx.position(place), dtype)))

    def sort(self, ctx: LoweringContext, known: Register) -> None:
        """Sorts the first `known` ones; no others are there afterwards."""
        b, slot = ctx.b, Variable(self.room)
        none = (1 << (bit_width(self.memory.dtype) - 1)) - 1
        with ctx.parallel([slot]):
            (at,) = indices_of([slot])
            is_known = b.compare("LT", ctx.position(at), known)
            ctx.write(self.memory, (at,), b.select(is_known, register_of(ctx.read(self.memory, (at,))), none))
        ctx.sort_keys(self.memory, (constant(0),), self.room)

    def least(self, ctx: LoweringContext) -> Register:
        """Returns the least key of those that are wanted, once they are sorted."""
        b, last = ctx.b, register_of(ctx.read(self.memory, (constant(self.count - 1),)))
        return b.apply("not", b.convert(b.apply("shift_right_logical", last, self.place_bits), self.key))


def _room(count: int) -> int:
    return max(ROOM, 2 << (count - 1).bit_length())


def is_possible(target: Target, key: Type, extent: int) -> bool:
    """Whether keys and places fit into positive integers that the device sorts."""
    return target.sorts_keys and bit_width(dtype_of(key)) + bits_of_places(extent) < 64


def scratch_bytes(key: Type, count: int) -> int:
    """Returns the scratch memory of the candidates, whose integers have at most 64 bits."""
    return _room(count) * 8


def select(ctx: LoweringContext, keys: Row, kind: Type, extent: int, count: int) -> Row:
    """Returns the places of the `count` largest keys, of which equal ones stay in order: at most a quarter of the row.
    `keys` are unsigned integers."""
    b, found = ctx.b, Candidates.of(ctx, kind, extent, count)
    first = Variable(found.room)
    with ctx.parallel([first]):
        (slot,) = indices_of([first])
        found.put(ctx, slot, keys.load(ctx, slot), slot)
    ctx.sort_keys(found.memory, (constant(0),), found.room)
    state: Sequence[Register] = found.least(ctx), b.constant(count, "i64")
    blocks, rest = divmod(extent - found.room, BLOCK)
    with ctx.inside(b.sequential(blocks, inits=state), [Variable(blocks)]) as loop:
        begin, (least, known) = variable(RunTimeIndex(loop.index, blocks - 1)) * BLOCK + found.room, loop.carried
        with ctx.inside(b.reduction(BLOCK, inits=[least], combiner="maximum"), [Variable(BLOCK)]) as largest:
            largest.yield_(register_of(keys.load(ctx, begin + variable(RunTimeIndex(largest.index, BLOCK - 1)))))
        exceeds = b.compare("GT", largest.result, least)

        def collect() -> tuple[Register, Register]:
            return _collect(ctx, found, keys, begin, BLOCK, least, known)

        loop.yield_(*ctx.choose(exceeds, collect, lambda: (least, known)))  # type: ignore[misc]
    least, known = loop.results
    if rest:
        _, known = _collect(ctx, found, keys, constant(extent - rest), rest, least, known)
    found.sort(ctx, known)
    return Places(found.memory, bits=found.place_bits)


def _collect(
    ctx: LoweringContext, found: Candidates, keys: Row, first: Index, length: int, least: Register, known: Register
) -> tuple[Register, Register]:
    """Adds the elements of a block that exceed the least key to the `known` candidates, and sorts these if another
    block would not find room. Returns the least key and how many are known afterwards."""
    b = ctx.b
    with ctx.inside(b.sequential(length, inits=[known]), [Variable(length)]) as loop:
        place = first + variable(RunTimeIndex(loop.index, length - 1))
        (slot,), key = loop.carried, register_of(keys.load(ctx, place))
        found.put(ctx, variable(RunTimeIndex(slot, found.room - 1)), key, place)
        loop.yield_(b.add(slot, b.convert(b.compare("GT", key, least), "i64")))
    (known,) = loop.results

    def sort() -> tuple[Register, Register]:
        found.sort(ctx, known)
        return found.least(ctx), b.constant(found.count, "i64")

    is_full = b.compare("GT", known, found.room - BLOCK)
    return ctx.choose(is_full, sort, lambda: (least, known))  # type: ignore[return-value]
