"""Decomposition: ops that are only names for a few others become these others, so that everything behind (folding,
fusion, kernels) sees the parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.manager import Pass
from trivium.compiler.passes.patterns.dynamic import DYNAMIC
from trivium.compiler.passes.rewriting import PatternSet, rewrite_to_fixpoint
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Rewriter, region
from trivium.ir.core import Value
from trivium.ir.declare import OPS
from trivium.ir.decompositions import decompose
from trivium.ir.func import Module
from trivium.ir.ops import (
    Add,
    BatchNormGrad,
    BatchNormInference,
    BatchNormTraining,
    Broadcast,
    BroadcastBinary,
    BroadcastCompare,
    BroadcastComplex,
    BroadcastInDim,
    BroadcastSelect,
    ChloConstant,
    Constant,
    ConstantLike,
    Convert,
    Divide,
    Dot,
    DotDimensionNumbers,
    DotGeneral,
    Gather,
    GatherDimensionNumbers,
    Multiply,
    Reduce,
    Reshard,
    Scan,
    ShardingConstraint,
    Sqrt,
    Subtract,
    TorchIndexSelect,
)
from trivium.ir.types import F32, TensorType

DECOMPOSITIONS = PatternSet(DYNAMIC)
pattern = DECOMPOSITIONS.pattern


@dataclass(frozen=True)
class Decompose(Pass):
    """No op of static shape is left that has a decomposition here."""

    NAME: ClassVar[str] = "decompose"

    def run(self, module: Module) -> bool:
        return rewrite_to_fixpoint(module, DECOMPOSITIONS)


# Batch normalization, in 32 bits at least


@pattern(BatchNormInference)
def batch_norm_inference(op):
    """(operand - mean) / sqrt(variance + epsilon) * scale + offset"""
    if not op.operand.type.is_static:
        return None
    operand, scale, offset, mean, variance = map(_wide, op.operands)
    normalized = _normalized(operand, mean, variance, op.epsilon, op.feature_index)
    return _narrow(_scaled(normalized, scale, offset, op.feature_index), op.result.type)


@pattern(BatchNormTraining)
def batch_norm_training(op):
    """Inference, with the mean and the variance of this batch."""
    if not op.operand.type.is_static:
        return None
    operand, scale, offset = map(_wide, op.operands)
    feature = op.feature_index
    mean = _mean(operand, feature)
    centered = _result(Subtract(operand, _along(mean, operand.type, feature)))
    variance = _mean(_result(Multiply(centered, centered)), feature)
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
    product = _result(Multiply(grad, normalized))
    taken = _result(Multiply(normalized, _along(_mean(product, feature), whole, feature)))
    rest = _result(Subtract(_result(Subtract(grad, _along(_mean(grad, feature), whole, feature))), taken))
    slope = _result(Divide(scale, _stddev(variance, op.epsilon)))
    grad_operand = _result(Multiply(_along(slope, whole, feature), rest))
    return _as_results(op, grad_operand, _sum(product, feature), _sum(grad, feature))


def _normalized(operand: Value, mean: Value, variance: Value, epsilon: float, feature: int) -> Value:
    centered = _result(Subtract(operand, _along(mean, operand.type, feature)))
    return _result(Divide(centered, _along(_stddev(variance, epsilon), operand.type, feature)))


def _scaled(normalized: Value, scale: Value, offset: Value, feature: int) -> Value:
    scaled = _result(Multiply(normalized, _along(scale, normalized.type, feature)))
    return _result(Add(scaled, _along(offset, normalized.type, feature)))


def _stddev(variance: Value, epsilon: float) -> Value:
    return _result(Sqrt(_result(Add(variance, _splat(epsilon, variance.type)))))


def _mean(operand: Value, feature: int) -> Value:
    total = _sum(operand, feature)
    count = math.prod(extent for axis, extent in enumerate(operand.type.shape) if axis != feature)
    return _result(Divide(total, _splat(count, total.type)))


def _sum(operand: Value, feature: int) -> Value:
    """The sums of each feature."""
    scalar = operand.type.with_shape(())
    adder = region([scalar, scalar], lambda builder, x, y: builder.add(Add(x, y)))
    axes = [axis for axis in range(operand.type.rank) if axis != feature]
    return Reduce([operand], [_splat(0, scalar)], axes, adder).results[0]


def _along(feature: Value, whole: TensorType, dimension: int) -> Value:
    """One number a feature, for each element."""
    return _result(BroadcastInDim(feature, (dimension,), result=whole))


# Wishes that one device has no use for


@pattern(ShardingConstraint, Reshard)
def sharding(op):
    """sharding_constraint(x) == x, on one device"""
    return op.input if op.input.type is op.result.type else None


# Older ops


@pattern(Broadcast)
def broadcast(op):
    """broadcast(x, sizes) == broadcast_in_dim(x, the last dimensions)"""
    rank = op.result.type.rank
    return BroadcastInDim(op.operand, tuple(range(rank - op.operand.type.rank, rank)), result=op.result.type)


@pattern(Dot)
def dot(op):
    """dot(x, y) == dot_general(x, y), the last dimension by the first"""
    numbers = DotDimensionNumbers((), (), (op.lhs.type.rank - 1,), (0,))
    return DotGeneral(op.lhs, op.rhs, numbers, precision_config=op.precision_config, result=op.result.type)


@pattern(TorchIndexSelect)
def torch_index_select(op):
    """A gather of slices that have extent 1 along `dim`, in step with the list along the batch."""
    operand, index, dim = op.operand.type, op.index.type, op.dim
    if not operand.is_static:
        return None
    batch = tuple(range(op.batch_dims))
    behind = dim + index.rank - op.batch_dims
    numbers = GatherDimensionNumbers(
        offset_dims=(*range(op.batch_dims, dim), *range(behind, op.result.type.rank)),
        collapsed_slice_dims=(dim,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
        start_index_map=(dim,),
        index_vector_dim=index.rank,
    )
    sizes = [1 if axis in (*batch, dim) else extent for axis, extent in enumerate(operand.shape)]
    return Gather(op.operand, op.index, numbers, sizes, result=op.result.type)


# CHLO: implicit broadcasting, constants, and loops over slices. Its functions have kernels of their own.


@pattern(*(op for op in OPS.values() if issubclass(op, BroadcastBinary)))
@pattern(BroadcastCompare, BroadcastComplex, BroadcastSelect, ChloConstant, ConstantLike, Scan)
def chlo(op):
    """What the op means in StableHLO's own ops."""
    is_static = all(kind.is_static for kind in (*op.operand_types, *op.result_types))
    return decompose(op, Rewriter(op)) if is_static else None


# Values in stretches that are not inserted yet


def _result(op) -> Value:
    return op.results[0]


def _splat(value: float, kind: TensorType) -> Value:
    return _result(Constant(DenseElements.splat(np.asarray(value, kind.dtype), kind)))


def _wide(value: Value) -> Value:
    kind = value.type
    return value if kind.element_type.width >= 32 else _result(Convert(value, result=kind.with_element(F32)))


def _narrow(value: Value, kind: TensorType) -> Value:
    return value if value.type is kind else _result(Convert(value, result=kind))


def _as_results(op, *values: Value) -> tuple[Value, ...]:
    return tuple(_narrow(value, result.type) for value, result in zip(values, op.results, strict=True))
