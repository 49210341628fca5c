"""A watcher observes every pass and every rewrite: the page and `trivium diff` step through them. Passes and patterns
do not depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from trivium.ir.core import Operation
from trivium.ir.func import Module


class Watcher(Protocol):
    """The events that a watcher receives."""

    def began(self, module: Module) -> None:
        """A pipeline starts; it changes this module in place."""
        ...

    def passed(self, name: str, module: Module) -> None:
        """A pass ran, and changed something. In a repetition, this is called for each of its passes in each round."""
        ...

    def rewrote(self, rule: object, op: Operation, inserted: Sequence[Operation], users: Iterable[Operation]) -> None:
        """An op was replaced and erased: by `inserted` ops, or by values that existed. `rule` is the pattern, or None;
        `users` used the op's results."""
        ...


_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def watcher() -> Watcher | None:
    """Returns the current watcher, if there is one."""
    return _WATCHER.get()


@contextmanager
def watched_by(one: Watcher | None) -> Iterator[None]:
    """Reports what happens inside to a watcher."""
    token = _WATCHER.set(one)
    try:
        yield
    finally:
        _WATCHER.reset(token)
