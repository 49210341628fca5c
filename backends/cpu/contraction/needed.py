"""Which rows, columns and batches of a contraction have any use, where this is only known at run time."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import llvmlite.ir as ll

from trivium.backends.llvm.code import I64
from trivium.backends.llvm.numbers import Number, i64
from trivium.backends.llvm.vectors import Vectors
from trivium.compiler.contraction.problem import Axis, AxisGroup, Problem
from trivium.compiler.kernel.structure import End


@dataclass(frozen=True)
class Digit:
    """Of a flat index i over a group of axes, `i // step % count` must be below `limit`."""

    step: int
    count: int
    limit: ll.Value


@dataclass(frozen=True)
class Needed:
    """The digits that decide, by the name of a group, the one of the smallest step first."""

    digits: Mapping[str, Sequence[Digit]] = field(default_factory=dict)

    @classmethod
    def of(cls, ends: Sequence[tuple[Axis, End, ll.Value]], problem: Problem) -> Needed:
        """Returns what is needed of an oriented problem, some axes of which end at extents that have been read."""
        groups = {"batch": problem.batch, "rows": problem.rows, "columns": problem.columns}
        return cls({name: list(_digits(ends, group)) for name, group in groups.items()})

    @contextmanager
    def any(self, e: Vectors, **ranges: tuple[Number, Number]) -> Iterator[None]:
        """Emits code that only runs if something is needed in these ranges, [first, last), of all named groups."""
        builder = e.builder
        found = [
            builder.icmp_unsigned("<", _next(builder, _long(builder, first), self.digits[name]), _long(builder, last))
            for name, (first, last) in ranges.items()
            if self.digits.get(name)
        ]
        if not found:
            yield
            return
        with builder.if_then(functools.reduce(builder.and_, found)):
            yield


EVERYTHING = Needed()


def _digits(ends: Sequence[tuple[Axis, End, ll.Value]], group: AxisGroup) -> Iterator[Digit]:
    step = 1
    for axis in reversed(group.axes):
        own = [(end, limit) for each, end, limit in ends if each is axis]
        yield from (Digit(step * end.step, end.count, limit) for end, limit in sorted(own, key=lambda x: x[0].step))
        step *= axis.extent


def _next(builder: ll.IRBuilder, index: ll.Value, digits: Sequence[Digit]) -> ll.Value:
    """Returns the first index, from one on, that is needed. Where a digit is too large, the next period begins, in
    which all smaller digits are zero."""
    for digit in digits:
        period = I64(digit.step * digit.count)
        rest = builder.urem(index, period)
        here = builder.icmp_unsigned("<", builder.udiv(rest, I64(digit.step)), digit.limit)
        following = builder.add(builder.sub(index, rest), period)
        index = builder.select(here, index, following)
    return index


def _long(builder: ll.IRBuilder, number: Number) -> ll.Value:
    found = i64(number)
    return found if found.type == I64 else builder.zext(found, I64)
