"""The threads of PyTorch's ops on the CPU, which take part in programs, too. They belong to an OpenMP library, and spin
for milliseconds after each op: other threads would have to share the processors with them."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from pathlib import Path

import torch

from trivium.backends import native

LIBRARY = "lib/libtorch_cpu.so"
"""The library with the ops: functions of those that it uses are found through it."""


class _Here(threading.local):
    asked = False


_here = _Here()
"""Whether this thread's programs already use the threads of its ops. Each thread has its own."""


def use_threads_of_ops() -> None:
    """Lets the threads of PyTorch's ops take part in the programs that this thread calls."""
    if not _here.asked:
        _here.asked = True
        if functions := _functions():
            native.use_host_threads(functions)


@functools.cache
def _functions() -> list[int]:
    """Returns the addresses of `HOST_FUNCTIONS`; none if PyTorch does not use OpenMP, or if its threads sleep as soon
    as they have nothing to do."""
    if os.environ.get("OMP_WAIT_POLICY", "").lower() == "passive" or not torch.backends.openmp.is_available():
        return []
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / LIBRARY), mode=os.RTLD_NOLOAD)
        return [ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in native.HOST_FUNCTIONS]
    except (OSError, AttributeError):
        return []
