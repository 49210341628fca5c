"""Draws from hidden state: their distribution, that no two are equal, and that seeds come from the host."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.compiler.passes.decompositions.running import decomposed
from trivium.ir import ops
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import RngDistribution
from trivium.ir.types import TensorType, type_of

UNIFORM, NORMAL = RngDistribution.UNIFORM, RngDistribution.NORMAL
SHAPE = (100, 1000)


def drawing(distribution: RngDistribution, dtype: object, shape: tuple[int, ...] = SHAPE) -> Module:
    scalar = type_of(np.zeros((), dtype))

    def main(builder, a, b):
        extents = builder.add(ops.Constant(np.array(shape)))
        result = TensorType(shape, scalar.element_type)
        return builder.add(ops.Rng(a, b, extents, rng_distribution=distribution, result=result))

    return Module.build(functions=[Function.build("main", [scalar, scalar], main)])


def draws(distribution: RngDistribution, dtype: object, a: float, b: float) -> list[np.ndarray]:
    """Returns interpreted draws, and two compiled ones."""
    module = drawing(distribution, dtype)
    limits = np.array(a, dtype), np.array(b, dtype)
    compiled = trivium.compile(module)
    return [evaluate(decomposed(module), *limits)[0], compiled(*limits)[0], compiled(*limits)[0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("a", "b"), [(0, 1), (-2, 3), (1, 1.0009765625), (5, 5)])
def test_uniform(dtype, a, b):
    for drawn in draws(UNIFORM, dtype, a, b):
        wide = drawn.astype(np.float64)
        assert wide.min() >= a
        assert wide.max() < b or a == b
        if b - a >= 1:
            assert abs(wide.mean() - (a + b) / 2) < 0.005 * (b - a)
            assert abs(wide.var() - (b - a) ** 2 / 12) < 0.005 * (b - a) ** 2


def test_uniform_of_the_largest_floats():
    largest = np.finfo(np.float32).max
    for drawn in draws(UNIFORM, np.float32, -largest, largest):
        assert np.isfinite(drawn).all()
        assert abs(np.mean(drawn > 0) - 0.5) < 0.01


SIGMAS = 6
"""The number of standard errors by which a statistic may be off. The state is the host's own, so each run draws
different numbers; one in five hundred million statistics is off by more."""


def assert_statistics(found: list[float], expected: list[float], variances: list[float], count: int) -> None:
    """Requires that the means of `count` numbers with these variances are close to the expected ones."""
    allowed = SIGMAS * np.sqrt(np.array(variances) / count)
    assert (np.abs(np.array(found) - expected) <= allowed).all(), (found, expected, allowed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal(dtype):
    for drawn in draws(NORMAL, dtype, 1, 3):
        standard = (drawn.astype(np.float64) - 1) / 3
        moments = [float(np.mean(standard**power)) for power in (1, 2, 3, 4)]
        assert_statistics(moments, [0, 1, 0, 3], [1, 2, 15, 96], standard.size)
        shares, expected = (
            [float(np.mean(np.abs(standard) > limit)) for limit in (1, 2, 3)],
            [0.31731, 0.04550, 0.00270],
        )
        assert_statistics(shares, expected, [share * (1 - share) for share in expected], standard.size)


@pytest.mark.parametrize(
    ("dtype", "a", "b"),
    [
        (np.int32, -3, 4), (np.uint8, 250, 255), (np.int8, -128, -120), (np.int64, -2, 3),
        (np.uint64, 2**64 - 6, 2**64 - 1), (np.bool_, 0, 1),
    ],
)  # fmt: skip
def test_whole_numbers(dtype, a, b):
    for drawn in draws(UNIFORM, dtype, a, b):
        values, counts = np.unique(drawn, return_counts=True)
        np.testing.assert_array_equal(values, np.array(range(a, b), dtype))
        np.testing.assert_allclose(counts / drawn.size, 1 / (b - a), rtol=0.05)


def test_ranges_of_all_whole_numbers():
    limits = np.iinfo(np.int64)
    for drawn in draws(UNIFORM, np.int64, limits.min, limits.max):
        shares = np.histogram(drawn.astype(np.float64), 8, (-(2.0**63), 2.0**63))[0] / drawn.size
        np.testing.assert_allclose(shares, 1 / 8, rtol=0.05)


def test_no_draw_is_another():
    found = draws(UNIFORM, np.float64, 0, 1)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not np.isin(found[one], found[other]).any()
