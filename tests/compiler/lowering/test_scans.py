"""Running folds by threads that share scratch memory: rows of one tile, and of several, whose totals come first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.lower import lower
from trivium.compiler.program import Launch
from trivium.compiler.verifier import verify
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Module
from trivium.ir.types import tensor, type_of

SHARED = replace(TARGET, shared_memory_bytes=48 << 10)


def running(
    argument: np.ndarray, dimension: int, op: type = ops.Add, start: float = 0, reverse: bool = False
) -> Module:
    """Returns a running fold along a dimension."""
    kind, rank, extent = type_of(argument), argument.ndim, argument.shape[dimension]
    scalar = tensor(of=kind.element_type)
    body = region([scalar, scalar], lambda b, x, y: b.add(op(x, y)))
    padding = [[0, 0] for _ in range(rank)]
    padding[dimension] = [0, extent - 1] if reverse else [extent - 1, 0]
    sizes = [extent if d == dimension else 1 for d in range(rank)]

    def main(b, x):
        init = b.add(ops.Constant(argument.dtype.type(start)))
        return b.add(ops.ReduceWindow([x], [init], window_dimensions=sizes, padding=padding, body=body))

    return program_of([kind], main)


def integers(*shape: int, dtype: type = np.int32) -> np.ndarray:
    return np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "dimension"), [((64,), 0), ((3, 100), 1), ((1792, 2), 0), ((2, 1793), 1), ((2, 5000), 1)]
)
def test_sums(shape: tuple[int, ...], dimension: int, reverse: bool) -> None:
    argument = integers(*shape)
    program = lower(running(argument, dimension, reverse=reverse), SHARED)
    verify(program)
    (result,) = interpret(program, argument)
    turned = np.flip(argument, dimension) if reverse else argument
    expected = turned.cumsum(dimension, dtype=np.int32)
    np.testing.assert_array_equal(result, np.flip(expected, dimension) if reverse else expected)


@pytest.mark.parametrize(("op", "start", "ufunc"), [(ops.Maximum, -np.inf, np.maximum), (ops.Multiply, 1, np.multiply)])
def test_other_folds(op: type, start: float, ufunc: np.ufunc) -> None:
    argument = np.random.default_rng(1).uniform(0.9, 1.1, (2, 700))
    (result,) = interpret(lower(running(argument, 1, op, start), SHARED), argument)
    np.testing.assert_allclose(result, ufunc.accumulate(argument, axis=1), rtol=1e-13)


def test_tiles_of_tiles() -> None:
    argument = integers(1792 * 1792 + 5, dtype=np.int64)
    program = lower(running(argument, 0), SHARED)
    names = [step.kernel.name.removeprefix("reduce_window_0") for step in program.steps if isinstance(step, Launch)]
    assert names == ["_totals", "_totals_level1", "_level2", "_level1", ""]


def test_short_rows_are_one_threads_work() -> None:
    (step,) = lower(running(integers(5, 63), 1), SHARED).steps
    assert isinstance(step, Launch)
    assert "sequential" in str(step.kernel)
    assert "scratch" not in str(step.kernel)
