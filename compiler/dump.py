"""`TRIVIUM_DUMP=folder` writes every stage of every compilation to files: `00-input.mlir`, `01-inline.mlir` and so on
after each pass, then `kernels.txt`, `llvm.ll` and `asm.s`. Each compilation gets its own folder, named after the
program and numbered in order of compilation. The elements of large constants are left out."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

from trivium.ir.errors import Error
from trivium.ir.func import Module

FILES = {"kernels": "kernels.txt", "llvm": "llvm.ll", "asm": "asm.s"}


class Dump:
    """The files of one compilation; nothing is written without a folder."""

    def __init__(self, root: Path | None):
        self._root = root
        self._folder: Path | None = None
        self._count = itertools.count()

    @classmethod
    def from_environment(cls) -> Dump:
        setting = os.environ.get("TRIVIUM_DUMP")
        return cls(Path(setting) if setting else None)

    def module(self, name: str, module: Module) -> None:
        """Writes the module as it is after the pass of that name."""
        if self._root is None:
            return
        if self._folder is None:
            self._folder = _new_folder(self._root, module.main.sym_name)
        _write(self._folder / f"{next(self._count):02}-{name}.mlir", f"{module}\n")

    def stages(self, text: Callable[[str], str]) -> None:
        """Writes the stages after the graph: `text` returns the stage of a given name."""
        if self._folder is None:
            return
        for stage, name in FILES.items():
            _write(self._folder / name, text(stage))


def _new_folder(root: Path, name: str) -> Path:
    """Makes a folder that no other compilation writes into, not even in another process or thread."""
    for number in itertools.count():
        folder = root / f"{number:03}-{name}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if not root.is_dir():
                raise Error(f"TRIVIUM_DUMP names {root}, which is not a folder") from None
        except OSError as error:
            raise Error(f"TRIVIUM_DUMP names {root}, where no folder can be created: {error.strerror}") from None
        else:
            return folder
    raise AssertionError("itertools.count ended")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise Error(f"TRIVIUM_DUMP: cannot write {path}: {error.strerror}") from None
