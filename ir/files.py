"""Files that users name: their paths, and how a file is written."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from trivium.ir.errors import Error


def path_of(path: object) -> Path:
    """Returns a path that a user passed, or raises an `Error`."""
    if not isinstance(path, str | os.PathLike):
        raise Error(f"the path is a {type(path).__name__}, expected a str or a Path")
    text = os.fspath(path)
    if not isinstance(text, str) or "\0" in text:
        raise Error(f"the path is {text!r}, expected a str without null characters")
    return Path(text)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for writing; what fails raises an `Error`.

    A file that exists is replaced when all has been written, and never changed in place: the tensors of a loaded
    program may still be in it, and reading a mapped file that has become shorter ends the process."""
    try:
        if not path.is_file():
            with open(path, "wb") as file:
                yield file
            return
        target = path.resolve()
        unfinished = target.with_name(f"{secrets.token_hex(8)}.unfinished")
        try:
            with open(unfinished, "xb") as file:
                yield file
            shutil.copymode(target, unfinished)
            os.replace(unfinished, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                unfinished.unlink()
    except OSError as error:
        raise Error(f"cannot write {path}: {error.strerror}") from None
