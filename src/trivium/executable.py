"""A compiled program as its user holds it: call it with arrays, ask for its signature, look at its stages."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trivium.ir.arrays import read_argument
from trivium.ir.errors import CompileError, Error, ExecutionError
from trivium.ir.func import Function, Module
from trivium.ir.types import TensorType

log = logging.getLogger(__name__)

STAGES = ("graph", "kernels", "llvm", "asm")


@dataclass(frozen=True)
class Parameter:
    """One argument or result: its type, its name and role where the importer knew them."""

    type: TensorType
    name: str = ""
    role: str = ""

    def __str__(self) -> str:
        words = (f"{self.name}:" if self.name else "", str(self.type), f"({self.role})" if self.role else "")
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Signature:
    """What a program takes and gives."""

    arguments: tuple[Parameter, ...]
    results: tuple[Parameter, ...]

    @classmethod
    def of(cls, function: Function) -> Signature:
        kind = function.function_type
        arguments = (
            _parameter(kind.inputs[index], function.argument_attributes(index)) for index in range(len(kind.inputs))
        )
        results = (
            _parameter(kind.results[index], function.result_attributes(index)) for index in range(len(kind.results))
        )
        return cls(tuple(arguments), tuple(results))

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.arguments))}) -> ({', '.join(map(str, self.results))})"


class Executable:
    """A program on a device. Calls are safe from several threads at once; the results are the caller's own."""

    def __init__(self, signature: Signature, graph: Module, program: Any, loaded: Any):
        self.signature = signature
        self.graph = graph
        self.program = program
        self.loaded = loaded
        self._execute = loaded.execute

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Runs the program. Takes anything with NumPy's array protocol or DLPack; raises `ExecutionError` where count,
        shape or dtype differ from the signature."""
        return tuple(self._execute(*arguments))

    def stage(self, name: str) -> str:
        """The program as text at a stage: `graph`, `kernels`, `llvm` or `asm`."""
        if name == "graph":
            return str(self.graph)
        if name == "kernels":
            return "\n\n".join([str(self.program), *map(str, self.program.kernels())])
        if name == "llvm":
            return self.loaded.llvm
        if name == "asm":
            return self.loaded.assembly()
        raise Error(f"there is no stage {name!r}, expected one of {', '.join(STAGES)}")

    def __repr__(self) -> str:
        return f"<Executable {self.signature}>"


class SpecializingExecutable(Executable):
    """A program of dynamic shapes: compiled when it is first called with arguments of new shapes, or with new values of
    those arguments from which it computes extents. The `KEPT` last ones are kept; the log tells of each."""

    KEPT = 64

    def __init__(self, module: Module, shape_arguments: tuple[int, ...], compile_static: Callable[..., Executable]):
        self.signature = Signature.of(module.main)
        self.graph = module
        self._name = module.main.sym_name
        self._types = module.main.function_type.inputs
        self._shape_arguments = shape_arguments
        self._compile = compile_static
        self._compiled: OrderedDict[Any, Executable] = OrderedDict()
        self._lock = threading.Lock()
        self._compiling = threading.Lock()  # one at a time, while calls of what is compiled go on

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        arrays = self._read(arguments)
        return self._specialized(arrays)(*arrays)

    def specialize(self, *arguments: Any) -> Executable:
        """The executable for arguments like these."""
        return self._specialized(self._read(arguments))

    def stage(self, name: str) -> str:
        """The program at a stage, as it was last called."""
        with self._lock:
            last = next(reversed(self._compiled.values()), None)
        if last is None:
            raise Error(f"{self._name} has dynamic shapes and is compiled when it is called; call it to see its stages")
        return last.stage(name)

    def _read(self, arguments: tuple[Any, ...]) -> list[Any]:
        if len(arguments) != len(self._types):
            raise ExecutionError(f"{self._name} was given {len(arguments)} arguments, expected {len(self._types)}")
        return [
            read_argument(value, kind, f"argument {index} of {self._name}")
            for index, (value, kind) in enumerate(zip(arguments, self._types, strict=True))
        ]

    def _specialized(self, arrays: list[Any]) -> Executable:
        shapes = tuple(getattr(array, "shape", None) for array in arrays)
        values = {index: arrays[index].copy() for index in self._shape_arguments}
        key = shapes, tuple(value.tobytes() for value in values.values())
        found = self._found(key)
        if found is None:
            with self._compiling:
                found = self._found(key) or self._compiled_for(key, shapes, values)
        return found

    def _found(self, key: Any) -> Executable | None:
        with self._lock:
            if key in self._compiled:
                self._compiled.move_to_end(key)
            return self._compiled.get(key)

    def _compiled_for(self, key: Any, shapes: tuple[Any, ...], values: dict[int, Any]) -> Executable:
        told = {index: value.tolist() for index, value in values.items()}
        log.info("compiling %s for shapes %s, and the values %s of arguments", self._name, shapes, told)
        executable = self._compile(shapes, values)
        with self._lock:
            self._compiled[key] = executable
            if len(self._compiled) > self.KEPT:
                self._compiled.popitem(last=False)
        return executable


def compile_module(module: Module, *, device: str, threads: int | None, fast_math: bool) -> Executable:
    """See `trivium.compile`."""
    from trivium.backends import client
    from trivium.compiler.passes.refine import is_dynamic, shape_arguments
    from trivium.compiler.pipeline import inline, specialize

    chosen = client(device)  # an unknown device is told before the work begins
    module.verify()
    if module.main.is_declaration:
        raise CompileError(f"@{module.main.sym_name} has no body, only a declaration")

    def compile_static(static: Module) -> Executable:
        return _compile_static(static, chosen, threads=threads, fast_math=fast_math)

    if not is_dynamic(module):
        return compile_static(module)
    inlined = inline(module)
    computed = shape_arguments(inlined.main)
    inputs = module.main.function_type.inputs
    if not computed and all(getattr(kind, "is_static", True) for kind in inputs):
        return compile_static(specialize(inlined, [getattr(kind, "shape", None) for kind in inputs], {}))
    return SpecializingExecutable(
        inlined, computed, lambda shapes, values: compile_static(specialize(inlined, shapes, values))
    )


def _compile_static(module: Module, client: Any, *, threads: int | None, fast_math: bool) -> Executable:
    from trivium.compiler.pipeline import lower, optimize
    from trivium.dump import Dump

    dump = Dump.from_environment()
    dump.module("input", module)
    graph = optimize(module, observe=dump.module)
    program = lower(graph)
    loaded = client.compile(program, threads=threads, fast_math=fast_math)
    executable = Executable(Signature.of(module.main), graph, program, loaded)
    dump.stages(executable.stage)
    return executable


def _parameter(kind: Any, attributes: Any) -> Parameter:
    return Parameter(kind, attributes.get("trivium.name", ""), attributes.get("trivium.role", ""))
