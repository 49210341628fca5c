"""Convolutions of images with certain numbers of features and positions, on which it depends how they are computed."""

from __future__ import annotations

import math
from typing import Any

from tests.random_programs.contractions import MOST_PRODUCTS, PAIRS, convolve, epilogue
from tests.random_programs.generator import Generator, Rejected
from trivium.ir import ops
from trivium.ir.types import BF16, F16, F32, F64, is_float, tensor


def picture(g: Generator) -> None:
    """A convolution of an image with few features and many positions."""
    features = g.number(1, 5)
    space, first = [g.number(20, 30), g.number(20, 60)], g.chance(0.5)
    image = g.argument((1, features, *space) if first else (1, *space, features), g.element(is_float))
    layout = (0, 1, (2, 3)) if first else (0, 3, (1, 2))
    padding = [[g.number(0, 2), g.number(0, 2)] for _ in range(2)]
    sizes = [g.number(1, 7), g.number(1, 7)]
    options = {"groups": 1, "sizes": sizes, "padding": padding, "lhs_dilation": [1, 1]}
    epilogue(g, convolve(g, image, layout, **options), layout[1])


def features_first(g: Generator) -> None:
    """One or two convolutions, each of many features, which come before the positions, as at the edges of a network."""
    space = [g.number(1, 9) for _ in range(g.number(1, 2))]
    image = g.argument((g.number(1, 2), g.number(9, 36), *space), g.pick((F32, F32, F64, F16, BF16)))
    layout = (0, 1, tuple(range(2, 2 + len(space))))
    for _ in range(g.number(1, 2)):
        sizes = [g.number(1, 3) for _ in space]
        padding = [[g.number(size - 1, size), g.number(0, 2)] for size in sizes]
        options = {"groups": 1, "sizes": sizes, "padding": padding, "lhs_dilation": [1] * len(space)}
        image = convolve(g, image, layout, **options)
        epilogue(g, image, 1)


def few_features(g: Generator) -> None:
    """A convolution of many features whose result has few."""
    space = [g.number(3, 9) for _ in range(g.number(1, 2))]
    features, feature = int(g.pick((16, 32, 48, 64))), int(g.pick((1, len(space) + 1)))
    places = tuple(d for d in range(1, len(space) + 2) if d != feature)
    shape = dict(zip(places, space, strict=True)) | {0: g.number(1, 2), feature: features}
    image = g.argument([shape[d] for d in range(len(shape))], g.pick((F32, F32, F64)))
    if g.chance(0.3):
        image = g.add(ops.Negate(image))
    sizes = [g.number(2, 4) for _ in space]
    options = {"groups": 1, "sizes": sizes, "kernels": g.number(1, 4), "lhs_dilation": [1] * len(space)}
    epilogue(g, convolve(g, image, (0, feature, places), **options), feature)


def lines(g: Generator) -> None:
    """A convolution of few features in each group, whose lines of positions fill vectors, or most of them."""
    space = [*(g.number(1, 6) for _ in range(g.number(0, 2))), int(g.pick((g.number(6, 50), 14, 16, 28, 31, 32, 48)))]
    groups, inputs, few = g.number(1, 3), int(g.pick((1, 2, 3, 4, 8, 17))), int(g.pick((1, 2, 4, 7, 9, 16, 21)))
    feature = int(g.pick((1, len(space) + 1)))
    places = tuple(d for d in range(1, len(space) + 2) if d != feature)
    shape = dict(zip(places, space, strict=True)) | {0: g.number(1, 2), feature: groups * inputs}
    image = g.argument([shape[d] for d in range(len(shape))], g.pick((F32, F32, F32, F64, BF16)))
    if g.chance(0.3):
        image = g.add(ops.Negate(image))
    options: dict[str, Any] = {
        "sizes": [g.number(1, 4) for _ in space],
        "padding": [[g.number(-1, 2), g.number(-1, 3)] for _ in space],
        "window_strides": [int(g.pick((1, 1, 2))) for _ in space],
        "lhs_dilation": [1] * len(space),
    }
    if g.chance(0.3):  # A transposed convolution, each of whose results uses some of the taps.
        options |= {
            "sizes": [g.number(2, 5) for _ in space],
            "window_strides": [1] * len(space),
            "rhs_dilation": [1] * len(space),
            "lhs_dilation": [int(g.pick((1, 2, 2, 3))) for _ in space],
        }
        groups = int(g.pick((1, 1, groups)))
    epilogue(g, convolve(g, image, (0, feature, places), groups=groups, kernels=groups * few, **options), feature)


def signal(g: Generator) -> None:
    """A convolution of many features, which come first, with a kernel that is not known, as in the encoder of a sound:
    in the result, they come last."""
    space = [*(g.number(1, 3) for _ in range(int(g.pick((0, 0, 1))))), g.number(8, 60)]
    inputs, outputs, sizes = g.number(4, 40), g.number(17, 70), [g.number(1, 4) for _ in space]
    element, places = g.pick((F32, F32, F64, BF16)), tuple(range(2, len(space) + 2))
    if math.prod(space) * inputs * outputs * math.prod(sizes) > 24 * MOST_PRODUCTS:
        raise Rejected
    image = g.argument((g.number(1, 2), inputs, *space), element)
    kernel = g.argument((outputs, inputs, *sizes), element)
    last = tuple(place - 1 for place in places)
    options: dict[str, Any] = {
        "window_strides": [int(g.pick((1, 1, 2))) for _ in space],
        "padding": [[g.number(size - 1, size) * g.chance(0.5), 0] for size in sizes],
    }
    numbers = ops.ConvDimensionNumbers(0, 1, places, 1, 0, places, 0, len(space) + 1, last)
    groups = {"feature_group_count": 1, "batch_group_count": 1}
    result = g.add(ops.Convolution(image, kernel, dimension_numbers=numbers, **groups, **options))
    epilogue(g, result, len(space) + 1)


def in_tiles(g: Generator) -> None:
    """A convolution of narrow numbers with whole tiles of features, whose lines of positions are as long as tiles are
    high, or nearly."""
    element, sums = g.pick(PAIRS)
    size, features, kernels = g.number(1, 3), int(g.pick((32, 64, 64, 128))), g.number(8, 40)
    line, step = g.number(11, 40), int(g.pick((1, 1, 2)))
    image, kernel = (g.number(1, 2), g.number(size, 5), line * step, features), (size, size, features, kernels)
    numbers = ops.ConvDimensionNumbers(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))
    if g.chance(0.5):
        image, kernel = (image[0], features, *image[1:3]), (kernels, features, size, size)
        numbers = ops.ConvDimensionNumbers(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
    lhs, rhs = g.argument(image, element), g.argument(kernel, element)
    if g.chance(0.5):
        rhs = g.constant(g.known[rhs].array, element)
    padding = [(g.number(0, 1), g.number(0, 1)) if g.chance(0.6) else (0, 0) for _ in range(2)]
    shape = [image[0], *[kernels] * 3]
    for d, around in zip(numbers.output_spatial_dimensions, padding, strict=True):
        shape[d] = (image[d] + sum(around) - size) // step + 1
    options = {"feature_group_count": 1, "batch_group_count": 1, "window_strides": [step] * 2, "padding": padding}
    kind = tensor(*shape, of=sums)
    epilogue(
        g,
        g.add(ops.Convolution(lhs, rhs, dimension_numbers=numbers, result=kind, **options)),
        numbers.output_feature_dimension,
    )


FAMILIES = (
    picture,
    few_features,
    *(lines,) * 2,
    *(features_first,) * 2,
    in_tiles,
    signal,
)
