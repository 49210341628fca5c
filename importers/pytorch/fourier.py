"""Fourier transforms over any dimensions of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.pytorch.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import ComplexType

Ints = Sequence[int]


@rule("aten._fft_c2c.default")
def c2c(ctx: Context, x: Value, dim: Ints, normalization: int, forward: bool) -> Value:
    """_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor"""
    count = math.prod(x.type.shape[d] for d in dim)
    for d in dim:
        x = _along(ctx, x, d, "FFT" if forward else "IFFT", x.type.shape[d])
    return _normalized(ctx, x, normalization, count, 0 if forward else 2)


@rule("aten._fft_r2c.default")
def r2c(ctx: Context, x: Value, dim: Ints, normalization: int, onesided: bool) -> Value:
    """_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor"""
    shape = x.type.shape
    count = math.prod(shape[d] for d in dim)
    if onesided:
        x = _along(ctx, x, dim[-1], "RFFT", shape[dim[-1]])
    else:
        x = ctx.convert(x, ComplexType(x.type.element_type))
    for d in dim[:-1] if onesided else dim:
        x = _along(ctx, x, d, "FFT", shape[d])
    return _normalized(ctx, x, normalization, count, 0)


@rule("aten._fft_c2r.default")
def c2r(ctx: Context, x: Value, dim: Ints, normalization: int, last_dim_size: int) -> Value:
    """_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor"""
    for d in dim[:-1]:
        x = _along(ctx, x, d, "IFFT", x.type.shape[d])
    x = ctx.slice(x, dim[-1] % x.type.rank, 0, last_dim_size // 2 + 1)
    x = _along(ctx, x, dim[-1], "IRFFT", last_dim_size)
    return _normalized(ctx, x, normalization, math.prod(x.type.shape[d] for d in dim), 2)


def _along(ctx: Context, x: Value, d: int, kind: str, length: int) -> Value:
    """Transforms one dimension."""
    last, d = x.type.rank - 1, d % x.type.rank
    order = [i for i in range(last + 1) if i != d] + [d]
    moved = ctx.add(ops.Fft(ctx.transpose(x, order), fft_type=ops.FftType(kind), fft_length=(length,)))
    return ctx.transpose(moved, [order.index(i) for i in range(last + 1)])


def _normalized(ctx: Context, x: Value, normalization: int, count: int, given: int) -> Value:
    """Divides by the root of the number of elements (1), by that number (2) or by nothing (0); what was `given` is
    divided so already."""
    power = {0: 0, 1: 0.5, 2: 1}[given] - {0: 0, 1: 0.5, 2: 1}[normalization]
    return ctx.times(x, ctx.full_like(x, count**power)) if power else x
