"""Products of bf16 that might underflow. The instructions that add several of them treat subnormal factors and sums as
zero. If the smallest factors are large enough, no sum is subnormal, because all are multiples of the smallest normal
number. Otherwise, vectors of f32 multiply the same packed operands, in this block of the reduction and in the later
ones, which add to its sums."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll
import numpy as np

from trivium.backends.llvm.code import I1, I16, I32, stack_slot
from trivium.backends.llvm.numbers import Number, minimum
from trivium.backends.llvm.vectors import Vectors

LEAST_SUM = 142
"""The least sum of the exponents of two factors, as bf16 stores them (with 127 added): a factor of at least 2^a is a
multiple of 2^(a-7), and products must be multiples of 2^-126."""
CONSTANT_EXPONENT = 87
"""The least exponent, that of 2^-40, of constants that are packed in advance. Others are searched during the run."""
ROWS_AT_ONCE = 4


class Guard:
    """Decides during the run whether the products of a unit's blocks might underflow. `lhs` and `rhs` are the least
    exponents of what is multiplied next, as `least_exponent` returns them."""

    def __init__(self, e: Vectors, in_blocks: bool) -> None:
        self.e = e
        self.lhs: ll.Value | int = CONSTANT_EXPONENT
        self.rhs: ll.Value | int = CONSTANT_EXPONENT
        self._was_slow = stack_slot(e.builder, I1) if in_blocks else None

    def begin(self) -> None:
        """Forgets the unit before."""
        if self._was_slow is not None:
            self.e.builder.store(I1(0), self._was_slow)

    def is_slow(self) -> ll.Value:
        """Whether vectors of f32 must multiply. After a block with small factors, sums may be subnormal, or become so
        when the next block is added."""
        builder = self.e.builder
        total = builder.add(*(I32(one) if isinstance(one, int) else one for one in (self.lhs, self.rhs)))
        slow = builder.icmp_signed("<", total, I32(LEAST_SUM))
        if self._was_slow is not None:
            slow = builder.or_(slow, builder.load(self._was_slow))
            builder.store(slow, self._was_slow)
        return slow


def is_large(constant: np.ndarray) -> bool:
    """Whether all numbers of a constant of bf16, except zeros, have at least `CONSTANT_EXPONENT`."""
    magnitudes = constant.view(np.uint16) & np.uint16(0x7FFF)
    return not ((magnitudes != 0) & (magnitudes < CONSTANT_EXPONENT << 7)).any()


def least_exponent(raw: Vectors, base: ll.Value, pitch: Number, rows: Number, steps: Number) -> ll.Value:
    """Returns the stored exponent of the smallest number, except zeros, in rows of whole vectors, `pitch` elements
    apart. It is far below all others for a subnormal number, and above them if all numbers are zero."""
    with raw.loop(0, rows, carried=[nothing(raw)], nonempty=True) as loop:
        row = raw.at(base, loop.index * pitch)
        with raw.loop(0, steps, loop.carried, step=raw.lanes, nonempty=True) as along:
            along.next = [least(raw, along.carried[0], raw.load(raw.at(row, along.index)))]
        loop.next = along.carried
    return exponent_of(raw, loop.carried[0])


def nothing(raw: Vectors) -> ll.Value:
    """Returns what `least` returns for no numbers."""
    return raw.like(raw.zero, -1)


def least(raw: Vectors, before: ll.Value, numbers: ll.Value) -> ll.Value:
    """Returns the smallest magnitudes, lane by lane, of `numbers` and those of `before`, each less one, so that zero is
    the largest."""
    return raw.intrinsic("llvm.umin", before, raw.isub(raw.both(numbers, 0x7FFF), 1))


def exponent_of(raw: Vectors, magnitudes: ll.Value) -> ll.Value:
    """Returns what `least_exponent` does, from what `least` returned for all numbers."""
    builder, smallest = raw.builder, raw.call(f"llvm.vector.reduce.umin.v{raw.lanes}i16", I16, magnitudes)
    exponent = builder.lshr(builder.add(builder.zext(smallest, I32), I32(1)), I32(7))
    return builder.select(builder.icmp_unsigned("==", exponent, I32(0)), I32(-(1 << 16)), exponent)


def exponent_of_packed(raw: Vectors, least: ll.Value | None, base: ll.Value, count: Number) -> ll.Value:
    """Returns what `least_exponent` does for a packed panel of `count` elements, of which packing has returned the
    `least` ones if it searched for them."""
    return least_exponent(raw, base, 0, 1, count) if least is None else exponent_of(raw, least)


def multiply(
    e: Vectors,
    raw: Vectors,
    lhs: tuple[ll.Value, int, Callable[[Number], Number]],
    rhs: tuple[ll.Value, int],
    sums: tuple[ll.Value, int],
    size: tuple[int, int, Number],
    adds: bool,
) -> None:
    """Writes the products of rows of lhs and a panel of rhs, which has pairs of steps together, or adds them to the
    sums if `adds`. Each operand is an address and the elements from one row (or step) to the next, and for lhs also
    those from the beginning of a row to a step; `size` is the numbers of rows, vectors and steps."""
    (left, left_pitch, place_of), (right, right_pitch), (total, pitch), (count, width, steps) = lhs, rhs, sums, size
    words = Vectors(e.builder, e.target, I32, e.lanes)
    with e.loop(0, count, step=ROWS_AT_ONCE, nonempty=True) as loop:
        rows = [minimum(loop.index + r, count - 1) for r in range(min(ROWS_AT_ONCE, count))]
        places = [e.at(total, row * pitch + v * e.lanes) for row in rows for v in range(width)]
        lines = [raw.at(left, row * left_pitch) for row in rows]
        carried = [e.load(place) if adds else e.zero for place in places]
        with e.loop(0, steps, carried, step=2, nonempty=True) as along:
            row = raw.at(right, along.index * right_pitch)
            pairs = [halves(e, words.load(words.at(row, v * e.lanes))) for v in range(width)]
            factors = [halves(e, words.broadcast(raw.at(line, place_of(along.index)))) for line in lines]
            along.next = [
                e.fused(one[1], other[1], e.fused(one[0], other[0], carried))
                for (one, other), carried in zip(
                    ((one, other) for one in factors for other in pairs), along.carried, strict=True
                )
            ]
        for place, value in zip(places, along.carried, strict=True):
            e.store(value, place)


def halves(e: Vectors, words: ll.Value) -> tuple[ll.Value, ll.Value]:
    """Returns the numbers of bf16 in the lower and the upper halves of words."""
    return e.builder.bitcast(e.shl(words, 16), e.vector), e.builder.bitcast(e.both(words, -(1 << 16)), e.vector)
