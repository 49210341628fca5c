"""A compiled program as its user holds it: call it with arrays, ask for its signature, look at its stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trivium.ir.errors import CompileError, Error
from trivium.ir.func import Function, Module
from trivium.ir.types import TensorType

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


def compile_module(module: Module, *, device: str, threads: int | None, fast_math: bool) -> Executable:
    """See `trivium.compile`."""
    from trivium.backends import client
    from trivium.compiler.pipeline import lower, optimize
    from trivium.dump import Dump

    chosen = client(device)  # an unknown device is told before the work begins
    dump = Dump.from_environment()
    module.verify()
    if module.main.is_declaration:
        raise CompileError(f"@{module.main.sym_name} has no body, only a declaration")
    dump.module("input", module)
    graph = optimize(module, observe=dump.module)
    program = lower(graph)
    loaded = chosen.compile(program, threads=threads, fast_math=fast_math)
    executable = Executable(Signature.of(module.main), graph, program, loaded)
    dump.stages(executable.stage)
    return executable


def _parameter(kind: Any, attributes: Any) -> Parameter:
    return Parameter(kind, attributes.get("trivium.name", ""), attributes.get("trivium.role", ""))
