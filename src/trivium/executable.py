"""A compiled program as its user sees it: call it with arrays, ask for its signature, inspect its stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trivium.backends import client
from trivium.backends.pjrt import STAGES, Client, LoadedExecutable, MemoryStats
from trivium.ir.collection import collection_paused
from trivium.ir.errors import Error
from trivium.ir.files import path_of, writing
from trivium.ir.func import Function, Module
from trivium.ir.types import TensorType

if TYPE_CHECKING:
    from trivium.compiler.program import Program
    from trivium.compiler.stages import Stages
    from trivium.page import Page
    from trivium.profile import Profile

__all__ = [
    "STAGES",
    "Executable",
    "MemoryStats",
    "Parameter",
    "Signature",
    "compile_module",
    "is_artifact",
    "load_executable",
]


@dataclass(frozen=True)
class Parameter:
    """One argument or result: its type, and its name and role if the importer knew them."""

    type: TensorType
    name: str = ""
    role: str = ""

    def __str__(self) -> str:
        words = (f"{self.name}:" if self.name else "", str(self.type), f"({self.role})" if self.role else "")
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Signature:
    """The arguments and results of a program."""

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
    """A program on a device. Calls are safe from several threads at once; the results are the caller's own.

    A program of dynamic shapes is compiled when it is first called with arguments of new shapes, or with new values of
    those arguments from which it computes extents; the logger `trivium.executable` reports each compilation."""

    def __init__(self, loaded: LoadedExecutable):
        self.loaded = loaded
        self.signature = Signature.of(loaded.signature)
        self._execute = loaded.execute

    @property
    def module(self) -> Module:
        """The module that was compiled, with dynamic shapes as it was written. Raises an `Error` for an executable that
        was loaded from a file."""
        return self.loaded.graph if self._stages is None else self._stages.module

    @property
    def _stages(self) -> Stages | None:
        return getattr(self.loaded, "stages", None)

    @property
    def graph(self) -> Module:
        """The optimized module."""
        return self.loaded.graph

    @property
    def program(self) -> Program:
        """The kernels, buffers and steps that the program became."""
        return self.loaded.program

    def __call__(self, *arguments: object) -> tuple[np.ndarray, ...]:
        """Runs the program. Takes anything with NumPy's array protocol or DLPack; raises `ExecutionError` if count,
        shape or dtype differ from the signature."""
        return tuple(self._execute(*arguments))

    def specialize(self, *arguments: object) -> Executable:
        """The executable for arguments like these: this one, unless it has dynamic shapes."""
        loaded = self.loaded.specialize(*arguments)
        return self if loaded is self.loaded else Executable(loaded)

    def stage(self, name: str) -> str:
        """The program as text at a stage: `graph`, `kernels`, `llvm` or `asm`. A program of dynamic shapes is shown as
        it was last called."""
        return self.loaded.stage(name)

    def cost_analysis(self) -> dict[str, float]:
        """What one run does, counted from the compiled kernels, under PJRT's names: `flops` (operations on numbers of
        any type), `transcendentals` (functions such as exponential, which do not count as flops), `bytes accessed`
        (disregarding caches)."""
        return self.loaded.cost_analysis()

    def memory_analysis(self) -> MemoryStats:
        """How many bytes the machine code, the constants, the arguments, the results and the temporaries take."""
        return self.loaded.memory_analysis()

    def explain(self) -> str:
        """Says in sentences why ops share a kernel or do not, what is copied, and, for a program of dynamic shapes, for
        which shapes it was compiled."""
        from trivium.explaining import explain_executable

        return explain_executable(self.loaded)

    def profile(self, *arguments: object, runs: int = 20) -> Profile:
        """Runs the program on these arguments `runs` times with a clock around each of its steps. `print` shows the
        times as a table, with the device's limits and the user's lines; `save` writes them as JSON, or as a trace for
        Perfetto. Raises an `Error` on devices other than the CPU."""
        from trivium.profile import profile

        return profile(self.loaded.specialize(*arguments), arguments, runs)

    def show(self, path: str | Path, profile: Profile | None = None) -> None:
        """Writes a page to a file that shows the program in all stages, from the source to the machine code. With a
        `profile` of it, the page shows the times, too; a program of dynamic shapes is then shown as it was profiled."""
        from trivium.page import write_page

        with collection_paused():
            write_page(path_of(path), self.page(profile=profile))

    def _repr_html_(self) -> str:
        """Shows the program in a notebook."""
        from trivium.page import frame_of

        return frame_of(self.page(machine_code=False))

    def page(self, machine_code: bool = True, profile: Profile | None = None) -> Page:
        """The data of the page that `show` writes."""
        from trivium.page import page_of

        if profile is not None and profile.loaded is not self.loaded:
            if self._stages is not None:
                raise Error(
                    f"the profile is of another program than {self.loaded.name}, expected one of this executable"
                )
            return Executable(profile.loaded).page(machine_code, profile)
        name, device = self.module.main.sym_name, self.loaded.device.client.platform_name
        return page_of(self.module, name, device, machine_code=machine_code, profile=profile, compiled=self._stages)

    def save(self, path: str | Path) -> None:
        """Writes the compiled program to a file, constants included: `trivium.load_executable` runs it, on a processor
        that has the features of this one, without compiling anything. Raises an `Error` for dynamic shapes."""
        from trivium.backends.artifact import to_bytes

        path = path_of(path)
        data = to_bytes(self.loaded.whole())
        with writing(path) as file:
            file.write(data)

    def __repr__(self) -> str:
        return f"<Executable {self.signature}>"


def compile_module(
    module: Module,
    *,
    device: str | Sequence[str],
    target: str | None = None,
    threads: int | None = None,
    fast_math: bool = False,
    autotune: bool = False,
    deterministic: bool = True,
    tf32: bool = False,
) -> Executable:
    """See `trivium.compile`."""
    from trivium.compiler.driver import CompileOptions

    options = CompileOptions(
        threads, fast_math, autotune=autotune, deterministic=deterministic, tf32=tf32, target=target or ""
    )
    clients = _clients(device)
    if len(clients) == 1:
        return Executable(clients[0].compile(module, options))
    from trivium.backends.plugin.partitioned import compile_partitioned

    return Executable(compile_partitioned(module, clients, options))


def _clients(device: str | Sequence[str]) -> list[Client]:
    if isinstance(device, str) or not isinstance(device, Sequence):
        return [client(device)]
    return [client(name) for name in device]


def is_artifact(path: Path) -> bool:
    """Whether a file begins as `Executable.save` writes it."""
    from trivium.backends.artifact import MAGIC

    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def load_executable(path: str | Path, *, device: str | Sequence[str]) -> Executable:
    """See `trivium.load_executable`."""
    from trivium.backends.artifact import from_bytes
    from trivium.backends.interface import DIVISION

    path = path_of(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror}") from None
    artifact, clients = from_bytes(data), _clients(device)
    if len(clients) == 1 and DIVISION not in artifact.texts:
        return Executable(clients[0].load(artifact))
    from trivium.backends.plugin.partitioned import load_partitioned

    return Executable(load_partitioned(artifact, clients))


def _parameter(kind: Any, attributes: Mapping[str, Any]) -> Parameter:
    return Parameter(kind, attributes.get("trivium.name", ""), attributes.get("trivium.role", ""))
