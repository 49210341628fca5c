"""Products in which some warps of a block only copy (warp specialization). One thread of them, the producer, lets the
device copy pieces of both operands, as far ahead as there are stages; all other warps, the consumers, multiply. They do
not meet at barriers: a stage has a word that counts the bytes which have arrived in it, for which the consumers wait,
and one that counts the warps which have read it, for which the producer waits. While the tensor cores multiply the
pieces of one stage, the consumers already wait for the next one."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu.bulk import COUNT, BulkContraction
from trivium.backends.gpu.contracted import Depth, Indices, Split
from trivium.backends.gpu.dialect import WARP
from trivium.backends.gpu.tensor import TensorOperand
from trivium.backends.llvm.code import I1, I32, I64
from trivium.backends.llvm.loops import Loop, counted
from trivium.backends.llvm.numbers import Int, i64


class ProducerContraction(BulkContraction):
    """Emits the tiles of one of `blocks` blocks, for one thread: a consumer, or one of the warps after them."""

    def __init__(self, *operands: Any, blocks: int, resident: int, **facts: Any) -> None:
        super().__init__(*operands, **facts)
        self.blocks, self._resident = blocks, resident
        self._total = 0

    @property
    def extra(self) -> int:
        return 2 * self.stages * COUNT

    def emit(self, block: ll.Value, threads: int, split: Split | None = None) -> None:
        code, dialect, builder = self.code, self.dialect, self.builder
        self._total = self.tiles() * (split.parts if split else 1)
        dialect.resident(code, self._resident)
        producer = builder.icmp_unsigned("==", self.thread, I32(self.threads))
        with builder.if_then(producer):
            for stage in map(I32, range(self.stages)):
                dialect.start_count(code, self.full(stage))
                dialect.start_count(code, self.empty(stage), self.threads // WARP)
            dialect.publish(code)
        dialect.barrier(code)
        with builder.if_else(builder.icmp_unsigned("<", self.thread, I32(self.threads))) as (consumes, produces):
            with consumes:
                self.exchange_registers(producing=False)
                with self._shares(block) as share:
                    self.upcoming = share.carried
                    super().emit(builder.trunc(i64(share.index), I32), threads, split)
                    share.next = self.upcoming
            with produces:
                self.exchange_registers(producing=True)
                with builder.if_then(producer), self._shares(block) as share:
                    share.next = self._produce(builder.trunc(i64(share.index), I32), split, share.carried)

    def exchange_registers(self, producing: bool) -> None:
        """Emits what warps that multiply, or those that only copy, do about their registers before anything else."""

    def _shares(self, block: ll.Value) -> AbstractContextManager[Loop]:
        """A loop over the tiles, or the shares of tiles, of a block. It carries the stage of the next piece, and the
        last bit of the number of its use."""
        begin = Int(self.code, self.builder.zext(block, I64))
        return counted(self.code, begin, self._total, self.blocks, [I32(0), I32(0)], nonempty=True)

    def tiles(self) -> int:
        """Returns the number of all tiles."""
        return self.extent("batch") * math.prod(-(-self.extent(role) // self.side(role)) for role in "mn")

    def _after(self, stage: ll.Value, phase: ll.Value) -> list[ll.Value]:
        """Returns the stage after another one, and its phase."""
        last = self.code.icompare("==", stage, self.stages - 1)
        return [self.following(stage), self.builder.xor(phase, self.builder.zext(last, I32))]

    def meet(self) -> None:
        self.dialect.partial_barrier(self.code, self.threads)

    def empty(self, stage: ll.Value) -> ll.Value:
        """Returns where the warps are counted that have read a stage."""
        return self.full(self.plus(stage, self.stages))

    def _produce(self, block: ll.Value, split: Split | None, carried: list[ll.Value]) -> list[ll.Value]:
        """Copies all pieces of a tile."""
        tile, depth = self.share_of(block, split)
        place = self.place(tile)
        with counted(self.code, *self.range(depth), self.depth, carried) as piece:
            stage, phase = piece.carried
            begin = self.builder.trunc(i64(piece.index), I32)
            # The first use of a stage waits for nobody.
            self.dialect.wait_for_phase(self.code, self.empty(stage), self.builder.xor(phase, I32(1)))
            self.copy_pieces(self.factors(place), begin, stage, place.batch)
            piece.next = self._after(stage, phase)
        return piece.carried

    def multiplied(self, lhs: TensorOperand, rhs: TensorOperand, batch: Indices, depth: Depth) -> list[ll.Value]:
        code, builder, dialect = self.code, self.builder, self.dialect
        state = [*self.upcoming, *self.zeros()]
        with counted(code, *self.range(depth), self.depth, state) as piece:
            stage, phase, *sums = piece.carried
            done = builder.sub(builder.trunc(i64(piece.index), I32), depth.begin)
            dialect.wait_for_phase(code, self.full(stage), phase)
            sums = self.begin(lhs, rhs, stage, sums)
            # The products before these are done, so that their stage may be copied to.
            sums = dialect.end_products(code, sums, 1)
            self._release(self.preceding(stage), builder.icmp_unsigned("!=", done, I32(0)))
            piece.next = [*self._after(stage, phase), *sums]
        self.upcoming, sums = piece.carried[:2], piece.carried[2:]
        sums = dialect.end_products(code, sums)
        if self.blocks < self._total:
            self._release(self.preceding(self.upcoming[0]), I1(1))
        return sums

    def _release(self, stage: ll.Value, condition: ll.Value) -> None:
        """Lets a stage be copied to again."""
        speaks = self.builder.icmp_unsigned("==", self.lane, I32(0))
        with self.builder.if_then(self.builder.and_(speaks, condition)):
            self.dialect.arrive(self.code, self.empty(stage))
