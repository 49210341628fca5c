"""Attention with Hopper's matrix instructions (`wgmma`): each four warps process 64 queries. Queries, keys and values
are in shared memory, in squares of 8 lines of 128 bytes. Scores come from there; weights are multiplied from the
registers in which they were computed."""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ll

from trivium.backends.gpu.dialect import WARPGROUP
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.gpu.tensor import TensorContraction, TensorOperand
from trivium.backends.gpu.tensor_attention import TensorAttention
from trivium.backends.gpu.tensor_maps import WIDE_LINE
from trivium.backends.gpu.tiles import WARPGROUP_KEYS, warpgroup_attention_instruction
from trivium.backends.gpu.warpgroup import SQUARE, WarpgroupContraction
from trivium.backends.llvm.code import F32, I8, I32
from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.target import MatrixInstruction

STEPS = 4
"""The instructions that multiply a line of 128 bytes."""


class WarpgroupAttention(TensorAttention):
    """Emits one block's tile of queries, for one thread."""

    _values: WarpgroupContraction
    _scores: WarpgroupContraction
    _queries: WarpgroupContraction

    def _keys_of_tile(self) -> int:
        return WARPGROUP_KEYS

    def _found_instruction(self) -> MatrixInstruction:
        assert isinstance(self._code.target, GpuTarget), "code for a GPU"
        found = warpgroup_attention_instruction(self._mark, self._code.target)
        assert found is not None, "the schedule has found an instruction"
        return found

    def _products(self) -> Sequence[TensorContraction]:
        mark, keys = self._mark, self._tile_keys
        deep, long = -(-self._depth // STEPS), -(-keys // (STEPS * self._instruction.depth))
        features = -(-self._features // 64) * 64
        parts = (mark.scores, self._tile, deep), (mark.scores, keys, deep), (mark.values, features, long)
        # The memory that a launch grants is in one piece.
        nbytes = sum(size * stages * WIDE_LINE for _, size, stages in parts)
        memory, first = self._dialect.shared(self._code, nbytes, SQUARE * WIDE_LINE), 0
        found = []
        for mark_, size, stages in parts:
            pointer = self._builder.gep(memory, [I32(first)], source_etype=I8)
            pointer.type = memory.type
            found.append(self._product(mark_, size, stages, pointer))
            first += size * stages * WIDE_LINE
        return found

    def _product(self, mark: Contraction, size: int, stages: int, memory: ll.Value) -> WarpgroupContraction:
        operands = mark, self._code, self._dialect, self._thread, size, self._emitter
        facts = {"instruction": self._instruction, "threads": 2 * self._tile, "stages": stages, "sides": 1}
        return WarpgroupContraction(*operands, **facts, memory=memory)

    def _blocks(self) -> int:
        return super()._blocks() if self._terms < 3 else 2

    def _arrive(self) -> None:
        self._dialect.wait(self._code, 0)
        self._dialect.publish(self._code)
        self._dialect.barrier(self._code)

    def _multiplied_queries(self, queries: TensorOperand, keys: TensorOperand) -> list[ll.Value]:
        code, dialect = self._code, self._dialect
        group, across = self._builder.udiv(self._thread, I32(WARPGROUP)), (queries.across, keys.across)
        sums = dialect.begin_products(code, [F32(0.0)] * (self._tile_keys // 2))
        for number in range(self._depth):
            stage, step = divmod(number, STEPS)
            lhs = self._queries.matrix(queries, I32(stage), group, step)
            rhs = self._scores.matrix(keys, I32(stage), I32(0), step)
            sums = dialect.multiply_shared(code, self._instruction, lhs, rhs, across, sums)
        dialect.commit_products(code)
        return dialect.end_products(code, sums)

    def _multiplied_weights(
        self, values: TensorOperand, parts: list[list[ll.Value]], sums: list[ll.Value]
    ) -> list[ll.Value]:
        code, dialect, across = self._code, self._dialect, (False, values.across)
        terms = [term for weights in parts for term in self._words(weights)]
        # Words stay in their registers as long as the products take.
        held = dialect.begin_products(code, [*sums, *(word for term in terms for word in term)])
        sums, words = held[: len(sums)], held[len(sums) :]
        for number in range(len(terms)):
            stage, step = divmod(number // self._terms, STEPS)
            rhs = self._values.matrix(values, I32(stage), I32(0), step)
            own = words[4 * number : 4 * number + 4]
            sums = dialect.multiply_shared(code, self._instruction, own, rhs, across, sums)
        dialect.commit_products(code)
        return dialect.end_products(code, sums)
