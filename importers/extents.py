"""Sizes that are known only when the program runs. Rules compute with extents as with numbers: an extent is an `int`,
or a `Size`, whose arithmetic becomes ops of the program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from trivium.importers.emit import Emitter
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.declare import Op
from trivium.ir.types import I64


class Size:
    """An extent that the program computes: `value` is a 0-d integer of 64 bits, which may be negative unless it is
    known to be an extent."""

    def __init__(self, emit: Emitter, value: Value, is_extent: bool = False):
        self.emit, self.value, self.is_extent = emit, value, is_extent

    def __eq__(self, other: object) -> bool:
        """Whether both are known to be the same: two sizes that differ may still have the same value."""
        return isinstance(other, Size) and self.value is other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __add__(self, other: Extent) -> Extent:
        return self if is_number(other, 0) else self._with(ops.Add, other)

    def __sub__(self, other: Extent) -> Extent:
        return self if is_number(other, 0) else self._with(ops.Subtract, other)

    def __mul__(self, other: Extent) -> Extent:
        if is_number(other, 0):
            return 0
        return self if is_number(other, 1) else self._with(ops.Multiply, other)

    def __floordiv__(self, other: int) -> Extent:
        """The quotient by a positive number, rounded down."""
        if other == 1:
            return self
        shifted = chosen(self.emit, "LT", self, 0, self - (other - 1), self)
        assert isinstance(shifted, Size)
        return shifted._with(ops.Divide, other)

    def __mod__(self, other: int) -> Extent:
        return self - (self // other) * other

    def __neg__(self) -> Extent:
        return Size(self.emit, self.emit.add(ops.Negate(self.value)))

    def __rsub__(self, other: int) -> Extent:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def _with(self, op: Callable[[Value, Value], Op], other: Extent) -> Size:
        is_extent = op is not ops.Subtract and self.is_extent and is_sized(other)
        return Size(self.emit, self.emit.add(op(self.value, scalar_of(self.emit, other))), is_extent)


Extent = int | Size
"""A number, or one that the program computes."""


def is_number(extent: Extent, number: int) -> bool:
    return isinstance(extent, int) and extent == number


def is_sized(extent: Extent) -> bool:
    """Whether an extent is known not to be negative."""
    return extent.is_extent if isinstance(extent, Size) else extent >= 0


def scalar_of(emit: Emitter, extent: Extent) -> Value:
    """Returns an extent as a 0-d value."""
    return extent.value if isinstance(extent, Size) else emit.scalar(extent, I64)


COMPARED: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


def chosen(emit: Emitter, direction: str, a: Extent, b: Extent, on_true: Extent, on_false: Extent) -> Extent:
    """Returns `on_true` if `a` `direction` `b`, otherwise `on_false`."""
    if isinstance(a, int) and isinstance(b, int):
        return on_true if COMPARED[direction](a, b) else on_false
    if on_true == on_false:
        return on_true
    holds = Emitter.compare(emit, direction, scalar_of(emit, a), scalar_of(emit, b))
    value = emit.add(ops.Select(holds, scalar_of(emit, on_true), scalar_of(emit, on_false)))
    return Size(emit, value, is_sized(on_true) and is_sized(on_false))


def divided(emit: Emitter, a: Extent, b: Extent) -> Extent:
    """Returns a quotient without its fraction."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return Size(emit, emit.add(ops.Divide(scalar_of(emit, a), scalar_of(emit, b))), is_sized(a) and is_sized(b))


def with_inferred(emit: Emitter, sizes: Sequence[Extent], given: Sequence[Extent]) -> list[Extent]:
    """Returns the shape for the elements of the shape `given` in which -1 stands for the extent that follows from the
    others."""
    sizes = list(sizes)
    if -1 in sizes:
        sizes[sizes.index(-1)] = _quotient(emit, given, [extent for extent in sizes if extent != -1])
    elif not all(map(is_sized, sizes)):
        left = _quotient(emit, given, [chosen(emit, "EQ", extent, -1, 1, extent) for extent in sizes])
        sizes = [chosen(emit, "EQ", extent, -1, left, extent) for extent in sizes]
    return sizes


def _quotient(emit: Emitter, factors: Sequence[Extent], divisors: Sequence[Extent]) -> Extent:
    """Returns a product over another one. What both have is left out, so that an extent stays known as the same."""
    factors, divisors = list(factors), list(divisors)
    for extent in list(divisors):
        if isinstance(extent, Size) and extent in factors:
            factors.remove(extent)
            divisors.remove(extent)
    below = math.prod(divisors)
    if not isinstance(below, int):
        return divided(emit, math.prod(factors), larger(emit, below, 1))
    below = max(below, 1)
    numbers, sizes = (math.prod(x for x in factors if isinstance(x, kind)) for kind in (int, Size))
    return numbers // below * sizes if numbers % below == 0 else math.prod(factors) // below


def clamped(emit: Emitter, extent: Extent, low: Extent, high: Extent) -> Extent:
    """Returns an extent, at least `low` and at most `high`."""
    return larger(emit, smaller(emit, extent, high), low)


def from_front(emit: Emitter, index: Extent, extent: Extent) -> Extent:
    """Returns an index that counts from the end, if it is negative, as one that counts from the front."""
    return index if is_sized(index) else chosen(emit, "LT", index, 0, index + extent, index)


def smaller(emit: Emitter, a: Extent, b: Extent) -> Extent:
    return chosen(emit, "LT", a, b, a, b)


def larger(emit: Emitter, a: Extent, b: Extent) -> Extent:
    return chosen(emit, "GT", a, b, a, b)


def numbers_of(shape: Sequence[Extent]) -> tuple[int, ...] | None:
    """Returns a shape all of whose extents are numbers; otherwise `None`."""
    numbers = tuple(int(extent) for extent in shape if not isinstance(extent, Size))
    return numbers if len(numbers) == len(shape) else None


def known_shape(shape: Sequence[Extent]) -> tuple[int | None, ...]:
    """Returns a shape as types have it."""
    return tuple(None if isinstance(extent, Size) else int(extent) for extent in shape)
