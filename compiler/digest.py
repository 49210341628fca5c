"""What tells programs apart: digests of a module. Names of values and locations take no part, as in equality; elements
of constants do, on several threads, since they may be most of a program."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.text.elements import elements_text
from trivium.ir.text.printer import Printer

PIECE = 8 << 20
"""Bytes that are hashed in one go, so that threads share the work."""

MOST_THREADS = 8

INLINE = 64
"""Elements of tensors up to which they are part of the structure's text."""


def module_digest(module: Module) -> bytes:
    """Of the structure and of every tensor in it."""
    text, tensors = _structure(module)
    pieces = [piece for tensor in tensors for piece in _pieces(tensor)]
    whole = hashlib.sha256(hashlib.sha256(text.encode()).digest())
    for digest in _digests(pieces):
        whole.update(digest)
    return whole.digest()


def structure_digest(module: Module) -> bytes:
    """Of all but the elements of larger tensors."""
    return hashlib.sha256(_structure(module)[0].encode()).digest()


class _Printer(Printer):
    """Writes tensors of more than a few elements without them, and lists these."""

    def __init__(self, names: dict[Value, str]):
        super().__init__(names, generic=True)
        self.tensors: list[DenseElements] = []

    def elements(self, value: DenseElements) -> str:
        if value.is_splat or value.array.size <= INLINE:
            return f"dense<{elements_text(value)}> : {value.type}"
        self.tensors.append(value)
        return f"dense<apart> : {value.type}"


def _structure(module: Module) -> tuple[str, list[DenseElements]]:
    printer = _Printer({value: f"%{number}" for number, value in enumerate(_values(module))})
    return printer.operation(module), printer.tensors


def _values(module: Module) -> Iterator[Value]:
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.arguments


def _pieces(tensor: DenseElements) -> Iterator[memoryview]:
    """The elements' bytes; how they are divided follows from their number."""
    data = np.ascontiguousarray(tensor.array).reshape(-1).view(np.uint8).data
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


def _digests(pieces: list[memoryview]) -> Iterator[bytes]:
    if sum(map(len, pieces)) <= PIECE:
        yield from map(_digest, pieces)
        return
    with ThreadPoolExecutor(min(MOST_THREADS, len(os.sched_getaffinity(0)))) as pool:
        yield from pool.map(_digest, pieces)


def _digest(piece: memoryview) -> bytes:
    return hashlib.sha256(piece).digest()
