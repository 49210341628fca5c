"""Batch normalization, computed in at least 32 bits."""

from __future__ import annotations

import math

from trivium.compiler.passes.decompositions.table import converted, pattern, result, splat
from trivium.ir.builder import region
from trivium.ir.core import Value
from trivium.ir.ops import (
    Add,
    BatchNormGrad,
    BatchNormInference,
    BatchNormTraining,
    BroadcastInDim,
    Divide,
    Multiply,
    Reduce,
    Sqrt,
    Subtract,
)
from trivium.ir.types import F32, TensorType


@pattern(BatchNormInference)
def batch_norm_inference(op):
    """(operand - mean) / sqrt(variance + epsilon) * scale + offset"""
    if not op.operand.type.is_static:
        return None
    operand, scale, offset, mean, variance = map(_wide, op.operands)
    normalized = _normalized(operand, mean, variance, op.epsilon, op.feature_index)
    return converted(_scaled(normalized, scale, offset, op.feature_index), op.result.type)


@pattern(BatchNormTraining)
def batch_norm_training(op):
    """Inference, with the mean and the variance of this batch."""
    if not op.operand.type.is_static:
        return None
    operand, scale, offset = map(_wide, op.operands)
    feature = op.feature_index
    mean = _mean(operand, feature)
    centered = result(Subtract(operand, _along(mean, operand.type, feature)))
    variance = _mean(result(Multiply(centered, centered)), feature)
    normalized = _normalized(operand, mean, variance, op.epsilon, feature)
    output = _scaled(normalized, scale, offset, feature)
    return _as_results(op, output, mean, variance)


@pattern(BatchNormGrad)
def batch_norm_grad(op):
    """scale / stddev * (grad - mean(grad) - normalized * mean(grad * normalized)), and the sums of the two."""
    if not op.operand.type.is_static:
        return None
    operand, scale, mean, variance, grad = map(_wide, op.operands)
    feature, whole = op.feature_index, operand.type
    normalized = _normalized(operand, mean, variance, op.epsilon, feature)
    product = result(Multiply(grad, normalized))
    taken = result(Multiply(normalized, _along(_mean(product, feature), whole, feature)))
    rest = result(Subtract(result(Subtract(grad, _along(_mean(grad, feature), whole, feature))), taken))
    slope = result(Divide(scale, _stddev(variance, op.epsilon)))
    grad_operand = result(Multiply(_along(slope, whole, feature), rest))
    return _as_results(op, grad_operand, _sum(product, feature), _sum(grad, feature))


def _normalized(operand: Value, mean: Value, variance: Value, epsilon: float, feature: int) -> Value:
    centered = result(Subtract(operand, _along(mean, operand.type, feature)))
    return result(Divide(centered, _along(_stddev(variance, epsilon), operand.type, feature)))


def _scaled(normalized: Value, scale: Value, offset: Value, feature: int) -> Value:
    scaled = result(Multiply(normalized, _along(scale, normalized.type, feature)))
    return result(Add(scaled, _along(offset, normalized.type, feature)))


def _stddev(variance: Value, epsilon: float) -> Value:
    return result(Sqrt(result(Add(variance, splat(epsilon, variance.type)))))


def _mean(operand: Value, feature: int) -> Value:
    total = _sum(operand, feature)
    count = math.prod(extent for axis, extent in enumerate(operand.type.shape) if axis != feature)
    return result(Divide(total, splat(count, total.type)))


def _sum(operand: Value, feature: int) -> Value:
    """Returns the sum for each feature."""
    scalar = operand.type.with_shape(())
    adder = region([scalar, scalar], lambda builder, x, y: builder.add(Add(x, y)))
    axes = [axis for axis in range(operand.type.rank) if axis != feature]
    return Reduce([operand], [splat(0, scalar)], axes, adder).results[0]


def _along(feature: Value, whole: TensorType, dimension: int) -> Value:
    """Broadcasts one number per feature to all elements."""
    return result(BroadcastInDim(feature, (dimension,), result=whole))


def _wide(value: Value) -> Value:
    kind = value.type
    return value if kind.element_type.width >= 32 else converted(value, kind.with_element(F32))


def _as_results(op, *values: Value) -> tuple[Value, ...]:
    return tuple(converted(value, result.type) for value, result in zip(values, op.results, strict=True))
