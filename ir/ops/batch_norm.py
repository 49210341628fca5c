"""Batch normalization: each feature of a batch is shifted and scaled by its mean and its variance. Evaluated in float64
and rounded once."""

from __future__ import annotations

import math

import numpy as np

from trivium.ir.codecs import F32Float
from trivium.ir.declare import EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.ops.common import (
    expect_compatible_baseline,
    expect_element,
    expect_same_baseline,
    expect_same_shape,
    expect_shape,
    expect_tensor,
    expect_within,
)
from trivium.ir.ops.numerics import rounded
from trivium.ir.types import TensorType, is_float, is_per_tensor

__all__ = ["BatchNormGrad", "BatchNormInference", "BatchNormTraining"]


class BatchNormTraining(Op, name="stablehlo.batch_norm_training", traits={PURE, EXPRESSED}):
    """Normalizes each feature by its mean and variance in this batch, then scales it by `scale` and adds `offset`. Both
    statistics are also results."""

    operand: Operand
    scale: Operand
    offset: Operand
    epsilon: F32Float
    feature_index: int
    output: Result
    batch_mean: Result
    batch_var: Result

    def infer(operand, scale):
        return operand, scale, scale

    def check(operand, scale, offset, feature_index, output, batch_mean, batch_var):
        _check_operands({"operand": operand}, {"scale": scale, "offset": offset})
        expect_within("C1", "feature_index", (feature_index,), operand.rank)
        given = {"scale": scale, "offset": offset, "batch_mean": batch_mean, "batch_var": batch_var}
        expect_same_baseline("C2", operand=operand, output=output, **given)
        for label, (name, kind) in zip(("C3", "C4", "C5", "C6"), given.items(), strict=True):
            expect_shape(label, name, kind, operand.shape[feature_index : feature_index + 1])
        expect_compatible_baseline("C7", operand=operand, output=output)

    def evaluate(operand, scale, offset, epsilon, feature_index):
        axes = _others(operand, feature_index)
        mean = np.mean(operand, axis=axes, dtype=np.float64)
        variance = np.mean(np.square(operand - _along(mean, operand, feature_index)), axis=axes)
        output = _normalized(operand, mean, variance, epsilon, feature_index)
        output = output * _along(scale, operand, feature_index) + _along(offset, operand, feature_index)
        return tuple(rounded(array, operand.dtype) for array in (output, mean, variance))


class BatchNormInference(Op, name="stablehlo.batch_norm_inference", traits={PURE, EXPRESSED}):
    """Normalizes each feature by the given mean and variance, then scales it by `scale` and adds `offset`."""

    operand: Operand
    scale: Operand
    offset: Operand
    mean: Operand
    variance: Operand
    epsilon: F32Float
    feature_index: int
    result: Result

    def infer(operand):
        return operand

    def check(operand, scale, offset, mean, variance, feature_index, result):
        given = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
        _check_operands({"operand": operand}, given)
        expect_within("C1", "feature_index", (feature_index,), operand.rank)
        expect_same_baseline("C2", operand=operand, result=result, **given)
        for label, (name, kind) in zip(("C3", "C4", "C5", "C6"), given.items(), strict=True):
            expect_shape(label, name, kind, operand.shape[feature_index : feature_index + 1])
        expect_compatible_baseline("C7", operand=operand, result=result)

    def evaluate(operand, scale, offset, mean, variance, epsilon, feature_index):
        result = _normalized(operand, mean, variance, epsilon, feature_index)
        result = result * _along(scale, operand, feature_index) + _along(offset, operand, feature_index)
        return rounded(result, operand.dtype)


class BatchNormGrad(Op, name="stablehlo.batch_norm_grad", traits={PURE, EXPRESSED}):
    """The gradients of `batch_norm_training` with respect to its operand, scale and offset, computed from the gradient
    of its output and the statistics of the batch."""

    operand: Operand
    scale: Operand
    mean: Operand
    variance: Operand
    grad_output: Operand
    epsilon: F32Float
    feature_index: int
    grad_operand: Result
    grad_scale: Result
    grad_offset: Result

    def infer(operand, scale):
        return operand, scale, scale

    def check(operand, scale, mean, variance, grad_output, feature_index, grad_operand, grad_scale, grad_offset):
        features = {"scale": scale, "mean": mean, "variance": variance}
        _check_operands({"operand": operand, "grad_output": grad_output}, features)
        expect_within("C1", "feature_index", (feature_index,), operand.rank)
        whole = {"operand": operand, "grad_output": grad_output, "grad_operand": grad_operand}
        features |= {"grad_scale": grad_scale, "grad_offset": grad_offset}
        expect_same_baseline("C2", **whole, **features)
        expect_same_shape("C3", **whole)
        expect_same_shape("C4", **features)
        expect_shape("C5", "scale", scale, operand.shape[feature_index : feature_index + 1])

    def evaluate(operand, scale, mean, variance, grad_output, epsilon, feature_index):
        axes = _others(operand, feature_index)
        grad = grad_output.astype(np.float64)
        normalized = _normalized(operand, mean, variance, epsilon, feature_index)
        grad_offset, grad_scale = np.sum(grad, axes), np.sum(grad * normalized, axes)
        count = math.prod(operand.shape[axis] for axis in axes)
        # Subtract the effect of a change of one element on the mean and on the variance.
        taken = _along(grad_offset, operand, feature_index) + normalized * _along(grad_scale, operand, feature_index)
        slope = scale / np.sqrt(np.asarray(variance, np.float64) + epsilon)
        grad_operand = _along(slope, operand, feature_index) * (grad - taken / count)
        return tuple(rounded(array, operand.dtype) for array in (grad_operand, grad_scale, grad_offset))


def _check_operands(wholes: dict[str, TensorType], features: dict[str, TensorType]) -> None:
    for name, kind in wholes.items():
        expect_element("I1", name, kind, is_float, is_per_tensor)
    for name, kind in features.items():
        expect_tensor("I2", name, kind, rank=1)


def _others(operand: np.ndarray, feature_index: int) -> tuple[int, ...]:
    """Returns the dimensions over which a feature is averaged."""
    return tuple(axis for axis in range(operand.ndim) if axis != feature_index)


def _along(feature: np.ndarray, operand: np.ndarray, feature_index: int) -> np.ndarray:
    """Reshapes one number per feature, in float64, to broadcast along the operand's features."""
    return feature.astype(np.float64).reshape(-1, *(1,) * (operand.ndim - feature_index - 1))


def _normalized(operand, mean, variance, epsilon: float, feature_index: int) -> np.ndarray:
    centered = operand - _along(mean, operand, feature_index)
    return centered / np.sqrt(_along(variance, operand, feature_index) + epsilon)
