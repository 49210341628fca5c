"""The limit on this process's memory. What cannot fit is refused before it is tried, because an allocation that is too
large may succeed at first and kill the process later."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from trivium.ir.errors import Error
from trivium.ir.types import OpaqueType, TensorType, Type

_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where containers state their limit, in both versions of control groups."""


def memory_limit() -> int:
    """Returns the number of bytes that this process may use, limited by the machine, its container and its own resource
    limits."""
    own = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min([_machine(), *(limit for limit in own if limit != resource.RLIM_INFINITY)])


def storage_size(kind: Type) -> int:
    """Returns the size in bytes of an array of this type; 0 if the type alone does not determine it."""
    if not isinstance(kind, TensorType) or not kind.is_static or isinstance(kind.element_type, OpaqueType):
        return 0
    return kind.size * kind.dtype.itemsize


def size_text(nbytes: int) -> str:
    """Formats a number of bytes for messages."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6)):
        if nbytes >= 10**power:
            return f"{nbytes} bytes ({nbytes / 10**power:.3g} {unit})"
    return f"{nbytes} bytes"


@contextmanager
def exhaustion(doing: str, kind: type[Error]) -> Iterator[None]:
    """Turns a failed allocation inside into a Trivium error; NumPy's message says how many bytes it requested."""
    try:
        yield
    except MemoryError as error:
        raise kind(f"{doing} needs more memory than there is: {error}".removesuffix(": ")) from error


@cache
def _machine() -> int:
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in map(Path, _GROUPS):
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # there is no such group, or its limit is "max"
            continue
    return min(limits)
