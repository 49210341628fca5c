"""The reducer that JAX writes for argmax: where several elements are NaN, the first one is found, also by threads and
lanes that combine what they have found in any order. And reductions of single elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import trivium
from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import rewritten, splat
from trivium.compiler.passes.patterns.folds import FOLDS
from trivium.ir import ops
from trivium.ir.builder import Builder, region
from trivium.ir.core import Value
from trivium.ir.declare import Op
from trivium.ir.func import Module
from trivium.ir.types import F32, I32, tensor


def reducer(direction: str) -> Callable:
    def body(b: Builder, value: Value, index: Value, other: Value, place: Value) -> tuple[Value, Value]:
        def compare(direction: str, lhs: Value, rhs: Value) -> Value:
            return b.add(ops.Compare(lhs, rhs, comparison_direction=direction))

        better = b.add(ops.Or(compare(direction, value, other), compare("NE", value, value)))
        equal = b.add(ops.And(compare("EQ", value, other), compare("LT", index, place)))
        keep = b.add(ops.Or(better, equal))
        return b.add(ops.Select(better, value, other)), b.add(ops.Select(keep, index, place))

    return body


def position(shape: tuple[int, ...], dimension: int, direction: str) -> Module:
    """A program that finds the largest or smallest element along a dimension, as JAX writes it."""

    def body(b: Builder, x: Value) -> Value:
        places = b.add(ops.Iota(iota_dimension=dimension, result=tensor(*shape, of=I32)))
        worst = splat(b, -np.inf if direction == "GT" else np.inf, tensor(of=F32))
        kinds = [tensor(of=F32), tensor(of=I32)] * 2
        start = [worst, splat(b, 0, tensor(of=I32))]
        return b.add(ops.Reduce([x, places], start, (dimension,), body=region(kinds, reducer(direction))))[1]

    return program_of([tensor(*shape, of=F32)], body)


def with_nans(shape: tuple[int, ...], seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.integers(-3, 4, shape).astype(np.float32)
    return np.where(random.random(shape) < 0.1, np.float32(np.nan), x)


@pytest.mark.parametrize("direction", ["GT", "LT"])
@pytest.mark.parametrize(
    ("shape", "dimension"), [((40,), 0), ((1000,), 0), ((6, 70), 1), ((70, 6), 0), ((40, 64), 0), ((3, 5, 17), 1)]
)
def test_the_first_of_several_nans(shape: tuple[int, ...], dimension: int, direction: str) -> None:
    module = position(shape, dimension, direction)
    arrays = [with_nans(shape, seed) for seed in range(4)]
    rewritten(module, FOLDS, *[[array] for array in arrays])
    run, of = trivium.compile(module), np.argmax if direction == "GT" else np.argmin
    for array in arrays:
        np.testing.assert_array_equal(run(array)[0], of(array, dimension))


def test_other_reducers_stay() -> None:
    """One that compares with equal elements too, whose first argument wins whichever is earlier."""
    module = position((9,), 0, "GE")
    before = str(module)
    assert str(rewritten(module, FOLDS, [with_nans((9,), 0)])) == before


X = np.random.default_rng(0).integers(-3, 4, (3, 7, 5)).astype(np.float32)  # sums are exact in any order
X[0, 0, 0], X[1, 2, 3], X[2, 6, 4] = -0.0, np.nan, np.inf


@pytest.mark.parametrize(
    ("kind", "init"), [(ops.Add, 0.0), (ops.Add, -0.0), (ops.Maximum, -np.inf), (ops.Multiply, 1.0), (ops.Minimum, 0.5)]
)
def test_reductions_of_single_elements(kind: type[Op], init: float) -> None:
    def body(b, x):
        fold = region([tensor()] * 2, lambda b, p, q: b.add(kind(p, q)))
        apart = b.add(ops.Reshape(x, result=tensor(3, 1, 7, 5, 1)))
        return b.add(ops.Reduce([apart], [b.add(ops.Constant(np.float32(init)))], [1, 4], fold))

    after = rewritten(program_of([tensor(*X.shape)], body), FOLDS, [X])
    assert not any(isinstance(op, ops.Reduce) for op in after.walk())


def test_reductions_of_more_elements_or_pairs_stay() -> None:
    def body(b, x):
        fold = region([tensor()] * 2, lambda b, p, q: b.add(ops.Subtract(p, q)))
        start, apart = b.add(ops.Constant(np.float32(1))), b.add(ops.Reshape(x, result=tensor(3, 7, 5, 1)))
        total = region([tensor()] * 2, lambda b, p, q: b.add(ops.Add(p, q)))
        return [*b.add(ops.Reduce([apart], [start], [3], fold)), *b.add(ops.Reduce([apart], [start], [0, 3], total))]

    after = rewritten(program_of([tensor(*X.shape)], body), FOLDS, [X])
    assert sum(isinstance(op, ops.Reduce) for op in after.walk()) == 2
