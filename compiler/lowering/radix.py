"""Sorting by digits: a comparator that compares a key of one element with the same key of the other orders the rows by
unsigned integers, which need no comparisons. Each pass distributes the elements, in order, over the values of a few
bits, from the lowest bits up; so it is stable, as merges are.

A key is any function of an element: what JAX computes so that -0 equals 0 and NaN equals NaN, for example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from trivium.compiler.kernel import Register
from trivium.compiler.kernel.dtypes import FLOATS, SIGNED, DType, bit_width
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, RunTimeIndex, Variable, indices_of, variable
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.scalars import Scalar, dtype_of
from trivium.ir import ops
from trivium.ir.core import Block, BlockArgument, OpResult, Region, Value
from trivium.ir.types import I32, UI8, UI16, UI32, UI64, Type

TYPES = {8: UI8, 16: UI16, 32: UI32, 64: UI64}
"""The types of keys, by their bits."""

DIGIT, LONG_DIGIT = 8, 11
COUNTS = 4 << LONG_DIGIT
"""Bytes of scratch for the counts of a long digit."""

SHORTEST = 256
"""Rows of fewer elements are merged: counting takes a pass over all values of a digit."""


@dataclass(frozen=True)
class Key:
    """The unsigned integer of `bits` bits by which elements are sorted: `number` of them, in ascending or descending
    order, floats by their total order. `is_element` says whether the number is the first element itself, `is_flag`
    whether it is 0 or 1, from a single bit."""

    number: Callable[[LoweringContext, Sequence[Scalar]], Register]
    dtype: DType
    descending: bool
    is_element: bool
    is_flag: bool = False

    @property
    def bits(self) -> int:
        return bit_width(self.dtype)

    @property
    def type(self) -> Type:
        return TYPES[self.bits]

    def __call__(self, ctx: LoweringContext, elements: Sequence[Scalar]) -> Register:
        number, b = self.number(ctx, elements), ctx.b
        unsigned, sign = DType(f"ui{self.bits}"), 1 << (self.bits - 1)
        found = number
        if number.dtype in FLOATS:
            # All bits of negative numbers turn, of others the sign.
            signed = b.apply("bitcast_convert", number, dtype=f"i{self.bits}")
            turned = b.apply("or", b.apply("shift_right_arithmetic", signed, self.bits - 1), -sign)
            found = b.apply("bitcast_convert", b.apply("xor", signed, turned), dtype=unsigned)
        elif number.dtype in SIGNED:
            found = b.apply("xor", b.apply("bitcast_convert", number, dtype=unsigned), sign)
        return b.apply("not", found) if self.descending else found


def key_of(comparator: Region) -> Key | None:
    """Returns the key that a comparator compares; None if it does anything else."""
    block = comparator.block
    (result,) = block.terminator.operands
    compare = result.defining_op
    if not isinstance(compare, ops.Compare) or compare.lhs.type.rank:
        return None
    element_type, direction = compare.lhs.type.element_type, compare.comparison_direction.value
    total = dtype_of(element_type) not in FLOATS or compare.compare_type is ops.ComparisonType.TOTALORDER
    if not total or direction not in ("LT", "GT"):
        return None
    for own, other, descending in ((compare.lhs, compare.rhs, "GT"), (compare.rhs, compare.lhs, "LT")):
        if same(own, other, block):
            number, is_element = partial(_computed, comparator, own), own is block.arguments[0]
            return _key(number, element_type, direction == descending, is_element)
    return None


def _computed(comparator: Region, value: Value, ctx: LoweringContext, elements: Sequence[Scalar]) -> Register:
    """Computes a value of a comparator that is a function of its first element."""
    with ctx.entered(comparator, [element for element in elements for _ in range(2)]):
        return ctx.real(value)


def key_of_number(element_type: Type, descending: bool) -> Key | None:
    """Returns the key of rows of single numbers, ordered as they are."""
    return _key(lambda ctx, elements: elements[0], element_type, descending, True)  # type: ignore[arg-type,return-value]


def _key(number: Callable[..., Register], element_type: Type, descending: bool, is_element: bool) -> Key | None:
    dtype = dtype_of(element_type)
    if dtype == "i1":

        def in_a_byte(ctx: LoweringContext, elements: Sequence[Scalar]) -> Register:
            return ctx.b.convert(number(ctx, elements), "ui8")

        return Key(in_a_byte, DType("ui8"), descending, is_element=False, is_flag=True)
    bits = bit_width(dtype)
    known = bits in TYPES and (dtype not in FLOATS or dtype in ("bf16", "f16", "f32", "f64"))
    return Key(number, dtype, descending, is_element) if known else None


def same(lhs: Value, rhs: Value, inside: Block) -> bool:
    """Whether two values are the same function of the two elements that a comparator is given."""
    if isinstance(lhs, BlockArgument) and isinstance(rhs, BlockArgument) and lhs.block is rhs.block is inside:
        return lhs.index % 2 == 0 and rhs.index == lhs.index + 1
    if not isinstance(lhs, OpResult) or not isinstance(rhs, OpResult):
        return lhs is rhs
    one, other = lhs.defining_op, rhs.defining_op
    if one.block is not inside or other.block is not inside:
        return lhs is rhs
    alike = type(one) is type(other) and one.attributes == other.attributes and one.is_pure and not one.regions
    operands = list(zip(one.operands, other.operands, strict=False))
    return alike and lhs.index == rhs.index and all(same(*pair, inside) for pair in operands)


# Passes


@dataclass(frozen=True)
class Order:
    """The elements of a row in the order so far: their keys, and the places that they had."""

    keys: Row
    places: Row


@dataclass(frozen=True)
class Pass:
    """Sorts by `bits` of the keys from the bit `shift` up."""

    shift: int
    bits: int
    first: bool
    last: bool


def passes(bits: int, extent: int) -> Iterator[Pass]:
    """The passes over keys: digits of long rows are longer, as far as their counts fit in the first cache."""
    digit = LONG_DIGIT if bits > 16 and extent > 4 << LONG_DIGIT else DIGIT
    for shift in range(0, bits, digit):
        width = min(digit, bits - shift)
        yield Pass(shift, width, first=shift == 0, last=shift + width == bits)


def distribute(ctx: LoweringContext, step: Pass, source: Order, target: Order, extent: int) -> None:
    """Counts the values of a digit, and moves each element after those with smaller digits, and after earlier elements
    with an equal one."""
    b, values = ctx.b, 1 << step.bits
    count = Row(ctx.scratch(I32, [values]))
    cleared, each = Variable(values), Variable(values)
    with ctx.parallel([cleared]):
        count.store(ctx, indices_of([cleared])[0], b.constant(0, "i32"))
    element = Variable(extent)
    with ctx.inside(b.sequential(extent), [element]):
        at = _digit(ctx, step, source, element)
        count.store(ctx, at, b.add(count.load(ctx, at), 1))  # type: ignore[arg-type]
    with ctx.inside(b.sequential(values, inits=[b.constant(0, "i32")]), [each]) as frame:
        (at,), (before,) = indices_of([each]), frame.carried
        frame.yield_(b.add(before, count.load(ctx, at)))  # type: ignore[arg-type]
        count.store(ctx, at, before)
    element = Variable(extent)
    with ctx.inside(b.sequential(extent), [element]):
        at, (here,) = _digit(ctx, step, source, element), indices_of([element])
        place = count.load(ctx, at)
        count.store(ctx, at, b.add(place, 1))  # type: ignore[arg-type]
        to = variable(RunTimeIndex(b.convert(place, "i64"), extent - 1))  # type: ignore[arg-type]
        origin = b.convert(ctx.position(here), "i32") if step.first else source.places.load(ctx, here)
        target.places.store(ctx, to, origin)
        if not step.last:
            target.keys.store(ctx, to, source.keys.load(ctx, here))


def _digit(ctx: LoweringContext, step: Pass, source: Order, element: Variable) -> Index:
    """Returns the value of the digit of an element's key, as an index."""
    b, key = ctx.b, source.keys.load(ctx, indices_of([element])[0])
    assert isinstance(key, Register)
    digit = b.apply("and", b.apply("shift_right_logical", key, step.shift), (1 << step.bits) - 1)
    return variable(RunTimeIndex(b.convert(digit, "i64"), (1 << step.bits) - 1))
