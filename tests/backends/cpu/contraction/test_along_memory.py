"""Which products of a matrix and a vector, and which convolutions, run in plain loops, and what they compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import expect_same, program_of, some
from tests.compiler.targets import TARGET
from trivium.backends.cpu.contraction.along_memory import has_tiny_matrices, slides_along_memory, sums_along_memory
from trivium.backends.cpu.target import LAYOUTS
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.types import tensor


def product(left: tuple[int, ...], right: tuple[int, ...], along: tuple[int, int], after: type | None = None) -> Module:
    def main(b, x, y):
        sums = b.add(ops.DotGeneral(x, y, ops.DotDimensionNumbers((), (), (along[0],), (along[1],))))
        return b.add(after(sums)) if after else sums

    return program_of([tensor(*left), tensor(*right)], main)


def is_plain(module: Module) -> bool:
    (kernel,) = lower(optimize(module), TARGET).kernels()
    assert kernel.contraction is not None
    return sums_along_memory(kernel.contraction)


@pytest.mark.parametrize(
    ("left", "right", "along", "plain"),
    [
        ((50, 200), (200,), (1, 0), True),
        ((200,), (50, 200), (0, 1), True),
        ((1, 200), (50, 200), (1, 1), True),
        ((200,), (200,), (0, 0), True),
        ((200, 50), (200,), (0, 0), False),  # sums run across rows
        ((50, 100), (100,), (1, 0), False),  # short sums
        ((50, 200), (3, 200), (1, 1), False),  # several vectors: the matrix is used more than once
    ],
)
def test_which_products_run_in_plain_loops(
    left: tuple[int, ...], right: tuple[int, ...], along: tuple[int, int], plain: bool
) -> None:
    module = product(left, right, along)
    assert is_plain(module) == plain
    expect_same(module, [some(*left), some(*right, seed=1)])


@pytest.mark.parametrize(
    ("left", "right", "tiny"),
    [
        ((100, 4, 4), (100, 4, 4), True),
        ((100, 3, 3), (100, 3), True),
        ((100, 3, 7), (100, 7, 3), True),
        ((100, 4, 5), (100, 5, 4), False),
        ((64, 4, 4), (64, 4, 4), False),  # few matrices
    ],
)
def test_which_matrices_are_tiny(left: tuple[int, ...], right: tuple[int, ...], tiny: bool) -> None:
    numbers = ops.DotDimensionNumbers((0,), (0,), (2,), (1,))
    module = program_of([tensor(*left), tensor(*right)], lambda b, x, y: b.add(ops.DotGeneral(x, y, numbers)))
    (kernel,) = lower(optimize(module), TARGET).kernels()
    assert kernel.contraction is not None
    assert has_tiny_matrices(kernel.contraction) == tiny
    expect_same(module, [some(*left), some(*right, seed=1)], tolerance=1e-6)


def test_work_on_the_sums_is_done_in_lanes() -> None:
    assert is_plain(product((50, 200), (200,), (1, 0), ops.Negate))
    assert not is_plain(product((50, 200), (200,), (1, 0), ops.Tanh))


def test_a_long_sum_is_accurate() -> None:
    x, y = some(3, 5000), some(5000, seed=1)
    module = product((3, 5000), (5000,), (1, 0))
    expect_same(module, [x, y], tolerance=float(np.finfo(np.float32).eps) * 40)


def gradient(channels: int, taps: int, stride: int, first: bool, padding: int = 0) -> Module:
    """The gradient of the kernel of a depthwise convolution, whose channels come first or last: for each channel and
    tap, a sum over all positions of two images."""
    window = [(extent - 1) // stride + 1 for extent in (37, 9)]
    size = [(extent - 1) * stride + taps - 2 * padding for extent in window]
    options = {"batch_group_count": channels, "rhs_dilation": [stride] * 2, "padding": [[padding] * 2] * 2}
    if first:
        image, other = (2, channels, *size), (2, channels, *window)
        order = (1, 0, (2, 3), 0, 1, (2, 3), 1, 0, (2, 3))
    else:
        image, other = (2, *size, channels), (2, *window, channels)
        order = (3, 0, (1, 2), 0, 3, (1, 2), 0, 1, (2, 3))

    def main(b, x, y):
        numbers = ops.ConvDimensionNumbers(*order)
        return b.add(ops.Convolution(x, y, dimension_numbers=numbers, feature_group_count=1, **options))

    return program_of([tensor(*image), tensor(*other)], main)


@pytest.mark.parametrize(
    ("channels", "taps", "stride", "first", "padding", "plain"),
    [
        (3, 3, 1, True, 0, True),
        (3, 3, 2, True, 0, True),
        (3, 3, 1, True, 1, True),  # padded before
        (3, 7, 1, True, 3, True),
        (3, 3, 3, True, 0, False),
        (3, 8, 1, True, 0, False),  # a large window
        (3, 1, 1, True, 0, False),
        (3, 3, 1, False, 0, False),  # neighbours in memory are channels
    ],
)
def test_which_gradients_of_depthwise_kernels_run_in_plain_loops(
    channels: int, taps: int, stride: int, first: bool, padding: int, plain: bool
) -> None:
    module = gradient(channels, taps, stride, first, padding)
    *_, kernel = lower(optimize(module), TARGET).kernels()
    assert kernel.contraction is not None
    assert sums_along_memory(kernel.contraction) == plain
    shapes = [argument.type.static_shape for argument in module.main.arguments]
    expect_same(module, [some(*shape, seed=seed) for seed, shape in enumerate(shapes)], tolerance=1e-4)


def depthwise(channels: int, features: int, stride: int, first: bool, taps: int = 3) -> Module:
    """A convolution with one input channel for each feature, which come first or last."""
    image = (2, channels, 9, 40) if first else (2, 9, 40, channels)
    side = (0, 1, (2, 3)) if first else (0, 3, (1, 2))
    numbers = ops.ConvDimensionNumbers(*side, 1, 0, (2, 3), *side)
    padding = [[taps // 2, taps // 2]] * 2
    options = {"window_strides": [stride] * 2, "padding": padding, "feature_group_count": channels}

    def main(b, x, y):
        return b.add(ops.Convolution(x, y, dimension_numbers=numbers, batch_group_count=1, **options))

    return program_of([tensor(*image), tensor(features, 1, taps, taps)], main)


@pytest.mark.parametrize(
    ("channels", "features", "stride", "first", "taps", "plain"),
    [
        (3, 3, 1, True, 3, True),
        (3, 3, 2, True, 3, True),
        (3, 3, 1, True, 11, True),
        (1, 1, 2, True, 17, True),  # too large to be written out
        (3, 3, 3, True, 3, False),
        (3, 6, 1, True, 3, False),  # windows are used for several features
        (3, 3, 1, False, 3, False),  # neighbours in memory are features
    ],
)
def test_which_convolutions_run_in_plain_loops(
    channels: int, features: int, stride: int, first: bool, taps: int, plain: bool
) -> None:
    module = depthwise(channels, features, stride, first, taps)
    (kernel,) = lower(optimize(module), TARGET).kernels()
    assert kernel.contraction is not None
    assert slides_along_memory(kernel.contraction) == plain
    image, weights = (argument.type.static_shape for argument in module.main.arguments)
    expect_same(module, [some(*image), some(*weights, seed=1)], tolerance=1e-5)


def test_few_features_move_before_lines() -> None:
    """The transposes of the image and the result are kernels of their own."""
    module, target = depthwise(3, 3, 1, first=False), replace(TARGET, layouts=LAYOUTS)
    _, kernel, _ = lower(optimize(module, target), target).kernels()
    assert kernel.contraction is not None
    assert slides_along_memory(kernel.contraction)
    expect_same(module, [some(2, 9, 40, 3), some(3, 1, 3, 3, seed=1)], tolerance=1e-5)


def test_sums_of_many_channels_do_not_slide() -> None:
    numbers = ops.ConvDimensionNumbers(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
    options = {"dimension_numbers": numbers, "feature_group_count": 1, "batch_group_count": 1}

    def main(b, x, y):
        return b.add(ops.Convolution(x, y, **options))

    for channels, slides in ((5, True), (6, False)):
        module = program_of([tensor(2, channels, 9, 40), tensor(1, channels, 3, 3)], main)
        (kernel,) = lower(module, TARGET).kernels()
        assert kernel.contraction is not None
        assert slides_along_memory(kernel.contraction) == slides
