"""Gradients of convolutions of narrow numbers that have their features last, as in training: of kernels and of images,
of windows with strides, taps that are apart, and edges of any width."""

from __future__ import annotations

import math

from tests.random_programs.generator import Generator, Rejected
from trivium.ir import ops
from trivium.ir.types import BF16, F16, F32, tensor

LARGEST = 1 << 18
"""The largest number of elements of a value."""

MOST_PRODUCTS = 1 << 25

FEATURES = (64, 64, 64, 128, 40)


def gradient(g: Generator) -> None:
    element, inputs, outputs = g.pick((BF16, F16)), int(g.pick(FEATURES)), int(g.pick((8, 24, 64, 64, 72)))
    sums = F32 if g.chance(0.5) else element
    taps = [1, 1] if g.chance(0.3) else [g.number(1, 3), g.number(1, 3)]
    steps, apart = [int(g.pick((1, 1, 2, 3))) for _ in range(2)], [int(g.pick((1, 1, 1, 2))) for _ in range(2)]
    images, around = g.number(1, 5), [(g.number(0, 2), g.number(0, 2)) for _ in range(2)]
    windows = [g.number(4, 16), g.number(4, 16)]
    # Some rows and columns at the end may be in no window.
    left = [g.number(0, step - 1) for step in steps]
    reach = [(tap - 1) * distance + 1 for tap, distance in zip(taps, apart, strict=True)]
    space = [
        (count - 1) * step + extent - sum(edges) + more
        for count, step, extent, edges, more in zip(windows, steps, reach, around, left, strict=True)
    ]
    if min(space) < 1 or images * math.prod((*windows, *taps, inputs, outputs)) > MOST_PRODUCTS:
        raise Rejected
    moving = g.argument((images, *windows, outputs), element)
    if g.chance(0.6):
        image = g.argument((images, *space, inputs), element)
        result = (0, 3, (1, 2)) if g.chance(0.5) else (3, 0, (1, 2)) if g.chance(0.5) else (2, 3, (0, 1))
        numbers = ops.ConvDimensionNumbers(3, 0, (1, 2), 0, 3, (1, 2), *result)
        padding = [[low, high - more] for (low, high), more in zip(around, left, strict=True)]
        shape = dict(zip((*result[2], result[0], result[1]), (*taps, inputs, outputs), strict=True))
        options = {"padding": padding, "rhs_dilation": steps, "window_strides": apart}
        operands = image, moving
    else:
        kernel = g.argument((outputs, *taps, inputs), element)
        numbers = ops.ConvDimensionNumbers(0, 3, (1, 2), 0, 3, (1, 2), 0, 3, (1, 2))
        padding = [
            [extent - 1 - low, extent - 1 - high + more]
            for (low, high), extent, more in zip(around, reach, left, strict=True)
        ]
        shape = dict(enumerate((images, *space, inputs)))
        options = {"padding": padding, "lhs_dilation": steps, "rhs_dilation": apart, "window_reversal": [True, True]}
        operands = moving, kernel
    kind = tensor(*(shape[d] for d in range(4)), of=sums)
    groups = {"feature_group_count": 1, "batch_group_count": 1}
    found = g.add(ops.Convolution(*operands, dimension_numbers=numbers, result=kind, **options, **groups))  # type: ignore[arg-type]
    g.offer(g.add(ops.Negate(found)) if g.chance(0.5) else found)
