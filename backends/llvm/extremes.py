"""The largest or smallest of many floats. A NaN among them is the result, and -0 is less than 0, which takes several
instructions for each pair on most processors. Over a loop it takes fewer, if what a plain comparison finds, the signs
and whether there is a NaN are accumulated side by side, and combined to one number after the loop. One comparison finds
the NaNs of two registers. Signs are not accumulated where an instruction orders zeros."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, I32, I64, Code, element
from trivium.backends.llvm.narrow import held_type, reordered, rounded, widened
from trivium.backends.llvm.whole_vectors import extreme
from trivium.compiler.kernel.dtypes import bit_width

Join = Callable[[ll.Value, ll.Value], ll.Value]


@dataclass(frozen=True)
class Extremes:
    """A loop that folds each of its values by `maximum` or `minimum`. What it accumulates for each is in the form in
    which operations compute with its type: the extreme so far, a NaN if there was one (otherwise 0) and, unless an
    instruction orders zeros, the sign bits joined."""

    operations: tuple[str, ...]
    dtypes: tuple[str, ...]
    together: bool
    """Whether all lanes accumulate for one result, rather than each for its own."""

    def begin(self, code: Code, neutrals: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns what is accumulated before the loop, from the identities of the operations."""
        parts: list[ll.Value] = []
        for operation, neutral in zip(self.operations, self._widened(code, neutrals), strict=True):
            half = self._pair(code, neutral)[0]
            sign = code.like(_bits(code, half), -1 if operation == "maximum" else 0)
            parts += [neutral, code.like(half, 0.0), *([] if code.target.orders_zeros else [sign])]
        return parts

    def fold(self, code: Code, parts: Sequence[ll.Value], terms: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns what is accumulated after one more number for each result."""
        folded: list[ll.Value] = []
        each = zip(self._each(code, parts), self._joins(code), self._widened(code, terms), strict=True)
        for (found, nans, *signs), joins, term in each:
            pair = self._pair(code, term)
            folded += [joins[0](found, term), code.select(_any_nan(code, pair), float("nan"), nans)]
            folded += [functools.reduce(joins[2], (_bits(code, half) for half in pair), so_far) for so_far in signs]
        return folded

    def across(self, code: Code, parts: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns what all lanes have accumulated together."""
        each = zip(self._each(code, parts), self._joins(code), strict=True)
        return [_across(code, value, join) for part, joins in each for value, join in zip(part, joins, strict=False)]

    def end(self, code: Code, parts: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns the results. That of zeros is negative if all signs are (`maximum`), or one of them (`minimum`)."""
        results: list[ll.Value] = []
        for (found, nans, *signs), dtype in zip(self._each(code, parts), self.dtypes, strict=True):
            result = found
            for joined in signs:
                zero = code.copysign(code.like(found, 0.0), code.bits(joined, element(found.type)))
                result = code.select(code.compare("==", found, 0.0), zero, found)
            results.append(rounded(code, code.select(code.is_nan(nans), nans, result), dtype))
        return results

    def _each(self, code: Code, parts: Sequence[ll.Value]) -> Iterator[Sequence[ll.Value]]:
        """Yields what is accumulated for each result."""
        size = 2 if code.target.orders_zeros else 3
        return (parts[begin : begin + size] for begin in range(0, len(parts), size))

    def _joins(self, code: Code) -> Iterator[tuple[Join, Join, Join]]:
        """Yields how each result joins what two loops have accumulated."""
        for operation in self.operations:
            signs = code.both if operation == "maximum" else code.either
            yield functools.partial(_better, code, operation), code.add, signs

    def _pair(self, code: Code, a: ll.Value) -> Sequence[ll.Value]:
        """Returns the two halves of the lanes, if each fills registers, or the number itself."""
        bits = 64 if element(a.type) == F64 else 32
        lanes = a.type.count if self.together and isinstance(a.type, ll.VectorType) else 1
        return code.halves(a) if lanes * bits >= 16 * code.target.vector_bytes else (a,)

    def _widened(self, code: Code, values: Sequence[ll.Value]) -> list[ll.Value]:
        return [widened(code, value, dtype) for value, dtype in zip(values, self.dtypes, strict=True)]


def as_ordered(code: Code, operation: str, dtype: str, value: ll.Value) -> ll.Value:
    """Returns signed integers that are ordered as the floats that `operation` finds the largest or smallest of. A NaN
    becomes the result of every fold."""
    width = bit_width(dtype)
    result = (1 << (width - 1)) - 1 if operation == "maximum" else -(1 << (width - 1))
    ordered = reordered(code, code.bits(value, ll.IntType(width)))
    return code.select(code.is_nan(widened(code, value, dtype)), code.like(ordered, result), ordered)


def of_ordered(code: Code, dtype: str, ordered: ll.Value) -> ll.Value:
    """Returns the held values of `dtype` for such integers."""
    return code.bits(reordered(code, ordered), held_type(dtype))


def _better(code: Code, operation: str, a: ll.Value, b: ll.Value) -> ll.Value:
    if code.target.orders_zeros:
        return extreme(code, operation, a, b)
    return code.select(code.compare(">" if operation == "maximum" else "<", b, a), b, a)


def _bits(code: Code, a: ll.Value) -> ll.Value:
    return code.bits(a, I64 if element(a.type) == F64 else I32)


def _any_nan(code: Code, pair: Sequence[ll.Value]) -> ll.Value:
    return code.builder.fcmp_unordered("uno", pair[0], pair[-1])


def _across(code: Code, value: ll.Value, join: Join) -> ll.Value:
    while isinstance(value.type, ll.VectorType):
        value = join(*code.halves(value))
    return value
