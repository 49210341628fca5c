"""Comparators: those that order all elements, and those that do not, with which every sort gives what a merge sort
gives that merges runs from their beginnings on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, run
from tests.compiler.lowering.test_sorting import lowered
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.lowering.orders import is_order
from trivium.ir import ops
from trivium.ir.builder import Builder, region
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import ComparisonDirection as Direction
from trivium.ir.types import I32, TensorType, tensor

TOTAL = ops.ComparisonType.TOTALORDER
SHARED = replace(TARGET, shared_memory_bytes=48 << 10)
SMALL = replace(TARGET, shared_memory_bytes=2 << 10)

Less = Callable[..., Value]


def compared(b: Builder, one: Value, other: Value, direction: str, total: bool = True) -> Value:
    order = TOTAL if total and one.type.element_type is not I32 else None
    return b.add(ops.Compare(one, other, Direction(direction), compare_type=order))


def total(b: Builder, x: Value, y: Value, *_: Value) -> Value:
    return compared(b, x, y, "LT")


def plain(b: Builder, x: Value, y: Value, *_: Value) -> Value:
    return compared(b, x, y, "LT", total=False)


def two_keys(b: Builder, x: Value, y: Value, p: Value, q: Value) -> Value:
    """By a float that falls, then by an integer that grows."""
    tie = b.add(ops.And(compared(b, x, y, "EQ"), compared(b, p, q, "LT")))
    return b.add(ops.Or(compared(b, x, y, "GT"), tie))


def chosen(b: Builder, x: Value, y: Value, p: Value, q: Value) -> Value:
    """By an integer, then by a float."""
    return b.add(ops.Select(compared(b, p, q, "NE"), compared(b, q, p, "GT"), compared(b, x, y, "LT")))


def computed(b: Builder, x: Value, y: Value, *_: Value) -> Value:
    return compared(b, b.add(ops.Abs(y)), b.add(ops.Abs(x)), "LT")


def equal_by_number(b: Builder, x: Value, y: Value, p: Value, q: Value) -> Value:
    """Zeros of both signs are equal, and yet one is less."""
    tie = b.add(ops.And(compared(b, x, y, "EQ", total=False), compared(b, p, q, "LT")))
    return b.add(ops.Or(compared(b, x, y, "LT"), tie))


def not_greater(b: Builder, x: Value, y: Value, *_: Value) -> Value:
    return compared(b, x, y, "LE")


def of_different_functions(b: Builder, x: Value, y: Value, *_: Value) -> Value:
    return compared(b, x, b.add(ops.Negate(y)), "LT")


def other_ties(b: Builder, x: Value, y: Value, p: Value, q: Value) -> Value:
    tie = b.add(ops.And(compared(b, p, q, "EQ"), compared(b, p, q, "LT")))
    return b.add(ops.Or(compared(b, x, y, "LT"), tie))


ORDERS = [total, two_keys, chosen, computed]
OTHERS = [plain, equal_by_number, not_greater, of_different_functions, other_ties]
KINDS = [tensor(), tensor(), tensor(of=I32), tensor(of=I32)]


@pytest.mark.parametrize("less", [*ORDERS, *OTHERS])
def test_orders(less: Less) -> None:
    assert is_order(region(KINDS, less)) == (less in ORDERS)


def sorted_by(less: Less, shape: Sequence[int]) -> Module:
    """Sorts floats, integers and places along the last dimension."""

    def body(b: Builder, x: Value, y: Value) -> Sequence[Value]:
        places = b.add(ops.Iota(len(shape) - 1, result=tensor(*shape, of=I32)))
        comparator = region([*KINDS, *KINDS[2:]], lambda b, *pairs: less(b, *pairs[:4]))
        return b.add(ops.Sort([x, y, places], dimension=len(shape) - 1, comparator=comparator))

    return program_of([TensorType(tuple(shape), kind.element_type) for kind in KINDS[1:3]], body)


def hard(shape: Sequence[int]) -> list[np.ndarray]:
    """Floats with NaN of both signs, zeros of both signs and many equal elements, and integers."""
    generator = np.random.default_rng(0)
    floats = generator.choice(np.array([np.nan, -np.nan, 0.0, -0.0, 1, 2, -3, np.inf, 4, 5], np.float32), shape)
    return [floats, generator.integers(-2, 3, shape).astype(np.int32)]


def merged(elements: list[tuple], less: Callable[[tuple, tuple], bool]) -> list[tuple]:
    """A merge sort of runs whose lengths are powers of two."""
    width = 1
    while width < len(elements):
        found = []
        for start in range(0, len(elements), 2 * width):
            left, right = elements[start : start + width], elements[start + width : start + 2 * width]
            while left or right:
                found.append((right if right and (not left or less(right[0], left[0])) else left).pop(0))
        elements, width = found, 2 * width
    return elements


@pytest.mark.parametrize("count", [1, 2, 7, 64, 101])
def test_the_interpreter_merges_runs_from_their_beginnings_on(count: int) -> None:
    given = hard((3, count))
    result = evaluate(sorted_by(plain, (3, count)), *given)
    for row in range(3):
        elements = list(zip(given[0][row], given[1][row], range(count), strict=True))
        expected = merged(elements, lambda one, other: one[0] < other[0])
        assert [place for *_, place in expected] == result[2][row].tolist()


@pytest.mark.parametrize("less", [*ORDERS, *OTHERS])
@pytest.mark.parametrize("target", [TARGET, SHARED, SMALL], ids=["processor", "rows", "tiles"])
def test_sorts_with_nan(target: object, less: Less) -> None:
    shape = (2, 150)
    module, given = sorted_by(less, shape), hard(shape)
    program, expected = lowered(module, target), evaluate(module, *given)  # type: ignore[arg-type]
    computed = [interpret(program, *given), *([run(program, given)] if target is TARGET else [])]
    for results in computed:
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result.view(np.int32), wanted.view(np.int32))
    assert (np.sort(expected[2], 1) == np.arange(150)).all()
