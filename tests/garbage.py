"""Collection of what a test leaves behind."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def collected() -> Iterator[None]:
    """Frees, at the end, objects that were made inside and only refer to one another. Only those are searched, also by
    later collections: the frameworks that other tests have imported are millions of objects, which take a second each
    time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()


def cycles_left_by(function: Callable[[], object]) -> list[object]:
    """The objects that a call made and that only refer to one another after it.

    What was there before the call is not searched. One collection does not free all of it: finalizers that it runs
    give up further objects, which the next one would count."""
    gc.collect()
    gc.freeze()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        function()
        gc.collect()
        return list(gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
