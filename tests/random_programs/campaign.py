"""Runs many programs in several processes. A process that dies or hangs is a finding like any other: the parent knows
which program it was running, and continues after that."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from tests.random_programs.programs import random_program
from tests.random_programs.runner import CONFIGURATIONS, Configuration, Finding, judge
from tests.random_programs.shrinker import CRASH
from tests.random_programs.tracked import Unstable
from trivium.ir.func import Module

HANG = "hang"
_HUNG = 180.0
"""Seconds after which a process that is still running the same program is ended."""


@dataclass(frozen=True)
class Found:
    """A finding, and the seed of its program."""

    seed: int
    key: str
    detail: str


@dataclass
class Tally:
    """The outcomes of the programs so far."""

    programs: int = 0
    undecided: int = 0
    found: list[Found] = field(default_factory=list)
    seconds: float = 0.0
    ops: Counter[str] = field(default_factory=Counter)


def pair_of(seed: int) -> tuple[Configuration, Configuration]:
    """Returns two configurations that together have both vector widths and both numbers of threads; the next seed gets
    the other two."""
    narrow, narrow_split, wide, wide_split = CONFIGURATIONS
    return (narrow, wide_split) if seed % 2 else (narrow_split, wide)


def judged(seed: int, everywhere: bool = False) -> Module:
    """Judges the program of a seed, and returns it; raises `Finding` if something is wrong."""
    try:
        module = random_program(seed)
        module.verify()
    except Exception as error:
        raise Finding(f"generator: {type(error).__name__}", str(error)) from error
    judge(module, CONFIGURATIONS if everywhere else pair_of(seed))
    return module


@dataclass
class _Worker:
    """A process, the seeds that it still has to judge, and its current seed."""

    process: Any
    receiver: Connection
    at: Any
    seeds: range
    moved: tuple[int, float]


def run(first: int, count: int, jobs: int, everywhere: bool = False) -> Iterator[Tally]:
    """Judges the programs of the seeds from `first` on; yields the tally from time to time."""
    tally, start = Tally(), time.monotonic()
    workers = [_start(range(first + job, first + count, jobs), everywhere) for job in range(jobs)]
    while workers:
        ready = wait([worker.receiver for worker in workers], timeout=5.0)
        for worker in list(workers):
            alive = _receive(worker, tally) if worker.receiver in ready else not _hangs(worker)
            if not alive:
                workers.remove(worker)
                workers.extend(_replaced(worker, tally, everywhere))
        tally.seconds = time.monotonic() - start
        yield tally


def _start(seeds: range, everywhere: bool) -> _Worker:
    context = get_context("fork")
    at = context.Value("q", seeds.start, lock=False)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(seeds, at, sender, everywhere), daemon=True)
    process.start()
    sender.close()
    return _Worker(process, receiver, at, seeds, (seeds.start, time.monotonic()))


def _work(seeds: range, at: Any, sender: Connection, everywhere: bool) -> None:
    os.environ["TRIVIUM_CACHE"] = "0"
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    for seed in seeds:
        at.value = seed
        kinds: list[str] = []
        try:
            module = judged(seed, everywhere)
            kinds = [op.NAME for op in module.main.body.block]
            result: Found | None = None
        except Finding as finding:
            result = Found(seed, finding.key, finding.detail)
        except Unstable:
            result = Found(seed, "", "")
        sender.send((result, kinds))
    sender.send(None)


def _receive(worker: _Worker, tally: Tally) -> bool:
    """Handles one message; returns false for the last one."""
    try:
        message = worker.receiver.recv()
    except EOFError:
        return False
    if message is None:
        worker.seeds = range(0)
        return False
    result, kinds = message
    tally.programs += 1
    tally.ops.update(kinds)
    if result is not None and not result.key:
        tally.undecided += 1
    elif result is not None:
        tally.found.append(result)
    return True


def _hangs(worker: _Worker) -> bool:
    if worker.at.value != worker.moved[0]:
        worker.moved = worker.at.value, time.monotonic()
    if time.monotonic() - worker.moved[1] < _HUNG:
        return False
    os.kill(worker.process.pid, signal.SIGUSR1)  # the process prints where it is
    time.sleep(1)
    worker.process.kill()
    return True


def _replaced(worker: _Worker, tally: Tally, everywhere: bool) -> list[_Worker]:
    """Starts a worker for the seeds after the one at which a process ended early."""
    worker.process.join()
    if not worker.seeds:
        return []
    seed = worker.at.value
    hung = time.monotonic() - worker.moved[1] >= _HUNG and worker.moved[0] == seed
    key = HANG if hung else CRASH
    tally.programs += 1
    tally.found.append(Found(seed, key, f"exit code {worker.process.exitcode}"))
    rest = range(seed + worker.seeds.step, worker.seeds.stop, worker.seeds.step)
    return [_start(rest, everywhere)] if rest else []
