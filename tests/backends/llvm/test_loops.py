"""Counted loops have the same iterations as Python's ranges, and carry values."""

from __future__ import annotations

from itertools import product

import pytest

from tests.backends.llvm.running import of_numbers
from trivium.backends.llvm.code import Code
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import Int, Number, i64

RANGES = [*product((-2, 0, 3), (-2, 0, 1, 3, 4, 10), (1, 2, 4))]


def folded(code: Code, begin: Number, end: Number, step: int, nonempty: bool = False, opaque: bool = False) -> Number:
    """Returns 3 * total + index, over the loop, from 1 on, which depends on the order and the number of iterations."""
    total = Int(code, i64(1))
    with counted(code, begin, end, step, [total.value], nonempty, opaque) as loop:
        loop.next = [i64(Int(code, loop.carried[0]) * 3 + loop.index)]
    return Int(code, loop.carried[0])


def expected(begin: int, end: int, step: int) -> int:
    total = 1
    for index in range(begin, end, step):
        total = 3 * total + index
    return total


@pytest.mark.parametrize("step", [1, 2, 4])
def test_bounds_known_when_the_code_runs(step: int) -> None:
    both = of_numbers(2, lambda code, begin, end: folded(code, begin, end, step))
    for begin, end, _ in RANGES:
        assert both(begin, end) == expected(begin, end, step)


@pytest.mark.parametrize(("begin", "end", "step"), RANGES)
def test_known_bounds(begin: int, end: int, step: int) -> None:
    wanted = expected(begin, end, step)
    assert of_numbers(0, lambda code: folded(code, begin, end, step))() == wanted
    assert of_numbers(1, lambda code, last: folded(code, begin, last, step))(end) == wanted


def test_nonempty_loops_are_tested_after_each_turn_only() -> None:
    run = of_numbers(2, lambda code, begin, end: folded(code, begin, end, 1, nonempty=True))
    assert run(0, 4) == expected(0, 4, 1)
    assert run(0, 0) == expected(0, 1, 1)


def test_nested_loops() -> None:
    def emit(code: Code, rows: Int, columns: Int) -> Number:
        with counted(code, 0, rows, carried=[i64(0)]) as outer:
            with counted(code, 0, columns, carried=outer.carried) as inner:
                inner.next = [i64(Int(code, inner.carried[0]) + outer.index * 10 + inner.index)]
            outer.next = inner.carried
        return Int(code, outer.carried[0])

    for rows, columns in product(range(4), repeat=2):
        assert of_numbers(2, emit)(rows, columns) == sum(10 * i + j for i in range(rows) for j in range(columns))


@pytest.mark.parametrize("step", [1, 2, 4])
def test_opaque_indices(step: int) -> None:
    """They are the same numbers."""
    both = of_numbers(2, lambda code, begin, end: folded(code, begin, end, step, opaque=True))
    for begin, end, _ in RANGES:
        assert both(begin, end) == expected(begin, end, step)
