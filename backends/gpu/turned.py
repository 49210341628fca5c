"""Products of f32, rounded to tf32, of which one factor lies in memory along its own dimension, not along the depth.
Matrix instructions cannot transpose it. It therefore becomes their first factor, of which each thread reads its words
from shared memory. If it is the right one, the transposed tile is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu.contracted import Depth, Indices, Place
from trivium.backends.gpu.persistent import PersistentContraction
from trivium.backends.gpu.tensor import BYTES, TensorOperand
from trivium.backends.gpu.tensor_maps import WIDE_LINE, Boxed
from trivium.backends.gpu.tiles import CHUNK
from trivium.backends.llvm.code import I1, I32
from trivium.backends.llvm.loops import counted

OTHER = {"m": "n", "n": "m"}


class TurnedContraction(PersistentContraction):
    """Emits one block's tile, for one thread. Roles are those of the tile that is computed."""

    def __init__(self, *operands: Any, views: Mapping[str, tuple[Boxed, ll.Value]], columns: int, **facts: Any) -> None:
        self.swapped = views["n"][0].across
        if self.swapped:
            views = {OTHER[role]: pair for role, pair in views.items()}
            mark, code, dialect, thread, rows, emitter = operands
            operands, columns = (mark, code, dialect, thread, columns, emitter), rows
        super().__init__(*operands, views=views, columns=columns, **facts)

    def own_role(self, role: str) -> str:
        return OTHER.get(role, role) if self.swapped else role

    def factors(self, place: Place) -> tuple[TensorOperand, TensorOperand]:
        mark = self.mark
        first, second = (mark.rhs, mark.lhs) if self.swapped else (mark.lhs, mark.rhs)
        lhs = self.operand(first, None, "m", place.row, 0)
        return lhs, self.operand(second, None, "n", place.column, self.side("m") * self.line)

    # Products

    def multiplied(self, lhs: TensorOperand, rhs: TensorOperand, batch: Indices, depth: Depth) -> list[ll.Value]:
        code, builder, dialect = self.code, self.builder, self.dialect
        offsets = self._offsets()
        state = [*self.upcoming, *self.zeros()]
        with counted(code, *self.range(depth), self.depth, state) as piece:
            stage, phase, *sums = piece.carried
            dialect.wait_for_phase(code, self.full(stage), phase)
            begin = builder.mul(stage, I32(self.stage))
            steps = range(WIDE_LINE // BYTES)
            places = [self.plus(begin, one) for one in offsets]
            words = [word for step in steps for word in self._words(places, step)]
            # Words stay in their registers as long as the products take.
            held = dialect.begin_products(code, [*sums, *words])
            sums, words = held[: len(sums)], held[len(sums) :]
            for step in steps:
                own, matrix = words[4 * step : 4 * step + 4], self.matrix(rhs, stage, I32(0), step)
                sums = dialect.multiply_shared(code, self.instruction, own, matrix, (False, rhs.across), sums)
            dialect.commit_products(code)
            sums = dialect.end_products(code, sums)
            self._release(stage, I1(1))
            piece.next = [*self._after(stage, phase), *sums]
        self.upcoming, sums = piece.carried[:2], piece.carried[2:]
        return sums

    def own_line(self, number: int) -> ll.Value:
        """Rows are distributed so that threads that read their words have no bank conflicts: of 32 rows, a warp has two
        times 8 neighbours, and a thread two that are four apart."""
        code, group = self.code, self.code.lshr(self.lane, 2)
        return self.plus(code.shl(code.lshr(group, 2), 3), self.plus(code.both(group, 3), 4 * number))

    def tile_row(self, line: ll.Value) -> ll.Value:
        code, builder = self.code, self.builder
        warp = self.plus(builder.mul(code.lshr(self.part_row, 1), I32(32)), code.shl(code.both(self.part_row, 1), 3))
        return self.plus(warp, self.plus(code.shl(code.lshr(line, 3), 4), code.both(line, 7)))

    def _offsets(self) -> list[ll.Value]:
        """Returns where a thread's four words of the first 32 bytes of depth are in a piece."""
        code, quarter = self.code, self.code.both(self.lane, 3)
        found = []
        for half in range(2):
            for number in range(2):
                row, line = self.tile_row(self.own_line(number)), self.plus(quarter, 4 * half)
                chunk = self.builder.xor(code.both(code.lshr(row, 2), 7), line)
                box = self.builder.mul(code.lshr(row, 5), I32(self.depth * WIDE_LINE))
                place = self.plus(self.builder.mul(line, I32(WIDE_LINE)), self.builder.mul(chunk, I32(CHUNK)))
                found.append(self.plus(self.plus(box, place), code.shl(code.both(row, 3), 2)))
        return found

    def _words(self, places: list[ll.Value], step: int) -> list[ll.Value]:
        more = step * (BYTES // self.size) * WIDE_LINE
        return [self.builder.load(self._shared(self.plus(place, more)), typ=I32, align=4) for place in places]
