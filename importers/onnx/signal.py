"""Fourier transforms of signals, whole or in frames, and the weights of mel filters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent, chosen, divided, larger, numbers_of, scalar_of
from trivium.importers.fourier import by_definition
from trivium.importers.onnx.context import Context, axis_of, element_type, rule
from trivium.importers.onnx.shape import axes_from_front
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, ComplexType


@rule("DFT", since=20)
def dft(
    ctx: Context, x: Value, length: Value | None = None, axis: Value | None = None, inverse: int = 0, onesided: int = 0
) -> Value:
    """DFT(input, dft_length, axis, inverse, onesided): the last dimension of a complex signal has its two parts"""
    place = -2 if axis is None else ctx.number(axis, "axis")
    return _transformed(ctx, x, length, place, bool(inverse), bool(onesided))


@rule("DFT")
def first_dft(
    ctx: Context, x: Value, length: Value | None = None, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Value:
    """DFT(input, dft_length, axis, inverse, onesided)"""
    return _transformed(ctx, x, length, axis, bool(inverse), bool(onesided))


def _transformed(ctx: Context, x: Value, length: Value | None, axis: Extent, inverse: bool, onesided: bool) -> Value:
    *shape, parts = ctx.extents(x)
    if isinstance(axis, int):
        axis = axis_of(axis, x.type.rank)
        if axis == len(shape):
            ctx.unsupported("axis", axis, "a dimension of the signal: the last one has the parts of its numbers")
    (axis,) = axes_from_front(ctx, [axis], x.type.rank)
    before, given, after = (_product(ctx, shape, axis, direction) for direction in ("LT", "EQ", "GT"))
    count = 2 * (given - 1) if inverse and onesided else given
    if length is not None:
        count = ctx.number(length, "dft_length")
    if isinstance(count, int) and count < 1:
        ctx.unsupported("dft_length", count, "a positive number")
    signal = ctx.transpose(ctx.reshape(x, (before, given, after, parts)), (0, 2, 1, 3))
    found = ctx.transpose(_fft(ctx, signal, count, inverse, onesided), (0, 2, 1, 3))
    new = ctx.extent(found, 1)
    extents = [chosen(ctx, "EQ", axis, d, new, extent) for d, extent in enumerate(shape)]
    return ctx.reshape(found, (*extents, ctx.extent(found, 3)))


def _product(ctx: Context, shape: Sequence[Extent], axis: Extent, direction: str) -> Extent:
    """Returns the number of elements along the dimensions that are before (`LT`), at, or after an axis."""
    return math.prod(chosen(ctx, direction, d, axis, extent, 1) for d, extent in enumerate(shape))


def _fft(ctx: Context, x: Value, count: Extent, inverse: bool, onesided: bool) -> Value:
    """Transforms `x` [A, B, N, 1 or 2] along its third dimension, of which `count` elements are read: with zeros
    behind, if there are fewer."""
    kind = accumulation_type(x.type.element_type)
    if x.type.shape[3] not in (1, 2):
        ctx.unsupported("input", f"a last dimension of {x.type.shape[3] or '?'}", "1 or 2: the parts of its numbers")
    parts = [ctx.squeeze(ctx.slice(x, 3, i, i + 1), [3]) for i in range(x.type.shape[3])]
    half = count // 2 + 1
    parts = [_sized(ctx, ctx.convert(part, kind), half if inverse and onesided else count) for part in parts]
    if isinstance(count, int):
        results = _by_op(ctx, parts, count, inverse, onesided)
    else:
        results = by_definition(ctx, parts, count, inverse, inverse and onesided, count)
    if onesided and not inverse:
        results = [ctx.slice(part, 2, 0, half) for part in results]
    joined = ctx.concatenate([ctx.unsqueeze(part, [3]) for part in results], 3)
    return ctx.convert(joined, x.type.element_type)


def _sized(ctx: Context, x: Value, count: Extent) -> Value:
    """Returns `count` elements of the last dimension, zeros where it ends."""
    missing = larger(ctx, count - ctx.extent(x, 2), 0)
    return ctx.slice(ctx.pad(x, [0, 0, 0], [0, 0, missing]), 2, 0, count)


def _by_op(ctx: Context, parts: Sequence[Value], count: int, inverse: bool, onesided: bool) -> list[Value]:
    whole = inverse and onesided
    signal = ctx.add(ops.Complex(*parts)) if len(parts) == 2 else parts[0]
    name = "IRFFT" if whole else "IFFT" if inverse else "FFT" if len(parts) == 2 else "RFFT"
    if len(parts) == 1 and (inverse or not onesided):
        signal, name = ctx.convert(signal, ComplexType(parts[0].type.element_type)), "FFT" if name == "RFFT" else name
    found = ctx.add(ops.Fft(signal, fft_type=ops.FftType(name), fft_length=(count,)))
    return [found] if whole else [ctx.add(ops.Real(found)), ctx.add(ops.Imag(found))]


@rule("STFT")
def stft(
    ctx: Context, x: Value, step: Value, window: Value | None = None, length: Value | None = None, onesided: int = 1
) -> Value:
    """STFT(signal, frame_step, window, frame_length, onesided): a signal [batch, length] is taken for a real one"""
    x = ctx.unsqueeze(x, [2]) if x.type.rank == 2 else x
    extent, hop = ctx.extent(x, 1), ctx.number(step, "frame_step")
    if length is not None:
        count = ctx.number(length, "frame_length")
    else:
        count = extent if window is None else ctx.extent(window, 0)
    if (known := numbers_of([extent, hop, count])) is not None and (known[1] < 1 or not 1 <= known[2] <= known[0]):
        ctx.unsupported("frame_length", f"{count}, by steps of {hop}", f"frames in a signal of {extent}")
    frames = 1 + divided(ctx, extent - count, hop)
    starts = ctx.times(ctx.iota([frames, count], 0), scalar_of(ctx, hop))
    taken = ctx.take(x, ctx.plus(starts, ctx.iota([frames, count], 1)), 1)
    if window is not None:
        taken = ctx.times(taken, ctx.unsqueeze(window, [1]))
    return _fft(ctx, taken, count, inverse=False, onesided=bool(onesided))


@rule("MelWeightMatrix")
def mel_weights(
    ctx: Context, bins: Value, length: Value, rate: Value, low: Value, high: Value, output_datatype: int = 1
) -> Value:
    """MelWeightMatrix(num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz, output_datatype)"""
    count, rows = ctx.number(bins, "num_mel_bins"), ctx.number(length, "dft_length")
    edges = _mel_edges(ctx, count, rows, ctx.reshape(rate, ()), ctx.reshape(low, ()), ctx.reshape(high, ()))
    lower, center, upper = (ctx.slice(edges, 0, shift, count + shift) for shift in range(3))
    place = ctx.convert(ctx.iota([rows // 2 + 1, count], 0), F64)
    zero, one = ctx.scalar(0, F64), ctx.scalar(1, F64)
    rise, fall = ctx.minus(center, lower), ctx.minus(upper, center)
    rising = ctx.over(ctx.minus(place, lower), ctx.select(ctx.compare("EQ", rise, zero), one, rise))
    rising = ctx.select(ctx.compare("EQ", rise, zero), one, rising)
    is_rising = ctx.binary(ops.And, ctx.compare("GE", place, lower), ctx.compare("LE", place, center))
    falling = ctx.over(ctx.minus(upper, place), fall)
    is_falling = ctx.binary(ops.And, ctx.compare("GE", place, center), ctx.compare("LT", place, upper))
    weights = ctx.select(is_falling, falling, ctx.select(is_rising, rising, zero))
    return ctx.convert(weights, element_type(output_datatype))


def _mel_edges(ctx: Context, count: Extent, length: Extent, rate: Value, low: Value, high: Value) -> Value:
    """Returns the bins of the spectrum at which the filters begin, peak and end: equally far apart in mel."""

    def mel(hertz: Value) -> Value:
        ratio = ctx.scaled(ctx.convert(hertz, F64), 1 / 700)
        return ctx.scaled(ctx.add(ops.LogPlusOne(ratio)), 2595 / math.log(10))

    first, last = mel(low), mel(high)
    total = ctx.convert(scalar_of(ctx, count + 2), F64)
    step = ctx.over(ctx.minus(last, first), total)
    points = ctx.plus(ctx.times(ctx.convert(ctx.iota([count + 2], 0), F64), step), first)
    hertz = ctx.scaled(ctx.add(ops.ExponentialMinusOne(ctx.scaled(points, math.log(10) / 2595))), 700)
    scaled = ctx.times(hertz, ctx.convert(scalar_of(ctx, length + 1), F64))
    return ctx.add(ops.Floor(ctx.over(scaled, ctx.convert(rate, F64))))
