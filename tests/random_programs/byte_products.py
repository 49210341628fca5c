"""Matrix products and convolutions of quantized numbers: of bytes, less their zero points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.random_programs.contractions import FEATURES
from tests.random_programs.generator import Generator
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I8, I32, UI8, tensor


def quantized(g: Generator) -> None:
    """The product, or the convolution, of bytes less their zero points, which are numbers or arguments."""
    features, kernels, size = int(g.pick(FEATURES)), int(g.pick(FEATURES)), int(g.pick((1, 2, 3)))
    convolves = g.chance(0.5)
    if not convolves:
        image, kernel = _centered(g, (g.number(1, 30), features)), _centered(g, (features, kernels))
        g.offer(g.add(ops.DotGeneral(image, kernel, ops.DotDimensionNumbers((), (), (1,), (0,)))))
        return
    batch, places, centered = g.number(1, 3), g.number(size, 9), g.chance(0.3)
    if g.chance(0.5):
        image, kernel = (batch, places, features), (size, features, kernels)
        numbers = ops.ConvDimensionNumbers(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))
    else:
        image, kernel = (batch, features, places), (kernels, features, size)
        numbers = ops.ConvDimensionNumbers(0, 1, (2,), 1, 0, (2,), 0, 1, (2,))
    image, kernel = _centered(g, image), _centered(g, kernel, centered)
    padding = [(g.number(-1, 2), g.number(0, 2)) if g.chance(0.7) else (0, 0)]
    options = {"feature_group_count": 1, "batch_group_count": 1, "lhs_dilation": [int(g.pick((1, 1, 2)))]}
    g.offer(g.add(ops.Convolution(image, kernel, padding=padding, dimension_numbers=numbers, **options)))


def _centered(g: Generator, shape: Sequence[int], zero: bool = True) -> Value:
    """Returns bytes as numbers of 32 bits, less a zero point."""
    element = g.pick((I8, UI8))
    wide, stored = tensor(*shape, of=I32), g.argument(shape, element)
    if g.chance(0.2):
        return g.constant(g.known[stored].array.astype(np.int32) - (g.number(-9, 9) if zero else 0), I32)
    value = g.add(ops.Convert(stored, result=wide))
    if not zero:
        return value
    low, high = (-128, 127) if element is I8 else (0, 255)
    if g.chance(0.2):
        point = g.add(ops.Convert(g.argument((), element), result=tensor(of=I32)))
    else:
        point = g.argument((), I32) if g.chance(0.2) else g.constant(np.asarray(g.number(low, high)), I32)
    return g.add(ops.Subtract(value, g.add(ops.BroadcastInDim(point, (), result=wide))))


FAMILIES = (quantized,)
