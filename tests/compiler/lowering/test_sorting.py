"""Sorts of rows that fit in scratch memory, and of rows that take one launch per pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, run, some
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Launch, Program
from trivium.compiler.target import Target
from trivium.compiler.verifier import verify
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.errors import CompileError
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import I32, tensor

SCARCE = replace(TARGET, fusion=replace(TARGET.fusion, scratch_bytes=64))
LESS = ops.ComparisonDirection.LT
TOTAL = ops.ComparisonType.TOTALORDER


def sorted_pairs(shape: tuple[int, ...], dimension: int, order: ops.ComparisonType | None = None) -> Module:
    """Sorts values computed from the argument, together with the original index of each element."""

    def body(b, x):
        values = b.add(ops.Negate(x))
        places = b.add(ops.Iota(dimension, result=tensor(*shape, of=I32)))
        kinds = [tensor(), tensor(), tensor(of=I32), tensor(of=I32)]
        less = region(kinds, lambda b, p, q, *_: b.add(ops.Compare(p, q, LESS, compare_type=order)))
        return b.add(ops.Sort([values, places], dimension=dimension, comparator=less))

    return program_of([tensor(*shape)], body)


def names(program: Program) -> list[str]:
    return [step.kernel.name.removeprefix("sort_0") for step in program.steps if isinstance(step, Launch)]


def lowered(module: Module, target: Target) -> Program:
    program = lower(optimize(module), target)
    verify(program)
    return program


def expect_sorted(module: Module, argument: np.ndarray, target: Target) -> None:
    """Expects the results of the reference interpreter from kernels, both interpreted and compiled."""
    program, expected = lowered(module, target), evaluate(module, argument)
    for results in (interpret(program, argument), run(program, [argument])):
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("target", [TARGET, SCARCE], ids=["scratch", "passes"])
@pytest.mark.parametrize(
    ("shape", "dimension"),
    [((1,), 0), ((2,), 0), ((37,), 0), ((4, 33), 1), ((33, 4), 0), ((3, 17, 2), 1), ((2, 1, 40), 2), ((5, 1), 1)],
)
def test_every_dimension(shape: tuple[int, ...], dimension: int, target: Target) -> None:
    module, argument = sorted_pairs(shape, dimension), np.round(some(*shape), 1)
    expect_sorted(module, argument, target)


def test_a_row_that_fits_in_scratch_takes_one_launch_and_a_long_one_a_launch_for_each_pass() -> None:
    assert names(lowered(sorted_pairs((4, 33), 1), TARGET)) == [""]
    passes = ["_operand0", "_begin", *(f"_merge{1 << n}" for n in range(6)), "_end"]
    program = lowered(sorted_pairs((4, 33), 1), SCARCE)
    assert names(program) == passes
    # The first operand, and the elements' places twice; one of these shares the bytes of a later result.
    assert program.arena_size >= 2 * 4 * 33 * 4


def test_one_long_row_is_sorted_in_passes_so_that_threads_share_the_work() -> None:
    extent = TARGET.fusion.serial_row + 1
    assert len(names(lowered(sorted_pairs((extent,), 0), TARGET))) > 10
    assert names(lowered(sorted_pairs((2, extent), 1), TARGET)) == [""]


@pytest.mark.parametrize("target", [TARGET, SCARCE], ids=["scratch", "passes"])
def test_the_greatest_elements(target: Target) -> None:
    module = program_of([tensor(3, 50)], lambda b, x: b.add(ops.TopK(x, k=7)))
    argument = np.round(some(3, 50), 1)
    expect_sorted(module, argument, target)


def first_of_sorted(shape: tuple[int, ...], dimension: int, limits: tuple[int, int], descending: bool) -> Module:
    """The first ones of sorted elements, from the second one on, and of their original places."""
    direction = ops.ComparisonDirection.GT if descending else LESS

    def body(b, x):
        places = b.add(ops.Iota(dimension, result=tensor(*shape, of=I32)))
        kinds = [tensor(), tensor(), tensor(of=I32), tensor(of=I32)]
        less = region(kinds, lambda b, p, q, *_: b.add(ops.Compare(p, q, direction, compare_type=TOTAL)))
        results = b.add(ops.Sort([x, places], dimension=dimension, comparator=less, is_stable=True))
        starts = [int(d == dimension) for d in range(len(shape))]
        return [
            b.add(
                ops.Slice(
                    result, starts, [limit if s else e for s, e in zip(starts, shape, strict=True)], [1] * len(shape)
                )
            )
            for result, limit in zip(results, limits, strict=True)
        ]

    return program_of([tensor(*shape)], body)


@pytest.mark.parametrize("target", [TARGET, SCARCE], ids=["scratch", "passes"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("shape", "dimension", "limits"),
    [((400,), 0, (9, 9)), ((3, 400), 1, (2, 40)), ((300, 2), 0, (64, 3)), ((3, 300), 1, (65, 65)), ((2, 9), 1, (5, 1))],
)
def test_the_first_elements(
    shape: tuple[int, ...], dimension: int, limits: tuple[int, int], descending: bool, target: Target
) -> None:
    """Few of them are selected, instead of sorting all. Equal ones stay in order, and NaN is sorted, too."""
    module, argument = first_of_sorted(shape, dimension, limits, descending), np.round(some(*shape), 1)
    argument.reshape(-1)[::50] = np.nan
    expect_sorted(module, argument, target)


def test_a_long_row_of_which_few_elements_are_needed_takes_one_launch() -> None:
    extent = TARGET.fusion.serial_row + 1
    assert names(lowered(first_of_sorted((extent,), 0, (40, 40), True), TARGET))[0] == ""


def test_temporaries_beyond_the_memory_are_refused() -> None:
    with pytest.raises(CompileError, match="expected at most"):
        lowered(sorted_pairs((1 << 45,), 0), SCARCE)


def test_the_elements_of_one_row_are_compared_as_they_are_if_floats_may_be_unordered() -> None:
    extent = TARGET.fusion.serial_row + 1
    assert "_merge1" in names(lowered(sorted_pairs((extent,), 0), TARGET))
