"""The flow from a module to an executable: verify, inline, make shapes static, then let a backend provide an artifact,
made from the stages of the compilation or by an earlier one, and the executable that runs it. A backend's client starts
the flow and passes itself as the last step; the compiler knows no backend."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from trivium.compiler.artifact import Artifact
from trivium.compiler.constants import keep_constants
from trivium.compiler.dump import Dump
from trivium.compiler.dynamic import Shape, is_dynamic
from trivium.compiler.parts import UnknownExtents, split
from trivium.compiler.stages import CompileOptions, Stages
from trivium.compiler.target import Target
from trivium.ir.collection import collection_paused
from trivium.ir.errors import CompileError
from trivium.ir.func import Module
from trivium.ir.stack import with_stack

__all__ = ["Backend", "CompileOptions", "DynamicModule", "Staged", "compile"]


class Staged(Protocol):
    """Something compiled that can print its stages."""

    def stage(self, name: str) -> str: ...


E = TypeVar("E", bound=Staged)


@dataclass(frozen=True)
class DynamicModule(Generic[E]):
    """A module with dynamic shapes and without calls. It is compiled when its arguments are known: their shapes, and
    the values of the arguments with indices in `shape_arguments`, from which the module computes extents; or as a
    module without dynamic shapes that stands for it."""

    module: Module
    shape_arguments: tuple[int, ...]
    compile: Callable[[Sequence[Shape | None], Mapping[int, np.ndarray]], E]
    compile_static: Callable[[Module], E]


class Backend(Protocol[E]):
    """The end of the flow: turns programs into artifacts, and artifacts into executables."""

    def target(self, options: CompileOptions) -> Target:
        """Returns the device to compile for."""
        ...

    def artifact(self, stages: Stages) -> Artifact:
        """Returns machine code for a module, as data. An earlier process may have made it from an equal module."""
        ...

    def load(self, artifact: Artifact, stages: Stages) -> E:
        """Returns an artifact of the module of `stages` as an executable, ready to run."""
        ...

    def load_dynamic(self, dynamic: DynamicModule[E]) -> E:
        """Returns an executable that compiles for each new combination of shapes when it is called."""
        ...

    def load_parts(self, module: Module, first: E, rest: E, passed: Sequence[int]) -> E:
        """Returns an executable of a module that runs two others. The second takes the values with the numbers
        `passed` among the module's arguments and, after these, the results of the first."""
        ...


@with_stack
def compile(module: Module, backend: Backend[E], options: CompileOptions) -> E:
    """Returns the executable of a module; the module itself does not change."""
    if module.main.is_declaration:
        raise CompileError(f"@{module.main.sym_name} has no body, only a declaration")
    if not is_dynamic(module):
        return _compile_static(module, backend, options)
    return _compile_dynamic(module, backend, options)


def _compile_dynamic(module: Module, backend: Backend[E], options: CompileOptions) -> E:
    from trivium.compiler.pipeline import inline_used

    module.verify()
    inlined = inline_used(module)
    if not is_dynamic(inlined):  # nothing used the dynamic values
        return _compile_static(inlined, backend, options)
    keep_constants(inlined)
    return _load_dynamic(inlined, backend, options)


def _load_dynamic(inlined: Module, backend: Backend[E], options: CompileOptions, known: int = 0) -> E:
    """Returns the executable of a module without calls, which is static in part at most. It is compiled for the values
    of its first `known` arguments, and of others from which it computes extents."""
    from trivium.compiler.passes.refine import shape_arguments
    from trivium.compiler.pipeline import specialize

    def compile_for(shapes: Sequence[Shape | None], values: Mapping[int, np.ndarray]) -> E:
        try:
            static = specialize(inlined, shapes, values)
        except UnknownExtents as unknown:
            parts = split(unknown)
            first = _compile_static(parts.first, backend, options)
            rest = _load_dynamic(parts.rest, backend, options, parts.known)
            return backend.load_parts(inlined, first, rest, parts.passed)
        return _compile_static(static, backend, options)

    computed = tuple(sorted({*range(known), *shape_arguments(inlined.main)}))
    inputs = inlined.main.function_type.inputs
    if not computed and all(getattr(kind, "is_static", True) for kind in inputs):
        return compile_for([getattr(kind, "shape", None) for kind in inputs], {})
    compile_static = functools.partial(_compile_static, backend=backend, options=options)
    return backend.load_dynamic(DynamicModule(inlined, computed, compile_for, compile_static))


@collection_paused()
def _compile_static(module: Module, backend: Backend[E], options: CompileOptions) -> E:
    dump = Dump.from_environment()
    dump.module("input", module)
    stages = Stages(module, backend.target(options), options, dump.module)
    executable = backend.load(backend.artifact(stages), stages)
    dump.stages(executable.stage)
    return executable
