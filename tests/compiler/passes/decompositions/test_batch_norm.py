"""Batch normalization as other ops: the result is that of double precision, for any element type, rank and feature
dimension."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.compiler.passes.decompositions.running import decomposed, program
from tests.compiler.passes.patterns.running import names
from trivium.compiler.passes.decompose import Decompose
from trivium.ir import ops
from trivium.ir.declare import Op
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import tensor

EPSILON = 0.0625
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
SHAPES = [((5,), 0), ((6, 3), 0), ((6, 3), 1), ((2, 3, 4), 1), ((2, 3, 4, 5), 3), ((2, 2, 3, 2, 2), 1)]


def inputs(op: type[Op], shape: tuple[int, ...], feature: int, dtype: type) -> list[np.ndarray]:
    """The operands of the op, far from zero, where sums of squares would lose small differences."""
    rng = np.random.default_rng(len(shape))
    operand = rng.uniform(3, 5, shape)
    row = [rng.uniform(0.5, 2, shape[feature]) for _ in range(4)]
    given = {
        ops.BatchNormInference: [operand, *row],
        ops.BatchNormTraining: [operand, *row[:2]],
        ops.BatchNormGrad: [operand, *row[:3], rng.uniform(-1, 1, shape)],
    }[op]
    return [array.astype(dtype) for array in given]


def along(row: np.ndarray, shape: tuple[int, ...], feature: int) -> np.ndarray:
    return row.reshape([-1 if axis == feature else 1 for axis in range(len(shape))])


def reference(op: type[Op], arrays: list[np.ndarray], feature: int) -> list[np.ndarray]:
    """The textbook's equations in double precision."""
    x, scale, *others = [array.astype(np.float64) for array in arrays]
    axes = tuple(axis for axis in range(x.ndim) if axis != feature)

    def normal(mean, variance):
        return (x - along(mean, x.shape, feature)) / np.sqrt(along(variance, x.shape, feature) + EPSILON)

    if op is ops.BatchNormInference:
        offset, mean, variance = others
        return [normal(mean, variance) * along(scale, x.shape, feature) + along(offset, x.shape, feature)]
    if op is ops.BatchNormTraining:
        mean, variance = x.mean(axes), x.var(axes)
        scaled = normal(mean, variance) * along(scale, x.shape, feature)
        return [scaled + along(others[0], x.shape, feature), mean, variance]
    mean, variance, grad = others
    centered = normal(mean, variance)
    product = (grad * centered).mean(axes, keepdims=True)
    rest = grad - grad.mean(axes, keepdims=True) - centered * product
    slope = along(scale / np.sqrt(variance + EPSILON), x.shape, feature)
    return [slope * rest, (grad * centered).sum(axes), grad.sum(axes)]


def operation(op: type[Op], arrays: list[np.ndarray], feature: int) -> Module:
    return program(op, *arrays, epsilon=EPSILON, feature_index=feature)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize(("shape", "feature"), SHAPES, ids=str)
@pytest.mark.parametrize(
    "op", [ops.BatchNormInference, ops.BatchNormTraining, ops.BatchNormGrad], ids=lambda o: o.__name__
)
def test_against_double_precision(op: type[Op], shape: tuple[int, ...], feature: int, dtype: type) -> None:
    """Results of narrow types are off by one rounding: intermediate values are computed in 32 bits."""
    arrays = inputs(op, shape, feature, dtype)
    module = operation(op, arrays, feature)
    unit = float(ml_dtypes.finfo(dtype).eps)
    tolerance = unit if np.dtype(dtype).itemsize < 4 else 64 * unit
    wanted = reference(op, arrays, feature)
    for results in (evaluate(decomposed(module), *arrays), trivium.compile(module)(*arrays)):
        for found, expected in zip(results, wanted, strict=True):
            assert found.dtype == dtype
            scale = max(1.0, float(np.abs(expected).max()))
            np.testing.assert_allclose(found.astype(np.float64), expected, rtol=tolerance, atol=tolerance * scale)


def test_narrow_types_are_converted_once_each_way() -> None:
    arrays = inputs(ops.BatchNormInference, (6, 3), 1, np.float16)
    found = names(decomposed(operation(ops.BatchNormInference, arrays, 1)))
    assert found.count("convert") == len(arrays) + 1
    assert "batch_norm_inference" not in found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_types_are_not_converted(dtype: type) -> None:
    arrays = inputs(ops.BatchNormGrad, (6, 3), 1, dtype)
    assert "convert" not in names(decomposed(operation(ops.BatchNormGrad, arrays, 1)))


def test_sums_beyond_the_range_of_the_type() -> None:
    """The sum exceeds the largest number of f16, but the mean does not."""
    x = np.full((64, 1), 40_000, np.float16)
    x[::2] = 39_936
    arrays = [x, np.ones(1, np.float16), np.zeros(1, np.float16)]
    output, mean, variance = evaluate(decomposed(operation(ops.BatchNormTraining, arrays, 1)), *arrays)
    assert (float(mean[0]), float(variance[0])) == (39_968, 1024)
    np.testing.assert_allclose(np.abs(output.astype(np.float64)), 32 / np.sqrt(1024 + EPSILON), rtol=1e-3)


def test_a_batch_of_nothing_has_no_mean() -> None:
    arrays = [np.zeros((0, 3), np.float32), np.ones(3, np.float32), np.zeros(3, np.float32)]
    module = operation(ops.BatchNormTraining, arrays, 1)
    with np.errstate(all="ignore"):
        output, mean, variance = evaluate(decomposed(module), *arrays)
    assert output.shape == (0, 3)
    assert np.isnan(mean).all()
    assert np.isnan(variance).all()


def test_unknown_extents_wait() -> None:
    """The number of elements is not known yet."""
    kind, row = tensor(None, 3), tensor(3)
    attributes = {"epsilon": EPSILON, "feature_index": 1}
    module = Module.build(
        functions=[
            Function.build(
                "main", [kind, row, row], lambda b, *given: b.add(ops.BatchNormTraining(*given, **attributes))
            )
        ]
    )
    assert not Decompose().run(module)
    assert names(module) == ["batch_norm_training"]
