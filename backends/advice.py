"""What to do when a program cannot be compiled: the error names a command that reduces the program, which is written to
a file for it. Every way to compile a program for a user has this: `trivium.compile`, and the device of JAX."""

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
    """Adds to errors of compiling a valid module: the command that reduces it to the ops that fail."""
    try:
        yield
    except (CompileError, VerificationError) as error:
        error.advice = error.advice or _command(module)
        raise


def _command(module: Module) -> str | None:
    constants = sum(op.value.array.nbytes for op in module.walk() if isinstance(op, Constant) and not op.value.is_splat)
    if constants > MOST_BYTES or not _is_valid(module):
        return None
    folder = Path(tempfile.mkdtemp(prefix="trivium-"))
    try:
        module.save(folder / "program.mlirbc")
    except Error:  # some programs have no form in a file
        folder.rmdir()
        return None
    return f"trivium debug minify {folder / 'program.mlirbc'} -o small.mlir, which finds the ops that fail"


def _is_valid(module: Module) -> bool:
    """Whether a program is one: if it breaks a rule, the error says which, and there is nothing to reduce."""
    try:
        module.verify()
    except Error:
        return False
    return True
