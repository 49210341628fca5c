"""Fourier transforms whose length the program computes: StableHLO's op has a length that is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.extents import Extent, Size
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I64


def by_definition(
    ctx: DynamicEmitter, parts: Sequence[Value], count: Size, inverse: bool, whole: bool, kept: Extent
) -> list[Value]:
    """Returns the first `kept` of `count` elements of transforms along the last dimension, by the product with a matrix
    of roots of one in 64 bits. `parts` are the real parts and, unless all are 0, the imaginary ones, in that order;
    elements that are missing are 0. If `whole`, they are the first half of transforms of real numbers, which the
    inverse returns."""
    parts = [ctx.convert(part, F64) for part in parts]
    last = parts[0].type.rank - 1
    shape, total = [ctx.extent(parts[0], last), kept], count.value
    row = ctx.iota(shape, 0)
    turns = ctx.convert(ctx.binary(ops.Remainder, ctx.times(row, ctx.iota(shape, 1)), total), F64)
    angle = ctx.over(ctx.scaled(turns, 2 * math.pi if inverse else -2 * math.pi), ctx.convert(total, F64))
    roots = [ctx.add(ops.Cosine(angle)), ctx.add(ops.Sine(angle))]
    if inverse:
        scale = ctx.over(ctx.scalar(1, F64), ctx.convert(total, F64))
        if whole:  # what is between the first and the middle element stands for itself and its conjugate
            is_alone = ctx.compare("EQ", ctx.binary(ops.Remainder, ctx.scaled(row, 2), total), ctx.scalar(0, I64))
            scale = ctx.select(is_alone, scale, ctx.scaled(scale, 2))
        roots = [ctx.times(root, scale) for root in roots]

    def product(part: int, root: int) -> Value:
        return ctx.dot(parts[part], roots[root], ([last], [0]))

    if len(parts) == 1:
        return [product(0, 0)] if whole else [product(0, 0), product(0, 1)]
    real = ctx.minus(product(0, 0), product(1, 1))
    return [real] if whole else [real, ctx.plus(product(0, 1), product(1, 0))]
