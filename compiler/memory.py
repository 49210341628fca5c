"""Refuses programs that need more memory than this process has, before anything is allocated: an allocation that is too
large may succeed at first, and kill the process later."""

from __future__ import annotations

from trivium.compiler.program import Program
from trivium.ir.errors import CompileError
from trivium.ir.memory import memory_limit, size_text


def require_memory(program: Program, temporaries: int) -> None:
    """Raises CompileError if temporaries and results together exceed the memory limit of this process."""
    results = sum(value.nbytes for value in program.outputs)
    if temporaries + results > memory_limit():
        raise CompileError(
            f"{program.name} needs {size_text(temporaries)} for temporaries and {size_text(results)} for results, "
            f"expected at most {size_text(memory_limit())}, the available memory"
        )
