"""Runs tasks in separate processes, because drivers may end the process that they run in. A task whose process ends is
tried once more, in a new one. A process in which a task has raised an error is not used again: a device that has failed
may refuse everything else there."""

from __future__ import annotations

import faulthandler
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

ENDED = "the process ended, twice"

Task = Callable[[Any], str]
"""Returns what is wrong; empty if nothing is. An exception counts as wrong, too."""


def outcomes(task: Task, items: Sequence[Any], jobs: int = 1, limit: float | None = None) -> Iterator[tuple[Any, str]]:
    """Yields each item and what is wrong with it, in the order in which they finish. A task that takes longer than
    `limit` seconds is ended."""
    waiting = deque((item, 2) for item in items)
    workers: list[_Worker] = []
    while waiting or workers:
        while waiting and len(workers) < jobs:
            workers.append(_Worker(task))
            workers[-1].give(*waiting.popleft())
        for worker in _done(workers, limit):
            try:
                outcome, usable = worker.answer()
            except EOFError:
                outcome, usable = ENDED, False
            if outcome == ENDED and worker.tries > 1:
                waiting.append((worker.item, worker.tries - 1))
            else:
                yield worker.item, outcome
            if waiting and usable:
                worker.give(*waiting.popleft())
            else:
                workers.remove(worker)
                worker.end()


def _done(workers: Sequence[_Worker], limit: float | None) -> list[_Worker]:
    """Waits until at least one worker has an answer, or has none in time."""
    until = None if limit is None else min(worker.begin for worker in workers) + limit
    remaining = None if until is None else max(0.0, until - time.monotonic())
    ready = wait([worker.connection for worker in workers], remaining)
    done = [worker for worker in workers if worker.connection in ready]
    late = [worker for worker in workers if limit is not None and worker.begin + limit <= time.monotonic()]
    for worker in late:
        if worker not in done:
            worker.late = f"it did not end in {limit:.0f} s"
            done.append(worker)
    return done


class _Worker:
    """A process, its current item, and how often that may be tried."""

    def __init__(self, task: Task):
        context = get_context("spawn")
        self.connection, inner = context.Pipe()
        self.process = context.Process(target=_serve, args=(task, inner), daemon=False)
        self.process.start()
        inner.close()
        self.item: Any = None
        self.tries, self.begin = 0, 0.0
        self.late = ""

    def give(self, item: Any, tries: int) -> None:
        self.item, self.tries, self.begin = item, tries, time.monotonic()
        self.connection.send(item)

    def answer(self) -> tuple[str, bool]:
        """Returns what is wrong with the item, and whether the process can be given another one. Raises an `EOFError`
        if it has ended."""
        if self.late:
            return self.late, False
        try:
            return self.connection.recv()
        except ConnectionResetError as error:
            raise EOFError from error

    def end(self) -> None:
        if self.late:
            self.process.kill()
        self.connection.close()
        self.process.join()


def _serve(task: Task, connection: Connection) -> None:
    faulthandler.disable()
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        try:
            connection.send((task(item), True))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            connection.send((f"{type(error).__name__} in {place.name}: {str(error)[:2000]}", False))
            return
