"""Emits kernels in which several blocks share a row: one launch in which each block folds its part, and one that folds
the results of all parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu.row_emitter import RowEmitter
from trivium.backends.gpu.thread_emitter import wide
from trivium.backends.llvm import folds
from trivium.backends.llvm.code import I1, I8, I32, I64
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import Int, Number, i64
from trivium.compiler.kernel.structure import Instruction, Loop
from trivium.compiler.schedule import Unit

PARTIAL_BYTES = 8
"""The bytes of one value in the workspace: of any type."""


@dataclass(frozen=True)
class Partial:
    """The results of the `parts` blocks that share a row or a tile: from `offset` on in the workspace. `whole`: the
    launch is the one that folds those of a row."""

    offset: int
    parts: int
    whole: bool


class _SplitEmitter(RowEmitter):
    """Emits one of the two launches in which several blocks share a row."""

    def __init__(self, *operands: Any, partial: Partial, pointer: ll.Value, **words: Any):
        super().__init__(*operands, **words)
        self.partial, self.pointer = partial, pointer

    def place(self, position: int, part: ll.Value) -> ll.Value:
        """Returns where a part's value number `position` is."""
        builder, parts = self.builder, self.partial.parts
        # Teams beside one another write neighbours.
        row, column, rows = (part, self.thread, self.grid.work) if self.grid.columns else (self.thread, part, parts)
        first = builder.add(builder.mul(row, I32(rows)), column)
        at = wide(self.code, builder.add(first, I32(position * self.grid.work * parts)))
        offset = builder.add(builder.mul(at, I64(PARTIAL_BYTES)), I64(self.partial.offset))
        return builder.gep(self.pointer, [offset], source_etype=I8)


class PartEmitter(_SplitEmitter):
    """Emits the first launch: each block stores what its share of the row folds to."""

    _done: bool = False

    def instruction(self, instruction: Instruction) -> None:
        if self._alone or not self._done:
            super().instruction(instruction)

    def range(self, loop: Loop, total: int) -> tuple[Number, Number]:
        spread = self.schedule.loops[loop].mapping(Unit.GRID)
        assert spread is not None, "blocks share the row"
        size = spread.size // self.schedule.loops[loop].lanes
        begin = self.builder.mul(wide(self.code, self._part()), I64(size))
        end = self.builder.add(begin, I64(size))
        beyond = self.builder.icmp_signed(">", end, I64(total))
        return Int(self.code, begin), Int(self.code, self.builder.select(beyond, I64(total), end))

    def fold(self, loop: Loop, totals: list[ll.Value]) -> None:
        with self.builder.if_then(self.first()):
            for position, total in enumerate(totals):
                stored = self.builder.zext(total, I8) if total.type == I1 else total
                self.builder.store(stored, self.place(position, self._part()))
        self._done = True

    def _part(self) -> ll.Value:
        return self.builder.urem(self.dialect.block(self.code), I32(self.partial.parts))


class WholeEmitter(_SplitEmitter):
    """Emits the second launch: one block for each row folds what the blocks have stored, and does the rest."""

    def _shared(self, loop: Loop) -> list[ll.Value]:
        code, starts = self.code, folds.starts(self, loop)
        own = Int(code, wide(code, self.team.thread))
        with counted(code, own, self.partial.parts, self.team.size, starts) as each, self.scope():
            part = self.builder.trunc(i64(each.index), I32)
            terms = [self._loaded(position, part, start.type) for position, start in enumerate(starts)]
            each.next = folds.fold(self, loop, each.carried, terms)
        return each.carried

    def _loaded(self, position: int, part: ll.Value, kind: ll.Type) -> ll.Value:
        value = self.builder.load(self.place(position, part), typ=I8 if kind == I1 else kind)
        return self.builder.trunc(value, I1) if kind == I1 else value
