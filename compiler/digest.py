"""Digests of modules, which distinguish programs. As in equality, names of values and locations are ignored. The
elements of constants are included, and hashed on several threads, since they may be most of a program."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.text.elements import elements_text
from trivium.ir.text.printer import Printer

PIECE = 8 << 20
"""The bytes that are hashed at once, so that threads can share the work."""

LARGE = 1 << 18
"""The number of bytes from which waking another thread pays off: hashing takes some 200 us."""

MOST_THREADS = 8

INLINE = 64
"""Tensors of at most this many elements are part of the structure's text."""


class ModuleDigest(NamedTuple):
    """`structure`: the digest of everything except the elements of larger tensors; `whole`: including these."""

    structure: bytes
    whole: bytes


def module_digest(module: Module) -> ModuleDigest:
    """Returns the digests of a module. Its tensors are hashed while its text is written."""
    with _threads() as pool:
        pieces: list[bytes | Future[bytes]] = []
        text = _Printer(module, lambda tensor: pieces.extend(_hashed(pool, p) for p in _pieces(tensor))).text()
        structure = _digest(text.encode())
        digests = (piece if isinstance(piece, bytes) else piece.result() for piece in pieces)
        return ModuleDigest(structure, _digest(b"".join((structure, *digests))))


def structure_digest(module: Module) -> bytes:
    """Returns the digest of everything except the elements of larger tensors."""
    return _digest(_Printer(module, lambda tensor: None).text().encode())


class _Printer(Printer):
    """Writes a module. Tensors of more than a few elements are written without them, and passed to `apart`."""

    def __init__(self, module: Module, apart: Callable[[DenseElements], None]):
        super().__init__({value: f"%{number}" for number, value in enumerate(_values(module))}, generic=True)
        self._module = module
        self._apart = apart

    def text(self) -> str:
        return self.operation(self._module)

    def elements(self, value: DenseElements) -> str:
        if value.is_splat or value.array.size <= INLINE:
            return f"dense<{elements_text(value)}> : {value.type}"
        self._apart(value)
        return f"dense<apart> : {value.type}"


def _values(module: Module) -> Iterator[Value]:
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.arguments


def _pieces(tensor: DenseElements) -> Iterator[memoryview]:
    """Yields the elements' bytes in pieces; how they are divided depends only on their number."""
    data = np.ascontiguousarray(tensor.array).reshape(-1).view(np.uint8).data
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


def _hashed(pool: ThreadPoolExecutor, piece: memoryview) -> bytes | Future[bytes]:
    """Returns the digest of a piece; large ones are hashed by another thread, if one can be started."""
    if len(piece) >= LARGE:
        try:
            return pool.submit(_digest, piece)
        except RuntimeError:  # at the exit of the interpreter, which no longer starts threads
            pass
    return _digest(piece)


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()


def _threads() -> ThreadPoolExecutor:
    """Returns a pool whose threads start one by one, as needed. Hashing releases the interpreter's lock."""
    return ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1))
