"""Fourier transforms over any dimensions of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.extents import Extent
from trivium.importers.pytorch.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.custom_targets import FOURIER
from trivium.ir.types import F64, ComplexType, TensorType

Ints = Sequence[int]


@rule("aten._fft_c2c.default")
def c2c(ctx: Context, x: Value, dim: Ints, normalization: int, forward: bool) -> Value:
    """_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor"""
    count = ctx.count(x, dim)
    for d in dim:
        x = _along(ctx, x, d, "FFT" if forward else "IFFT", ctx.extent(x, d))
    return _normalized(ctx, x, normalization, count, 0 if forward else 2)


@rule("aten._fft_r2c.default")
def r2c(ctx: Context, x: Value, dim: Ints, normalization: int, onesided: bool) -> Value:
    """_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor"""
    extents, count = ctx.extents(x), ctx.count(x, dim)
    if onesided:
        x = _along(ctx, x, dim[-1], "RFFT", extents[dim[-1]])
    else:
        x = ctx.convert(x, ComplexType(x.type.element_type))
    for d in dim[:-1] if onesided else dim:
        x = _along(ctx, x, d, "FFT", extents[d])
    return _normalized(ctx, x, normalization, count, 0)


@rule("aten._fft_c2r.default")
def c2r(ctx: Context, x: Value, dim: Ints, normalization: int, last_dim_size: Extent) -> Value:
    """_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor"""
    for d in dim[:-1]:
        x = _along(ctx, x, d, "IFFT", ctx.extent(x, d))
    x = ctx.slice(x, dim[-1] % x.type.rank, 0, last_dim_size // 2 + 1)
    x = _along(ctx, x, dim[-1], "IRFFT", last_dim_size)
    return _normalized(ctx, x, normalization, ctx.count(x, dim), 2)


def _along(ctx: Context, x: Value, d: int, kind: str, length: Extent) -> Value:
    """Transforms one dimension."""
    last, d = x.type.rank - 1, d % x.type.rank
    order = [i for i in range(last + 1) if i != d] + [d]
    moved = _transformed(ctx, ctx.transpose(x, order), ops.FftType(kind), length)
    return ctx.transpose(moved, [order.index(i) for i in range(last + 1)])


def _transformed(ctx: Context, x: Value, kind: ops.FftType, length: Extent) -> Value:
    """Transforms the last dimension."""
    if isinstance(length, int):
        return ctx.add(ops.Fft(x, fft_type=kind, fft_length=(length,)))
    element = ops.Fft.infer(x.type, kind, (1,)).element_type
    result = TensorType((*x.type.shape[:-1], None), element)
    return ctx.add(ops.CustomCall([x, length.value], FOURIER, results=[result], extra={"fft_type": kind}))[0]


def _normalized(ctx: Context, x: Value, normalization: int, count: Extent, given: int) -> Value:
    """Divides by the root of the number of elements (1), by that number (2) or by nothing (0); what was `given` is
    divided so already."""
    power = {0: 0, 1: 0.5, 2: 1}[given] - {0: 0, 1: 0.5, 2: 1}[normalization]
    if not power:
        return x
    if isinstance(count, int):
        return ctx.times(x, ctx.full_like(x, count**power))
    factor = ctx.binary(ops.Power, ctx.convert(count.value, F64), ctx.scalar(power, F64))
    return ctx.times(x, ctx.convert(factor, x.type.element_type))
