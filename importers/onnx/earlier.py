"""Operators as earlier operator sets define them: attributes in place of inputs, other defaults, and the broadcasting
of operator sets before 7, which aligns the second operand at an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.onnx import contraction, elementwise, indexing, normalization, randomness, reduction, slicing
from trivium.importers.onnx import shape as shape_rules
from trivium.importers.onnx.context import Context, axis_of, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


def _list(ctx: Context, numbers: Sequence[int] | None) -> Value | None:
    return None if numbers is None else ctx.elements(np.array(numbers, np.int64))


def _aligned(ctx: Context, a: Value, b: Value, broadcast: int, axis: int | None) -> Value:
    """Returns `b` so that NumPy's broadcasting aligns it with `a` as operator sets before 7 did: at `axis`, or at the
    end."""
    if not broadcast:
        if a.type.shape != b.type.shape:
            ctx.unsupported("broadcast", 0, "operands of one shape")
        return b
    if axis is None:
        return b
    behind = a.type.rank - b.type.rank - axis_of(axis, a.type.rank)
    return ctx.reshape(b, (*b.type.shape, *[1] * behind))


@rule(*elementwise.BINARY, "Pow")
def binary(ctx: Context, a: Value, b: Value, broadcast: int = 0, axis: int | None = None) -> Value:
    """Add(A, B, broadcast, axis)"""
    op = {**elementwise.BINARY, "Pow": ops.Power}[ctx.op]
    return ctx.binary(op, a, _aligned(ctx, a, b, broadcast, axis))


@rule(*elementwise.COMPARISONS)
def comparison(ctx: Context, a: Value, b: Value, broadcast: int = 0, axis: int | None = None) -> Value:
    """Equal(A, B, broadcast, axis)"""
    return ctx.compare(elementwise.COMPARISONS[ctx.op], a, _aligned(ctx, a, b, broadcast, axis))


@rule("PRelu")
def prelu(ctx: Context, x: Value, slope: Value) -> Value:
    """PRelu(X, slope): one slope for all channels, or one for each"""
    shape = (slope.type.size, *[1] * (x.type.rank - 2)) if slope.type.size > 1 else ()
    return elementwise.prelu(ctx, x, ctx.reshape(slope, shape))


@rule("Softmax", "LogSoftmax", "Hardmax")
def softmax(ctx: Context, x: Value, axis: int = 1) -> Value:
    """Softmax(input, axis): over all dimensions from `axis` on"""
    axis = axis_of(axis, x.type.rank)
    shape = ctx.extents(x)
    flat = ctx.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:])))
    later = elementwise.hardmax if ctx.op == "Hardmax" else elementwise.softmax
    return ctx.reshape(later(ctx, flat, axis=1), shape)


@rule("Clip")
def clip(ctx: Context, x: Value, min: float = -math.inf, max: float = math.inf) -> Value:
    """Clip(input, min, max)"""
    low, high = (ctx.scalar(bound, x.type.element_type) for bound in (min, max))
    return elementwise.clip(ctx, x, None if math.isinf(min) else low, None if math.isinf(max) else high)


@rule("Dropout", since=7)
def dropout(ctx: Context, x: Value, ratio: float = 0.5) -> Sequence[Value]:
    """Dropout(data, ratio), in inference"""
    return randomness.dropout(ctx, x)


@rule("Dropout")
def first_dropout(ctx: Context, x: Value, ratio: float = 0.5, is_test: int = 0) -> Sequence[Value]:
    """Dropout(data, ratio, is_test)"""
    if not is_test:
        ctx.unsupported("is_test", 0, "1")
    return randomness.dropout(ctx, x)


@rule("BatchNormalization")
def batch_normalization(
    ctx: Context, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, epsilon: float = 1e-5,
    momentum: float = 0.9, is_test: int = 0, spatial: int = 1,
) -> Sequence[Value]:  # fmt: skip
    """BatchNormalization(X, scale, B, mean, var, epsilon, momentum, is_test, spatial)"""
    if not is_test:
        ctx.unsupported("is_test", 0, "1")
    made = normalization.batch_normalization(ctx, x, scale, bias, mean, variance, epsilon, momentum, 0, spatial)
    return [made] if isinstance(made, Value) else made


@rule("Gemm")
def gemm(
    ctx: Context, a: Value, b: Value, c: Value, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0, broadcast: int = 0,
) -> Value:  # fmt: skip
    """Gemm(A, B, C, alpha, beta, transA, transB, broadcast)"""
    return contraction.gemm(ctx, a, b, c, alpha, beta, transA, transB)


@rule("Reshape")
def reshape(ctx: Context, x: Value, shape: Sequence[int]) -> Value:
    """Reshape(data, shape)"""
    return shape_rules.reshape(ctx, x, ctx.elements(np.array(shape, np.int64)))


@rule("Squeeze")
def squeeze(ctx: Context, x: Value, axes: Sequence[int] | None = None) -> Value:
    """Squeeze(data, axes)"""
    return shape_rules.squeeze(ctx, x, _list(ctx, axes))


@rule("Unsqueeze")
def unsqueeze(ctx: Context, x: Value, axes: Sequence[int]) -> Value:
    """Unsqueeze(data, axes)"""
    return shape_rules.unsqueeze(ctx, x, ctx.elements(axes, I64))


@rule("Slice")
def slice_(
    ctx: Context, x: Value, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None = None
) -> Value:
    """Slice(data, axes, ends, starts)"""
    return slicing.slice_(ctx, x, ctx.elements(starts, I64), ctx.elements(ends, I64), _list(ctx, axes))


@rule("Split", since=2)
def split(ctx: Context, x: Value, axis: int = 0, split: Sequence[int] | None = None) -> Sequence[Value]:
    """Split(input, axis, split)"""
    return shape_rules.split(ctx, x, _list(ctx, split), axis)


@rule("Pad", since=2)
def pad(ctx: Context, x: Value, pads: Sequence[int], mode: str = "constant", value: float = 0.0) -> Value:
    """Pad(data, mode, pads, value)"""
    return slicing.pad(ctx, x, ctx.elements(pads, I64), ctx.scalar(value, x.type.element_type), mode=mode)


@rule("Pad")
def first_pad(ctx: Context, x: Value, paddings: Sequence[int], mode: str = "constant", value: float = 0.0) -> Value:
    """Pad(data, mode, paddings, value)"""
    return pad(ctx, x, paddings, mode, value)


@rule("Concat")
def concat(ctx: Context, *values: Value, axis: int = 1) -> Value:
    """Concat(inputs, axis)"""
    return shape_rules.concat(ctx, *values, axis=axis)


@rule("TopK")
def top_k(ctx: Context, x: Value, k: int, axis: int = -1) -> Sequence[Value]:
    """TopK(X, axis, k)"""
    return reduction.top_k(ctx, x, ctx.elements([k], I64), axis)


@rule("Scatter", since=9)
def scatter(ctx: Context, x: Value, indices: Value, updates: Value, axis: int = 0) -> Value:
    """Scatter(data, indices, updates, axis): the first name of ScatterElements"""
    return indexing.scatter_elements(ctx, x, indices, updates, axis)
