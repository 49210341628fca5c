"""Emits vectors of neighbours in memory, which a GPU loads and stores at once if they begin at a multiple of their
size: all arrays begin at a multiple of 16 bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import llvmlite.ir as ll

from trivium.backends.gpu.vectors import aligned_elements
from trivium.backends.llvm import memory
from trivium.backends.llvm.emitter import Emitter
from trivium.compiler.kernel import storage_bytes
from trivium.compiler.kernel.index import Indices
from trivium.compiler.kernel.structure import Apply, Buffer

ALIGNMENT = 16
"""That of arrays, and of the widest access of a thread."""


class AlignedEmitter(Emitter):
    """Emits blocks in lanes, whose first one is at a multiple of their number."""

    exponential: Callable[[ll.Value], ll.Value] | None = None
    """What computes exponentials, if not the program's own function."""

    def _apply(self, instruction: Apply, operands: list[ll.Value]) -> ll.Value:
        if self.exponential is not None and instruction.op == "exponential" and instruction.result.dtype == "f32":
            return self.exponential(operands[0])
        return super()._apply(instruction, operands)

    def address(self, buffer: Buffer, indices: Indices) -> memory.Address:
        found = super().address(buffer, indices)
        if self.vector is None or not found.is_run:
            return found
        size = storage_bytes(buffer.dtype)
        most = min(self.lanes, ALIGNMENT // size)
        elements = aligned_elements(self.analysis.address(buffer, indices), most, {self.vector})
        return replace(found, alignment=size * elements)
