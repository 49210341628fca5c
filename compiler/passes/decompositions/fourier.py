"""Fourier transforms in n log n operations for any length n, except those that are separate kernels
(`lowering/fourier.py`).

A length whose prime factors are small is split into factors of at most `LARGEST`, the radices. Stockham's algorithm
makes one pass for each: small transforms of numbers that are far apart, which are one matrix product, then a
multiplication by powers of a root of unity (the twiddles), then a transposition, so that the results end up in order.
Any other length becomes a convolution of a length that can be split in this way (Bluestein's algorithm).

Numbers are stored as two planes, of real and of imaginary parts, along a first dimension. Therefore the matrix of a
small transform is real, with two rows and two columns for each of its complex numbers, and multiplication by an array
of complex numbers is elementwise: `z * real(w) + reverse(z) * (-imag(w), imag(w))`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from trivium.compiler.fourier import ComplexArray, is_transform_of_rows, roots
from trivium.compiler.passes.decompositions.table import (
    broadcast,
    constant,
    dot,
    is_static,
    joined,
    operands_of,
    padded,
    part,
    pattern,
    reshape,
    reverse,
    splat,
    transpose,
)
from trivium.ir.decompositions.tensors import Tensor, complex_of, imag, is_complex, real
from trivium.ir.ops import DotDimensionNumbers, Fft, FftType

LARGEST = 64
"""The largest radix. Lengths with a larger prime factor are transformed by a convolution."""

PASS = 32
"""The cost of a pass over the data, in operations on each number, in addition to its product."""


@pattern(Fft)
def fft(op):
    """One transform for each dimension."""
    if not is_static(op) or is_transform_of_rows(op):
        return None
    (x,) = operands_of(op)
    kind, rank = op.result.type, op.result.type.rank
    if kind.size == 0 or x.type.size == 0:
        return splat(0, kind)
    if (found := _as_rows(op, x)) is not None:
        return found.value
    axes = range(rank - len(op.fft_length), rank)
    planes = joined(0, *(reshape(each, 1, *x.type.static_shape) for each in _parts(x)))
    inverse = op.fft_type in (FftType.IFFT, FftType.IRFFT)
    # The transform of real numbers begins with the last dimension, and the inverse one ends with it.
    order = [axes[-1], *axes[:-1]] if op.fft_type is FftType.RFFT else list(axes)
    for axis in order:
        last = axis == axes[-1]
        if last and op.fft_type is FftType.IRFFT:
            planes = _whole(planes, axis + 1, kind.static_shape[axis])
        planes = _along(planes, axis + 1, inverse, real_result=last and op.fft_type is FftType.IRFFT)
        if last and op.fft_type is FftType.RFFT:
            planes = part(planes, axis + 1, 0, kind.static_shape[axis])
    found = [
        reshape(part(planes, 0, place, place + 1), *kind.static_shape) for place in range(planes.type.static_shape[0])
    ]
    return (complex_of(*found) if len(found) == 2 else found[0]).value


def _as_rows(op: Fft, x: Tensor) -> Tensor | None:
    """Transforms rows along one dimension after another, if each of these transforms is a separate kernel; else returns
    None."""
    inverse = op.fft_type in (FftType.IFFT, FftType.IRFFT)
    rank = x.type.rank
    steps = [(axis, FftType.IFFT if inverse else FftType.FFT) for axis in range(rank - len(op.fft_length), rank - 1)]
    steps.insert(len(steps) if op.fft_type is FftType.IRFFT else 0, (rank - 1, op.fft_type))
    for axis, kind in steps:
        turned = list(range(rank))
        turned[axis], turned[-1] = turned[-1], turned[axis]
        rows = Fft(transpose(x, *turned).value, kind, (op.fft_length[axis - rank],))
        if len(steps) == 1 or not is_transform_of_rows(rows):
            return None
        x = transpose(x.of(rows), *turned)
    return x


def _parts(x: Tensor) -> tuple[Tensor, ...]:
    return (real(x), imag(x)) if is_complex(x) else (x,)


def _whole(planes: Tensor, axis: int, length: int) -> Tensor:
    """Completes the transform of real numbers, in which each number is the conjugate of its mirror image."""
    half = planes.type.static_shape[axis]
    if length == half:
        return planes
    rest = reverse(part(planes, axis, 1, length - half + 1), axis)
    signs = broadcast(constant(planes, np.array([1, -1])), rest.type.static_shape, [0])
    return joined(axis, planes, rest * signs)


def _along(planes: Tensor, axis: int, inverse: bool, *, real_result: bool) -> Tensor:
    """Returns the transform along an axis, without the imaginary plane if the result is real."""
    shape = planes.type.static_shape
    length, outer, inner = shape[axis], math.prod(shape[1:axis]), math.prod(shape[axis + 1 :])
    planes = reshape(planes, shape[0], outer, length, inner)
    scale = 1 / np.longdouble(length) if inverse else np.longdouble(1)
    transform = _by_convolution if radices(length) is None else _by_radices
    found = transform(planes, inverse, scale)
    count = 1 if real_result else found.type.static_shape[0]
    return reshape(part(found, 0, 0, count), count, *shape[1:])


# Lengths


@cache
def radices(length: int) -> tuple[int, ...] | None:
    """Returns the cheapest factors whose product is `length`; None if a prime factor is too large. For each number, a
    radix costs as many complex products as its size, each of two parts by two parts."""
    if length <= LARGEST:
        best, cost = (length,), _cost((length,))
    else:
        best, cost = None, math.inf
    for radix in range(min(LARGEST, length // 2), 1, -1):
        if length % radix == 0:
            rest = radices(length // radix)
            if rest is not None and _cost((radix, *rest)) < cost:
                best, cost = (radix, *rest), _cost((radix, *rest))
    return best


def _cost(factors: Sequence[int]) -> int:
    return sum(4 * radix + PASS for radix in factors)


def _times(planes: Tensor, factors: ComplexArray, dimensions: Sequence[int]) -> Tensor:
    """Multiplies each number by that of an array along some dimensions. Real numbers become complex."""
    shape = planes.type.static_shape
    if shape[0] == 1:
        both = np.stack([factors.real, factors.imag])
        whole = (2, *shape[1:])
        return broadcast(reshape(planes, *shape[1:]), whole, range(1, len(shape))) * broadcast(
            constant(planes, both), whole, [0, *dimensions]
        )
    reals = broadcast(constant(planes, factors.real), shape, dimensions)
    crossed = broadcast(constant(planes, np.stack([-factors.imag, factors.imag])), shape, [0, *dimensions])
    return planes * reals + reverse(planes, 0) * crossed


# Stockham's algorithm


@dataclass(frozen=True)
class _Pass:
    """One pass. The data have the dimensions (outer, length, stride, inner): `length` numbers that are still to be
    transformed, in `stride` columns that are already transformed, in order."""

    outer: int
    length: int
    stride: int
    inner: int
    radix: int

    @property
    def rest(self) -> int:
        return self.length // self.radix


def _by_radices(planes: Tensor, inverse: bool, scale: np.longdouble) -> Tensor:
    """Returns the transform along dimension 2 of four."""
    _, outer, length, inner = planes.type.static_shape
    factors = radices(length)
    assert factors is not None
    stride = 1
    for radix in factors:
        step = _Pass(outer, length // stride, stride, inner, radix)
        planes = _small_transforms(planes, step, inverse, scale if step.rest == 1 else np.longdouble(1))
        stride *= radix
    return reshape(planes, 2, outer, length, inner)


def _small_transforms(planes: Tensor, step: _Pass, inverse: bool, scale: np.longdouble) -> Tensor:
    """Computes transforms of `radix` numbers each, which are `rest` apart; then applies the twiddles."""
    count = planes.type.static_shape[0]
    split = reshape(planes, count, step.outer, step.radix, step.rest, step.stride, step.inner)
    across = transpose(split, 0, 2, 1, 3, 4, 5)
    matrix = constant(planes, _matrix(step.radix, inverse, count) * scale)
    found = dot(matrix, across, DotDimensionNumbers((), (), (2, 3), (0, 1)))
    if step.rest > 1:
        powers = np.outer(np.arange(step.radix), np.arange(step.rest))
        found = _times(found, roots(powers, step.length, inverse), [1, 3])
    # (part, k, outer, p, q, inner) to (part, outer, p, k, q, inner)
    return transpose(found, 0, 2, 3, 1, 4, 5)


def _matrix(radix: int, inverse: bool, count: int) -> np.ndarray:
    """Returns the matrix of the small transform, (part, k, part, j), for real or complex numbers."""
    turns = roots(np.outer(np.arange(radix), np.arange(radix)), radix, inverse)
    rows = np.array([[turns.real, -turns.imag], [turns.imag, turns.real]])
    return rows.transpose(0, 2, 1, 3)[:, :, :count]


# Bluestein's algorithm


def _by_convolution(planes: Tensor, inverse: bool, scale: np.longdouble) -> Tensor:
    """Since jk = (j^2 + k^2 - (k - j)^2) / 2, the transform is a convolution with those powers of a root whose
    exponents are squares, and longer transforms compute that convolution."""
    length = planes.type.static_shape[2]
    long = convolution_length(2 * length - 1)
    squares = np.arange(length, dtype=np.int64) ** 2 % (2 * length)
    chirp = roots(squares, 2 * length, inverse)
    kernel = np.zeros(long, np.clongdouble)
    kernel[:length] = chirp.conj()
    kernel[long - length + 1 :] = chirp.conj()[:0:-1]
    one = np.longdouble(1)
    turned = padded(_times(planes, chirp, [2]), 2, long)
    spectrum = _by_radices(turned, False, one)
    product = _times(spectrum, (np.fft.fft(kernel) / long).astype(np.clongdouble), [2])
    return _times(part(_by_radices(product, True, one), 2, 0, length), chirp * scale, [2])


def convolution_length(least: int) -> int:
    """Returns the smallest length of at least `least` without prime factors above 5."""
    best = 1 << (least - 1).bit_length()
    for fives in range(best.bit_length()):
        for threes in range(best.bit_length()):
            odd = 5**fives * 3**threes
            if odd < best:
                best = min(best, odd << max(0, -(-least // odd) - 1).bit_length())
    return best
