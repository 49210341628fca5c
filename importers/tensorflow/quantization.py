"""Quantization as training simulates it: numbers are rounded to the steps that few bits can tell apart."""

from __future__ import annotations

from trivium.importers.tensorflow.context import Context, rule
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
    low, high = (ctx.constant_like(inputs, bound) for bound in (min, max))
    return fake_quant_grad(ctx, gradients, inputs, low, high, num_bits=num_bits, narrow_range=narrow_range)[0]


@rule("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant(ctx: Context, inputs: Value, min: Value, max: Value, *, num_bits: int, narrow_range: bool) -> Value:
    """FakeQuantWithMinMaxVars(inputs, min, max; num_bits=8, narrow_range=false) -> outputs"""
    low, high, step = _nudged(ctx, min, max, num_bits, narrow_range)
    inside = ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, inputs, low), high)
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
    below, above = ctx.compare("LT", inputs, low), ctx.compare("GT", inputs, high)
    nothing = ctx.constant_like(gradients, 0)
    outside = ctx.add(ops.Or(below, above))
    others = range(inputs.type.rank - min.type.rank)
    bounds = [ctx.reduce(ops.Add, ctx.select(side, gradients, nothing), others) for side in (below, above)]
    return [ctx.select(outside, nothing, gradients), *bounds]


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
