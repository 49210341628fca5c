"""Integers in generated code, such as indices and counts. Those that are known while code is emitted are Python ints,
and Python computes with them; arithmetic with an `Int` emits an instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.llvm.code import I32, I64, literal

if TYPE_CHECKING:
    from trivium.backends.llvm.code import Code


class Int:
    """A number that is known only when the code runs: an i64, or one i32 for each lane, as lanes hold positions inside
    one operand. Together with lanes, a scalar is the same in every lane."""

    __slots__ = ("code", "value")

    def __init__(self, code: Code, value: ll.Value) -> None:
        self.code, self.value = code, value

    def __add__(self, other: Number) -> Number:
        return self if _is(other, 0) else self._apply("add", self, other)

    def __radd__(self, other: int) -> Number:
        return self if other == 0 else self._apply("add", other, self)

    def __sub__(self, other: Number) -> Number:
        return self if _is(other, 0) else self._apply("sub", self, other)

    def __rsub__(self, other: int) -> Number:
        return self._apply("sub", other, self)

    def __mul__(self, other: Number) -> Number:
        if _is(other, 0) or _is(other, 1):
            return self if other == 1 else 0
        return self._apply("mul", self, other)

    __rmul__ = __mul__

    def __divmod__(self, divisor: int) -> tuple[Number, Number]:
        """Returns the quotient of a number that is not negative, by a positive one."""
        if divisor == 1:
            return self, 0
        quotient = self._apply("udiv", self, divisor)
        return quotient, self - quotient * divisor

    def __floordiv__(self, divisor: int) -> Number:
        return divmod(self, divisor)[0]

    def _apply(self, operation: str, a: Number, b: Number) -> Int:
        return Int(self.code, getattr(self.code.builder, operation)(*alike(self.code, a, b)))


Number = int | Int


def i64(number: Number) -> ll.Value:
    """Returns a number that is not a vector as LLVM's value."""
    return I64(number) if isinstance(number, int) else number.value


def in_lanes(code: Code, number: Number, lanes: int) -> ll.Value:
    """Returns a number in every lane, as 32 bits."""
    if isinstance(number, int):
        return literal(ll.VectorType(I32, lanes), number)
    if isinstance(number.value.type, ll.VectorType):
        return number.value
    return code.splat(code.builder.trunc(number.value, I32), lanes)


def alike(code: Code, a: Number, b: Number) -> tuple[ll.Value, ll.Value]:
    """Returns two numbers as values of one type."""
    for number in (a, b):
        if isinstance(number, Int) and isinstance(number.value.type, ll.VectorType):
            lanes = number.value.type.count
            return in_lanes(code, a, lanes), in_lanes(code, b, lanes)
    return i64(a), i64(b)


def minimum(a: Number, b: Number) -> Number:
    """Returns the smaller of two numbers."""
    return _chosen("<", a, b)


def maximum(a: Number, b: Number) -> Number:
    """Returns the larger of two numbers."""
    return _chosen(">", a, b)


def below(code: Code, number: Number, bound: Number) -> ll.Value:
    """Whether 0 <= number < bound."""
    return code.builder.icmp_unsigned("<", *alike(code, number, bound))


def _chosen(relation: str, a: Number, b: Number) -> Number:
    """Returns a if the comparison of a with b holds, otherwise b."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b) if relation == "<" else max(a, b)
    code = a.code if isinstance(a, Int) else b.code  # type: ignore[union-attr]
    first, second = alike(code, a, b)
    builder = code.builder
    return Int(code, builder.select(builder.icmp_signed(relation, first, second), first, second))


def _is(number: Number, known: int) -> bool:
    return isinstance(number, int) and number == known
