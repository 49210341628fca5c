"""Random numbers. A graph that draws has the generator's state as an additional argument, which the caller takes from
PyTorch's own generator at each call; every draw advances the state, so that no two draws of a program are alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent
from trivium.importers.pytorch.checking import check_not_negative
from trivium.importers.pytorch.context import STATE, Context, Randomness, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.custom_targets import RANDOM_BITS
from trivium.ir.types import F32, F64, I1, I64, UI32, UI64, ComplexType, ElementType, IntegerType, TensorType


def bits(ctx: Context, shape: Sequence[Extent], element_type: IntegerType = UI32) -> Value:
    """Returns random bits, and advances the state."""
    source = randomness(ctx)
    known = tuple(extent if isinstance(extent, int) else None for extent in shape)
    output, philox = TensorType(known, element_type), ops.RngAlgorithm("PHILOX")
    if output.is_static:
        draw = ops.RngBitGenerator(source.state, rng_algorithm=philox, output_state=STATE, output=output)
    else:
        given, extra = [source.state, ctx.vector(shape)], {"rng_algorithm": philox}
        draw = ops.CustomCall(given, RANDOM_BITS, results=[STATE, output], extra=extra)
    source.state, drawn = ctx.add(draw)
    return drawn


def randomness(ctx: Context) -> Randomness:
    """Returns the state of the random generator."""
    if ctx.randomness is None:
        ctx.unsupported("generator", "no state inside of control flow", "a draw outside of it")
    return ctx.randomness


def uniform(ctx: Context, shape: Sequence[Extent], kind: ElementType = F32) -> Value:
    """Returns numbers of f32 or f64 in [0, 1): as many upper bits of each word as such a number holds exactly."""
    word, rest, exact = (UI64, 11, 53) if kind is F64 else (UI32, 8, 24)
    drawn = bits(ctx, shape, word)
    upper = ctx.add(ops.ShiftRightLogical(drawn, ctx.full_like(drawn, rest)))
    return ctx.scaled(ctx.convert(upper, kind), 2.0**-exact)


def normal(ctx: Context, shape: Sequence[Extent], kind: ElementType = F32) -> Value:
    """Returns numbers of f32 or f64 of the standard normal distribution, from the inverse of its integral."""
    # The middle of each step, so that neither end is reached.
    half = 2.0**-53 if kind is F64 else 2.0**-24
    symmetric = ctx.plus(ctx.scaled(uniform(ctx, shape, kind), 2), ctx.scalar(half - 1, kind))
    return ctx.scaled(ctx.add(ops.ErfInv(symmetric)), math.sqrt(2))


def below(ctx: Context, shape: Sequence[Extent], probability: float) -> Value:
    """Returns booleans that are true with a probability."""
    return ctx.compare("LT", uniform(ctx, shape), ctx.scalar(probability, F32))


def dropped_out(ctx: Context, x: Value, p: float) -> tuple[Value, Value]:
    """Returns `x` with each element zero with probability `p` and the others scaled up, and the mask of those that are
    kept."""
    shape = ctx.extents(x)
    if p == 1:
        return ctx.full_like(x, 0), ctx.full(shape, False, I1)
    kept = below(ctx, shape, 1 - p)
    return masked(ctx, x, kept, p), kept


def masked(ctx: Context, x: Value, kept: Value, p: float) -> Value:
    """Returns `x` with zero for elements that are not kept, and the others scaled up, of which a share `p` is lost."""
    return ctx.select(kept, ctx.scaled(x, 1 / (1 - p) if p < 1 else 0), ctx.full_like(x, 0))


@rule("aten.native_dropout.default")
def native_dropout(ctx: Context, input: Value, p: float, train: bool | None) -> tuple[Value, Value]:
    """native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)"""
    if train is False or not p:
        return input, ctx.full(ctx.extents(input), True, I1)
    return dropped_out(ctx, input, p)


@rule("aten.native_dropout_backward.default")
def native_dropout_backward(ctx: Context, grad_output: Value, mask: Value, scale: float) -> Value:
    """native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor"""
    kind = ctx.result.element_type
    scaled = ctx.times(ctx.convert(grad_output, kind), ctx.tensor(scale, kind))
    return ctx.select(mask, scaled, ctx.full_like(scaled, 0))


@rule("aten.dropout.default")
def dropout(ctx: Context, input: Value, p: float, train: bool) -> Value:
    """dropout(Tensor input, float p, bool train) -> Tensor"""
    return native_dropout(ctx, input, p, train)[0]


def drawn(ctx: Context, draw: Callable[[ElementType], Value]) -> Value:
    """Returns numbers of the result's type, which `draw` draws in a type of at least 32 bits: of complex ones each
    part."""
    kind = ctx.result.element_type
    if isinstance(kind, ComplexType):
        return ctx.shaped(ctx.add(ops.Complex(draw(kind.element_type), draw(kind.element_type))))
    return ctx.shaped(draw(accumulation_type(kind)))


def between(ctx: Context, shape: Sequence[Extent], low: float, high: float) -> Value:
    """Returns numbers of the result's type in [low, high)."""
    found = drawn(ctx, lambda kind: moved(ctx, uniform(ctx, shape, kind), low, high - low))
    kind = found.type.element_type
    if isinstance(kind, ComplexType) or low >= high:
        return found
    # The last numbers below the end are rounded to it, by the sum or in the result's type.
    last = np.nextafter(np.asarray(high, kind.dtype), np.asarray(-math.inf, kind.dtype))
    return ctx.binary(ops.Minimum, found, ctx.full_like(found, float(last)))


def normals(ctx: Context, shape: Sequence[Extent], mean: float = 0, std: float = 1) -> Value:
    """Returns numbers of the result's type of a normal distribution; complex ones have a mean for each part."""
    scale = std / math.sqrt(2) if isinstance(ctx.result.element_type, ComplexType) else std
    return drawn(ctx, lambda kind: moved(ctx, normal(ctx, shape, kind), mean, scale))


@rule("aten.rrelu_with_noise_functional.default")
def rrelu(
    ctx: Context,
    x: Value,
    noise: Value,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: None = None,
) -> tuple[Value, Value]:
    """rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333,
    bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)"""
    is_positive = ctx.compare("GT", x, ctx.full_like(x, 0))
    if not training:
        return ctx.select(is_positive, x, ctx.scaled(x, (lower + upper) / 2)), noise
    slopes = ctx.select(is_positive, ctx.full_like(x, 1), between(ctx, ctx.extents(x), lower, upper))
    return ctx.times(x, slopes), slopes


@rule("aten.rand.default", "aten.rand_like.default")
def rand(ctx: Context, *given: object) -> Value:
    """rand(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return between(ctx, ctx.shape, 0, 1)


@rule("aten.randn.default", "aten.randn_like.default")
def randn(ctx: Context, *given: object) -> Value:
    """randn(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return normals(ctx, ctx.shape)


@rule("aten.normal.float_float")
def normal_of(ctx: Context, mean: float, std: float, *given: object, generator: None = None) -> Value:
    """normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ...) -> Tensor"""
    return normals(ctx, ctx.shape, mean, std)


@rule("prims.normal.default")
def prims_normal(
    ctx: Context, shape: Sequence[Extent], *, mean: float, std: float, requires_grad: bool, generator: None = None
) -> Value:
    """normal(SymInt[] shape, *, Scalar mean, Scalar std, ScalarType dtype, Device device, bool requires_grad,
    Generator? generator=None) -> Tensor"""
    return normal_of(ctx, mean, std)


@rule("aten.normal_functional.default")
def normal_functional(ctx: Context, x: Value, mean: float = 0, std: float = 1, *, generator: None = None) -> Value:
    """normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor"""
    return normals(ctx, ctx.extents(x), mean, std)


@rule("aten.uniform.default")
def uniform_functional(ctx: Context, x: Value, from_: float = 0, to: float = 1, *, generator: None = None) -> Value:
    """uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor"""
    return between(ctx, ctx.extents(x), from_, to)


def moved(ctx: Context, x: Value, offset: float, scale: float = 1) -> Value:
    """Returns `x` * `scale` + `offset`."""
    return ctx.plus(ctx.scaled(x, scale), ctx.scalar_like(offset, x))


@rule("aten.bernoulli.default")
def bernoulli(ctx: Context, x: Value, *, generator: None = None) -> Value:
    """bernoulli(Tensor self, *, Generator? generator=None) -> Tensor"""
    return ctx.shaped(ctx.compare("LT", uniform(ctx, ctx.extents(x)), ctx.convert(x, F32)))


@rule("aten.bernoulli.Tensor")
def bernoulli_of(ctx: Context, x: Value, p: Value, *, generator: None = None) -> Value:
    """bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor"""
    limits = ctx.broadcast(ctx.convert(p, F32), ctx.shape)
    return ctx.shaped(ctx.compare("LT", uniform(ctx, ctx.shape), limits))


@rule("aten.bernoulli.p")
def bernoulli_p(ctx: Context, x: Value, p: float, *, generator: None = None) -> Value:
    """bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor"""
    return ctx.shaped(below(ctx, ctx.extents(x), p))


@rule("aten.randint.default")
def randint(ctx: Context, high: int, size: Sequence[int]) -> Value:
    """randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, ...) -> Tensor"""
    return _integers(ctx, 0, high)


@rule("aten.randint_like.default")
def randint_like(ctx: Context, x: Value, high: int) -> Value:
    """randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, ...) -> Tensor"""
    return _integers(ctx, 0, high)


@rule("aten.randint.low")
def randint_low(ctx: Context, low: int, high: int, size: Sequence[int]) -> Value:
    """randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, ...) -> Tensor"""
    return _integers(ctx, low, high)


@rule("aten.randint_like.low_dtype")
def randint_like_low(ctx: Context, x: Value, low: int, high: int) -> Value:
    """randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, ...) -> Tensor"""
    return _integers(ctx, low, high)


def _integers(ctx: Context, low: int, high: int) -> Value:
    drawn = bits(ctx, ctx.shape, UI64)
    place = ctx.convert(ctx.add(ops.Remainder(drawn, ctx.full_like(drawn, high - low))), I64)
    return ctx.convert(ctx.plus(place, ctx.scalar(low, I64)), ctx.result.element_type)


@rule("aten.randperm.default")
def randperm(ctx: Context, n: int) -> Value:
    """randperm(SymInt n, *, ScalarType? dtype=long, ...) -> Tensor"""
    keys = bits(ctx, (n,), UI64)
    return ctx.convert(ctx.sort([keys, ctx.iota((n,), 0)], 0)[1], ctx.result.element_type)


@rule("aten.exponential.default")
def exponential(ctx: Context, x: Value, lambd: float = 1, *, generator: None = None) -> Value:
    """exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor"""
    return drawn(ctx, lambda kind: ctx.scaled(exponential_of(ctx, ctx.extents(x), kind), 1 / lambd))


def exponential_of(ctx: Context, shape: Sequence[Extent], kind: ElementType) -> Value:
    """Returns positive numbers of f32 or f64 of the standard exponential distribution."""
    shares = uniform(ctx, shape, kind)
    # Zero stands for the numbers below the next one: their middle is positive, as all of PyTorch's numbers are.
    shares = ctx.binary(ops.Maximum, shares, ctx.full_like(shares, 2.0**-54 if kind is F64 else 2.0**-25))
    return ctx.add(ops.Negate(ctx.add(ops.LogPlusOne(ctx.add(ops.Negate(shares))))))


@rule("aten.multinomial.default")
def multinomial(
    ctx: Context, x: Value, num_samples: int, replacement: bool = False, *, generator: None = None
) -> Value:
    """multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor"""
    check_not_negative(ctx, x, "probability tensor contains either `inf`, `nan` or element < 0")
    weights, last = ctx.convert(x, F64), x.type.rank - 1
    if replacement or (isinstance(num_samples, int) and num_samples == 1):
        return _first_above(ctx, weights)
    # The first events of processes with these rates, in the order of their times.
    rates = ctx.over(weights, exponential_of(ctx, ctx.extents(x), F64))
    order = ctx.sort([rates, ctx.iota_like(x, last)], last, True)[1]
    return ctx.slice(order, last, 0, num_samples)


def _first_above(ctx: Context, weights: Value) -> Value:
    """Returns the places at which the sum of weights exceeds a share of all of it that is drawn."""
    *outer, count = ctx.extents(weights)
    last, shape = len(outer), ctx.shape
    sums = ctx.cumulative(ops.Add, weights, last)
    total = ctx.reduce(ops.Maximum, sums, [last], keep=True)
    limits = ctx.unsqueeze(ctx.times(uniform(ctx, shape, F64), ctx.broadcast(total, shape)), [last + 1])
    # Sums are rounded, so that one may differ from the one before it even where a weight is zero.
    has_weight, places = ctx.compare("GT", weights, ctx.full_like(weights, 0)), ctx.iota_like(weights, last)
    last_place = ctx.reduce(ops.Maximum, ctx.select(has_weight, places, ctx.scalar(0, I64)), [last], keep=True)

    def for_each(x: Value) -> Value:
        return ctx.broadcast_in_dim(x, (*shape, count), [*range(last), last + 1])

    is_above = ctx.binary(ops.And, ctx.compare("GT", for_each(sums), limits), for_each(has_weight))
    return ctx.reduce(ops.Minimum, ctx.select(is_above, for_each(places), for_each(last_place)), [last + 1])


def until_accepted(
    ctx: Context, is_open: Value, values: Sequence[Value], draw: Callable[..., tuple[Value, list[Value]]]
) -> Sequence[Value]:
    """Draws for the open elements again and again, until all are accepted. `draw` takes a context and the values before
    it, and returns which elements it accepts, and the new values."""
    source = randomness(ctx)

    def more(emit: Context, state: Value, is_open: Value, *before: Value) -> Value:
        return emit.reduce(ops.Or, is_open, range(is_open.type.rank))

    def again(emit: Context, state: Value, is_open: Value, *before: Value) -> list[Value]:
        emit.randomness = Randomness(emit.block, state)
        is_accepted, drawn = draw(emit, *before)
        found = [emit.select(is_open, new, old) for new, old in zip(drawn, before, strict=True)]
        is_open = emit.binary(ops.And, is_open, emit.add(ops.Not(is_accepted)))
        return [emit.randomness.state, is_open, *found]

    carried = [source.state, is_open, *values]
    types = [value.type for value in carried]
    loop = ops.While(carried, cond=ctx.region(types, more), body=ctx.region(types, again))
    source.state, _, *found = ctx.add(loop)
    return found


# Gamma and Dirichlet distributions


class Gamma(NamedTuple):
    """Drawn numbers of gamma distributions: the products of `factor` and the exponential of `exponent`."""

    factor: Value
    exponent: Value


def gamma(ctx: Context, alpha: Value) -> Gamma:
    """Draws from gamma distributions of positive, finite shapes `alpha` (Marsaglia and Tsang, 2000), as PyTorch does:
    what is rejected is drawn again. For a shape below 1, it draws for one that is larger by 1, and scales that."""
    kind, shape = alpha.type.element_type, ctx.extents(alpha)
    one, none = ctx.full_like(alpha, 1), ctx.full_like(alpha, 0)
    is_small = ctx.compare("LT", alpha, one)
    scale = ctx.minus(ctx.select(is_small, ctx.plus(alpha, one), alpha), ctx.scalar_like(1 / 3, alpha))
    width = ctx.add(ops.Rsqrt(ctx.scaled(scale, 9)))

    def draw(emit: Context, before: Value) -> tuple[Value, list[Value]]:
        deviate = emit.convert(normal(emit, shape), kind)
        root = emit.plus(one, emit.times(width, deviate))
        cube = emit.times(root, emit.times(root, root))
        bound = emit.plus(emit.minus(one, cube), emit.add(ops.Log(cube)))
        bound = emit.plus(emit.scaled(emit.times(deviate, deviate), 0.5), emit.times(scale, bound))
        # The logarithm of a number that is not positive is not a number, and compares as false.
        return emit.compare("LT", _log_uniform(emit, shape, kind), bound), [cube]

    (cubes,) = until_accepted(ctx, ctx.compare("EQ", one, one), [one], draw)
    less = ctx.over(_log_uniform(ctx, shape, kind), alpha)
    return Gamma(ctx.times(scale, cubes), ctx.select(is_small, less, none))


def _log_uniform(ctx: Context, shape: Sequence[Extent], kind: ElementType) -> Value:
    """Returns logarithms of numbers in (0, 1]."""
    return ctx.convert(ctx.add(ops.LogPlusOne(ctx.add(ops.Negate(uniform(ctx, shape))))), kind)


@rule("aten._standard_gamma.default")
def standard_gamma(ctx: Context, x: Value, generator: None = None) -> Value:
    """_standard_gamma(Tensor self, Generator? generator=None) -> Tensor"""
    alpha = ctx.convert(x, accumulation_type(x.type.element_type))
    zero, endless = ctx.full_like(alpha, 0), ctx.full_like(alpha, math.inf)
    is_usual = ctx.binary(ops.And, ctx.compare("GT", alpha, zero), ctx.compare("LT", alpha, endless))
    drawn = gamma(ctx, ctx.select(is_usual, alpha, ctx.full_like(alpha, 1)))
    found = ctx.times(drawn.factor, ctx.add(ops.Exponential(drawn.exponent)))
    # The distributions of shapes 0 and infinity have one number; there are none of a negative shape.
    is_limit = ctx.binary(ops.Or, ctx.compare("EQ", alpha, zero), ctx.compare("EQ", alpha, endless))
    found = ctx.select(is_usual, found, ctx.select(is_limit, alpha, ctx.full_like(alpha, math.nan)))
    least = float(ml_dtypes.finfo(ctx.result.element_type.dtype).smallest_normal)
    return ctx.shaped(ctx.binary(ops.Maximum, found, ctx.full_like(found, least)))


@rule("aten._sample_dirichlet.default")
def sample_dirichlet(ctx: Context, x: Value, generator: None = None) -> Value:
    """_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor"""
    alpha = x if x.type.rank else ctx.unsqueeze(x, [0])
    drawn = gamma(ctx, ctx.convert(alpha, F64))
    # Logarithms, because all numbers of a row may be too small for a float.
    logs = ctx.plus(ctx.add(ops.Log(drawn.factor)), drawn.exponent)
    last = [logs.type.rank - 1]
    shares = ctx.add(ops.Exponential(ctx.minus(logs, ctx.reduce(ops.Maximum, logs, last, keep=True))))
    shares = ctx.over(shares, ctx.reduce(ops.Add, shares, last, keep=True))
    limits = ml_dtypes.finfo(ctx.result.element_type.dtype)
    shares = ctx.binary(ops.Maximum, shares, ctx.full_like(shares, float(limits.smallest_normal)))
    below_one = 1 - float(limits.epsneg)
    return ctx.shaped(ctx.reshape(ctx.binary(ops.Minimum, shares, ctx.full_like(shares, below_one)), ctx.shape))
