"""Scaled dot-product attention as products, a mask and a softmax; the compiler recognizes the pattern."""

from __future__ import annotations

import math
from collections.abc import Callable

from trivium.importers.emit import accumulation_type
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.random import dropped_out
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, is_boolean

Dropped = Callable[[Value], Value]
"""Returns weights of attention, or their gradients, of which some have become zero and the others larger."""


@rule("aten.scaled_dot_product_attention.default")
def scaled_dot_product_attention(
    ctx: Context,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.,
    bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor"""
    if enable_gqa:
        key, value = (repeated_heads(ctx, x, query.type.shape[-3]) for x in (key, value))
    weights, _ = _weights(ctx, query, key, attn_mask, is_causal, scale)
    if dropout_p:
        weights, _ = dropped_out(ctx, weights, dropout_p)
    return ctx.convert(ctx.matmul(weights, ctx.convert(value, weights.type.element_type)), ctx.result.element_type)


@rule("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(
    ctx: Context,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Value, Value]:
    """_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.,
    bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)"""
    if dropout_p:
        ctx.unsupported("dropout_p", dropout_p, "0")
    return attended(ctx, query, key, value, attn_mask, is_causal, scale)


@rule("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def flash_attention_backward(
    ctx: Context,
    grad_out: Value,
    query: Value,
    key: Value,
    value: Value,
    out: Value,
    logsumexp: Value,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Value, ...]:
    """_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value,
    Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None)
    -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)"""
    if dropout_p:
        ctx.unsupported("dropout_p", dropout_p, "0")
    return gradients(ctx, grad_out, query, key, value, out, logsumexp, attn_mask, is_causal, scale)[:3]


def attended(
    ctx: Context,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    causal: bool,
    scale: float | None,
    dropped: Dropped | None = None,
) -> tuple[Value, Value]:
    """Returns the result of attention, and the logarithm of the softmax's denominators, from which `gradients`
    recomputes the weights. `dropped`: what becomes of the weights."""
    key, value = (repeated_heads(ctx, x, query.type.shape[-3]) for x in (key, value))
    weights, sums = _weights(ctx, query, key, mask, causal, scale)
    if dropped is not None:
        weights = dropped(weights)
    result = ctx.matmul(weights, ctx.convert(value, weights.type.element_type))
    result = ctx.convert(result, query.type.element_type)
    return result, sums()


def gradients(
    ctx: Context,
    grad_out: Value,
    query: Value,
    key: Value,
    value: Value,
    out: Value,
    logsumexp: Value,
    mask: Value | None,
    causal: bool,
    scale: float | None,
    dropped: Dropped | None = None,
    rounded: bool = False,
) -> tuple[Value, Value, Value, Value]:
    """Returns the gradients of the query, the keys, the values, and, in the type of sums, of what the mask adds to each
    score. `rounded`: weights, and their gradients, are rounded to the query's type before they are multiplied."""
    kind = query.type.element_type
    wide = accumulation_type(kind)
    grad_out, query, key, value, out = (ctx.convert(x, wide) for x in (grad_out, query, key, value, out))
    own = key.type.shape[-3]
    key, value = (repeated_heads(ctx, x, query.type.shape[-3]) for x in (key, value))
    last = query.type.rank - 1
    scores = _scores(ctx, query, key, mask, causal, scale)
    total = ctx.unsqueeze(ctx.convert(logsumexp, wide), [last])
    if mask is not None:
        total = _finite(ctx, total)
    weights = ctx.add(ops.Exponential(ctx.minus(scores, total)))
    swap = [*range(last - 1), last, last - 1]
    used, of_weights = weights, ctx.matmul(grad_out, ctx.transpose(value, swap))
    if dropped is not None:
        used, of_weights = dropped(weights), dropped(of_weights)
    if rounded:
        used = ctx.convert(ctx.convert(used, kind), wide)
    of_value = ctx.matmul(ctx.transpose(used, swap), grad_out)
    share = ctx.reduce(ops.Add, ctx.times(grad_out, out), (last,), keep=True)
    of_scores = ctx.times(weights, ctx.minus(of_weights, share))
    factor = ctx.convert(ctx.convert(of_scores, kind), wide) if rounded else of_scores
    of_query = _scaled(ctx, ctx.matmul(factor, key), query, scale)
    of_key = _scaled(ctx, ctx.matmul(ctx.transpose(factor, swap), query), query, scale)
    of_key, of_value = (_summed_heads(ctx, x, own) for x in (of_key, of_value))
    return ctx.convert(of_query, kind), ctx.convert(of_key, kind), ctx.convert(of_value, kind), of_scores


def _weights(
    ctx: Context, query: Value, key: Value, mask: Value | None, causal: bool, scale: float | None
) -> tuple[Value, Callable[[], Value]]:
    """Returns the same as `softmax_of`, of the scores of queries and keys."""
    wide = accumulation_type(query.type.element_type)
    scores = _scores(ctx, ctx.convert(query, wide), ctx.convert(key, wide), mask, causal, scale)
    return softmax_of(ctx, scores, mask is not None)


def softmax_of(ctx: Context, scores: Value, masked: bool) -> tuple[Value, Callable[[], Value]]:
    """Returns the softmax of scores along the last dimension, and a function that computes the logarithm of its
    denominators: after the weights' last use, so that the kernel of attention can leave what it needs. If some scores
    are `masked`, by minus infinity, rows without any other score are zero."""
    last = (scores.type.rank - 1,)
    highest = ctx.reduce(ops.Maximum, scores, last, keep=True)
    if masked:
        highest = _finite(ctx, highest)
    power = ctx.add(ops.Exponential(ctx.minus(scores, highest)))
    total = ctx.reduce(ops.Add, power, last, keep=True)
    divisor = total
    if masked:
        divisor = ctx.select(ctx.compare("EQ", total, ctx.scalar_like(0, total)), ctx.full_like(total, 1), total)

    def logsumexp() -> Value:
        return ctx.squeeze(ctx.plus(ctx.add(ops.Log(total)), highest), last)

    return ctx.over(power, divisor), logsumexp


def _scores(ctx: Context, query: Value, key: Value, mask: Value | None, causal: bool, scale: float | None) -> Value:
    """Returns `query @ key.T * scale`, with minus infinity where the mask forbids."""
    rank = key.type.rank
    transposed = ctx.transpose(key, [*range(rank - 2), rank - 1, rank - 2])
    scores = ctx.matmul(_scaled(ctx, query, query, scale), transposed)
    kind = scores.type.element_type
    if causal:
        rows, columns = (ctx.iota(ctx.extents(scores)[-2:], d) for d in range(2))
        scores = ctx.select(ctx.compare("GE", rows, columns), scores, ctx.scalar(-math.inf, kind))
    if mask is None:
        return scores
    if is_boolean(mask.type.element_type):
        return ctx.select(mask, scores, ctx.scalar(-math.inf, kind))
    return ctx.plus(scores, ctx.convert(mask, kind))


def _scaled(ctx: Context, x: Value, query: Value, scale: float | None) -> Value:
    """Returns `x` times a factor, by default one over the root of the number of the query's features."""
    if scale is not None:
        return ctx.scaled(x, scale)
    features = ctx.extent(query, query.type.rank - 1)
    if isinstance(features, int):
        return ctx.scaled(x, 1 / math.sqrt(features))
    factor = ctx.over(ctx.scalar(1, F64), ctx.add(ops.Sqrt(ctx.number_as(features, F64))))
    return ctx.times(x, ctx.convert(factor, x.type.element_type))


def _finite(ctx: Context, x: Value) -> Value:
    """Returns `x` with zero for minus infinity, so that a row without any score does not become NaN."""
    infinite = ctx.compare("EQ", x, ctx.scalar_like(-math.inf, x))
    return ctx.select(infinite, ctx.full_like(x, 0), x)


def repeated_heads(ctx: Context, x: Value, heads: int) -> Value:
    """Repeats each head of keys or values for the query heads that share it."""
    if x.type.shape[-3] == heads:
        return x
    *batch, own, length, width = ctx.extents(x)
    if not isinstance(own, int):
        ctx.unsupported("key", "a dynamic number of heads", "one that is known")
    count = len(batch)
    spread = (*batch, own, heads // own, length, width)
    dimensions = [*range(count + 1), count + 2, count + 3]
    return ctx.reshape(ctx.broadcast_in_dim(x, spread, dimensions), (*batch, heads, length, width))


def _summed_heads(ctx: Context, x: Value, own: int) -> Value:
    """Returns the gradient of heads that query heads share: the sum over those."""
    *batch, heads, length, width = ctx.extents(x)
    if heads == own:
        return x
    grouped = ctx.reshape(x, (*batch, own, heads // own, length, width))
    return ctx.reduce(ops.Add, grouped, (len(batch) + 1,))
