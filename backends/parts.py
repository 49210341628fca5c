"""Executables in two parts: the second one is compiled for extents that the first one computes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from trivium.backends.pjrt import Buffer, Device, LoadedExecutable, MemoryStats
from trivium.compiler.artifact import Artifact
from trivium.compiler.program import Program
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Function, Module

log = logging.getLogger("trivium.executable")


@dataclass(frozen=True)
class PartedExecutable:
    """A program whose `rest` takes arguments of the whole and results of `first`: those with the numbers `passed`,
    where results are counted after arguments."""

    graph: Module
    first: LoadedExecutable
    rest: LoadedExecutable
    passed: Sequence[int]

    def __post_init__(self) -> None:
        log.info("%s runs in parts: its extents depend on what it computes", self.name)

    @property
    def name(self) -> str:
        return self.graph.main.sym_name

    @property
    def signature(self) -> Function:
        return self.graph.main

    @property
    def device(self) -> Device:
        return self.first.device

    @property
    def program(self) -> Program:
        """Always raises: each part has a program."""
        raise self._refusal("is shown, profiled or written")

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays and returns new ones, which belong to the caller."""
        values = [*arguments, *self.first.execute(*arguments)]
        return self.rest.execute(*(values[number] for number in self.passed))

    def execute_buffers(self, arguments: Sequence[Buffer]) -> Sequence[Buffer]:
        """Like `execute`, on buffers."""
        values = [*arguments, *self.first.execute_buffers(arguments)]
        return self.rest.execute_buffers([values[number] for number in self.passed])

    def execute_at(self, pointers: Sequence[int]) -> None:
        """Always raises, since the results have no extents before it runs."""
        raise ExecutionError(f"{self.name} has extents that depend on its data, expected arrays and not addresses")

    def specialize(self, *arguments: object) -> LoadedExecutable:
        """Returns the executable for arguments like these: itself."""
        return self

    def stage(self, name: str) -> str:
        """Returns both parts at a stage; the second one as it was last called."""
        return "\n".join(part.stage(name) for part in (self.first, self.rest))

    def whole(self) -> Artifact:
        """Always raises: there is one program for each combination of extents."""
        raise self._refusal("is written")

    def cost_analysis(self) -> dict[str, float]:
        """Returns the costs of both parts; those of the second one are of its last call."""
        total: Counter[str] = Counter()
        for part in (self.first, self.rest):
            total.update(part.cost_analysis())  # type: ignore[arg-type]
        return dict(total)

    def memory_analysis(self) -> MemoryStats:
        """Returns the memory that both parts need; that of the second one is of its last call."""
        total: Counter[str] = Counter()
        for part in (self.first, self.rest):
            total.update(asdict(part.memory_analysis()))
        return MemoryStats(**total)

    def _refusal(self, what: str) -> Error:
        reason = "its extents depend on what it computes, so that it runs in parts"
        return Error(f"{self.name} cannot be one program that {what}: {reason}")
