"""Limits on the time and memory that reading hostile input may take: the reader finishes, or refuses the input, within
them."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

SECONDS, BYTES = 5.0, 1 << 30


@contextlib.contextmanager
def bounded(seconds: float = SECONDS, nbytes: int = BYTES) -> Iterator[None]:
    """Asserts that a block takes at most `seconds` of processor time, which does not depend on other load, and that it
    never uses more than `nbytes` of memory in addition to what the process had before."""
    _forget_peak()
    before, start = _status("VmRSS"), time.process_time()
    try:
        yield
    finally:  # also if the block ends with an error
        taken, grown = time.process_time() - start, _status("VmHWM") - before
        assert taken <= seconds, f"took {taken:.1f} s of processor time, expected at most {seconds}"
        assert grown <= nbytes, f"took {grown / 1e9:.2f} GB, expected at most {nbytes / 1e9:.2f}"


def _forget_peak() -> None:
    """Resets Linux's measurement of this process's peak memory. Where that fails, the peak is that of the process's
    lifetime."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status(field: str) -> int:
    """Returns a figure of this process in bytes; 0 on systems other than Linux."""
    with contextlib.suppress(OSError):
        found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
        return int(found[1]) * 1024 if found else 0
    return 0
