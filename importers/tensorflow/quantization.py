"""Quantization as training simulates it: numbers are rounded to the steps that few bits can tell apart."""

from __future__ import annotations

import ml_dtypes

from trivium.importers.tensorflow.context import Context, Known, rule
from trivium.ir import ops
from trivium.ir.core import Value


@rule("FakeQuantWithMinMaxArgs")
def fake_quant_args(ctx: Context, inputs: Value, *, min: float, max: float, num_bits: int, narrow_range: bool) -> Value:
    """FakeQuantWithMinMaxArgs(inputs; min=-6, max=6, num_bits=8, narrow_range=false) -> outputs"""
    low, high = (ctx.constant_like(inputs, bound) for bound in (min, max))
    return fake_quant(ctx, inputs, low, high, num_bits=num_bits, narrow_range=narrow_range)


@rule("FakeQuantWithMinMaxArgsGradient")
def fake_quant_args_grad(
    ctx: Context, gradients: Value, inputs: Value, *, min: float, max: float, num_bits: int, narrow_range: bool
) -> Value:
    """FakeQuantWithMinMaxArgsGradient(gradients, inputs; min=-6, max=6, num_bits=8, narrow_range=false) -> backprops"""
    if gradients.type != inputs.type:
        ctx.unsupported("gradients", gradients.type, f"the type of inputs, {inputs.type}")
    low, high = (ctx.constant_like(inputs, bound) for bound in (min, max))
    return fake_quant_grad(ctx, gradients, inputs, low, high, num_bits=num_bits, narrow_range=narrow_range)[0]


@rule("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant(ctx: Context, inputs: Value, min: Value, max: Value, *, num_bits: int, narrow_range: bool) -> Value:
    """FakeQuantWithMinMaxVars(inputs, min, max; num_bits=8, narrow_range=false) -> outputs"""
    low, high, step = _nudged(ctx, min, max, num_bits, narrow_range)
    # In TensorFlow's order: where `min` is larger than `max`, it wins.
    inside = ctx.binary(ops.Maximum, ctx.binary(ops.Minimum, inputs, high), low)
    half = ctx.constant_like(inputs, 0.5)
    steps = ctx.add(ops.Floor(ctx.plus(ctx.over(ctx.minus(inside, low), step), half)))
    return ctx.plus(ctx.times(steps, step), low)


@rule("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_grad(
    ctx: Context, gradients: Value, inputs: Value, min: Value, max: Value, *, num_bits: int, narrow_range: bool
) -> list[Value]:
    """FakeQuantWithMinMaxVarsGradient(gradients, inputs, min, max; num_bits=8, narrow_range=false)
    -> backprops_wrt_input, backprop_wrt_min, backprop_wrt_max"""
    low, high, _ = _nudged(ctx, min, max, num_bits, narrow_range)
    inside = ctx.binary(ops.And, ctx.compare("GE", inputs, low), ctx.compare("LE", inputs, high))
    below, above = ctx.compare("LT", inputs, low), ctx.compare("GT", inputs, high)
    # Products, as in TensorFlow's kernel: a gradient that is not finite is NaN outside of the bounds.
    kind = gradients.type.element_type
    shares = [ctx.times(gradients, ctx.convert(side, kind)) for side in (inside, below, above)]
    zero = ctx.constant_like(min, 0)
    is_empty = ctx.binary(ops.And, *(ctx.compare("EQ", bound, zero) for bound in (min, max)))
    others = range(inputs.type.rank - min.type.rank)
    bounds = [ctx.select(is_empty, ctx.full_like(min, 0), ctx.reduce(ops.Add, x, others)) for x in shares[1:]]
    whole = ctx.broadcast(is_empty, ctx.extents(inputs))
    return [ctx.select(whole, gradients, shares[0]), *bounds]


def _nudged(ctx: Context, low: Value, high: Value, bits: int, narrow: bool) -> tuple[Value, Value, Value]:
    """Returns bounds moved so that zero is one of the steps, and the step."""
    first, last = (1 if narrow else 0), (1 << bits) - 1
    step = ctx.over(ctx.minus(high, low), ctx.constant_like(low, last - first))
    start = ctx.minus(ctx.constant_like(low, first), ctx.over(low, step))
    rounded = ctx.add(ops.RoundNearestAfz(start))
    zero = ctx.binary(
        ops.Minimum, ctx.binary(ops.Maximum, rounded, ctx.constant_like(low, first)), ctx.constant_like(low, last)
    )
    lowest = ctx.times(ctx.minus(ctx.constant_like(low, first), zero), step)
    return lowest, ctx.times(ctx.minus(ctx.constant_like(low, last), zero), step), step


# To integers and back, by a scale without an offset


@rule("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(
    ctx: Context,
    input: Value,
    input_min: Value,
    input_max: Value,
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int,
) -> Value:
    """QuantizeAndDequantizeV2(input, input_min, input_max; signed_input=true, num_bits=8, range_given=false,
    round_mode="HALF_TO_EVEN", narrow_range=false, axis=-1) -> output"""
    low, high = input_min, input_max
    if not range_given:
        others = [i for i in range(input.type.rank) if axis < 0 or i != axis]
        low, high = (ctx.reduce(op, input, others) for op in (ops.Minimum, ops.Maximum))
    least = -(1 << (num_bits - 1)) + narrow_range if signed_input else 0
    most = (1 << (num_bits - signed_input)) - 1
    bounds = _scaled_range(ctx, low, high, least, most)
    if axis >= 0:
        bounds = [ctx.broadcast_in_dim(x, ctx.extents(input), [axis]) for x in bounds]
    low, high, scale, back = bounds
    if range_given:
        input = ctx.binary(ops.Maximum, ctx.binary(ops.Minimum, input, high), low)
    steps = ctx.times(input, scale)
    if round_mode == "HALF_UP":
        return ctx.times(ctx.add(ops.Floor(ctx.plus(steps, ctx.constant_like(steps, 0.5)))), back)
    return ctx.times(ctx.add(ops.RoundNearestEven(steps)), back)


@rule("QuantizeAndDequantizeV3")
def quantize_and_dequantize_bits(
    ctx: Context,
    input: Value,
    input_min: Value,
    input_max: Value,
    num_bits: Known,
    *,
    signed_input: bool,
    range_given: bool,
    narrow_range: bool,
    axis: int,
) -> Value:
    """QuantizeAndDequantizeV3(input, input_min, input_max, num_bits; signed_input=true, range_given=true,
    narrow_range=false, axis=-1) -> output"""
    return quantize_and_dequantize(
        ctx, input, input_min, input_max, signed_input=signed_input, num_bits=int(num_bits), range_given=range_given,
        round_mode="HALF_TO_EVEN", narrow_range=narrow_range, axis=axis,
    )  # fmt: skip


@rule("QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_grad(
    ctx: Context, gradients: Value, input: Value, input_min: Value, input_max: Value, *, axis: int
) -> list[Value]:
    """QuantizeAndDequantizeV4Grad(gradients, input, input_min, input_max; axis=-1) -> input_backprop,
    input_min_backprop, input_max_backprop: the bounds have none"""
    low, high = (
        ctx.broadcast_in_dim(x, ctx.extents(input), [axis]) if axis >= 0 else x for x in (input_min, input_max)
    )
    inside = ctx.binary(ops.And, ctx.compare("GE", input, low), ctx.compare("LE", input, high))
    # A product, as in TensorFlow's kernel: a gradient that is not finite is NaN outside of the bounds.
    passed = ctx.times(gradients, ctx.convert(inside, gradients.type.element_type))
    return [passed, ctx.full_like(input_min, 0), ctx.full_like(input_max, 0)]


def _scaled_range(ctx: Context, low: Value, high: Value, least: int, most: int) -> list[Value]:
    """Returns bounds that integers between `least` and `most` stand for, their scale, and its inverse. The scale is the
    larger one of those that hold either bound."""
    kind = low.type.element_type
    largest, nothing = ctx.full_like(low, float(ml_dtypes.finfo(kind.dtype).max)), ctx.full_like(low, 0)
    first, last = (ctx.full_like(low, bound) for bound in (least, most))

    def scale_by(integer: Value, bound: Value) -> Value:
        is_alike = ctx.compare("GT", ctx.times(integer, bound), nothing)
        return ctx.select(is_alike, ctx.over(integer, bound), largest)

    by_low, by_high = scale_by(first, low), scale_by(last, high)
    chosen = ctx.compare("LT", by_low, by_high)
    back = ctx.select(chosen, ctx.over(low, first), ctx.over(high, last))
    low = ctx.select(chosen, low, ctx.times(first, back))
    high = ctx.select(chosen, ctx.times(last, back), high)
    return [low, high, ctx.select(chosen, by_low, by_high), back]
