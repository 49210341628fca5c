"""The interface of backends, in PJRT's terms: a client owns devices and their memories, compiles programs, and creates
buffers; a loaded executable runs on buffers and returns buffers; events indicate when an operation has finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from trivium.compiler.artifact import Artifact
    from trivium.compiler.driver import CompileOptions
    from trivium.compiler.program import Program
    from trivium.ir.func import Function, Module

STAGES = ("graph", "kernels", "llvm", "asm")
"""The stages of a compilation that an executable can print."""


@runtime_checkable
class Event(Protocol):
    """An operation that finishes at some time, or has failed."""

    def is_ready(self) -> bool: ...

    def wait(self) -> None:
        """Waits until it has finished; raises the exception that made it fail."""
        ...


@runtime_checkable
class Memory(Protocol):
    """A memory space of a device."""

    @property
    def kind(self) -> str: ...

    @property
    def device(self) -> Device: ...


@runtime_checkable
class Device(Protocol):
    """A device that runs programs."""

    @property
    def id(self) -> int: ...

    @property
    def kind(self) -> str:
        """The model, for people to read."""
        ...

    @property
    def client(self) -> Client: ...

    @property
    def default_memory(self) -> Memory: ...


@runtime_checkable
class Buffer(Protocol):
    """An array in a memory."""

    @property
    def dtype(self) -> np.dtype: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def memory(self) -> Memory: ...

    @property
    def ready(self) -> Event: ...

    def to_numpy(self) -> np.ndarray:
        """Returns the contents on the host; a view if the memory is the host's."""
        ...

    def delete(self) -> None:
        """Releases the memory now; later use of the buffer is an error."""
        ...


@dataclass(frozen=True)
class MemoryStats:
    """The memory that an executable needs, in PJRT's terms (`CompiledMemoryStats`). `temp_size_in_bytes` is the arena
    of one run; `constant_size_in_bytes`, which PJRT does not distinguish, the size of constants, those that were packed
    in their packed form."""

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    constant_size_in_bytes: int
    alias_size_in_bytes: int = 0


@runtime_checkable
class LoadedExecutable(Protocol):
    """A compiled program on its device."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> Device: ...

    @property
    def signature(self) -> Function:
        """The program's entry, of which only types and attributes matter: names and roles of arguments and results."""
        ...

    @property
    def graph(self) -> Module:
        """The optimized module. Its `main` has the signature of the module that was compiled. Stages are made on
        demand; an executable that was loaded without its module has none, and raises an Error."""
        ...

    @property
    def program(self) -> Program:
        """The kernels, buffers and steps that the module was lowered to."""
        ...

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays and returns new host arrays, which belong to the caller. May be called from several
        threads at once."""
        ...

    def execute_buffers(self, arguments: Sequence[Buffer]) -> Sequence[Buffer]:
        """Like `execute`, on buffers."""
        ...

    def execute_at(self, pointers: Sequence[int]) -> None:
        """Runs on memory of the caller: the addresses of the arguments, then of the results, each C-contiguous and of
        its type's size. Nothing is checked."""
        ...

    def specialize(self, *arguments: object) -> LoadedExecutable:
        """Returns the executable for arguments like these: itself, unless the program has dynamic shapes."""
        ...

    def stage(self, name: str) -> str:
        """Returns the program as text at one of `STAGES`."""
        ...

    def whole(self) -> Artifact:
        """Returns the compiled program as data, constants included, for `Client.load`."""
        ...

    def cost_analysis(self) -> dict[str, float]:
        """Returns the costs of one run, under PJRT's names: `flops`, `transcendentals`, `bytes accessed`."""
        ...

    def memory_analysis(self) -> MemoryStats:
        """Returns the memory that the executable and one run of it need."""
        ...


@runtime_checkable
class Client(Protocol):
    """One platform in this process."""

    @property
    def platform_name(self) -> str: ...

    @property
    def platform_version(self) -> str: ...

    @property
    def devices(self) -> Sequence[Device]: ...

    def compile(self, module: Module, options: CompileOptions) -> LoadedExecutable:
        """Compiles a module for the first device. Raises `CompileError`, or `VerificationError`."""
        ...

    def load(self, artifact: Artifact) -> LoadedExecutable:
        """Returns a program that was compiled before, in this process or another, constants included. Raises an `Error`
        if it was compiled for another machine."""
        ...

    def buffer_from_host(self, array: object, device: Device | None = None) -> Buffer: ...
