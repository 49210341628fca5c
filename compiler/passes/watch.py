"""A watcher is told of every pass and of every rewrite while it watches: the page and `trivium diff` step through them.
Passes and patterns do not know of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from trivium.ir.core import Operation
from trivium.ir.func import Module


class Watcher(Protocol):
    """What is told."""

    def began(self, module: Module) -> None:
        """A pipeline starts; it changes this module in place."""
        ...

    def passed(self, name: str, module: Module) -> None:
        """A pass ran, and changed something; of a repetition, each of its passes in each round."""
        ...

    def rewrote(self, rule: object, op: Operation, inserted: Sequence[Operation], users: Iterable[Operation]) -> None:
        """An op was replaced and erased: by `inserted` ops, or by values that existed. `rule` is the pattern, or None;
        `users` used the op's results."""
        ...


_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def watcher() -> Watcher | None:
    """Returns who watches, if anyone does."""
    return _WATCHER.get()


@contextmanager
def watched_by(one: Watcher | None) -> Iterator[None]:
    """Tells a watcher of what happens inside."""
    token = _WATCHER.set(one)
    try:
        yield
    finally:
        _WATCHER.reset(token)
