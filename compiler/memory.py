"""Refuses programs that need more memory than their device has, before anything is allocated: on the host, an
allocation that is too large may succeed at first, and kill the process later."""

from __future__ import annotations

from trivium.compiler.program import Program
from trivium.compiler.target import Target
from trivium.ir.errors import CompileError
from trivium.ir.memory import memory_limit, size_text


def available_memory(target: Target) -> int:
    """Returns the bytes of memory that a program has: those of the device, or the memory limit of this process."""
    return memory_limit() if target.memory_bytes is None else target.memory_bytes


def require_memory(program: Program, temporaries: int, target: Target) -> None:
    """Raises CompileError if temporaries and results together exceed the available memory."""
    results, available = sum(value.nbytes for value in program.outputs), available_memory(target)
    if temporaries + results > available:
        raise CompileError(
            f"{program.name} needs {size_text(temporaries)} for temporaries and {size_text(results)} for results, "
            f"expected at most {size_text(available)}, the available memory"
        )
