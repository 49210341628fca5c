"""Random numbers. A program is a function of its arguments: a node draws the same numbers in each run. The seed of a
node decides which; nodes without one have streams of their own, and each iteration of a loop has its own, too."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import accumulation_type
from trivium.importers.onnx.context import Context, element_type, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.known import evaluate_known
from trivium.ir.types import BF16, F16, F32, F64, I1, I64, UI32, UI64, ElementType, FloatType, TensorType

FRACTION_BITS = {F64: 53, F32: 24, F16: 11, BF16: 8}
"""The bits of fractions in [0, 1), all of which a type represents exactly."""


def uniform(ctx: Context, shape: Sequence[int], kind: ElementType, seed: float | None) -> Value:
    """Returns numbers in [0, 1)."""
    if not isinstance(kind, FloatType) or kind not in FRACTION_BITS:
        ctx.unsupported("dtype", kind, "float, double, float16 or bfloat16")
    ctx.draws.append(ctx.op)
    word = UI64 if kind is F64 else UI32
    # A seed is a float. Streams without one are numbered, with numbers that no seed has.
    key = (1 << 32) + len(ctx.draws) if seed is None else int(np.float32(seed).view(np.uint32))
    state = ctx.elements(np.array([key, 0], np.uint64))
    for turn in ctx.turns:
        mixed = _bits(ctx, _with_counter(ctx, state, turn), TensorType((1,), UI64))
        state = _with_counter(ctx, mixed, ctx.scalar(0, UI64))
    bits = _bits(ctx, state, TensorType(tuple(shape), word))
    count = FRACTION_BITS[kind]
    upper = ctx.add(ops.ShiftRightLogical(bits, ctx.full(shape, word.width - count, word)))
    return ctx.scaled(ctx.convert(upper, kind), 2.0**-count)


def _bits(ctx: Context, state: Value, made: TensorType) -> Value:
    algorithm = ops.RngAlgorithm("PHILOX")
    return ctx.add(ops.RngBitGenerator(state, rng_algorithm=algorithm, output_state=state.type, output=made))[1]


def _with_counter(ctx: Context, state: Value, counter: Value) -> Value:
    """Returns the key of a state, or a key alone, with a counter."""
    return ctx.concatenate([ctx.slice(state, 0, 0, 1), ctx.reshape(ctx.convert(counter, UI64), (1,))], 0)


def normal(ctx: Context, shape: Sequence[int], kind: ElementType, seed: float | None) -> Value:
    """Returns numbers of the standard normal distribution, from the inverse of its integral."""
    wide = accumulation_type(kind)
    # The middle of each step, so that neither end is reached.
    drawn = uniform(ctx, shape, wide, seed)
    middle = ctx.scalar(2.0 ** -FRACTION_BITS[F64 if wide is F64 else F32] - 1, wide)
    symmetric = ctx.plus(ctx.scaled(drawn, 2), middle)
    return ctx.scaled(ctx.add(ops.ErfInv(symmetric)), math.sqrt(2))


def _shape_of(ctx: Context, x: Value) -> tuple[int, ...]:
    if not x.type.is_static:
        ctx.unsupported("input", f"type {x.type}", "a shape that is known while importing, for random numbers")
    return x.type.static_shape


@rule("RandomUniform")
def random_uniform(
    ctx: Context, shape: Sequence[int], dtype: int = 1, low: float = 0.0, high: float = 1.0, seed: float | None = None
) -> Value:
    """RandomUniform(shape, dtype, low, high, seed)"""
    kind = element_type(dtype)
    return _moved(ctx, uniform(ctx, shape, kind, seed), high - low, low, kind)


@rule("RandomUniformLike")
def random_uniform_like(
    ctx: Context, x: Value, dtype: int | None = None, low: float = 0.0, high: float = 1.0, seed: float | None = None
) -> Value:
    """RandomUniformLike(input, dtype, low, high, seed)"""
    kind = x.type.element_type if dtype is None else element_type(dtype)
    return _moved(ctx, uniform(ctx, _shape_of(ctx, x), kind, seed), high - low, low, kind)


@rule("RandomNormal")
def random_normal(
    ctx: Context, shape: Sequence[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Value:
    """RandomNormal(shape, dtype, mean, scale, seed)"""
    kind = element_type(dtype)
    return _moved(ctx, normal(ctx, shape, kind, seed), scale, mean, kind)


@rule("RandomNormalLike")
def random_normal_like(
    ctx: Context, x: Value, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Value:
    """RandomNormalLike(input, dtype, mean, scale, seed)"""
    kind = x.type.element_type if dtype is None else element_type(dtype)
    return _moved(ctx, normal(ctx, _shape_of(ctx, x), kind, seed), scale, mean, kind)


def _moved(ctx: Context, x: Value, scale: float, offset: float, kind: ElementType) -> Value:
    return ctx.convert(ctx.plus(ctx.scaled(x, scale), ctx.scalar(offset, x.type.element_type)), kind)


@rule("Bernoulli")
def bernoulli(ctx: Context, x: Value, dtype: int | None = None, seed: float | None = None) -> Value:
    """Bernoulli(input, dtype, seed): 1 with the probability of each element"""
    kind = x.type.element_type if dtype is None else element_type(dtype)
    wide = accumulation_type(x.type.element_type)
    drawn = uniform(ctx, _shape_of(ctx, x), wide, seed)
    return ctx.convert(ctx.compare("LT", drawn, ctx.convert(x, wide)), kind)


@rule("Multinomial")
def multinomial(ctx: Context, x: Value, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Value:
    """Multinomial(input, dtype, sample_size, seed): classes, by logarithms of what is proportional to probabilities"""
    batch, classes = _shape_of(ctx, x)
    wide = ctx.convert(x, F64)
    top = ctx.reduce(ops.Maximum, wide, [1], keep=True)
    sums = ctx.cumulative(ops.Add, ctx.add(ops.Exponential(ctx.minus(wide, top))), 1)
    drawn = ctx.times(uniform(ctx, (batch, sample_size), F64, seed), ctx.slice(sums, 1, classes - 1, classes))
    passed = ctx.compare("GE", ctx.unsqueeze(drawn, [2]), ctx.unsqueeze(sums, [1]))
    return ctx.convert(ctx.reduce(ops.Add, ctx.convert(passed, I64), [2]), element_type(dtype))


@rule("Dropout", since=12)
def dropout(
    ctx: Context, x: Value, ratio: Value | None = None, training: Value | None = None, seed: float | None = None
) -> Sequence[Value]:
    """Dropout(data, ratio, training_mode, seed): in training, elements are zero with a probability, others scaled"""
    known = False if training is None else evaluate_known(training)
    if known is not None and not known:
        return [x, ctx.full(ctx.extents(x), True, I1)]
    share = ctx.scalar(0.5, F32) if ratio is None else ctx.convert(ctx.reshape(ratio, ()), F32)
    kept = ctx.compare("GE", uniform(ctx, _shape_of(ctx, x), F32, seed), share)
    left = ctx.minus(ctx.scalar(1, F32), share)
    kind = accumulation_type(x.type.element_type)
    scaled = ctx.convert(ctx.over(ctx.convert(x, kind), ctx.convert(left, kind)), x.type.element_type)
    dropped = ctx.select(kept, scaled, ctx.full_like(x, 0))
    if known is not None:
        return [dropped, kept]
    assert training is not None
    trains = ctx.reshape(training, ())
    return [ctx.select(trains, dropped, x), ctx.select(trains, kept, ctx.full_like(kept, True))]
