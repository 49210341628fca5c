"""Memory for a program's constants: it starts on a cache line, so that no vector of a panel spans two, and, if it is
large, on a huge page, so that reading all of it misses the translation buffer less often."""

from __future__ import annotations

import numpy as np

from trivium.backends.cpu.target import CACHE_LINE
from trivium.ir.arrays import is_unchanging

HUGE_PAGE = 2 << 20


def aligned(count: int, dtype: np.dtype) -> np.ndarray:
    """Returns a flat array of zeros that starts on a cache line or a huge page."""
    nbytes = count * dtype.itemsize
    boundary = HUGE_PAGE if nbytes >= 2 * HUGE_PAGE else CACHE_LINE
    room = np.zeros(nbytes + boundary, np.uint8)
    begin = -room.ctypes.data % boundary
    return room[begin : begin + nbytes].view(dtype)


def frozen(array: np.ndarray) -> np.ndarray:
    """Returns `array`, which can no longer be written to through it or through the arrays that it is a view of."""
    view: object = array
    while isinstance(view, np.ndarray):
        view.flags.writeable = False
        view = view.base
    return array


def kept(array: np.ndarray) -> np.ndarray:
    """Returns a constant as it is now: an aligned copy if somebody else can still write to its memory, as a framework
    can to its weights; the array itself if nobody can, as for constants that were packed or read from a file."""
    if is_unchanging(array):
        return array
    copy = aligned(array.size, array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return copy
