"""Runs a pipeline of passes over a module in order, optionally verifying and observing the module after each one.
Errors name the pass in which they were raised."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.watch import watcher
from trivium.ir.core import Block
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.ops import Case, If, While

Observer = Callable[[str, Module], None]
"""A function that is called with a pass's name and the module after the pass ran."""


@dataclass(frozen=True)
class Pass(ABC):
    """One step of a pipeline. Options are fields. The docstrings of subclasses say what holds afterwards."""

    NAME: ClassVar[str] = ""

    @abstractmethod
    def run(self, module: Module) -> bool:
        """Changes `module` in place. Returns whether it changed."""


@dataclass(frozen=True)
class Repeat(Pass):
    """Runs its passes in turn until each has seen the module as it is and left it so; each at most `limit` times."""

    passes: tuple[Pass, ...]
    limit: int = 8
    NAME: ClassVar[str] = "clean-up"

    def run(self, module: Module) -> bool:
        changed, unchanged = False, 0
        for step in self.passes * self.limit:
            if _run(step, module):
                changed, unchanged = True, 0
                continue
            unchanged += 1
            if unchanged == len(self.passes):
                break
        return changed


def _run(step: Pass, module: Module) -> bool:
    """Runs one pass, and tells who watches, if it changed something."""
    changed = step.run(module)
    if changed and (observer := watcher()) is not None and not isinstance(step, Repeat):
        observer.passed(step.NAME, module)
    return changed


def run_passes(
    module: Module, passes: Sequence[Pass], *, verify: bool = False, observe: Observer | None = None
) -> Module:
    """Runs `passes` over `module`, in place, and returns it; a `Repeat` only if the module was changed since it last
    ran. An `Error` raised inside names the pass."""
    if (observer := watcher()) is not None:
        observer.began(module)
    done: Pass | None = None
    for step in passes:
        if step == done:
            continue
        try:
            changed = _run(step, module)
            done = step if isinstance(step, Repeat) else None if changed else done
            if verify:
                module.verify()
        except Error as error:
            raise error.add(during=f"pass {step.NAME}") from error.__cause__
        if observe is not None:
            observe(step.NAME, module)
    return module


def blocks(module: Module) -> Iterator[Block]:
    """Yields every block of the module's functions, including those in regions of control flow."""
    for function in module.functions.values():
        yield from _nested(function.body.blocks)


def _nested(found: Iterable[Block]) -> Iterator[Block]:
    for block in found:
        yield block
        for op in block:
            if isinstance(op, While | If | Case):
                for region in op.regions:
                    yield from _nested(region.blocks)
