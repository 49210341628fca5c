"""Batch normalization, against the specification's own formulas in float64; its gradient against JAX's derivative of
the definition."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Record
from trivium.ir.ops import BatchNormGrad, BatchNormInference, BatchNormTraining

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(1, 2, (3, 4, 5))
GRAD = RANDOM.normal(0, 1, (3, 4, 5))
SCALE, OFFSET, MEAN = RANDOM.normal(1, 1, (3, 5))
VARIANCE = RANDOM.uniform(0.5, 2, 5)


def normalized(x, scale, offset, mean, variance, epsilon):
    """Features are the last dimension."""
    return (x - mean) / np.sqrt(variance + epsilon) * scale + offset


def features_last(feature_index, function):
    """Computes the function on float64 arrays whose features are the last dimension, and transposes results of the
    operand's rank back."""

    def oracle(*arrays):
        wide = [np.moveaxis(a.astype(np.float64), feature_index, -1) if a.ndim > 1 else a.astype(float) for a in arrays]
        results = function(*wide)
        turned = [np.moveaxis(result, -1, feature_index) if result.ndim > 1 else result for result in results]
        return tuple(result.astype(arrays[0].dtype) for result in turned)

    return oracle


def inference(feature_index, epsilon, *arrays, ulps=32):
    oracle = features_last(feature_index, lambda *given: (normalized(*given, epsilon),))
    named = {"epsilon": epsilon, "feature_index": feature_index}
    return Record(BatchNormInference, arrays, named, oracle=oracle, ulps=ulps)


def training(feature_index, epsilon, *arrays, ulps=2048):
    def formula(x, scale, offset):
        flat = x.reshape(-1, x.shape[-1])
        mean, variance = flat.mean(0), flat.var(0)
        return normalized(x, scale, offset, mean, variance, epsilon), mean, variance

    named = {"epsilon": epsilon, "feature_index": feature_index}
    return Record(BatchNormTraining, arrays, named, oracle=features_last(feature_index, formula), ulps=ulps)


def grad(feature_index, epsilon, *arrays, ulps=32):
    """The steps of the specification."""

    def formula(x, scale, mean, variance, grad_output):
        count = x.size // x.shape[-1]

        def total(values):
            return values.reshape(-1, values.shape[-1]).sum(0)

        centered, stddev = x - mean, np.sqrt(variance + epsilon)
        i1, i2 = count * grad_output, total(grad_output)
        i5 = total(grad_output * centered) * centered / (variance + epsilon)
        grad_operand = scale / stddev / count * (i1 - i2 - i5)
        return grad_operand, total(grad_output * centered / stddev), i2

    named = {"epsilon": epsilon, "feature_index": feature_index}
    return Record(BatchNormGrad, arrays, named, oracle=features_last(feature_index, formula), ulps=ulps)


def narrow(dtype, *arrays):
    return [array.astype(dtype) for array in arrays]


RECORDS = [
    inference(2, 0.0, *narrow(np.float32, X, SCALE, OFFSET, MEAN, VARIANCE)),
    inference(0, 0.125, *narrow(np.float64, X.T, SCALE, OFFSET, MEAN, VARIANCE)),
    inference(1, 0.5, *narrow(ml_dtypes.bfloat16, X.swapaxes(1, 2), SCALE, OFFSET, MEAN, VARIANCE)),
    training(2, 0.0, *narrow(np.float32, X, SCALE, OFFSET)),
    training(1, 0.125, *narrow(np.float64, X.swapaxes(1, 2), SCALE, OFFSET)),
    training(0, 0.5, *narrow(np.float16, X.T, SCALE, OFFSET)),
    grad(2, 0.0, *narrow(np.float32, X, SCALE, MEAN, VARIANCE, GRAD), ulps=256),
    grad(0, 0.125, *narrow(np.float64, X.T, SCALE, MEAN, VARIANCE, GRAD.T), ulps=256),
]
