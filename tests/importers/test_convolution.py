"""Layouts, padding, and gradients of convolutions, against sums that NumPy writes out."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import trivium
from trivium.importers.convolution import (
    Layout,
    Windows,
    convolution,
    filter_gradient,
    input_gradient,
    reaches,
    same_padding,
)
from trivium.importers.dynamic import DynamicEmitter
from trivium.ir.core import Block, Value
from trivium.ir.func import Function, Module
from trivium.ir.types import type_of

LAYOUTS = [
    (Layout.channels_first(2), Layout.channels_first(2)),
    (Layout.named("NHWC"), Layout.filter_last(2)),
    (Layout.named("NHWC"), Layout.named("OIHW")),
]
WINDOWS = [
    Windows((3, 2), (1, 1), (1, 1), ((0, 0), (0, 0))),
    Windows((3, 2), (2, 3), (2, 1), ((1, 0), (2, 1))),
    Windows((2, 2), (3, 2), (1, 2), ((0, 1), (1, 1))),
]
GRID = pytest.mark.parametrize(
    ("layouts", "windows", "groups"), list(itertools.product(LAYOUTS, WINDOWS, (1, 2))), ids=str
)


def run(build: Callable[..., Value], *arrays: np.ndarray) -> np.ndarray:
    main = Function.build(
        "main", [type_of(x) for x in arrays], lambda b, *values: [build(DynamicEmitter(b.block), *values)]
    )
    module = Module.build(functions=[main])
    module.verify()
    return trivium.evaluate(module, *arrays)[0]


def plain(array: np.ndarray, layout: Layout) -> np.ndarray:
    """Returns an array with batch and channels first."""
    return array.transpose(layout.batch, layout.channels, *layout.space)


def laid(array: np.ndarray, layout: Layout) -> np.ndarray:
    """The inverse of `plain`."""
    return array.transpose(np.argsort([layout.batch, layout.channels, *layout.space]))


def pairs_of(x: np.ndarray, w: np.ndarray, windows: Windows, groups: int):
    """Yields the positions in the result, input and filter whose products a convolution sums, all in [N, C,
    spatial]."""
    extents = [
        (n + low + high - reach) // stride + 1
        for n, (low, high), reach, stride in zip(
            x.shape[2:], windows.padding, windows.reaches, windows.strides, strict=True
        )
    ]
    outputs, inputs = w.shape[0], w.shape[1]
    for batch, output, taken in itertools.product(range(x.shape[0]), range(outputs), range(inputs)):
        channel = output // (outputs // groups) * inputs + taken
        for place in itertools.product(*map(range, extents)):
            for tap in itertools.product(*map(range, windows.sizes)):
                at = [
                    p * s + t * d - low
                    for p, s, t, d, (low, _) in zip(
                        place, windows.strides, tap, windows.dilations, windows.padding, strict=True
                    )
                ]
                if all(0 <= a < n for a, n in zip(at, x.shape[2:], strict=True)):
                    yield (batch, output, *place), (batch, channel, *at), (output, taken, *tap)


def arrays(windows: Windows, groups: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(-4, 5, (2, 2 * groups, 8, 9)) * 1.0, rng.integers(-4, 5, (3 * groups, 2, *windows.sizes)) * 1.0


def forward(x: np.ndarray, w: np.ndarray, windows: Windows, groups: int) -> np.ndarray:
    places = list(pairs_of(x, w, windows, groups))
    result = np.zeros(np.max([place for place, _, _ in places], 0) + 1)
    for place, at, tap in places:
        result[place] += x[at] * w[tap]
    return result


@GRID
def test_convolution(layouts: tuple[Layout, Layout], windows: Windows, groups: int) -> None:
    layout, kernel = layouts
    x, w = arrays(windows, groups)
    result = run(
        lambda emit, x, w: convolution(emit, x, w, windows, layout, kernel, groups), laid(x, layout), laid(w, kernel)
    )
    np.testing.assert_array_equal(plain(result, layout), forward(x, w, windows, groups))


@GRID
def test_gradients(layouts: tuple[Layout, Layout], windows: Windows, groups: int) -> None:
    layout, kernel = layouts
    x, w = arrays(windows, groups)
    gradient = np.random.default_rng(1).integers(-4, 5, forward(x, w, windows, groups).shape) * 1.0
    of_x, of_w = np.zeros_like(x), np.zeros_like(w)
    for place, at, tap in pairs_of(x, w, windows, groups):
        of_x[at] += gradient[place] * w[tap]
        of_w[tap] += gradient[place] * x[at]
    made = run(
        lambda emit, g, w: input_gradient(emit, g, w, windows, x.shape[2:], layout, kernel, groups),
        *(laid(gradient, layout), laid(w, kernel)),
    )
    np.testing.assert_array_equal(plain(made, layout), of_x)
    made = run(
        lambda emit, x, g: filter_gradient(emit, x, g, windows, layout, kernel, groups),
        *(laid(x, layout), laid(gradient, layout)),
    )
    np.testing.assert_array_equal(plain(made, kernel), of_w)


@pytest.mark.parametrize(
    ("extent", "size", "dilation", "stride"), list(itertools.product(range(1, 9), (1, 2, 3), (1, 2), (1, 2, 3)))
)
def test_same_padding_has_a_window_for_each_stride(extent: int, size: int, dilation: int, stride: int) -> None:
    reach = reaches((size,), (dilation,))
    ((low, high),) = same_padding(DynamicEmitter(Block([])), (extent,), reach, (stride,))
    assert high - low in (0, 1)
    assert low + high == 0 or (extent + low + high - reach[0]) // stride + 1 == -(-extent // stride)
    assert same_padding(DynamicEmitter(Block([])), (extent,), reach, (stride,), odd_in_front=True) == ((high, low),)


def test_layouts_have_names() -> None:
    assert Layout.named("NHWC") == Layout(0, 3, (1, 2))
    assert Layout.named("HWIO") == Layout.filter_last(2)
    assert Layout.named("NCDHW") == Layout.channels_first(3)
    assert Layout.named("NHWC").exchanged == Layout(3, 0, (1, 2))
