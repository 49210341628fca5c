"""Shared by executables of all backends: the artifact, and the stages of the compilation that it came from."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from trivium.backends.pjrt import STAGES, MemoryStats
from trivium.compiler.artifact import AVOIDABLE, COSTS, Artifact
from trivium.compiler.constants import constant_arrays
from trivium.compiler.stages import Stages
from trivium.ir.errors import Error
from trivium.ir.func import Function, Module
from trivium.ir.text import parse

if TYPE_CHECKING:
    from trivium.compiler.program import Program


def stage_text(stages: Stages, name: str, llvm: Callable[[Stages], str], assembly: Callable[[Stages], str]) -> str:
    """Returns one of `STAGES` as text; the last two are made by the backend's own functions."""
    match name:
        case "graph":
            return str(stages.graph)
        case "kernels":
            return "\n\n".join([str(stages.program), *map(str, stages.program.kernels())])
        case "llvm":
            return llvm(stages)
        case "asm":
            return assembly(stages)
    raise Error(f"there is no stage {name!r}, expected one of {', '.join(STAGES)}")


class StagedExecutable(ABC):
    """An artifact that is loaded, with the stages of its compilation if its module is known."""

    def __init__(self, artifact: Artifact, stages: Stages | None):
        self.artifact = artifact
        self.name = artifact.name
        self._stages = stages

    def module_constants(self) -> Sequence[np.ndarray]:
        """Returns the constants of the module, in order, if the artifact refers to them."""
        return constant_arrays(self._stages.module) if self._stages and not self.artifact.is_whole else ()

    @property
    def stages(self) -> Stages:
        """The stages of the compilation; an artifact that was loaded without its module has none."""
        if self._stages is None:
            raise Error(f"{self.name} was loaded without the module that it was compiled from: it has no stages")
        return self._stages

    @property
    def has_stages(self) -> bool:
        """Whether the module is known that it was compiled from."""
        return self._stages is not None

    @property
    def signature(self) -> Function:
        """A declaration of the program: types, names and roles of its arguments and results."""
        return self._signature

    @functools.cached_property
    def _signature(self) -> Function:
        if "signature" not in self.artifact.texts:
            raise Error(f"{self.name} was made of kernels, and has no signature")
        return parse(self.artifact.texts["signature"]).functions[self.name]

    @property
    def graph(self) -> Module:
        """The optimized module."""
        return self.stages.graph

    @property
    def program(self) -> Program:
        """The kernels, buffers and steps that the module was lowered to."""
        return self.stages.program

    def specialize(self, *arguments: object) -> Self:
        """Returns the executable itself, since its shapes are static."""
        return self

    @abstractmethod
    def stage(self, name: str) -> str:
        """Returns the program as text at one of `STAGES`."""

    def cost_analysis(self) -> dict[str, float]:
        """Returns the costs of one run, under PJRT's names."""
        return {name: float(text) for name in (*COSTS, AVOIDABLE) if (text := self.artifact.texts.get(name))}

    def memory_analysis(self) -> MemoryStats:
        """Returns the memory that the executable and one run of it need."""
        return MemoryStats(
            generated_code_size_in_bytes=len(self.artifact.code),
            argument_size_in_bytes=sum(slot.nbytes for slot in self.artifact.inputs),
            output_size_in_bytes=sum(slot.nbytes for slot in self.artifact.outputs),
            temp_size_in_bytes=self.artifact.arena_size,
            constant_size_in_bytes=self.artifact.constant_size,
        )
