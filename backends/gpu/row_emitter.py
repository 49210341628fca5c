"""Emits kernels whose rows are computed by teams of threads: the threads of a block, or of a part of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu import rows, scan_emitter
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.team import Team
from trivium.backends.gpu.thread_emitter import GpuEmitter, wide
from trivium.backends.llvm import folds
from trivium.backends.llvm.code import I32, I64
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import Int, Number, i64
from trivium.compiler.kernel.affine import accesses
from trivium.compiler.kernel.index import Index, Quotient, Remainder
from trivium.compiler.kernel.structure import Block, Instruction, Load, Loop, Scratch, Store
from trivium.compiler.schedule import Unit


class RowEmitter(GpuEmitter):
    """Emits blocks for the threads of `team`, which share the iteration that has the number `thread`. Teams of which it
    is not `valid` write nothing."""

    def __init__(self, *operands: Any, team: Team, dialect: Dialect, valid: ll.Value | None = None):
        super().__init__(*operands)
        self.team, self.dialect, self.valid = team, dialect, valid
        self._alone = False
        """Whether what is emitted now is one thread's own."""
        self._kept: dict[Hashable, ll.Value] = {}
        """What a thread has loaded, and keeps in registers."""

    def instruction(self, instruction: Instruction) -> None:
        if self._alone or isinstance(instruction, Loop):
            super().instruction(instruction)
            return
        if isinstance(instruction, Scratch):
            self.buffers[instruction.buffer] = self.dialect.shared(self.code, max(1, instruction.buffer.nbytes))
            return
        if isinstance(instruction, Store):
            self.team.uses(instruction)
            with self.builder.if_then(self.first()):
                super().instruction(instruction)
            return
        self.team.uses(*accesses(Block(instructions=[instruction])))
        super().instruction(instruction)

    def loop(self, loop: Loop) -> None:
        """Emits a loop, or, if the threads of the block share it, this thread's iterations."""
        if self.schedule.loops[loop].mapping(Unit.BLOCK) is None:
            super().loop(loop)
            return
        self.team.uses(*accesses(loop.body))
        self._alone = True
        if loop.kind == "sequential":
            scan_emitter.emit(self, loop)
            self._alone = False
            return
        carried = self._shared(loop)
        self._alone = False
        if loop.kind == "reduction":
            self.fold(loop, self.team.folded(carried, lambda a, b: folds.fold(self, loop, a, b)))

    def first(self) -> ll.Value:
        """Whether this thread writes what all threads of the team know."""
        return self.if_valid(self.builder.icmp_unsigned("==", self.team.thread, I32(0)))

    def if_valid(self, condition: ll.Value | None) -> ll.Value | None:  # of the team
        if condition is None or self.valid is None:
            return condition if self.valid is None else self.valid
        return self.builder.and_(condition, self.valid)

    def fold(self, loop: Loop, totals: list[ll.Value]) -> None:
        """Makes a reduction's results known, of which all threads have the fold of the terms."""
        results = folds.fold(self, loop, [self.value(init) for init in loop.inits], totals)
        self.values.update(zip(loop.carried, results, strict=True))

    def _shared(self, loop: Loop) -> list[ll.Value]:
        """Emits this thread's iterations, each a block's size after the one before, and returns what they fold to."""
        plan, code, size = self.schedule.loops[loop], self.code, self.team.size
        total = math.prod(extent for extent in plan.in_vectors if isinstance(extent, int))
        starts = folds.starts(self, loop) if loop.kind == "reduction" else []
        carried = [code.splat(start, plan.lanes) for start in starts]
        begin, end = self.range(loop, total)
        together = rows.at_once(loop, plan.lanes)
        if isinstance(begin, int) and isinstance(end, int):
            rounds = -(-end // size)
            if rounds == 1 or rows.is_kept(loop, rounds, plan.lanes):
                carried = self._rounds(loop, I64(0), range(rounds), end, carried, True)
                return self._of_lanes(loop, carried)
        first, last, step = i64(begin), i64(end), together * size
        count = self.builder.udiv(self.builder.sub(last, first), I64(step))
        middle = self.builder.add(first, self.builder.mul(count, I64(step)))
        with counted(code, begin, Int(code, middle), step, carried) as each:
            each.next = self._rounds(loop, i64(each.index), range(together), None, each.carried)
        own = Int(code, self.builder.add(wide(code, self.team.thread), middle))
        with counted(code, own, end, size, each.carried) as rest:
            each = self.bound(loop, i64(rest.index), None)
            rest.next = self.run(loop, each, None, rest.carried)
        return self._of_lanes(loop, rest.carried)

    def _rounds(
        self, loop: Loop, begin: ll.Value, rounds: range, end: int | None, carried: list[ll.Value], kept: bool = False
    ) -> list[ll.Value]:
        """Emits rounds of a loop, in each of which every thread has one iteration, or a vector of them. All loads come
        first. `end`: the number of iterations, if the last round may exceed it. `kept`: what is loaded stays known."""
        builder, size = self.builder, self.team.size
        own, each = builder.add(begin, wide(self.code, self.team.thread)), []
        for number in rounds:
            place, valid = builder.add(own, I64(number * size)), None
            if end is not None and (number + 1) * size > end:
                valid = builder.icmp_signed("<", place, I64(end))
                place = builder.select(valid, place, I64(end - 1))
            each.append((self.bound(loop, place, number if kept else None), valid))
        for values, valid in each:
            carried = self.run(loop, values, valid, carried)
        return carried

    def _load(self, loop: Loop, load: Load, kept: int | None) -> None:
        """Emits a load, unless the same one is known from another loop over the row."""
        if kept is None:
            self.instruction(load)
            return
        address = self.analysis.address(load.buffer, load.indices)
        plan = self.schedule.loops[loop]
        dimensions = enumerate(zip(loop.indices, plan.extents, strict=True))
        own = {index: (plan.extents, d) if extent != 1 else None for d, (index, extent) in dimensions}
        key = load.buffer, plan.lanes, kept, _same(address, own)
        if key not in self._kept:
            self.instruction(load)
            self._kept[key] = self.values[load.result]
        self.values[load.result] = self._kept[key]

    def _of_lanes(self, loop: Loop, carried: list[ll.Value]) -> list[ll.Value]:
        """Returns what all lanes fold to."""
        while carried and isinstance(carried[0].type, ll.VectorType):
            low, high = zip(*map(self.code.halves, carried), strict=True)
            lanes = carried[0].type.count // 2
            with self.in_lanes(self.vector_index(loop), lanes, None):
                carried = folds.fold(self, loop, list(low), list(high))
        return carried

    def range(self, loop: Loop, total: int) -> tuple[Number, Number]:
        """Returns the iterations, or vectors of them, that are the block's, of `total`."""
        return 0, total


def _same(index: Index, own: Mapping[Any, Hashable]) -> Hashable:
    """Returns what is equal for two addresses that are the same after the indices in `own` got these names; those
    without a name are zero."""
    terms = []
    for atom, factor in index.terms.items():
        if isinstance(atom, Quotient | Remainder):
            terms.append(((type(atom), _same(atom.dividend, own), atom.divisor), factor))
        elif (name := own.get(atom, atom)) is not None:
            terms.append((name, factor))
    return index.offset, frozenset(terms)
