"""A computation in a process of its own, which a kernel of TensorFlow may end. The process is a fork of this one, which
has loaded TensorFlow and must not have run anything with it."""

from __future__ import annotations

import os
import pickle
import resource
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def apart(compute: Callable[[], T], seconds: int = 300) -> T | None:
    """Returns what a function returns; `None` if its process ends before, or has used that much processor time."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        _compute(compute, sending, seconds)
    os.close(sending)
    with os.fdopen(receiving, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


def _compute(compute: Callable[[], object], sending: int, seconds: int) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        with os.fdopen(sending, "wb") as file:
            file.write(pickle.dumps(compute()))
    finally:
        os._exit(0)
