"""Rows are sorted by keys and places in one integer: stably, and elements of other operands move with their keys."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, run
from tests.compiler.lowering.test_key_sort import TARGETS, VECTORS, needs_vectors
from tests.compiler.lowering.test_radix import DIRECTIONS, numbers, sorted_rows
from tests.compiler.lowering.test_sorting import lowered, names
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import BF16, F16, F32, F64, I8, I32, UI16, UI32, Type, tensor

KINDS = [F32, F16, BF16, I8, UI16, I32, UI32]


def expect(module: Module, argument: np.ndarray, target: Target) -> None:
    program, expected = lowered(module, target), evaluate(module, argument)
    for results in (interpret(program, argument), run(program, [argument])):
        for result, wanted in zip(results, expected, strict=True):
            bits, known = (np.ascontiguousarray(array).view(np.uint8) for array in (result, wanted))
            np.testing.assert_array_equal(bits, known)


@needs_vectors
@TARGETS
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("direction", [DIRECTIONS.LT, DIRECTIONS.GT], ids=["ascending", "descending"])
def test_every_type(kind: Type, direction: ops.ComparisonDirection, target: Target) -> None:
    expect(sorted_rows((2, 300), 1, kind, direction), numbers((2, 300), kind), target)


@needs_vectors
@TARGETS
@pytest.mark.parametrize(("shape", "dimension"), [((8,), 0), ((9, 3), 0), ((3, 17, 2), 1), ((2, 1, 257), 2)])
def test_equal_keys_stay_in_order(shape: tuple[int, ...], dimension: int, target: Target) -> None:
    few = np.random.default_rng(0).integers(-1, 2, shape).astype(np.float32)
    expect(sorted_rows(shape, dimension, F32, DIRECTIONS.GT), few, target)


@needs_vectors
def test_the_greatest_of_many() -> None:
    module = program_of([tensor(2, 40)], lambda b, x: b.add(ops.TopK(x, k=33)))
    expect(module, np.random.default_rng(0).integers(-5, 5, (2, 40)).astype(np.float32), VECTORS)


def test_integers_are_as_wide_as_keys_and_places() -> None:
    def sorts(kind: Type, extent: int) -> str:
        kernels = lowered(sorted_rows((2, extent), 1, kind, DIRECTIONS.LT), VECTORS).kernels()
        return "\n".join(map(str, kernels))

    assert "65536xi64" not in sorts(F16, 1 << 16)
    assert "65537xi64" in sorts(F16, (1 << 16) + 1)
    assert "sort 300 from" in sorts(F32, 300)
    assert "sort 300 from" not in sorts(F64, 300)


def test_a_long_row_takes_a_launch_for_each_step() -> None:
    module = sorted_rows((VECTORS.fusion.serial_row + 1,), 0, F32, DIRECTIONS.LT)
    assert names(lowered(module, VECTORS)) == ["_begin", "_places", "_end"]
    assert "_digit0" in names(lowered(module, TARGET))
