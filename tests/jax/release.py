"""When what nobody holds any more is gone."""

import gc
import time
from collections.abc import Callable


def is_soon(condition: Callable[[], object]) -> bool:
    """Whether `condition` becomes true while garbage is collected.

    The thread that ran a program may give it up after its result was read, and an object that another thread held
    during one collection goes with the next."""
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    return bool(condition())
