"""Memory that a contraction needs for itself: operands on their way, and sums that wait."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.cpu.target import CACHE_LINE
from trivium.backends.llvm.code import I8, I64, POINTER, stack_slot
from trivium.backends.llvm.vectors import Vectors

STACK_LIMIT = 16 * 1024
"""Bytes of one room that are taken from the stack, as threads that others made may have little of it."""


class Rooms:
    """Rooms on a cache line, taken at the function's entry: small ones from the stack, large ones from the heap."""

    def __init__(self, e: Vectors) -> None:
        self.e = e
        self._heap: list[ll.Value] = []

    def reserve(self, count: int) -> ll.Value:
        """Room for `count` elements."""
        builder, kind = self.e.builder, ll.ArrayType(self.e.element, count)
        size = count * (8 if isinstance(self.e.element, ll.DoubleType) else 4)
        if size <= STACK_LIMIT:
            return stack_slot(builder, kind, align=CACHE_LINE)
        with builder.goto_entry_block():
            memory = self.e.call("malloc", POINTER, I64(size + CACHE_LINE))
            self._heap.append(memory)
            rest = builder.and_(builder.neg(builder.ptrtoint(memory, I64)), I64(CACHE_LINE - 1))
            return builder.gep(memory, [rest], source_etype=I8)

    def release(self) -> None:
        """Gives back what was reserved, at the function's end."""
        for memory in self._heap:
            self.e.call("free", ll.VoidType(), memory)
