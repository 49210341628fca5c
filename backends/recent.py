"""A least-recently-used cache with a maximum size, for programs that are compiled for each combination of sizes, or of
values."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")

MOST_PROGRAMS = 64

FULL = (
    "%s has programs for %d combinations of sizes or values, and the least recently used one is dropped for each "
    "further one: the option programs says how many are kept"
)
"""What the adapters tell when the first program goes."""


class Recent(Generic[Key, Kept]):
    """The last `most` entries that were used. Threads may share them."""

    def __init__(self, most: int):
        self.most = most
        self._entries: OrderedDict[Key, Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._was_full = False

    def get(self, key: Key) -> Kept | None:
        """Returns an entry, which thereby is the one that was used last."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: Key, entry: Kept) -> bool:
        """Adds an entry. Returns whether the least recently used one had to go, for the first time."""
        with self._lock:
            self._entries[key] = entry
            if len(self._entries) <= self.most:
                return False
            self._entries.popitem(last=False)
            was_full, self._was_full = self._was_full, True
            return not was_full

    def __iter__(self) -> Iterator[Key]:
        """The keys, that of the least recently used entry first."""
        with self._lock:
            return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def last(self) -> Kept | None:
        """The entry that was used last."""
        with self._lock:
            return next(reversed(self._entries.values()), None)
