"""When the steps of a program ran, whatever the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trivium.compiler.program import Step


@dataclass(frozen=True)
class Event:
    """One execution of a step. Times are in seconds from the beginning of the run."""

    step: Step
    start: float
    end: float


@dataclass(frozen=True)
class Run:
    """One run of a program. `seconds` is the whole time, `events` are in order; of a run with very many, the first."""

    seconds: float
    events: Sequence[Event]


@dataclass(frozen=True)
class Limits:
    """What the device can do in a second, measured between the runs."""

    flops: float
    nbytes: float


@dataclass(frozen=True)
class Timeline:
    """Several runs of one program."""

    runs: Sequence[Run]
    limits: Limits


@runtime_checkable
class Timed(Protocol):
    """An executable whose device has a clock."""

    def timeline(self, arguments: Sequence[object], runs: int) -> Timeline:
        """Runs the program on these arguments, and records when its steps ran."""
        ...
