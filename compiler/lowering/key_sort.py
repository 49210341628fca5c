"""Sorting of rows of numbers by vectors, on devices that have an instruction for it (`Target.sorts_keys`): nothing but
the numbers themselves is moved. Each becomes a signed integer of the same order, and afterwards a number again.

A comparator may compare something else than the numbers, but of the same type: JAX's takes -0 for 0, and all NaNs for
one. Such rows are sorted like this if they have no such number, which is seen when the program runs; otherwise their
places are sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trivium.compiler.kernel import Register
from trivium.compiler.kernel.dtypes import FLOATS, SIGNED, DType, bit_width
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Variable, constant, indices_of
from trivium.compiler.lowering.launches import Launches, Temporary
from trivium.compiler.lowering.radix import COUNTS, Key
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.scalars import Scalar, dtype_of, register_of
from trivium.compiler.lowering.sorted_rows import Sorting, copied_row, stored, temporary
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.types import I1, I32, I64, Type, tensor

SHORTEST = 8
"""Shorter rows are merged."""

Distribute = Callable[[LoweringContext, Sorting, Sequence[Row], Variable], Row]
"""Sorts a row in scratch by its keys, and returns the order."""

DistributeInPasses = Callable[[Launches, Sorting, Sequence[Row], Sequence[Variable], Variable, "Temporary | None"], Row]
"""Sorts the rows in memory for which a flag is set by their keys, and returns the order."""


def is_possible(sorting: Sorting, target: Target) -> bool:
    """Whether the elements of the rows are nothing but the numbers that they are ordered by."""
    key, operand = sorting.key, sorting.operands[0]
    alone = isinstance(sorting.op, ops.Sort) and len(sorting.operands) == 1 and sorting.extent >= SHORTEST
    if not (target.sorts_keys and alone and key):
        return False
    has_digits = sorting.has_digits and target.fusion.scratch_bytes >= COUNTS
    return key.is_element or (has_digits and dtype_of(operand.type.element_type) == key.dtype)


def key_type(key: Key) -> Type:
    """Returns the type of the signed integers that are sorted."""
    return I64 if key.bits == 64 else I32


def ordered(ctx: LoweringContext, key: Key, number: Register) -> Register:
    """Returns the signed integer of a number's order."""
    b, found = ctx.b, _signed(ctx, number)
    if key.dtype in FLOATS:
        found = _turned(ctx, found)
    elif key.dtype not in SIGNED:
        found = b.apply("xor", found, -1 << (key.bits - 1))
    found = b.apply("not", found) if key.descending else found
    return b.convert(found, dtype_of(key_type(key)))


def restored(ctx: LoweringContext, key: Key, integer: Register) -> Register:
    """Returns the number of which `integer` is the order."""
    b, found = ctx.b, ctx.b.convert(integer, DType(f"i{key.bits}"))
    found = b.apply("not", found) if key.descending else found
    if key.dtype in FLOATS:
        found = _turned(ctx, found)
    elif key.dtype not in SIGNED:
        found = b.apply("xor", found, -1 << (key.bits - 1))
    return found if found.dtype == key.dtype else b.apply("bitcast_convert", found, dtype=key.dtype)


def _signed(ctx: LoweringContext, number: Register) -> Register:
    """Returns the bits of a number as a signed integer."""
    kind = DType(f"i{bit_width(number.dtype)}")
    return number if number.dtype == kind else ctx.b.apply("bitcast_convert", number, dtype=kind)


def _turned(ctx: LoweringContext, bits: Register) -> Register:
    """Returns the order of a float with these bits, or the bits of a float of this order: all bits but the sign turn if
    it is negative."""
    width = bit_width(bits.dtype)
    sign = ctx.b.apply("shift_right_arithmetic", bits, width - 1)
    return ctx.b.apply("xor", bits, ctx.b.apply("and", sign, (1 << (width - 1)) - 1))


def sort_in_scratch(launches: Launches, sorting: Sorting, distribute: Distribute) -> None:
    """Sorts each row in scratch, all in one launch."""
    variables, outer = sorting.variables()
    key, along = sorting.key, variables[sorting.dimension]
    assert key is not None
    with launches.kernel() as ctx, ctx.nest(outer):
        row = None if key.is_element else copied_row(ctx, sorting, sorting.operands[0], variables)

        def by_vectors() -> None:
            buffer = ctx.scratch(key_type(key), [sorting.extent])
            keys, first = Row(buffer), Variable(sorting.extent)
            with ctx.parallel([along]):
                (index,) = indices_of([along])
                element = row.load(ctx, index) if row else ctx.element(sorting.operands[0], indices_of(variables))
                keys.store(ctx, index, ordered(ctx, key, register_of(element)))
            ctx.sort_keys(buffer, (constant(0),), sorting.extent)
            with ctx.parallel([first]):
                integer = register_of(keys.load(ctx, indices_of([first])[0]))
                sorting.finish(ctx, sorting.at(variables, first), [restored(ctx, key, integer)], integer)

        if row is None:
            by_vectors()
            return
        with ctx.block(ctx.b.if_(_differs(ctx, sorting, row))) as branch:
            order, first = distribute(ctx, sorting, [row], along), Variable(sorting.extent)
            with ctx.parallel([first]):
                sorting.end(ctx, [row], order, sorting.at(variables, first))
        with ctx.block(branch.otherwise()):
            by_vectors()


def sort_in_passes(launches: Launches, sorting: Sorting, distribute: DistributeInPasses) -> None:
    """Sorts long rows in memory: one launch computes the keys, one sorts them, and one stores the numbers."""
    variables, outer = sorting.variables()
    key, around = sorting.key, indices_of(outer)
    assert key is not None
    row = Row(stored(launches, sorting, 0), around[: sorting.dimension], around[sorting.dimension :])
    along, keys = variables[sorting.dimension], temporary(sorting, outer, key_type(key))
    with launches.kernel("_keys") as ctx, ctx.nest([*outer, along]):
        (index,) = indices_of([along])
        keys.store(ctx, index, ordered(ctx, key, register_of(row.load(ctx, index))))
    flags = None if key.is_element else Temporary(tensor(*(v.extent for v in outer), of=I1), sorting.op)
    with launches.kernel("_sort") as ctx, ctx.nest(outer):
        place = *around, constant(0)
        if flags is None:
            ctx.sort_keys(keys.memory, place, sorting.extent)
        else:
            differs = _differs(ctx, sorting, row)
            ctx.store(flags, around, differs)
            with ctx.block(ctx.b.if_(ctx.b.apply("not", differs))):
                ctx.sort_keys(keys.memory, place, sorting.extent)
    order = distribute(launches, sorting, [row], outer, along, flags) if flags else None
    first = Variable(sorting.extent)
    with launches.kernel("_end") as ctx, ctx.nest([first if v is along else v for v in variables]):
        (index,), at = indices_of([first]), sorting.at(variables, first)

        def number() -> Scalar:
            return restored(ctx, key, register_of(keys.load(ctx, index)))

        def element() -> Scalar:
            assert order is not None
            return row.load(ctx, sorting.known(ctx.b.convert(register_of(order.load(ctx, index)), "i64")))

        found = ctx.choose(register_of(ctx.load(flags, around)), element, number) if flags else number()
        sorting.finish(ctx, at, [found], register_of(found))


def _differs(ctx: LoweringContext, sorting: Sorting, row: Row) -> Register:
    """Whether an element of a row is not the number that it is compared by."""
    b, key, each = ctx.b, sorting.key, Variable(sorting.extent)
    assert key is not None
    none = b.constant(0, f"i{key.bits}")
    with ctx.inside(b.reduction(sorting.extent, inits=[none], combiner="or"), [each]) as found:
        element = register_of(row.load(ctx, indices_of([each])[0]))
        found.yield_(b.apply("xor", _signed(ctx, element), _signed(ctx, key.number(ctx, [element]))))
    return b.compare("NE", found.result, none)
