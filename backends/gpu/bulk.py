"""Products whose operands the device itself copies to shared memory, in boxes (TMA): one thread issues the copies, and
all threads wait until the bytes have arrived. If only one operand can be copied like this, the threads copy the other
one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu.contracted import Depth, Indices
from trivium.backends.gpu.images import Image
from trivium.backends.gpu.tensor import TensorOperand
from trivium.backends.gpu.tensor_maps import WIDE_LINE, Boxed, Dimension, View
from trivium.backends.gpu.warpgroup import WarpgroupContraction
from trivium.backends.llvm.code import I16, I32
from trivium.compiler.kernel.contraction import Access, ContractionLoop
from trivium.compiler.kernel.structure import Block

COUNT = 8
"""The bytes of a word in which those that have arrived are counted."""


class BulkContraction(WarpgroupContraction):
    """Emits one block's tile, for one thread. `views`: the operands that are copied in boxes, by the roles of their
    loops, each with the description that the launch gives of it."""

    def __init__(self, *operands: Any, views: Mapping[str, tuple[Boxed, ll.Value]], **facts: Any) -> None:
        super().__init__(*operands, **facts)
        self._views = views

    @property
    def extra(self) -> int:
        return self.stages * COUNT

    def operand(
        self,
        access: Access,
        prologue: Block | None,
        role: str,
        first: ll.Value,
        base: int,
        across: bool | None = None,
    ) -> TensorOperand:
        if role not in self._views:
            return super().operand(access, prologue, role, first, base, across)
        view, _ = self._views[role]
        return replace(super().operand(access, prologue, role, first, base, view.across), whole=True)

    def multiplied(self, lhs: TensorOperand, rhs: TensorOperand, batch: Indices, depth: Depth) -> list[ll.Value]:
        with self.builder.if_then(self._is_first()):
            for stage in range(self.stages):
                self.dialect.start_count(self.code, self.full(I32(stage)))
            self.dialect.publish(self.code)
        self.dialect.barrier(self.code)
        return super().multiplied(lhs, rhs, batch, depth)

    def _is_first(self) -> ll.Value:
        return self.builder.icmp_unsigned("==", self.thread, I32(0))

    def full(self, stage: ll.Value) -> ll.Value:
        """Returns where the bytes are counted that have arrived in a stage: behind the pieces."""
        return self._shared(self.plus(self.builder.mul(stage, I32(COUNT)), self.stages * self.stage))

    def phase(self, done: ll.Value) -> ll.Value:
        """Returns the last bit of the number of a stage's use: `done` iterations of the depth are before it."""
        return self.code.both(self.builder.udiv(done, I32(self.depth * self.stages)), 1)

    def _parted(self, operands: Sequence[TensorOperand]) -> tuple[list[TensorOperand], list[TensorOperand]]:
        """Returns the operands that are copied in boxes, and the others."""
        boxes = [operand for operand in operands if operand.role in self._views]
        return boxes, [operand for operand in operands if operand.role not in self._views]

    def fetch(
        self, operands: Sequence[TensorOperand], exists: ll.Value, piece: ll.Value, stage: ll.Value, batch: Indices
    ) -> None:
        boxes, others = self._parted(operands)
        with self.builder.if_then(self.builder.and_(exists, self._is_first())):
            self.copy_pieces(boxes, piece, stage, batch)
        if others:
            super().fetch(others, exists, piece, stage, batch)

    def copy_pieces(self, operands: Sequence[TensorOperand], piece: ll.Value, stage: ll.Value, batch: Indices) -> None:
        """Lets the device copy the pieces of operands to a stage, and count their bytes."""
        self.dialect.expect(self.code, self.full(stage), sum(map(self.piece, operands)))
        for operand in operands:
            view, array = self._views[operand.role]
            begin = self.plus(self.builder.mul(stage, I32(self.stage)), operand.base)
            if isinstance(view, Image):
                self._copy_windows(operand, view, array, piece, begin, self.full(stage))
            else:
                self._copy_boxes(operand, view, array, piece, begin, self.full(stage), batch)

    def _copy_windows(
        self, operand: TensorOperand, image: Image, array: ll.Value, piece: ll.Value, begin: ll.Value, full: ll.Value
    ) -> None:
        """Begins to copy a piece, in boxes that have some features of one position in each of several windows."""
        features, windows = image.box({operand.role: self.side(operand.role)})
        # A box has `features` of the operand's own loops if its windows are along the depth.
        each = features if image.across else windows

        def word(loops: Indices, loop: ContractionLoop | None, factor: int = 1, offset: int = 0) -> ll.Value:
            index = self.builder.trunc(loops[loop], I32) if loop is not None else I32(0)
            return self.plus(self.builder.mul(index, I32(factor)), offset)

        depth = self.indices("k", piece, exists=True)
        for number in range(self.side(operand.role) // each):
            own = self.indices(operand.role, self.plus(operand.first, number * each), exists=not number)
            places, terms = (depth, own) if image.across else (own, depth)
            taps = [self.builder.trunc(word(terms, axis.tap, axis.apart), I16) for axis in image.axes]
            spatial = [word(places, axis.own, axis.step, axis.low) for axis in image.axes]
            place = [word(terms, image.features), *spatial, word(places, image.images)]
            target = self._shared(self.plus(begin, number * windows * WIDE_LINE))
            self.dialect.copy_windows(self.code, target, array, place, taps, full)

    def _copy_boxes(
        self,
        operand: TensorOperand,
        view: View,
        array: ll.Value,
        piece: ll.Value,
        begin: ll.Value,
        full: ll.Value,
        batch: Indices,
    ) -> None:
        """Begins to copy a piece: lines that are longer than those of a box are several boxes, one behind another."""
        nbytes = WIDE_LINE * self.lines(operand)
        for number in range(self.piece(operand) // nbytes):
            own = self.plus(operand.first, number * WIDE_LINE // self.size)
            starts = {"k": piece, self.own_role(operand.role): own}
            place = [starts.get(one.role) or self._index(one, batch) for one in view.dimensions]
            target = self._shared(self.plus(begin, number * nbytes))
            self.dialect.copy_box(self.code, target, array, place, full)

    def _index(self, dimension: Dimension, batch: Indices) -> ll.Value:
        """Returns a batch's index along a dimension."""
        found: ll.Value = I32(0)
        for loop in dimension.loops:
            found = self.plus(self.builder.mul(found, I32(loop.extent)), self.builder.trunc(batch[loop], I32))
        return found

    def arrive(self, operands: Sequence[TensorOperand], done: ll.Value, stage: ll.Value) -> None:
        _, others = self._parted(operands)
        self.dialect.wait_for_phase(self.code, self.full(stage), self.phase(done))
        if others:
            super().arrive(others, done, stage)

    def settle(self, operands: Sequence[TensorOperand], stage: ll.Value) -> None:
        # What the device itself has copied, and rounded, matrix instructions see.
        _, others = self._parted(operands)
        if others:
            super().settle(others, stage)
