"""Windows that slide over arrays: their number, and a view of all of them. Shared by pooling, select-and-scatter and
convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivium.ir.codecs import Pairs


@dataclass(frozen=True)
class Window:
    """One dimension: a window of `size` elements, `dilation` apart, moves by `stride` over an extent whose elements are
    `base_dilation` apart, with `low` and `high` elements of padding (negative: cropped)."""

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base_dilation: int = 1
    dilation: int = 1

    def count(self, extent: int) -> int:
        """Returns the number of windows in an extent."""
        padded = self.low + _dilated(extent, self.base_dilation) + self.high
        reach = _dilated(self.size, self.dilation)
        return 0 if padded <= 0 or reach > padded else (padded - reach) // self.stride + 1


def windows_of(
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Pairs | None = None,
    base_dilations: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
) -> list[Window]:
    """Returns the windows of all dimensions. The default is 1, and no padding."""
    ones = (1,) * len(sizes)
    padding = padding if padding is not None else ((0, 0),) * len(sizes)
    columns = zip(sizes, strides or ones, padding, base_dilations or ones, dilations or ones, strict=True)
    return [Window(size, stride, low, high, base, apart) for size, stride, (low, high), base, apart in columns]


def window_counts(shape: Sequence[int | None], windows: Sequence[Window]) -> tuple[int | None, ...]:
    """Returns the number of windows along each dimension; `None` where the extent is unknown."""
    return tuple(
        None if extent is None else window.count(extent) for extent, window in zip(shape, windows, strict=True)
    )


def padded(array: np.ndarray, value: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """Spreads the elements `base_dilation` apart and adds the padding (or crops), filled with `value`."""
    spread = [_dilated(extent, window.base_dilation) for extent, window in zip(array.shape, windows, strict=True)]
    shape = [max(0, w.low + extent + w.high) for extent, w in zip(spread, windows, strict=True)]
    result = np.empty(shape, array.dtype)
    result[...] = value
    target, source = [], []
    for extent, size, window in zip(array.shape, shape, windows, strict=True):
        # The elements whose position, low + i * base_dilation, is inside.
        step = window.base_dilation
        first = max(0, -(window.low // step))
        last = min(extent, -((window.low - size) // step))
        last = max(first, last)
        source.append(slice(first, last))
        start = window.low + first * step
        target.append(slice(start, start + (last - first) * step, step) if last > first else slice(0, 0))
    result[tuple(target)] = array[tuple(source)]
    return result


def window_view(array: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """Returns all windows of an array that is already padded: a read-only view of shape `(*counts, *sizes)`."""
    bare = [Window(w.size, w.stride, dilation=w.dilation) for w in windows]
    counts = window_counts(array.shape, bare)
    outer = [stride * w.stride for stride, w in zip(array.strides, windows, strict=True)]
    inner = [stride * w.dilation for stride, w in zip(array.strides, windows, strict=True)]
    sizes = [w.size for w in windows]
    # As bytes: NumPy does not find all types of numbers, such as float8_e5m2, again by their description.
    elements = array.view(f"V{array.itemsize}")
    shape: Any = (*counts, *sizes)
    strided = np.lib.stride_tricks.as_strided(elements, shape, (*outer, *inner), writeable=False)
    return strided.view(array.dtype)


def _dilated(extent: int, dilation: int) -> int:
    return (extent - 1) * dilation + 1 if extent > 0 else 0
