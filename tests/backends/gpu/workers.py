"""Runs tasks in separate processes, because drivers may end the process that they run in. A task whose process ends is
tried once more, in a new one."""

from __future__ import annotations

import faulthandler
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

ENDED = "the process ended, twice"

Task = Callable[[Any], str]
"""Returns what is wrong; empty if nothing is. An exception counts as wrong, too."""


def outcomes(task: Task, items: Sequence[Any], jobs: int = 1) -> Iterator[tuple[Any, str]]:
    """Yields each item and what is wrong with it, in the order in which they finish."""
    waiting = deque((item, 2) for item in items)
    workers: dict[Connection, _Worker] = {}
    while waiting or workers:
        while waiting and len(workers) < jobs:
            worker = _Worker(task)
            workers[worker.connection] = worker
            worker.give(*waiting.popleft())
        for connection in wait(list(workers)):
            worker = workers[connection]  # type: ignore[index]
            item, tries = worker.item, worker.tries
            try:
                yield item, worker.connection.recv()
            except (EOFError, ConnectionResetError):
                del workers[worker.connection]
                worker.process.join()
                if tries > 1:
                    waiting.append((item, tries - 1))
                else:
                    yield item, ENDED
                continue
            if waiting:
                worker.give(*waiting.popleft())
            else:
                del workers[worker.connection]
                worker.connection.close()
                worker.process.join()


class _Worker:
    """A process, its current item, and how often that may be tried."""

    def __init__(self, task: Task):
        context = get_context("spawn")
        self.connection, inner = context.Pipe()
        self.process = context.Process(target=_serve, args=(task, inner), daemon=False)
        self.process.start()
        inner.close()
        self.item: Any = None
        self.tries = 0

    def give(self, item: Any, tries: int) -> None:
        self.item, self.tries = item, tries
        self.connection.send(item)


def _serve(task: Task, connection: Connection) -> None:
    faulthandler.disable()
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        try:
            wrong = task(item)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            wrong = f"{type(error).__name__} in {place.name}: {str(error)[:2000]}"
        connection.send(wrong)
