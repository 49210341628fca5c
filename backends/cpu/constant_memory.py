"""Memory of a program's constants: it begins on a cache line, so that no vector of a panel lies across two, and, where
it is large, on a huge page, so that reading it through misses the translation buffer less often."""

from __future__ import annotations

import numpy as np

from trivium.backends.cpu.target import CACHE_LINE

HUGE_PAGE = 2 << 20


def aligned(count: int, dtype: np.dtype) -> np.ndarray:
    """Zeros, flat, on a cache line or a huge page."""
    nbytes = count * dtype.itemsize
    boundary = HUGE_PAGE if nbytes >= 2 * HUGE_PAGE else CACHE_LINE
    room = np.zeros(nbytes + boundary, np.uint8)
    begin = -room.ctypes.data % boundary
    return room[begin : begin + nbytes].view(dtype)


def frozen(array: np.ndarray) -> np.ndarray:
    """`array`, which nobody can write any more through it or the arrays that it is a view of."""
    view: object = array
    while isinstance(view, np.ndarray):
        view.flags.writeable = False
        view = view.base
    return array


def kept(array: np.ndarray) -> np.ndarray:
    """A constant as it is now: an aligned copy where somebody else can still write its memory, as a framework can its
    weights; itself where nobody can, as what was packed or read from a file."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not root.flags.writeable:
        return array
    copy = aligned(array.size, array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return copy
