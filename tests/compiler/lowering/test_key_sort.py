"""Rows of numbers are sorted by vectors, bit for bit as the comparator says, in the order of every type of number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, run
from tests.compiler.lowering.test_radix import DIRECTIONS, TOTAL, numbers
from tests.compiler.lowering.test_sorting import lowered, names
from tests.compiler.targets import TARGET
from trivium.backends.cpu.target import host
from trivium.compiler.interpreter import interpret
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import BF16, F16, F32, F64, I8, I16, I32, I64, UI8, UI32, UI64, Type, is_float, tensor

VECTORS = replace(TARGET, sorts_keys=True)
IN_PASSES = replace(VECTORS, fusion=replace(TARGET.fusion, scratch_bytes=8192, serial_row=16))
TARGETS = pytest.mark.parametrize("target", [VECTORS, IN_PASSES], ids=["scratch", "passes"])
KINDS = [F32, F64, F16, BF16, I8, I16, I32, I64, UI8, UI32, UI64]
needs_vectors = pytest.mark.skipif(not host().sorts_keys, reason="this processor has no instructions for it")


def sorted_alone(
    shape: tuple[int, ...], dimension: int, kind: Type, direction: ops.ComparisonDirection, alike: bool = False
) -> Module:
    """Sorts the argument; if `alike`, -0 is taken for 0, and all NaNs for one."""
    order = TOTAL if is_float(kind) else None

    def number(b, x):
        zero, nan = (b.add(ops.Constant(np.asarray(value, tensor(of=kind).dtype))) for value in (0, np.nan))
        x = b.add(ops.Select(b.add(ops.Compare(x, zero, DIRECTIONS.EQ)), zero, x))
        return b.add(ops.Select(b.add(ops.Compare(x, x, DIRECTIONS.NE)), nan, x))

    def less(b, p, q):
        p, q = (number(b, x) for x in (p, q)) if alike else (p, q)
        return b.add(ops.Compare(p, q, direction, compare_type=order))

    def body(b, x):
        comparator = region([tensor(of=kind), tensor(of=kind)], less)
        return b.add(ops.Sort([x], dimension=dimension, is_stable=True, comparator=comparator))

    return program_of([tensor(*shape, of=kind)], body)


def expect_bits(module: Module, argument: np.ndarray, target: Target) -> None:
    (expected,) = evaluate(module, argument)
    program = lowered(module, target)
    for (result,) in (interpret(program, argument), run(program, [argument])):
        bits, wanted = (np.ascontiguousarray(array).view(np.uint8) for array in (result, expected))
        np.testing.assert_array_equal(bits, wanted)


@needs_vectors
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("direction", [DIRECTIONS.LT, DIRECTIONS.GT], ids=["ascending", "descending"])
def test_every_type(kind: Type, direction: ops.ComparisonDirection) -> None:
    expect_bits(sorted_alone((2, 300), 1, kind, direction), numbers((2, 300), kind), VECTORS)


@needs_vectors
@TARGETS
@pytest.mark.parametrize(("shape", "dimension"), [((300,), 0), ((40, 3), 0), ((3, 17, 2), 1), ((2, 1, 40), 2)])
def test_every_dimension(shape: tuple[int, ...], dimension: int, target: Target) -> None:
    expect_bits(sorted_alone(shape, dimension, F32, DIRECTIONS.LT), numbers(shape, F32), target)


@needs_vectors
@TARGETS
@pytest.mark.parametrize("kind", [F32, F64], ids=str)
@pytest.mark.parametrize("signed", [False, True], ids=["plain", "signed zeros and NaNs"])
def test_numbers_that_a_comparator_takes_for_one_stay_in_order(kind: Type, signed: bool, target: Target) -> None:
    argument = np.random.default_rng(0).integers(-9, 9, (2, 1, 400)).astype(tensor(of=kind).dtype)
    if signed:
        argument[1, 0, ::7], argument[1, 0, 3::50], argument[1, 0, 5::50] = -0.0, np.nan, -np.nan
    module = sorted_alone((2, 1, 400), 2, kind, DIRECTIONS.LT, alike=True)
    assert any("sort 400 from" in str(kernel) for kernel in lowered(module, target).kernels())
    expect_bits(module, argument, target)


def test_long_rows_take_a_launch_for_each_step() -> None:
    extent = VECTORS.fusion.serial_row + 1
    module = sorted_alone((extent,), 0, F32, DIRECTIONS.LT)
    assert names(lowered(module, VECTORS)) == ["_keys", "_sort", "_end"]
    assert "_digit0" in names(lowered(module, TARGET))
