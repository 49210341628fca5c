"""What to do when a program of a framework cannot be compiled: the error names a command that reduces the program,
which is written to a file for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trivium.ir.errors import CompileError, Error, VerificationError
from trivium.ir.func import Module
from trivium.ir.ops import Constant

MOST_BYTES = 1 << 28
"""The size of a program's constants up to which it is written."""


@contextmanager
def advised(module: Module) -> Iterator[None]:
    """Adds to errors of compiling a module that an adapter made: the command that reduces it to the ops that fail."""
    try:
        yield
    except (CompileError, VerificationError) as error:
        error.advice = error.advice or _command(module)
        raise


def _command(module: Module) -> str | None:
    constants = sum(op.value.array.nbytes for op in module.walk() if isinstance(op, Constant) and not op.value.is_splat)
    if constants > MOST_BYTES:
        return None
    folder = Path(tempfile.mkdtemp(prefix="trivium-"))
    try:
        module.save(folder / "program.mlirbc")
    except Error:  # a program that breaks a rule may have no form in a file
        return None
    return f"trivium debug minify {folder / 'program.mlirbc'} -o small.mlir, which finds the ops that fail"
