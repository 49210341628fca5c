"""Measures the contenders of a row in turns, because processors slow down and speed up during a measurement: the result
is the median of the ratios of consecutive samples."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.row import OURS, Call, Row
from trivium.backends.cpu.peak import Peak

SAMPLE = 0.02
"""The shortest time of a sample in seconds: short calls are repeated, as in a user's loop. In shorter samples, what the
first call after another contender's turn costs outweighs the rest: its code and data are no longer in the caches."""

NAP, LONGEST_WAIT = 0.01, 1.0
"""How often to look whether the threads of the previous contender still spin, as they do for a while after their work,
and how long to wait for them at most, in seconds."""

FEWEST, MOST = 5, 60
"""The number of rounds."""


@dataclass(frozen=True)
class Measured:
    """The median time of a call of each contender in seconds, the median of their times divided by ours, and
    GFLOP/s."""

    family: str
    name: str
    threads: int
    seconds: dict[str, float]
    ratios: dict[str, float]
    gflops: float | None = None
    peak: float | None = None

    @property
    def best(self) -> str:
        """Returns the fastest of the others."""
        return min(self.ratios, key=lambda peer: self.ratios[peer])

    @property
    def ratio(self) -> float:
        """The best peer's time divided by ours: above 1, Trivium is faster."""
        return self.ratios[self.best]

    data = asdict


def measure(family: str, row: Row, threads: int, seconds: float) -> Measured:
    """Prepares, checks and measures a row in about `seconds`, more if a call takes long."""
    calls = row.make(threads)
    agree(row, calls)
    clock = time.process_time if threads == 1 else time.perf_counter
    repeats = {name: _repeats(call, clock) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    peak, peaks = Peak() if row.flops else None, list[float]()
    end = time.perf_counter() + seconds
    while len(times[OURS]) < FEWEST or (time.perf_counter() < end and len(times[OURS]) < MOST):
        peaks += [peak.measure()] if peak else []
        for name, call in calls.items():
            if threads > 1:
                _settle()
            times[name].append(_sample(call, repeats[name], clock))
    medians = {name: statistics.median(found) for name, found in times.items()}
    ratios = {
        name: statistics.median(other / own for other, own in zip(found, times[OURS], strict=True))
        for name, found in times.items()
        if name != OURS
    }
    gflops = row.flops / medians[OURS] / 1e9 if row.flops else None
    return Measured(
        family, row.name, threads, medians, ratios, gflops, threads * statistics.median(peaks) if peaks else None
    )


def _repeats(call: Call, clock: Callable[[], float]) -> int:
    """Returns the number of calls that fill a sample. The first calls, which fill caches, are not counted."""
    call()
    repeats = 1
    while (taken := repeats * _sample(call, repeats, clock)) < SAMPLE:
        repeats = max(2 * repeats, int(repeats * SAMPLE / max(taken, 1e-7)) + 1) if repeats < 10**6 else 10**6
    return repeats


def _settle() -> None:
    """Waits until no thread of this process works. Threads of ONNX Runtime spin for a number of rounds, which takes 50
    ms or more."""
    end = time.perf_counter() + LONGEST_WAIT
    while time.perf_counter() < end:
        worked = time.process_time()
        time.sleep(NAP)
        if time.process_time() - worked < NAP / 10:
            return


def _sample(call: Call, repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        call()
    return (clock() - start) / repeats


def agree(row: Row, calls: Mapping[str, Call]) -> None:
    """Raises an error if a contender computes something else than we do: the comparison would not be fair."""
    ours = leaves(calls[OURS]())
    if row.tolerance is None:
        return
    for name, call in calls.items():
        for own, other in zip(ours, leaves(call()), strict=True):
            scale = max(1e-30, float(np.abs(other).max(initial=0)))
            difference = float(np.abs(own - other.reshape(own.shape)).max(initial=0)) / scale
            if not difference <= row.tolerance:
                raise AssertionError(f"{row.name}: {name} differs by {difference}, expected at most {row.tolerance}")


def leaves(result: Any) -> list[np.ndarray]:
    """Returns the arrays of a result, in double precision."""
    if isinstance(result, dict):
        return leaves(list(result.values()))
    if isinstance(result, (list, tuple)):
        return [leaf for each in result for leaf in leaves(each)]
    if hasattr(result, "detach"):
        result = result.detach()
        if not result.is_complex():
            result = result.double()  # NumPy has no bfloat16
    array = np.asarray(result)
    return [array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)]
