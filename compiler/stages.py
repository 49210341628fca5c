"""What a module becomes on its way to machine code. Each stage is made when it is first asked for: a program that an
earlier process compiled has its machine code, and needs no other stage to run."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from trivium.compiler.digest import structure_digest
from trivium.compiler.lower import lower
from trivium.compiler.passes.manager import Observer
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Program
from trivium.compiler.target import Target
from trivium.ir.errors import Error
from trivium.ir.func import Module


@dataclass(frozen=True)
class CompileOptions:
    """What a caller may choose. `threads`: the most that one run uses; None for all that the device has. `fast_math`:
    floating-point operations may be contracted and reordered."""

    threads: int | None = None
    fast_math: bool = False


class Stages:
    """The stages of `module`, whose types are static, for `target`. `observe` is told of every pass."""

    def __init__(
        self, module: Module, target: Target, options: CompileOptions, observe: Observer | None = None
    ) -> None:
        self.module = module
        self.target = target
        self.options = options
        self._observe = observe
        self._structure: bytes | None = None

    @classmethod
    def of_program(cls, program: Program, target: Target, options: CompileOptions) -> Stages:
        """Those of a program that is there already."""
        stages = cls(program.graph or Module.build(), target, options)
        stages.graph, stages.program = stages.module, program
        return stages

    def keep_structure(self) -> None:
        """Notes what the module is now: stages that are made later are of the same, or there are none."""
        self._structure = structure_digest(self.module)

    @functools.cached_property
    def graph(self) -> Module:
        """The optimized module."""
        if self._structure not in (None, structure_digest(self.module)):
            name = self.module.main.sym_name
            raise Error(f"the module of {name} was changed after it was compiled: its stages cannot be made again")
        return optimize(self.module, observe=self._observe)

    @functools.cached_property
    def program(self) -> Program:
        """The kernels, buffers and steps."""
        return lower(self.graph, self.target)
