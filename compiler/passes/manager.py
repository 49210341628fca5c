"""Runs a pipeline of passes over a module: in order, verified after each where asked, dumped where asked, and with the
pass named when something breaks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivium.ir.errors import Error
from trivium.ir.func import Module

Observer = Callable[[str, Module], None]
"""Called with a pass's name and the module after it ran."""


@dataclass(frozen=True)
class Pass(ABC):
    """One step of a pipeline. Options are fields. Subclasses say in their docstring what holds afterwards."""

    NAME: ClassVar[str] = ""

    @abstractmethod
    def run(self, module: Module) -> bool:
        """Changes `module` in place; whether it changed."""


@dataclass(frozen=True)
class Repeat(Pass):
    """Runs its passes again and again until none of them changes the module, at most `limit` times."""

    passes: tuple[Pass, ...]
    limit: int = 8
    NAME: ClassVar[str] = "clean-up"

    def run(self, module: Module) -> bool:
        changed = False
        for _ in range(self.limit):
            # A list, not a generator: every pass shall run.
            if not any([step.run(module) for step in self.passes]):
                return changed
            changed = True
        return changed


def run_passes(
    module: Module, passes: Sequence[Pass], *, verify: bool = False, observe: Observer | None = None
) -> Module:
    """Runs `passes` over `module`, in place, and returns it. An `Error` raised inside says in which pass."""
    for step in passes:
        try:
            step.run(module)
            if verify:
                module.verify()
        except Error as error:
            raise error.add(during=f"pass {step.NAME}") from error.__cause__
        if observe is not None:
            observe(step.NAME, module)
    return module
