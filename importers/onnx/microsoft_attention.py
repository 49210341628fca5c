"""Attention as ONNX Runtime's operators have it: rotary embeddings, masks of four kinds, caches of keys and values, and
groups of heads that share them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent, larger, scalar_of
from trivium.importers.onnx.context import Context, rule
from trivium.importers.onnx.contraction import matmul
from trivium.importers.onnx.microsoft_quantized import matmul_integer_to_float
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I64

# Rotary embeddings


@rule("com.microsoft::RotaryEmbedding")
def rotary_embedding(
    ctx: Context, x: Value, positions: Value, cosines: Value, sines: Value, interleaved: int = 0,
    is_packed_batching: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0, scale: float = 1.0,
) -> Value:  # fmt: skip
    """RotaryEmbedding(input, position_ids, cos_cache, sin_cache, interleaved, num_heads, rotary_embedding_dim): of
    [batch, length, heads * size], or [batch, heads, length, size]"""
    if scale != 1 or is_packed_batching:
        ctx.unsupported("scale", f"{scale}, packed batches {is_packed_batching}", "1, and batches that are not packed")
    shape = ctx.extents(x)
    if x.type.rank == 4:
        heads = ctx.transpose(x, (0, 2, 1, 3))
    else:
        size = shape[2] // num_heads if num_heads else 2 * ctx.extent(cosines, 1)
        heads = ctx.reshape(x, (*shape[:2], *_heads(ctx, shape[2], size, num_heads)))
    if positions.type.rank == 1:  # the position of the first element
        start = ctx.unsqueeze(ctx.convert(positions, I64), [0])
        positions = ctx.plus(start, ctx.unsqueeze(ctx.iota([ctx.extent(heads, 1)], 0), [0]))
    turned = rotated(ctx, heads, positions, cosines, sines, bool(interleaved))
    return ctx.transpose(turned, (0, 2, 1, 3)) if x.type.rank == 4 else ctx.reshape(turned, shape)


def _heads(ctx: Context, total: Extent, size: Extent, count: int) -> tuple[Extent, Extent]:
    if count:
        return count, size
    if not isinstance(total, int) or not isinstance(size, int):
        ctx.unsupported("num_heads", 0, "a number, since sizes of the input are open")
    return total // size, size


def rotated(ctx: Context, x: Value, positions: Value, cosines: Value, sines: Value, interleaved: bool) -> Value:
    """Returns `x` [batch, length, heads, size] with pairs of its elements turned by angles that belong to positions
    [batch or 1, length]. Elements beyond those that have an angle stay."""
    half = int(cosines.type.static_shape[1])
    turning, rest = ctx.slice(x, 3, 0, 2 * half), ctx.slice(x, 3, 2 * half, ctx.extent(x, 3))
    cosine, sine = (ctx.unsqueeze(ctx.take(table, positions), [2]) for table in (cosines, sines))
    shape = ctx.extents(turning)
    if interleaved:
        pairs = ctx.reshape(turning, (*shape[:3], half, 2))
        parts = [ctx.squeeze(ctx.slice(pairs, 4, i, i + 1), [4]) for i in range(2)]
    else:
        parts = [ctx.slice(turning, 3, 0, half), ctx.slice(turning, 3, half, 2 * half)]
    first = ctx.minus(ctx.times(parts[0], cosine), ctx.times(parts[1], sine))
    second = ctx.plus(ctx.times(parts[0], sine), ctx.times(parts[1], cosine))
    if interleaved:
        both = ctx.concatenate([ctx.unsqueeze(part, [4]) for part in (first, second)], 4)
        turned = ctx.reshape(both, shape)
    else:
        turned = ctx.concatenate([first, second], 3)
    return turned if rest.type.shape[3] == 0 else ctx.concatenate([turned, rest], 3)


# Attention


def attended(
    ctx: Context, query: Value, key: Value, value: Value, scale: float, added: Sequence[Value], softcap: float = 0.0,
    sink: Value | None = None,
) -> Value:  # fmt: skip
    """Returns the attention of `query` [batch, heads, group, length, size] to `key` and `value` [batch, heads, total,
    size]; `added` is added to scores [batch, heads, group, length, total]. A `sink` takes part in each sum as one more
    score."""
    kind = accumulation_type(query.type.element_type)
    query, key, value = (ctx.convert(x, kind) for x in (query, key, value))
    batch = (0, 1)
    scores = ctx.scaled(ctx.dot(query, key, ([4], [3]), (batch, batch)), scale or 1 / math.sqrt(key.type.shape[3]))
    if softcap:
        scores = ctx.scaled(ctx.add(ops.Tanh(ctx.scaled(scores, 1 / softcap))), softcap)
    for x in added:
        scores = ctx.plus(scores, ctx.convert(x, kind))
    top = ctx.reduce(ops.Maximum, scores, [4], keep=True)
    if sink is not None:
        top = ctx.binary(ops.Maximum, top, sink)
    powers = ctx.add(ops.Exponential(ctx.minus(scores, top)))
    sums = ctx.reduce(ops.Add, powers, [4], keep=True)
    if sink is not None:
        sums = ctx.plus(sums, ctx.add(ops.Exponential(ctx.minus(sink, top))))
    return ctx.dot(ctx.over(powers, sums), value, ([4], [2]), (batch, batch))


def _later(ctx: Context, count: Extent, total: Extent) -> Value:
    """Returns what is added to scores [count, total] so that none of the last `count` attends to later ones."""
    first = scalar_of(ctx, total - count)
    last = ctx.plus(ctx.iota([count, 1], 0), first)
    kept = ctx.compare("LE", ctx.iota([1, total], 1), last)
    return _penalty(ctx, kept, float(np.finfo(np.float32).min))


def _penalty(ctx: Context, kept: Value, amount: float) -> Value:
    """Returns 0 where something is kept, a number elsewhere."""
    return ctx.select(kept, ctx.scalar(0, F32), ctx.scalar(amount, F32))


def _of_mask(ctx: Context, mask: Value, total: Extent, amount: float) -> Value:
    """Returns what a mask adds to scores: one of lengths [batch], of elements [batch, total], or of pairs [batch,
    length, total]."""
    match mask.type.rank:
        case 1:
            kept = ctx.compare(
                "LT", ctx.unsqueeze(ctx.iota([total], 0, mask.type.element_type), [0]), ctx.unsqueeze(mask, [1])
            )
            return ctx.unsqueeze(_penalty(ctx, kept, amount), [1, 2, 3])
        case 2:
            return ctx.unsqueeze(_penalty(ctx, ctx.compare("GT", mask, ctx.full_like(mask, 0)), amount), [1, 2, 3])
        case 3:
            return ctx.unsqueeze(_penalty(ctx, ctx.compare("GT", mask, ctx.full_like(mask, 0)), amount), [1, 2])
        case _:
            ctx.unsupported("mask", f"type {mask.type}", "1, 2 or 3 dimensions")


def _by_heads(ctx: Context, x: Value, heads: int) -> Value:
    """Returns `x` [batch, length, heads * size] as [batch, heads, length, size]."""
    batch, length, total = ctx.extents(x)
    return ctx.transpose(ctx.reshape(x, (batch, length, heads, total // heads)), (0, 2, 1, 3))


def _split(ctx: Context, x: Value, dimension: int, sizes: Sequence[Extent]) -> list[Value]:
    """Returns parts of a dimension, one behind the other."""
    starts = [0, *accumulate(sizes)]
    return [ctx.slice(x, dimension, start, start + size) for start, size in zip(starts, sizes, strict=False)]


def _joined(ctx: Context, x: Value) -> Value:
    """Returns `x` [batch, heads, group, length, size] as [batch, length, heads * group * size]."""
    batch, heads, group, length, size = ctx.extents(x)
    return ctx.reshape(ctx.transpose(x, (0, 3, 1, 2, 4)), (batch, length, heads * group * size))


def _self_attention(
    ctx: Context, query: Value, key: Value, value: Value, scale: float, masks: Sequence[Value], causal: bool
) -> Value:
    """Returns the attention of [batch, heads, length, size] to as many heads."""
    added = [mask if mask.type.rank == 5 else ctx.unsqueeze(mask, [2]) for mask in masks]
    if causal:
        added.append(_later(ctx, ctx.extent(query, 2), ctx.extent(key, 2)))
    kind = query.type.element_type
    return ctx.convert(_joined(ctx, attended(ctx, ctx.unsqueeze(query, [2]), key, value, scale, added)), kind)


@rule("com.microsoft::MultiHeadAttention")
def multi_head_attention(
    ctx: Context, query: Value, key: Value | None = None, value: Value | None = None, bias: Value | None = None,
    padding: Value | None = None, attention_bias: Value | None = None, past_key: Value | None = None,
    past_value: Value | None = None, *, num_heads: int, mask_filter_value: float = -10000.0, scale: float = 0.0,
    unidirectional: int = 0,
) -> Sequence[Value]:  # fmt: skip
    """MultiHeadAttention(query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value, num_heads,
    mask_filter_value, scale, unidirectional)"""
    if ctx.outputs > 3:
        ctx.unsupported("outputs", f"{ctx.outputs} outputs", "3: scores are not returned")
    if query.type.rank == 5:
        query, key, value = _unpacked(ctx, query, 3)
    elif key is not None and key.type.rank == 5:
        key, value = _unpacked(ctx, key, 2)
    if key is None or value is None:
        ctx.unsupported("key", "nothing", "keys and values, or a query that has them")
    parts = [query, key, value]
    if bias is not None:
        sizes = [x.type.shape[2] if x.type.rank == 3 else num_heads * x.type.shape[3] for x in parts]
        parts = [_biased(ctx, x, part, num_heads) for x, part in zip(parts, _split(ctx, bias, 0, sizes), strict=True)]
    query, key, value = (x if x.type.rank == 4 else _by_heads(ctx, x, num_heads) for x in parts)
    if past_key is not None and past_value is not None:
        key, value = ctx.concatenate([past_key, key], 2), ctx.concatenate([past_value, value], 2)
    masks = [] if attention_bias is None else [attention_bias]
    if padding is not None:
        masks.append(_of_mask(ctx, padding, ctx.extent(key, 2), mask_filter_value))
    return [_self_attention(ctx, query, key, value, scale, masks, bool(unidirectional)), key, value]


def _unpacked(ctx: Context, x: Value, count: int) -> list[Value]:
    """Returns the parts of `x` [batch, length, heads, count, size], as [batch, length, heads * size]."""
    batch, length, heads, _, size = ctx.extents(x)
    return [ctx.reshape(ctx.slice(x, 3, i, i + 1), (batch, length, heads * size)) for i in range(count)]


def _biased(ctx: Context, x: Value, bias: Value, heads: int) -> Value:
    if x.type.rank == 3:
        return ctx.plus(x, bias)
    return ctx.plus(x, ctx.reshape(bias, (1, heads, 1, bias.type.size // heads)))


@rule("com.microsoft::Attention")
def attention(
    ctx: Context, x: Value, weights: Value, bias: Value | None = None, mask: Value | None = None,
    past: Value | None = None, attention_bias: Value | None = None, *, num_heads: int,
    mask_filter_value: float = -10000.0, qkv_hidden_sizes: Sequence[int] | None = None, scale: float = 0.0,
    unidirectional: int = 0, do_rotary: int = 0, past_present_share_buffer: int = 0, rotary_embedding_dim: int = 0,
) -> Sequence[Value]:  # fmt: skip
    """Attention(input, weights, bias, mask_index, past, attention_bias, num_heads, mask_filter_value,
    qkv_hidden_sizes, scale, unidirectional, ...): of an input to itself"""
    if do_rotary or past_present_share_buffer:
        ctx.unsupported("do_rotary", f"{do_rotary}, shared buffers {past_present_share_buffer}", "0, and buffers apart")
    projected = matmul(ctx, x, weights)
    projected = projected if bias is None else ctx.plus(projected, bias)
    sizes = qkv_hidden_sizes or [int(weights.type.shape[1]) // 3] * 3
    return _of_projection(
        ctx, projected, sizes, mask, past, attention_bias, num_heads=num_heads, mask_filter_value=mask_filter_value,
        scale=scale, unidirectional=unidirectional,
    )  # fmt: skip


@rule("com.microsoft::QAttention")
def quantized_attention(
    ctx: Context, x: Value, weights: Value, bias: Value, x_scale: Value, weight_scale: Value, mask: Value | None = None,
    x_zero: Value | None = None, weight_zero: Value | None = None, past: Value | None = None, *, do_rotary: int = 0,
    past_present_share_buffer: int = 0, **options: Any,
) -> Sequence[Value]:  # fmt: skip
    """QAttention(input, weight, bias, input_scale, weight_scale, mask_index, input_zero_point, weight_zero_point, past,
    num_heads, mask_filter_value, scale, unidirectional, ...): Attention of an input that integers express"""
    if do_rotary or past_present_share_buffer:
        ctx.unsupported("do_rotary", f"{do_rotary}, shared buffers {past_present_share_buffer}", "0, and buffers apart")
    projected = matmul_integer_to_float(ctx, x, weights, x_scale, weight_scale, x_zero, weight_zero, bias)
    return _of_projection(ctx, projected, [int(weights.type.shape[1]) // 3] * 3, mask, past, **options)


def _of_projection(
    ctx: Context, projected: Value, sizes: Sequence[int], mask: Value | None, past: Value | None,
    attention_bias: Value | None = None, *, num_heads: int, mask_filter_value: float = -10000.0, scale: float = 0.0,
    unidirectional: int = 0,
) -> Sequence[Value]:  # fmt: skip
    """Returns attention of an input to itself, and the keys and values of all its elements if they are a result, from
    its queries, keys and values [batch, length, sum of sizes]."""
    query, key, value = (_by_heads(ctx, part, num_heads) for part in _split(ctx, projected, 2, sizes))
    if past is not None:
        before = [ctx.squeeze(ctx.slice(past, 0, i, i + 1), [0]) for i in range(2)]
        key, value = (ctx.concatenate(pair, 2) for pair in zip(before, (key, value), strict=True))
    masks = [] if attention_bias is None else [attention_bias]
    if mask is not None:
        if mask.type.rank == 1 and mask.type.shape != projected.type.shape[:1]:
            ctx.unsupported("mask_index", f"type {mask.type}", "one length for each entry of the batch")
        masks.append(_of_mask(ctx, mask, ctx.extent(key, 2), mask_filter_value))
    result = _self_attention(ctx, query, key, value, scale, masks, bool(unidirectional))
    if ctx.outputs == 1:
        return [result]
    return [result, ctx.concatenate([ctx.unsqueeze(part, [0]) for part in (key, value)], 0)]


# Groups of heads that share keys and values


@rule("com.microsoft::GroupQueryAttention")
def group_query_attention(
    ctx: Context, query: Value, key: Value | None, value: Value | None, past_key: Value | None,
    past_value: Value | None, lengths: Value, total: Value, cosines: Value | None = None, sines: Value | None = None,
    positions: Value | None = None, attention_bias: Value | None = None, sink: Value | None = None, *, num_heads: int,
    kv_num_heads: int, causal: int = 1, do_rotary: int = 0, local_window_size: int = -1, rotary_interleaved: int = 0,
    scale: float = 0.0, smooth_softmax: int = 0, softcap: float = 0.0, qk_output: int = 0,
) -> Sequence[Value]:  # fmt: skip
    """GroupQueryAttention(query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache,
    sin_cache, position_ids, attention_bias, head_sink, num_heads, kv_num_heads, causal, do_rotary, local_window_size,
    rotary_interleaved, scale, smooth_softmax, softcap): each entry of a batch has so many keys before"""
    if qk_output or not causal:
        ctx.unsupported("causal", f"{causal}, qk_output {qk_output}", "1, and scores that are not returned")
    batch, length, width = ctx.extents(query)
    if key is None or value is None:
        size = width // (num_heads + 2 * kv_num_heads)
        sizes = [heads * size for heads in (num_heads, kv_num_heads, kv_num_heads)]
        query, key, value = _split(ctx, query, 2, sizes)
    parts = [
        ctx.reshape(x, (batch, length, heads, ctx.extent(x, 2) // heads))
        for x, heads in ((query, num_heads), (key, kv_num_heads), (value, kv_num_heads))
    ]
    before = ctx.minus(ctx.plus(ctx.convert(lengths, I64), ctx.scalar(1, I64)), scalar_of(ctx, length))
    before = ctx.reshape(ctx.binary(ops.Maximum, before, ctx.scalar(0, I64)), (batch, 1))
    places = ctx.plus(before, ctx.unsqueeze(ctx.iota([length], 0), [0]))
    if do_rotary:
        assert cosines is not None
        assert sines is not None
        angles = places if positions is None else positions
        parts[:2] = [rotated(ctx, x, angles, cosines, sines, bool(rotary_interleaved)) for x in parts[:2]]
    most = ctx.number(total, "total_sequence_length")
    caches = [_cached(ctx, old, new, before, most) for old, new in ((past_key, parts[1]), (past_value, parts[2]))]
    added = [_window(ctx, places, ctx.extent(caches[0], 2), local_window_size)]
    if attention_bias is not None:
        added.append(_grouped(ctx, attention_bias, kv_num_heads))
    extra = (
        None
        if sink is None
        else ctx.convert(ctx.reshape(sink, (1, kv_num_heads, num_heads // kv_num_heads, 1, 1)), F32)
    )
    extra = ctx.scalar(0, F32) if extra is None and smooth_softmax > 0 else extra
    grouped = _grouped(ctx, ctx.transpose(parts[0], (0, 2, 1, 3)), kv_num_heads)
    keys, values = caches
    found = attended(ctx, grouped, keys, values, scale, added, softcap, extra)
    return [ctx.convert(_joined(ctx, found), query.type.element_type), keys, values]


def _grouped(ctx: Context, x: Value, groups: int) -> Value:
    """Returns `x` [batch, heads or 1, ...] as [batch, groups or 1, heads of a group, ...]."""
    batch, heads, *rest = ctx.extents(x)
    return ctx.unsqueeze(x, [1]) if heads == 1 else ctx.reshape(x, (batch, groups, heads // groups, *rest))


def _cached(ctx: Context, old: Value | None, new: Value, before: Value, total: Extent) -> Value:
    """Returns the keys or values of a cache [batch, heads, length, size], with new ones [batch, length, heads, size]
    written behind the first `before` of each entry, and zeros behind these. It grows if it is shorter than `total`."""
    batch, length, heads, size = ctx.extents(new)
    kind = new.type.element_type
    old = ctx.full((batch, heads, 0, size), 0, kind) if old is None else old
    given = ctx.extent(old, 2)
    most = larger(ctx, given, total)
    room = ctx.pad(old, [0] * 4, [0, 0, most - given, 0])
    at = ctx.minus(ctx.unsqueeze(ctx.iota([most], 0), [0]), before)
    zero, end = ctx.scalar(0, I64), scalar_of(ctx, length)
    is_new = ctx.binary(ops.And, ctx.compare("GE", at, zero), ctx.compare("LT", at, end))
    numbers = ops.GatherDimensionNumbers(
        offset_dims=(2, 3), collapsed_slice_dims=(1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,),
        start_index_map=(1,), index_vector_dim=2,
    )  # fmt: skip
    taken = ctx.gather(new, ctx.unsqueeze(ctx.select(is_new, at, zero), [2]), numbers, [1, 1, heads, size])
    is_new, is_old = (ctx.unsqueeze(x, [1, 3]) for x in (is_new, ctx.compare("LT", at, zero)))
    kept = ctx.select(is_old, room, ctx.scalar(0, kind))
    return ctx.select(is_new, ctx.transpose(taken, (0, 2, 1, 3)), kept)


def _window(ctx: Context, places: Value, total: Extent, window: int) -> Value:
    """Returns what is added to scores so that an element at a place [batch, length] attends to none after it, and to so
    many up to it."""
    place = ctx.unsqueeze(places, [2])
    at = ctx.unsqueeze(ctx.iota([total], 0), [0, 1])
    kept = ctx.compare("LE", at, place)
    if window > 0:
        near = ctx.compare("GT", at, ctx.minus(place, ctx.scalar(window, I64)))
        kept = ctx.binary(ops.And, kept, near)
    return ctx.unsqueeze(_penalty(ctx, kept, -math.inf), [1, 2])
