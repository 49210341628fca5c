"""Attention of CUDA tensors: PyTorch has an op for each library that may compute it. They differ in what they save for
their backward ops, and mean the same. All of them multiply weights and the gradients of scores in the query's type when
they compute gradients, and so do we. Weights are dropped out by our own random numbers: what a forward op returns as
its seed is the state of the random generator, with which the backward op draws the same ones again."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.pytorch.attention import Dropped, attended, gradients
from trivium.importers.pytorch.context import STATE, Context, Randomness, rule
from trivium.importers.pytorch.random import below, masked, randomness
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64, UI64, ElementType, TensorType

PADDED = 32
"""The number of which one of the libraries saves a multiple, for the rows of each head."""


@rule("aten._scaled_dot_product_efficient_attention.default")
def efficient_attention(
    ctx: Context,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Value, ...]:
    """_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias,
    bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, float? scale=None)
    -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)"""
    seed, offset, dropped = _dropout(ctx, dropout_p)
    result, sums = attended(ctx, query, key, value, attn_bias, is_causal, scale, dropped)
    *batch, length = sums.type.static_shape
    if compute_log_sumexp:
        sums = ctx.pad(sums, [0, 0, 0], [0, 0, -length % PADDED])
    else:
        sums = ctx.full((*batch, 0), 0, sums.type.element_type)
    return result, sums, seed, offset


@rule("aten._scaled_dot_product_efficient_attention_backward.default")
def efficient_attention_backward(
    ctx: Context,
    grad_out_: Value,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    out: Value,
    logsumexp: Value,
    philox_seed: Value,
    philox_offset: Value,
    dropout_p: float,
    grad_input_mask: Sequence[bool],
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Value | None, ...]:
    """_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value,
    Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p,
    bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)"""
    sums = ctx.slice(logsumexp, 2, 0, query.type.static_shape[2])
    dropped = _dropout_again(ctx, dropout_p, philox_seed, philox_offset)
    *found, of_scores = gradients(
        ctx, grad_out_, query, key, value, out, sums, attn_bias, is_causal, scale, dropped, rounded=True
    )
    of_bias = None
    if attn_bias is not None and grad_input_mask[3]:
        of_bias = ctx.convert(of_scores, attn_bias.type.element_type)
    return *found, of_bias


@rule("aten._scaled_dot_product_flash_attention.default")
def flash_attention(
    ctx: Context,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Value | int | None, ...]:
    """_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.,
    bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp,
    Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused,
    Tensor debug_attn_mask)"""
    if return_debug_mask:
        ctx.unsupported("return_debug_mask", True, "False")
    state, unused, dropped = _dropout(ctx, dropout_p)
    result, sums = attended(ctx, query, key, value, None, is_causal, scale, dropped)
    lengths = query.type.static_shape[2], key.type.static_shape[2]
    return result, sums, None, None, *lengths, state, unused, ctx.full((0,), 0, query.type.element_type)


@rule("aten._scaled_dot_product_flash_attention_backward.default")
def flash_attention_backward(
    ctx: Context,
    grad_out: Value,
    query: Value,
    key: Value,
    value: Value,
    out: Value,
    logsumexp: Value,
    cum_seq_q: None,
    cum_seq_k: None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Value,
    philox_offset: Value,
    *,
    scale: float | None = None,
) -> tuple[Value, ...]:
    """_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out,
    Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal,
    Tensor philox_seed, Tensor philox_offset, *, float? scale=None)
    -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)"""
    dropped = _dropout_again(ctx, dropout_p, philox_seed, philox_offset)
    return gradients(ctx, grad_out, query, key, value, out, logsumexp, None, is_causal, scale, dropped, rounded=True)[
        :3
    ]


@rule("aten._scaled_dot_product_cudnn_attention.default")
def cudnn_attention(
    ctx: Context,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Value | int | None, ...]:
    """_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias,
    bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *,
    float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q,
    SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)"""
    if return_debug_mask:
        ctx.unsupported("return_debug_mask", True, "False")
    seed, offset, dropped = _dropout(ctx, dropout_p)
    result, sums = attended(ctx, query, key, value, attn_bias, is_causal, scale, dropped)
    lengths = query.type.static_shape[2], key.type.static_shape[2]
    return result, ctx.unsqueeze(sums, [3]), None, None, *lengths, seed, offset, None


@rule("aten._scaled_dot_product_cudnn_attention_backward.default")
def cudnn_attention_backward(
    ctx: Context,
    grad_out: Value,
    query: Value,
    key: Value,
    value: Value,
    out: Value,
    logsumexp: Value,
    philox_seed: Value,
    philox_offset: Value,
    attn_bias: Value | None,
    cum_seq_q: None,
    cum_seq_k: None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None = None,
) -> tuple[Value, ...]:
    """_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out,
    Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, Tensor attn_bias, Tensor cum_seq_q, Tensor cum_seq_k,
    SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, *, float? scale=None) -> (Tensor, Tensor, Tensor)"""
    dropped = _dropout_again(ctx, dropout_p, philox_seed, philox_offset)
    sums = ctx.squeeze(logsumexp, [3])
    return gradients(ctx, grad_out, query, key, value, out, sums, attn_bias, is_causal, scale, dropped, rounded=True)[
        :3
    ]


def _dropout(ctx: Context, p: float) -> tuple[Value, Value, Dropped | None]:
    """Returns what drops out weights with probability `p`, after what a forward op returns as its seed and its offset:
    together, the two words of the random generator's state. They are zero if nothing is drawn."""
    kinds = [kind for kind in ctx.results if kind is not None and kind.element_type in (I64, UI64)]
    seed, offset = (ctx.full(kind.static_shape, 0, kind.element_type) for kind in kinds)
    if not p:
        return seed, offset, None
    state = randomness(ctx).state
    if kinds[0].shape == STATE.shape:
        seed = state
    else:
        seed, offset = (_word(ctx, state, place, kind.element_type) for place, kind in enumerate(kinds))
    return seed, offset, _dropped(ctx, p)


def _dropout_again(ctx: Context, p: float, seed: Value, offset: Value) -> Dropped | None:
    """Returns what drops out the same weights again."""
    if not p:
        return None
    if seed.type.shape != STATE.shape:
        words = (ctx.reshape(ctx.add(ops.BitcastConvert(x, result=TensorType((), UI64))), (1,)) for x in (seed, offset))
        seed = ctx.concatenate(list(words), 0)
    inner = ctx.copied()
    inner.randomness = Randomness(ctx.block, seed)
    return _dropped(inner, p)


def _dropped(ctx: Context, p: float) -> Dropped:
    """Returns what drops out the same elements of all values that it is given: it draws once."""
    found: list[Value] = []

    def dropped(x: Value) -> Value:
        if not found:
            found.append(below(ctx, x.type.static_shape, 1 - p))
        return masked(ctx, x, found[0], p)

    return dropped


def _word(ctx: Context, state: Value, place: int, kind: ElementType) -> Value:
    word = ctx.reshape(ctx.slice(state, 0, place, place + 1), ())
    return ctx.add(ops.BitcastConvert(word, result=TensorType((), kind)))
