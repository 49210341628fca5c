"""Parts of images of one size, at given places."""

from __future__ import annotations

from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Tensor, rule
from trivium.importers.tensorflow.image import whole_places
from trivium.importers.tensorflow.indexing import gathered
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I64


@rule("ExtractGlimpse", "ExtractGlimpseV2")
def extract_glimpse(
    ctx: Context,
    input: Value,
    size: Tensor,
    offsets: Value,
    *,
    centered: bool,
    normalized: bool,
    uniform_noise: bool,
    noise: str,
) -> Value:
    """ExtractGlimpse(input, size, offsets; centered=true, normalized=true, uniform_noise=true, noise="uniform") ->
    glimpse"""
    if noise != "zero" or uniform_noise:
        ctx.unsupported(
            "noise", f"{noise or 'none'}, with uniform_noise {uniform_noise}", "zero, without uniform_noise"
        )
    wanted = ctx.given_shape(size, "size")
    found = input
    if 0 in input.type.shape:
        batch, _, _, depth = ctx.extents(input)
        return ctx.full([batch, *wanted, depth], 0, F32)
    for d in range(2):
        offset = ctx.squeeze(ctx.slice(offsets, 1, d, d + 1), [1])
        start = _start(ctx, offset, ctx.extent(input, 1 + d), wanted[d], centered, normalized)
        found = _shifted(ctx, found, 1 + d, start, wanted[d])
    return found


def _start(ctx: Context, offset: Value, have: Extent, wanted: Extent, centered: bool, normalized: bool) -> Value:
    """Returns the first pixel of each glimpse along a dimension, in the order of TensorFlow's kernel. Glimpses that are
    centred begin half their size before, but not in the second version if offsets count pixels."""
    is_first = ctx.op == "ExtractGlimpse"
    old, half = (ctx.number_as(x, F32) for x in (have, wanted))
    middle, half = ctx.scaled(old, 0.5), ctx.scaled(half, 0.5)
    if normalized:
        offset = ctx.times(offset, old)
    if centered:
        offset = ctx.scaled(offset, 0.5) if is_first or normalized else offset
        offset = ctx.plus(offset, middle)
    if is_first or (normalized and centered):
        offset = ctx.minus(offset, half)
    return whole_places(ctx, offset)


def _shifted(ctx: Context, x: Value, dimension: int, start: Value, count: Extent) -> Value:
    """Returns `count` elements along a dimension of each image, from `start` on, and zeros beyond the image."""
    place = ctx.plus(ctx.unsqueeze(start, [1]), ctx.unsqueeze(ctx.iota([count], 0), [0]))
    last = ctx.minus(ctx.number_as(ctx.extent(x, dimension), I64), ctx.scalar(1, I64))
    inside = ctx.binary(ops.Maximum, ctx.binary(ops.Minimum, place, last), ctx.scalar(0, I64))
    taken = gathered(ctx, x, inside, dimension, 1)
    exists = ctx.broadcast_in_dim(ctx.compare("EQ", place, inside), ctx.extents(taken), [0, dimension])
    return ctx.select(exists, taken, ctx.full_like(taken, 0))
