"""Operators that ONNX Runtime adds to ONNX's, which exporters and optimizers write: fused products, activations with a
bias, normalizations of sums, and products with packed weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import accumulation_type, in_single
from trivium.importers.onnx.context import Context, axis_of, rule
from trivium.importers.onnx.contraction import conv, gemm, matmul
from trivium.importers.onnx.elementwise import UNARY, gelu, leaky_relu, relu, softmax
from trivium.importers.onnx.shape import range_
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32, UI8, is_float

# Products


@rule("com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul")
def fused_matmul(
    ctx: Context, a: Value, b: Value, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0,
    transBatchB: int = 0,
) -> Value:  # fmt: skip
    """FusedMatMul(A, B, alpha, transA, transB, transBatchA, transBatchB)"""
    a, b = _turned(ctx, a, bool(transA), bool(transBatchA)), _turned(ctx, b, bool(transB), bool(transBatchB))
    return ctx.scaled(matmul(ctx, a, b), alpha)


def _turned(ctx: Context, x: Value, swaps: bool, moves: bool) -> Value:
    """Returns matrices whose rows were the first dimension, if it `moves`, and then transposed, if it `swaps`."""
    order = list(range(x.type.rank))
    if moves and len(order) > 2:
        order = [*order[1:-1], 0, order[-1]]
    if swaps and len(order) > 1:
        order[-2:] = reversed(order[-2:])
    return ctx.transpose(x, order)


@rule("com.microsoft::FusedGemm")
def fused_gemm(
    ctx: Context, a: Value, b: Value, c: Value | None = None, activation: str = "", activation_alpha: float = 0.01,
    activation_beta: float = 0.0, activation_gamma: float = 0.0, **options: float,
) -> Value:  # fmt: skip
    """FusedGemm(A, B, C, activation, ..., alpha, beta, transA, transB)"""
    return _activated(ctx, gemm(ctx, a, b, c, **options), activation, [activation_alpha])  # type: ignore[arg-type]


@rule("com.microsoft::FusedConv")
def fused_conv(
    ctx: Context, x: Value, w: Value, bias: Value | None = None, z: Value | None = None, activation: str = "",
    activation_params: Sequence[float] = (), **options: Sequence[int],
) -> Value:  # fmt: skip
    """FusedConv(X, W, B, Z, activation, activation_params, ...): the activation of a convolution plus Z"""
    result = conv(ctx, x, w, bias, **options)  # type: ignore[arg-type]
    return _activated(ctx, result if z is None else ctx.plus(result, z), activation, activation_params)


def _activated(ctx: Context, x: Value, name: str, numbers: Sequence[float]) -> Value:
    match name:
        case "":
            return x
        case "Relu":
            return relu(ctx, x)
        case "LeakyRelu":
            return leaky_relu(ctx, x, *numbers[:1])
        case "Sigmoid" | "Tanh":
            return ctx.add(UNARY[name](x))
        case "Clip":
            low, high = (ctx.scalar(number, x.type.element_type) for number in numbers)
            return ctx.add(ops.Clamp(low, x, high))
        case _:
            ctx.unsupported("activation", name, "Relu, LeakyRelu, Sigmoid, Tanh or Clip")


@rule("com.microsoft::MatMulNBits")
def matmul_n_bits(
    ctx: Context, a: Value, b: Value, scales: Value, zeros: Value | None = None, groups: Value | None = None,
    bias: Value | None = None, *, K: int, N: int, block_size: int, bits: int = 4, accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Value:  # fmt: skip
    """MatMulNBits(A, B, scales, zero_points, g_idx, bias, K, N, bits, block_size): weights of few bits, in blocks"""
    if bits not in (2, 4, 8) or weight_prepacked:
        ctx.unsupported("bits", f"{bits}, prepacked {weight_prepacked}", "2, 4 or 8, not packed for a processor")
    kind, blocks = a.type.element_type, -(-K // block_size)
    weights = _unpacked(ctx, ctx.reshape(b, (N, b.type.size // N)), bits)
    weights = ctx.convert(ctx.slice(weights, 1, 0, K), F32)
    if zeros is None:
        shift = ctx.full((N, blocks), 1 << (bits - 1), F32)
    elif is_float(zeros.type.element_type):
        shift = ctx.convert(ctx.reshape(zeros, (N, blocks)), F32)
    else:
        unpacked = _unpacked(ctx, ctx.reshape(zeros, (N, zeros.type.size // N)), bits)
        shift = ctx.convert(ctx.slice(unpacked, 1, 0, blocks), F32)
    steps = ctx.convert(ctx.reshape(scales, (N, blocks)), F32)
    block = ctx.elements(np.arange(K) // block_size) if groups is None else groups
    shift, steps = (ctx.take(x, block, 1) for x in (shift, steps))
    weights = ctx.convert(ctx.times(ctx.minus(weights, shift), steps), kind)
    product = ctx.dot(a, weights, ([a.type.rank - 1], [1]))
    return product if bias is None else ctx.plus(product, bias)


NORMAL_FLOATS = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""The numbers of NF4, the quantiles of the normal distribution, by their codes."""

_SHORT = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
SHORT_FLOATS = (*_SHORT, *(-x for x in _SHORT))
"""The numbers of FP4 by their codes."""


@rule("com.microsoft::MatMulBnb4")
def matmul_bnb4(
    ctx: Context, a: Value, b: Value, absmax: Value, *, K: int, N: int, block_size: int, quant_type: int,
    training_mode: int = 0, transB: int = 1,
) -> Value:  # fmt: skip
    """MatMulBnb4(A, B, absmax, K, N, block_size, quant_type, training_mode, transB): weights of 4 bits, in blocks of
    elements of all rows, with the largest one of each"""
    if quant_type not in (0, 1) or not transB:
        ctx.unsupported("quant_type", f"{quant_type}, transB {transB}", "0 (FP4) or 1 (NF4), and transB 1")
    numbers = np.array(NORMAL_FLOATS if quant_type else SHORT_FLOATS, np.float32)
    # Of each byte, the high bits come first.
    shifts = ctx.elements(np.array([4, 0], np.uint8))
    packed = ctx.reshape(b, (b.type.size, 1))
    codes = ctx.binary(ops.And, ctx.binary(ops.ShiftRightLogical, packed, shifts), ctx.scalar(15, UI8))
    codes = ctx.convert(ctx.slice(ctx.reshape(codes, (2 * b.type.size,)), 0, 0, N * K), I32)
    steps = ctx.take(ctx.convert(absmax, F32), ctx.elements(np.arange(N * K) // block_size))
    weights = ctx.reshape(ctx.times(ctx.take(ctx.elements(numbers), codes), steps), (N, K))
    return ctx.dot(a, ctx.convert(weights, a.type.element_type), ([a.type.rank - 1], [1]))


@rule("com.microsoft::GatherBlockQuantized")
def gather_block_quantized(
    ctx: Context, data: Value, indices: Value, scales: Value, zeros: Value | None = None, bits: int = 4,
    block_size: int = 128, gather_axis: int = 0, quantize_axis: int = 1,
) -> Value:  # fmt: skip
    """GatherBlockQuantized(data, indices, scales, zero_points, bits, block_size, gather_axis, quantize_axis): slices of
    integers of few bits, in blocks that have a scale each"""
    axis, blocks = axis_of(gather_axis, data.type.rank), axis_of(quantize_axis, data.type.rank)
    packed = data.type.element_type is UI8
    if axis == blocks or (packed and blocks != data.type.rank - 1):
        ctx.unsupported("quantize_axis", quantize_axis, f"the last one for bytes, and not gather_axis, {gather_axis}")
    count = ctx.scalar(int(data.type.shape[axis]), indices.type.element_type)
    indices = ctx.select(ctx.compare("LT", indices, ctx.full_like(indices, 0)), ctx.plus(indices, count), indices)
    place = blocks if blocks < axis else blocks + indices.type.rank - 1

    def taken(x: Value) -> Value:
        rows = ctx.take(x, indices, axis)
        if not packed or bits == 8:
            return ctx.convert(rows, F32)
        *batch, columns = ctx.extents(rows)
        apart = _unpacked(ctx, ctx.reshape(rows, (math.prod(batch), columns)), bits)
        return ctx.convert(ctx.reshape(apart, (*batch, columns * (8 // bits))), F32)

    numbers = taken(data)
    steps = ctx.take(scales, indices, axis)
    shift = ctx.full_like(numbers, 1 << (bits - 1) if packed else 0)
    block = ctx.elements(np.arange(numbers.type.static_shape[place]) // block_size)
    if zeros is not None:
        shift = ctx.take(taken(zeros), block, place)
    numbers = ctx.times(ctx.minus(numbers, shift), ctx.convert(ctx.take(steps, block, place), F32))
    return ctx.convert(numbers, scales.type.element_type)


def _unpacked(ctx: Context, x: Value, bits: int) -> Value:
    """Returns the numbers of `bits` bits in the bytes of each row, the low ones first."""
    rows, count = x.type.static_shape
    each = 8 // bits
    if each == 1:
        return x
    shifts = ctx.elements(np.arange(0, 8, bits, dtype=np.uint8))
    parts = ctx.binary(ops.ShiftRightLogical, ctx.unsqueeze(x, [2]), shifts)
    return ctx.reshape(ctx.binary(ops.And, parts, ctx.scalar((1 << bits) - 1, UI8)), (rows, count * each))


# Activations


@rule("com.microsoft::Gelu")
def plain_gelu(ctx: Context, x: Value) -> Value:
    """Gelu(X)"""
    return gelu(ctx, x)


@rule("com.microsoft::BiasGelu")
def bias_gelu(ctx: Context, x: Value, bias: Value) -> Value:
    """BiasGelu(A, B)"""
    return gelu(ctx, ctx.plus(x, bias))


@rule("com.microsoft::FastGelu")
def fast_gelu(ctx: Context, x: Value, bias: Value | None = None) -> Value:
    """FastGelu(X, bias): approximated by a hyperbolic tangent"""
    return gelu(ctx, x if bias is None else ctx.plus(x, bias), "tanh")


@rule("com.microsoft::QuickGelu")
@in_single
def quick_gelu(ctx: Context, x: Value, alpha: float = 1.702) -> Value:
    """QuickGelu(X, alpha)"""
    return ctx.times(x, ctx.add(ops.Logistic(ctx.scaled(x, alpha))))


@rule("com.microsoft::BiasSoftmax")
def bias_softmax(ctx: Context, x: Value, bias: Value, axis: int = 1, is_inner_broadcast: int = 1) -> Value:
    """BiasSoftmax(data, bias, axis, is_inner_broadcast): over all dimensions from `axis` on"""
    axis = axis_of(axis, x.type.rank)
    if axis != x.type.rank - 1 or not is_inner_broadcast:
        ctx.unsupported(
            "axis", f"{axis}, inner {is_inner_broadcast}", "the last one, and a bias that is broadcast to it"
        )
    return softmax(ctx, ctx.plus(x, bias), axis)


# Normalization


def _by_squares(ctx: Context, x: Value, scale: Value, dimensions: Sequence[int], epsilon: float) -> list[Value]:
    """Returns `x` divided by the root of the mean of its squares, and the reciprocal of that root."""
    wide = ctx.convert(x, accumulation_type(x.type.element_type))
    kind = wide.type.element_type
    mean = ctx.mean(ctx.times(wide, wide), dimensions, keep=True)
    inverse = ctx.add(ops.Rsqrt(ctx.plus(mean, ctx.scalar(epsilon, kind))))
    normal = ctx.times(ctx.times(wide, inverse), ctx.convert(scale, kind))
    return [ctx.convert(normal, x.type.element_type), inverse]


@rule("SimplifiedLayerNormalization", "com.microsoft::SimplifiedLayerNormalization")
def simplified_layer_normalization(
    ctx: Context, x: Value, scale: Value, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Sequence[Value]:
    """SimplifiedLayerNormalization(X, scale, axis, epsilon, stash_type): without a mean"""
    normal, inverse = _by_squares(ctx, x, scale, range(axis_of(axis, x.type.rank), x.type.rank), epsilon)
    return [ctx.convert(normal, scale.type.element_type), inverse]


@rule("com.microsoft::SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(
    ctx: Context, x: Value, skip: Value, gamma: Value, bias: Value | None = None, epsilon: float = 1e-5
) -> Sequence[Value]:
    """SkipSimplifiedLayerNormalization(input, skip, gamma, bias, epsilon)"""
    total, last = _sum(ctx, x, skip, bias), [x.type.rank - 1]
    normal, inverse = _by_squares(ctx, total, gamma, last, epsilon)
    return [normal, ctx.mean(ctx.convert(total, inverse.type.element_type), last, keep=True), inverse, total]


@rule("com.microsoft::SkipLayerNormalization")
def skip_layer_normalization(
    ctx: Context, x: Value, skip: Value, gamma: Value, beta: Value | None = None, bias: Value | None = None,
    epsilon: float = 1e-12,
) -> Sequence[Value]:  # fmt: skip
    """SkipLayerNormalization(input, skip, gamma, beta, bias, epsilon)"""
    total = _sum(ctx, x, skip, bias)
    return [*_normalized(ctx, total, gamma, beta, epsilon), total]


def _sum(ctx: Context, x: Value, skip: Value, bias: Value | None) -> Value:
    total = ctx.plus(x, skip)
    return total if bias is None else ctx.plus(total, bias)


def _normalized(ctx: Context, x: Value, gamma: Value, beta: Value | None, epsilon: float) -> list[Value]:
    """Returns `x` normalized along its last dimension, its mean, and the reciprocal of its deviation."""
    wide = ctx.convert(x, accumulation_type(x.type.element_type))
    kind, last = wide.type.element_type, [x.type.rank - 1]
    mean = ctx.mean(wide, last, keep=True)
    centered = ctx.minus(wide, mean)
    spread = ctx.mean(ctx.times(centered, centered), last, keep=True)
    inverse = ctx.add(ops.Rsqrt(ctx.plus(spread, ctx.scalar(epsilon, kind))))
    normal = ctx.times(ctx.times(centered, inverse), ctx.convert(gamma, kind))
    normal = normal if beta is None else ctx.plus(normal, ctx.convert(beta, kind))
    return [ctx.convert(normal, x.type.element_type), mean, inverse]


@rule("com.microsoft::EmbedLayerNormalization")
def embed_layer_normalization(
    ctx: Context, tokens: Value, segments: Value | None, words: Value, positions: Value, kinds: Value | None,
    gamma: Value, beta: Value, mask: Value | None = None, places: Value | None = None, epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> Sequence[Value]:  # fmt: skip
    """EmbedLayerNormalization(input_ids, segment_ids, word_embedding, position_embedding, segment_embedding, gamma,
    beta, mask, position_ids, epsilon, mask_index_type)"""
    places = ctx.unsqueeze(ctx.iota([ctx.extent(tokens, 1)], 0), [0]) if places is None else places
    total = ctx.plus(ctx.take(words, tokens), ctx.take(positions, places))
    if segments is not None and kinds is not None:
        total = ctx.plus(total, ctx.take(kinds, segments))
    length = ctx.full([ctx.extent(tokens, 0)], 0, I32) if mask is None else ctx.reduce(ops.Add, mask, [1])
    return [_normalized(ctx, total, gamma, beta, epsilon)[0], length, total]


@rule("com.microsoft::Range")
def microsoft_range(ctx: Context, start: Value, limit: Value, delta: Value | None = None) -> Value:
    """Range(start, limit, delta)"""
    return range_(ctx, start, limit, ctx.scalar(1, start.type.element_type) if delta is None else delta)
