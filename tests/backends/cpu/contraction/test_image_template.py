"""Images that are read in place, line by line: strides, padding, dilated windows, lines that end within a vector, and
the end of memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import (
    HWIO,
    NCHW,
    NHWC,
    ONE,
    Order,
    Window,
    assert_close,
    convolution,
    normal,
    reference,
)
from tests.backends.cpu.test_prefetching import at_the_end
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.contraction.tiling import Rhs
from trivium.backends.cpu.target import emulated

CASES = {
    "whole lines": ((1, 3, 9, 32), (4, 3, 3, 3), Window(padding=ONE)),
    "lines that end within a vector": ((2, 3, 9, 30), (5, 3, 3, 3), Window(padding=ONE)),
    "no padding": ((2, 3, 6, 33), (5, 3, 3, 2), Window()),
    "uneven padding": ((1, 2, 7, 29), (3, 2, 2, 4), Window(padding=((2, 0), (3, 1)))),
    "cut off": ((2, 4, 8, 34), (5, 4, 3, 3), Window(padding=((-1, 0), (-2, 1)))),
    "every second place": ((1, 4, 9, 61), (5, 4, 3, 3), Window((2, 2), ONE)),
    "every second place without padding": ((1, 4, 9, 65), (9, 4, 3, 3), Window((1, 2))),
    "every second place, whole lines": ((1, 4, 4, 64), (9, 4, 2, 3), Window((2, 2), ((0, 0), (1, 0)))),
    "dilated windows": ((1, 3, 12, 32), (4, 3, 3, 3), Window(padding=((2, 2), (2, 2)), rhs_dilation=(2, 2))),
    "reversed windows": ((1, 3, 8, 32), (4, 3, 3, 3), Window(padding=ONE, reversal=(True, True))),
    "groups": ((2, 12, 6, 30), (15, 4, 3, 3), Window(padding=ONE, groups=3)),
    "several results of each feature": ((1, 3, 6, 30), (9, 1, 3, 3), Window(padding=ONE, groups=3)),
    "many tiles": ((1, 17, 6, 30), (29, 17, 3, 3), Window(padding=ONE)),
    "long runs": ((1, 100, 5, 16), (4, 100, 3, 3), Window(padding=ONE)),
    "one line": ((1, 5, 1, 48), (6, 5, 1, 5), Window(padding=((0, 0), (2, 2)))),
    "more padding than image": ((1, 3, 2, 14), (4, 3, 5, 3), Window(padding=((4, 4), (1, 1)))),
}


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_convolutions(name: str, dtype: type, level: str) -> None:
    image, kernel, window = CASES[name]
    lhs, rhs, target = normal(*image, dtype=dtype), normal(*kernel, dtype=dtype), emulated(level)
    case = convolution(lhs, rhs, window)
    assert Lowering(case.kernel, target).tiling.rhs is Rhs.IMAGE
    want, tolerance = reference(lhs, rhs, window), 1e-5 if dtype == np.float32 else 1e-14
    for threads in (1, 2):
        assert_close(case.run(threads=threads, target=target), want, tolerance)


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", ["no padding", "every second place without padding", "cut off"])
def test_nothing_is_read_beyond_the_end_of_memory(name: str, level: str) -> None:
    """The image ends where a page does that must not be read."""
    image, kernel, window = CASES[name]
    lhs, rhs = normal(*image), normal(*kernel)
    case, want = convolution(lhs, rhs, window), reference(lhs, rhs, window)
    run, result = case.executable(set(), emulated(level).with_threads(1)), np.empty(want.shape, np.float32)
    memory, address = at_the_end(lhs)
    run.execute_at([address, rhs.ctypes.data, result.ctypes.data])
    assert_close(result, want)
    del memory


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("orders", [(NHWC, NCHW, NCHW), (NHWC, HWIO, NHWC), (NHWC, HWIO, NCHW)], ids=str)
def test_features_between_pixels_are_no_lines(orders: tuple[Order, Order, Order], step: int) -> None:
    """Of two features, every second element is one, but edges are counted in pixels; and a kernel is no image."""
    lhs, rhs, window = normal(1, 2, 5, 31 * step), normal(16, 2, 2, 3), Window((1, step), ONE)
    assert_close(convolution(lhs, rhs, window, orders).run(), reference(lhs, rhs, window))


def test_narrow_images_are_packed() -> None:
    """They are converted when they are packed."""
    lhs, rhs = normal(1, 4, 9, 32).astype(np.float16), normal(4, 4, 3, 3).astype(np.float16)
    window = Window(padding=ONE)
    chosen = Lowering(convolution(lhs, rhs, window, (NCHW,) * 3).kernel, emulated("x86-64-v4"))
    assert chosen.tiling.rhs is not Rhs.IMAGE
