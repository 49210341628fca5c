"""Memory of large results. The C library maps it anew for each, which costs more than most programs take to fill it,
page by page; on huge pages, a quarter of that."""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable

import torch

LEAST = 32 << 20
"""The bytes from which on the GNU C library never keeps memory for the next allocation."""


def on_huge_pages(tensor: torch.Tensor) -> None:
    """Asks the system for huge pages in a tensor's memory, where nothing has been written yet."""
    advise = _advise()
    if advise is not None:
        begin, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
        first, last = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
        advise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_HUGEPAGE)


@functools.cache
def _advise() -> Callable[..., int] | None:
    """Returns `madvise`; None on systems without huge pages."""
    return getattr(ctypes.CDLL(None), "madvise", None) if hasattr(mmap, "MADV_HUGEPAGE") else None
