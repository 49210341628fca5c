"""Runs a program on the CPU, and measures the time of each step."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from trivium.backends.cpu.assembly import assemble_timed
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.peak import Peak, read_rate
from trivium.backends.cpu.target import CpuTarget
from trivium.backends.cpu.timing import events, table
from trivium.backends.timeline import Event, Limits, Run, Timeline
from trivium.compiler.program import Step
from trivium.compiler.stages import Stages

GIGA = 1e9

SAMPLES = 3
"""How often the limits are measured before the runs, and how often after them."""


def timeline(
    stages: Stages, target: CpuTarget, constants: Sequence[np.ndarray], arguments: Sequence[object], runs: int
) -> Timeline:
    """Returns the times of `runs` runs, after one that warms up caches. The processor's limits are measured before and
    after them, because processors slow down and speed up."""
    artifact, steps = assemble_timed(stages, target)
    record, peak = table(), Peak()
    executable = CpuExecutable(artifact, () if artifact.is_whole else constants, record)
    limits = [_limits(peak, target.threads) for _ in range(SAMPLES)]
    executable.execute(*arguments)
    found = [_run(executable, arguments, record, steps) for _ in range(runs)]
    limits += [_limits(peak, target.threads) for _ in range(SAMPLES)]
    return Timeline(found, Limits(*np.median(limits, axis=0).tolist()))


def _limits(peak: Peak, threads: int) -> tuple[float, float]:
    return peak.measure() * GIGA * threads, read_rate() * GIGA


def _run(executable: CpuExecutable, arguments: Sequence[object], record: np.ndarray, steps: Sequence[Step]) -> Run:
    record[0] = 0
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    executable.execute(*arguments)
    seconds = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin) / GIGA
    ran = [
        Event(steps[step], (start - begin) / GIGA, (end - begin) / GIGA) for step, start, end in events(record).tolist()
    ]
    return Run(seconds, ran)
