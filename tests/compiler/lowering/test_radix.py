"""Rows are sorted by digits where a comparator compares keys, in the order of every type of number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, run
from tests.compiler.lowering.test_sorting import expect_sorted, lowered, names
from tests.compiler.targets import TARGET
from trivium.compiler.lowering.radix import COUNTS, SHORTEST, Pass, key_of, passes
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import BF16, F16, F32, F64, I8, I16, I32, I64, UI8, UI32, UI64, Type, is_float, tensor

DIRECTIONS = ops.ComparisonDirection
TOTAL = ops.ComparisonType.TOTALORDER
ROW = SHORTEST + 3
SCARCE = replace(TARGET, fusion=replace(TARGET.fusion, scratch_bytes=COUNTS))


def sorted_rows(shape: tuple[int, ...], dimension: int, kind: Type, direction: ops.ComparisonDirection) -> Module:
    """Sorts the argument together with the original index of each element."""
    order = TOTAL if is_float(kind) else None

    def body(b, x):
        places = b.add(ops.Iota(dimension, result=tensor(*shape, of=I32)))
        kinds = [tensor(of=kind), tensor(of=kind), tensor(of=I32), tensor(of=I32)]
        less = region(kinds, lambda b, p, q, *_: b.add(ops.Compare(p, q, direction, compare_type=order)))
        return b.add(ops.Sort([x, places], dimension=dimension, is_stable=True, comparator=less))

    return program_of([tensor(*shape, of=kind)], body)


def numbers(shape: tuple[int, ...], kind: Type) -> np.ndarray:
    """Random bits, so that all numbers occur, some of them often; loads and stores of two bytes keep no bits of NaN."""
    bits = np.random.default_rng(0).integers(0, 256, (*shape, kind.dtype.itemsize), np.uint8)
    bits[..., 1::2, :] = bits[..., :1, :]
    found = bits.view(kind.dtype)[..., 0]
    return np.where(np.isnan(found), found.dtype.type(0), found) if kind in (F16, BF16) else found


@pytest.mark.parametrize("target", [TARGET, SCARCE], ids=["scratch", "passes"])
@pytest.mark.parametrize("kind", [F32, F64, F16, BF16, I8, I16, I32, I64, UI8, UI32, UI64], ids=str)
@pytest.mark.parametrize("direction", [DIRECTIONS.LT, DIRECTIONS.GT], ids=["ascending", "descending"])
def test_every_type(kind: Type, direction: ops.ComparisonDirection, target: Target) -> None:
    module, argument = sorted_rows((2, 4 * ROW), 1, kind, direction), numbers((2, 4 * ROW), kind)
    program, expected = lowered(module, target), evaluate(module, argument)
    for result, wanted in zip(run(program, [argument]), expected, strict=True):
        np.testing.assert_array_equal(result.view(np.uint8), np.asarray(wanted).view(np.uint8))


@pytest.mark.parametrize("target", [TARGET, SCARCE], ids=["scratch", "passes"])
def test_columns_and_the_interpreter(target: Target) -> None:
    expect_sorted(sorted_rows((ROW, 5), 0, I16, DIRECTIONS.GT), numbers((ROW, 5), I16), target)


def test_a_long_row_takes_a_launch_for_each_digit() -> None:
    extent = TARGET.fusion.serial_row + 1
    found = names(lowered(sorted_rows((extent,), 0, F32, DIRECTIONS.LT), TARGET))
    assert found == ["_begin", "_digit0", "_digit11", "_digit22", "_end"]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("extent", [ROW, 1 << 20])
def test_passes_cover_all_bits(bits: int, extent: int) -> None:
    made = list(passes(bits, extent))
    assert [step.shift for step in made] == [sum(s.bits for s in made[:n]) for n in range(len(made))]
    assert sum(step.bits for step in made) == bits
    assert [step.first for step in made] == [True, *[False] * (len(made) - 1)]
    assert isinstance(made[-1], Pass)
    assert made[-1].last


def test_greater_numbers_first_by_swapped_operands() -> None:
    def body(b, x):
        less = region([tensor()] * 2, lambda b, p, q: b.add(ops.Compare(q, p, DIRECTIONS.LT, compare_type=TOTAL)))
        return b.add(ops.Sort([x], dimension=0, is_stable=True, comparator=less))

    argument = numbers((ROW,), I32).astype(np.float32)
    (result,) = run(lowered(program_of([tensor(ROW)], body), TARGET), [argument])
    np.testing.assert_array_equal(result, -np.sort(-argument))


def test_keys_may_be_computed_but_from_one_element_only() -> None:
    kinds = [tensor()] * 4

    def compared(first, second, order=TOTAL):
        return region(
            kinds, lambda b, *e: b.add(ops.Compare(first(b, *e), second(b, *e), DIRECTIONS.LT, compare_type=order))
        )

    def negated(index):
        return lambda b, *e: b.add(ops.Negate(e[index]))

    def product(first, second):
        return lambda b, *e: b.add(ops.Multiply(e[first], e[second]))

    assert key_of(compared(negated(2), negated(3))) is not None
    assert key_of(compared(product(0, 2), product(1, 3))) is not None
    assert [key_of(compared(negated(n), negated(1 - n))).descending for n in range(2)] == [False, True]  # type: ignore[union-attr]
    assert key_of(compared(negated(0), negated(3))) is None
    assert key_of(compared(product(0, 1), product(0, 1))) is None
    assert key_of(compared(product(0, 2), negated(1))) is None
    assert key_of(compared(negated(0), negated(1), None)) is None
