"""StableHLO portable artifacts: MLIR bytecode that holds VHLO, the versioned dialect, read and written without MLIR."""

from __future__ import annotations

import mmap
from pathlib import Path

from trivium.ir.bytecode.portable import legalized
from trivium.ir.bytecode.reading import ModuleReader
from trivium.ir.bytecode.versions import CURRENT, STABLE, Version, supported
from trivium.ir.bytecode.writing import ModuleWriter
from trivium.ir.collection import collection_paused
from trivium.ir.errors import Error, ParseError
from trivium.ir.func import Module
from trivium.ir.services import SERVICES

__all__ = ["deserialize", "load", "serialize"]


@collection_paused()
def deserialize(data: bytes | memoryview | mmap.mmap) -> Module:
    """The program in the bytes of a portable artifact of any version. Large tensors stay views of `data`. Raises
    `ParseError` with the offset, or `UnsupportedOpError` with all ops that are not known."""
    return ModuleReader(memoryview(data).cast("B")).module()


def load(path: str | Path) -> Module:
    """The program in a file. Its large tensors stay in the file until they are looked at."""
    try:
        with open(path, "rb") as file:
            empty = file.seek(0, 2) == 0
            data = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror}") from None
    try:
        return deserialize(data)
    except ParseError as error:
        raise ParseError(error.message, file=str(path)) from None


@collection_paused()
def serialize(module: Module, version: str | None = None) -> bytes:
    """The program as a portable artifact: of that version, or of the lowest from 1.0.0 on that can express it. Raises
    `UnsupportedOpError` with all that the version cannot have, or no version can."""
    module = legalized(module)
    target = STABLE if version is None else supported(Version.of(version))
    while True:
        writer = ModuleWriter(module, target)
        if not writer.refusals:
            return writer.getvalue()
        if version is not None or target == CURRENT:
            raise writer.refusals.error()
        target = writer.refusals.version or CURRENT


SERVICES.serialize = serialize
