"""Refuses programs that this process has not the memory to run, before anything is allocated: an allocation that is too
large may also succeed at first, and end the process later."""

from __future__ import annotations

from trivium.compiler.program import Program
from trivium.ir.errors import CompileError
from trivium.ir.memory import memory_limit, size_text


def require_memory(program: Program, temporaries: int) -> None:
    """Raises CompileError where the bytes of temporaries and results are more than this process may have."""
    results = sum(value.nbytes for value in program.outputs)
    if temporaries + results > memory_limit():
        raise CompileError(
            f"{program.name} needs {size_text(temporaries)} for temporaries and {size_text(results)} for results, "
            f"expected at most {size_text(memory_limit())}, the memory there is"
        )
