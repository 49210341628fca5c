"""The stages of a module on its way to machine code. Each stage is made when it is first needed, and the code that
makes it is imported then: a program that an earlier process compiled has its machine code, and needs no other stage to
run."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.digest import structure_digest
from trivium.compiler.target import Target
from trivium.ir.errors import Error
from trivium.ir.func import Module

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trivium.compiler.kernel import Instruction
    from trivium.compiler.passes.manager import Observer
    from trivium.compiler.program import Program


FLAGS = "fast_math", "autotune", "deterministic", "tf32"
"""The options of a caller that are true or false."""


@dataclass(frozen=True)
class CompileOptions:
    """The options of a caller. `threads`: the maximum number of threads of one run; None for all that the device has.
    `fast_math`: floating-point operations may be contracted and reordered. `traced`: machine code tells the native
    runtime of each launch. `autotune`: schedules are measured, and the fastest ones kept. `deterministic`:
    updates of floats do not depend on the order of a GPU's threads, as those by atomic operations would. `tf32`:
    factors of products of f32 may be rounded to 10 bits. `target`: a kind of processor; empty for the device's own."""

    threads: int | None = None
    fast_math: bool = False
    traced: bool = False
    autotune: bool = False
    deterministic: bool = True
    tf32: bool = False
    target: str = ""

    def __post_init__(self) -> None:
        for name in FLAGS:
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise Error(f"{name} has {value!r}, expected True or False")


DEFAULT = CompileOptions()


class Stages:
    """The stages of `module`, whose types are static, for `target`. `observe` is called after every pass."""

    def __init__(
        self, module: Module, target: Target, options: CompileOptions, observe: Observer | None = None
    ) -> None:
        self.module = module
        self.target = target
        self.options = options
        self._observe = observe
        self._structure: bytes | None = None
        self.lines: Mapping[Instruction, int] | None = None
        """If set, machine code as text names the line of each instruction of a kernel that it comes from."""

    @classmethod
    def of_program(cls, program: Program, target: Target, options: CompileOptions) -> Stages:
        """Returns the stages of a program that already exists."""
        stages = cls(program.graph or Module.build(), target, options)
        stages.graph, stages.program = stages.module, program
        return stages

    def require_structure(self, digest: bytes) -> None:
        """Makes later stages fail unless the module still has this `structure_digest`."""
        self._structure = digest

    @functools.cached_property
    def graph(self) -> Module:
        """The optimized module. The original module is verified first."""
        from trivium.compiler.pipeline import optimize

        if self._structure is not None and self._structure != structure_digest(self.module):
            name = self.module.main.sym_name
            raise Error(f"the module of {name} was changed after it was compiled: its stages cannot be made again")
        self.module.verify()
        return optimize(self.module, self.target, observe=self._observe, fast_math=self.options.fast_math)

    @functools.cached_property
    def program(self) -> Program:
        """The kernels, buffers and steps."""
        from trivium.compiler.lower import lower

        return lower(self.graph, self.target)
