"""StableHLO portable artifacts: MLIR bytecode in VHLO, the versioned dialect, read and written without MLIR."""

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
from trivium.ir.stack import with_stack

__all__ = ["deserialize", "load", "serialize"]


@with_stack
@collection_paused()
def deserialize(data: bytes | memoryview | mmap.mmap) -> Module:
    """Reads a program from the bytes of a portable artifact of any version. Large tensors are views of `data`. Raises
    `ParseError` with the offset, or `UnsupportedOpError` with all unknown ops."""
    return ModuleReader(memoryview(data).cast("B")).module()


def load(path: str | Path) -> Module:
    """Reads a program from a file. Large tensors stay in the file until they are used."""
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


@with_stack
@collection_paused()
def serialize(module: Module, version: str | None = None) -> bytes:
    """Returns the program as a portable artifact, of the given version, or of the lowest from 1.0.0 on that can express
    it. Raises `UnsupportedOpError` with everything that the version, or any version, cannot express."""
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
