"""Products in which one warp of a block only copies (warp specialization). One thread of it, the producer, lets the
device copy pieces of both operands, as far ahead as there are stages; all other warps, the consumers, multiply. They do
not meet at barriers: a stage has a word that counts the bytes which have arrived in it, for which the consumers wait,
and one that counts the warps which have read it, for which the producer waits. While the tensor cores multiply the
pieces of one stage, the consumers already wait for the next one."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.gpu.bulk import COUNT, BulkContraction
from trivium.backends.gpu.contracted import Depth, Indices, Split
from trivium.backends.gpu.dialect import WARP
from trivium.backends.gpu.tensor import TensorOperand
from trivium.backends.gpu.tiles import STAGES
from trivium.backends.llvm.code import I32
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import i64

RESIDENT = 2
"""The blocks that a multiprocessor has room for: one can multiply while the other one stores its results. That leaves
112 registers for each thread, of which the sums of a tile of 128 take 64, so the warps need not exchange registers
(`setmaxnreg`). That instruction works on groups of four warps, so four warps would have to copy; each thread of such a
large block starts with 80 registers, and ptxas then rejects `wgmma`."""


class ProducerContraction(BulkContraction):
    """Emits one block's tile, for one thread: a consumer, or one of the warp after all consumers."""

    extra = 2 * STAGES * COUNT

    def emit(self, block: ll.Value, threads: int, split: Split | None = None) -> None:
        code, dialect, builder = self.code, self.dialect, self.builder
        dialect.resident(code, RESIDENT)
        producer = builder.icmp_unsigned("==", self.thread, I32(self.threads))
        with builder.if_then(producer):
            for stage in map(I32, range(STAGES)):
                dialect.start_count(code, self.full(stage))
                dialect.start_count(code, self.empty(stage), self.threads // WARP)
            dialect.publish(code)
        dialect.barrier(code)
        with builder.if_then(producer):
            self._produce(block, split)
        with builder.if_then(builder.icmp_unsigned("<", self.thread, I32(self.threads))):
            super().emit(block, threads, split)

    def meet(self) -> None:
        self.dialect.partial_barrier(self.code, self.threads)

    def empty(self, stage: ll.Value) -> ll.Value:
        """Returns where the warps are counted that have read a stage."""
        return self.full(self.plus(stage, STAGES))

    def _produce(self, block: ll.Value, split: Split | None) -> None:
        """Copies all pieces of the block's tile."""
        tile, depth = self.share_of(block, split)
        place = self.place(tile)
        with counted(self.code, *self.range(depth), self.depth, [I32(0)]) as piece:
            (stage,) = piece.carried
            begin = self.builder.trunc(i64(piece.index), I32)
            # The first use of a stage waits for nobody.
            unused = self.builder.xor(self.phase(self.builder.sub(begin, depth.begin)), I32(1))
            self.dialect.wait_for_phase(self.code, self.empty(stage), unused)
            self.copy_pieces(self.factors(place), begin, stage, place.batch)
            piece.next = [self.following(stage)]

    def multiplied(self, lhs: TensorOperand, rhs: TensorOperand, batch: Indices, depth: Depth) -> list[ll.Value]:
        code, builder, dialect = self.code, self.builder, self.dialect
        with counted(code, *self.range(depth), self.depth, [I32(0), *self.zeros()]) as piece:
            stage, *sums = piece.carried
            done = builder.sub(builder.trunc(i64(piece.index), I32), depth.begin)
            dialect.wait_for_phase(code, self.full(stage), self.phase(done))
            sums = self.begin(lhs, rhs, stage, sums)
            # The products before these are done, so that their stage may be copied to.
            sums = dialect.end_products(code, sums, 1)
            speaks = builder.icmp_unsigned("==", self.lane, I32(0))
            with builder.if_then(builder.and_(speaks, builder.icmp_unsigned("!=", done, I32(0)))):
                dialect.arrive(code, self.empty(self.preceding(stage)))
            piece.next = [self.following(stage), *sums]
        return dialect.end_products(code, piece.carried[1:])
