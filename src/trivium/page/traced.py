"""The stages of a program whose ops are tagged with their numbers, so that each op of the optimized graph names its
origins. What the optimizer changes is on a tape. A program that is compiled for a page with times has these stages
itself; one that was compiled without them is optimized once more for its page, but not lowered again."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol, cast, runtime_checkable

from trivium.backends import client
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.artifact import Artifact
from trivium.compiler.dynamic import is_dynamic
from trivium.compiler.passes.watch import watched_by
from trivium.compiler.pipeline import optimize
from trivium.compiler.stages import CompileOptions, Stages
from trivium.compiler.target import Target
from trivium.debug.tape import Tape
from trivium.ir.equality import equal
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.page.tags import tagged


@runtime_checkable
class Compiler(Protocol):
    """A client that compiles in stages, and can print them."""

    def target(self, options: CompileOptions) -> Target: ...

    def artifact(self, stages: Stages) -> Artifact: ...

    def load(self, artifact: Artifact, stages: Stages) -> LoadedExecutable: ...

    def stage(self, stages: Stages, name: str) -> str: ...


class TracedStages(Stages):
    """The stages of a copy of a module."""

    def __init__(self, module: Module, target: Target, options: CompileOptions) -> None:
        super().__init__(tagged(module), target, options)
        self.tape = Tape()

    @cached_property
    def graph(self) -> Module:
        """The optimized module."""
        with watched_by(self.tape):
            return super().graph

    @classmethod
    def again(cls, module: Module, stages: Stages) -> TracedStages:
        """Optimizes a module once more for its page. The program is that of the stages, in which the module was lowered
        before. Raises an Error if that was another module."""
        found = cls(module, stages.target, stages.options)
        found.module.verify()
        with watched_by(found.tape):
            found.graph = optimize(found.module, found.target, copy=False)  # the copy with tags is not needed again
        if not equal(found.graph, stages.graph):
            raise Error(f"{module.main.sym_name} is another program than the one that was compiled, expected the same")
        found.program = stages.program
        return found


def traced(module: Module, device: str, options: CompileOptions) -> LoadedExecutable:
    """Compiles a program for a page with its times."""
    backend = client(device)
    if is_dynamic(module) or not isinstance(backend, Compiler):
        return client(device).compile(module, options)
    compiler = cast(Compiler, backend)  # whose `load` takes more than that of every client
    stages = TracedStages(module, compiler.target(options), options)
    return compiler.load(compiler.artifact(stages), stages)
