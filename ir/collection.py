"""Pauses Python's cycle collector while a program is built. Building creates many objects that are linked both ways and
all stay alive; the collector would walk them again and again and free nothing, for two thirds of the time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Turns off the garbage collection of cycles inside; also a decorator. If it was already off, it stays off."""
    global _left
    if not gc.isenabled():
        yield
        return
    if _left:
        # Otherwise, the remains of several interrupts add up, and are all collected at once: during the next interrupt.
        _left = False
        gc.collect(1)
    gc.disable()
    try:
        yield
    except BaseException:
        _left = True
        raise
    finally:
        gc.enable()


_left = False
"""Whether an exception left a pause. Its traceback keeps what was made inside alive, beyond the first collection."""
