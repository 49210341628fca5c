"""Runs many inputs in separate processes, with limits of time and memory, and collects the findings. A process that
dies or hangs is a finding like any other: the parent knows which input it was running."""

from __future__ import annotations

import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.fuzz import artifacts, texts
from tests.fuzz.judge import Finding, Slow, judge_artifact, judge_text

SECONDS = 2.0
"""Processor time for an input, which does not depend on how busy the machine is."""
MEGABYTES = 1024
"""Memory for an input, in addition to what the process has before it."""
CHUNK = 1000
"""Inputs per process."""
_HUNG = 60


@dataclass(frozen=True)
class Kind:
    """A kind of inputs."""

    make: Callable[[int, int], Any]
    judge: Callable[[Any], str]
    suffix: str


KINDS = {
    "texts": Kind(texts.mutant, judge_text, ".mlir"),
    "artifacts": Kind(artifacts.mutant, judge_artifact, ".mlirbc"),
}


@dataclass
class Found:
    """A class of findings, with its smallest input."""

    key: str
    detail: str
    input: Any
    index: int
    count: int = 1


@dataclass
class Tally:
    """The outcomes of the inputs so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    found: dict[str, Found] = field(default_factory=dict)
    slowest: tuple[float, int] = (0.0, -1)
    peak: tuple[float, int] = (0.0, -1)
    """Megabytes in addition to those at the start, and the input that needed them."""

    def add(self, other: Tally) -> None:
        self.outcomes += other.outcomes
        self.slowest, self.peak = max(self.slowest, other.slowest), max(self.peak, other.peak)
        for found in other.found.values():
            self.find(found)

    def find(self, found: Found) -> None:
        known = self.found.get(found.key)
        if known is None:
            self.found[found.key] = found
            return
        known.count += found.count
        if len(found.input) < len(known.input):
            known.detail, known.input, known.index = found.detail, found.input, found.index


def run(kind: Kind, seed: int, indices: range, jobs: int = 1) -> Iterator[Tally]:
    """Yields the tallies of one chunk after another."""
    chunks = [indices[start : start + CHUNK] for start in range(0, len(indices), CHUNK)]
    kind.make(seed, 0)  # once, before the processes start
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda chunk: _guarded(kind, seed, chunk), chunks)


def _guarded(kind: Kind, seed: int, indices: range) -> Tally:
    """Judges the inputs in a separate process. An input that kills it is omitted when the others are judged again."""
    context = get_context("fork")
    at = context.Value("q", indices.start, lock=False)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(kind, seed, indices, at, sender), daemon=True)
    process.start()
    sender.close()
    fault = ""
    seen = -1
    while not receiver.poll(_HUNG):
        if seen == at.value:
            process.kill()
            fault = f"hang: nothing for {_HUNG} s"
        seen = at.value
    try:
        tally = receiver.recv()
    except EOFError:
        process.join()
        index = at.value
        key = fault or f"crash: exit code {process.exitcode}"
        tally = Tally(Counter({"finding": 1}))
        tally.find(Found(key, key, kind.make(seed, index), index))
        for rest in (range(indices.start, index), range(index + 1, indices.stop)):
            if rest:
                tally.add(_guarded(kind, seed, rest))
    process.join()
    return tally


def _work(kind: Kind, seed: int, indices: range, at: Any, sender: Any) -> None:
    limit_memory()
    sender.send(judge_all(kind, seed, indices, at))


def judge_all(kind: Kind, seed: int, indices: Iterable[int], at: Any = None) -> Tally:
    """Judges the inputs in this process."""
    tally = Tally()
    base = _peak()
    for index in indices:
        if at is not None:
            at.value = index
        data = kind.make(seed, index)
        before, start = _peak(), time.process_time()
        try:
            tally.outcomes[with_alarm(kind.judge, data)] += 1
        except Finding as finding:
            tally.outcomes["finding"] += 1
            tally.find(Found(finding.key, finding.detail, data, index))
        tally.slowest = max(tally.slowest, (time.process_time() - start, index))
        if (peak := _peak()) > before:
            tally.peak = max(tally.peak, (peak - base, index))
    return tally


def with_alarm(judge: Callable[[Any], str], data: Any) -> str:
    """Judges one input; after `SECONDS`, it is interrupted."""
    before = signal.signal(signal.SIGPROF, _interrupt)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return judge(data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _interrupt(number: int, frame: Any) -> None:
    raise Slow(f"more than {SECONDS} s")


def limit_memory() -> None:
    """Limits this process to `MEGABYTES` more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (MEGABYTES << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def minimized(kind: Kind, found: Found, seconds: float = 20.0) -> Any:
    """Returns the input of a finding without unnecessary parts: pieces are removed as long as the finding stays the
    same."""
    data, size, end = found.input, len(found.input) // 2, time.monotonic() + seconds
    while size and time.monotonic() < end:
        start = 0
        while start < len(data) and time.monotonic() < end:
            shorter = data[:start] + data[start + size :]
            if _finds(kind, shorter, found.key):
                data = shorter
            else:
                start += size
        size //= 2
    return data


def _finds(kind: Kind, data: Any, key: str) -> bool:
    try:
        with_alarm(kind.judge, data)
    except Finding as finding:
        return finding.key == key
    return False
