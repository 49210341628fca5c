"""Fourier transforms along the last one, two or three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from trivium.importers.extents import Extent, Size, chosen, numbers_of
from trivium.importers.fourier import by_definition
from trivium.importers.tensorflow.context import Context, Tensor, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import ComplexType, ElementType, FloatType


def _register() -> None:
    for count, suffix in ((1, ""), (2, "2D"), (3, "3D")):
        for kind in ("FFT", "IFFT"):
            rule.add(f"{kind}{suffix}", _complex_transform(kind, count))
        rule.add(f"RFFT{suffix}", _real_transform())
        rule.add(f"IRFFT{suffix}", _inverse_transform())


def _complex_transform(kind: str, count: int) -> Callable[..., Value]:
    def transform(ctx: Context, input: Value) -> Value:
        """FFT(input) -> output"""
        return _transformed(ctx, input, kind, ctx.extents(input)[-count:])

    return transform


def _real_transform() -> Callable[..., Value]:
    def transform(ctx: Context, input: Value, fft_length: Tensor) -> Value:
        """RFFT(input, fft_length) -> output"""
        lengths = ctx.given_shape(fft_length, "fft_length")
        return _transformed(ctx, _sized(ctx, input, lengths), "RFFT", lengths)

    return transform


def _inverse_transform() -> Callable[..., Value]:
    def transform(ctx: Context, input: Value, fft_length: Tensor) -> Value:
        """IRFFT(input, fft_length) -> output"""
        *outer, last = ctx.given_shape(fft_length, "fft_length")
        return _transformed(ctx, _sized(ctx, input, [*outer, last // 2 + 1]), "IRFFT", [*outer, last])

    return transform


def _sized(ctx: Context, x: Value, lengths: Sequence[Extent]) -> Value:
    """Returns `x` cut to the lengths of its last dimensions, which TensorFlow's kernels expect to be there."""
    for d, length in enumerate(lengths, x.type.rank - len(lengths)):
        extent = x.type.shape[d]
        if extent is not None and isinstance(length, int) and extent < length:
            ctx.unsupported("input", f"shape {x.type.shape}", f"at least {list(lengths)}, the part that is used")
        x = ctx.slice(x, d, 0, length)
    return x


def _transformed(ctx: Context, x: Value, kind: str, lengths: Sequence[Extent]) -> Value:
    known = numbers_of(lengths)
    if known is not None:
        return _by_op(ctx, x, kind, known)
    if ctx.of_ranges:
        ctx.unsupported("fft_length", "a value computed at run time", "one that is known while importing")
    # The real tensor is on one side of a transform along the last dimension.
    steps = [(kind if d == 0 else kind.replace("R", ""), x.type.rank - 1 - d) for d in range(len(lengths))]
    for step, dimension in steps[::-1] if kind == "IRFFT" else steps:
        x = _along(ctx, x, step, dimension, lengths[dimension - x.type.rank])
    return x


def _by_op(ctx: Context, x: Value, kind: str, lengths: Sequence[int]) -> Value:
    if 0 in x.type.shape or not math.prod(lengths):
        shape = (*ctx.extents(x)[: -len(lengths)], *lengths)
        if kind == "RFFT":
            shape = (*shape[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)
        element, real = x.type.element_type, _real_of(x.type.element_type)
        return ctx.full(shape, 0, {"RFFT": ComplexType(real), "IRFFT": real}.get(kind, element))
    return ctx.add(ops.Fft(x, fft_type=ops.FftType(kind), fft_length=tuple(lengths)))


def _real_of(element: ElementType) -> FloatType:
    real = element.element_type if isinstance(element, ComplexType) else element
    assert isinstance(real, FloatType), element
    return real


def _along(ctx: Context, x: Value, kind: str, dimension: int, length: Extent) -> Value:
    """Returns the transform along one dimension."""
    last = x.type.rank - 1
    moved = ctx.transpose(x, [*(d for d in range(last + 1) if d != dimension), dimension])
    found = _by_op(ctx, moved, kind, [length]) if isinstance(length, int) else _computed(ctx, moved, kind, length)
    return ctx.transpose(found, [*range(dimension), last, *range(dimension, last)])


def _computed(ctx: Context, x: Value, kind: str, length: Size) -> Value:
    """Returns the transform along the last dimension, whose length the program computes."""
    parts = [x] if kind == "RFFT" else [ctx.add(ops.Real(x)), ctx.add(ops.Imag(x))]
    kept = chosen(ctx, "EQ", length, 0, 0, length // 2 + 1) if kind == "RFFT" else length
    found = by_definition(ctx, parts, length, kind in ("IFFT", "IRFFT"), kind == "IRFFT", kept)
    found = [ctx.convert(part, _real_of(x.type.element_type)) for part in found]
    return found[0] if kind == "IRFFT" else ctx.add(ops.Complex(*found))


_register()
