"""Attention with Hopper's matrix instructions (`wgmma`): each four warps process 64 queries. Queries, keys and values
are in shared memory, in squares of 8 lines of 128 bytes. Scores come from there; weights are multiplied from the
registers in which they were computed."""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ll

from trivium.backends.gpu.dialect import WARPGROUP
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.gpu.tensor import TensorOperand
from trivium.backends.gpu.tensor_attention import Pair, TensorAttention
from trivium.backends.gpu.tiles import WARPGROUP_KEYS, warpgroup_attention_instruction
from trivium.backends.gpu.warpgroup import WarpgroupContraction
from trivium.backends.llvm.code import F32, I32
from trivium.compiler.target import MatrixInstruction


class WarpgroupAttention(TensorAttention):
    """Emits one block's tile of queries, for one thread."""

    _values: WarpgroupContraction
    _kind = WarpgroupContraction
    _steps = 4

    def _keys_of_tile(self) -> int:
        return WARPGROUP_KEYS

    def _found_instruction(self) -> MatrixInstruction:
        assert isinstance(self._code.target, GpuTarget), "code for a GPU"
        found = warpgroup_attention_instruction(self._mark, self._code.target)
        assert found is not None, "the schedule has found an instruction"
        return found

    def _width(self) -> int:
        return -(-self._features // 64) * 64

    def _blocks(self) -> int:
        return super()._blocks() if self._terms < 3 else 2

    def _arrive(self) -> None:
        self._dialect.wait(self._code, 0)
        self._dialect.publish(self._code)
        self._dialect.barrier(self._code)

    def _scored(self, pairs: Sequence[Pair]) -> list[list[ll.Value]]:
        code, dialect, each = self._code, self._dialect, self._tile_keys // 2
        group = self._builder.udiv(self._thread, I32(WARPGROUP))
        sums, found = dialect.begin_products(code, [F32(0.0)] * (len(pairs) * each)), list[ll.Value]()
        for place, pair in enumerate(pairs):
            assert isinstance(pair.left, WarpgroupContraction)
            assert isinstance(pair.right, WarpgroupContraction)
            across, own = (pair.lhs.across, pair.rhs.across), sums[place * each : (place + 1) * each]
            for number in range(pair.depth):
                stage, step = divmod(number, self._steps)
                lhs = pair.left.matrix(pair.lhs, I32(stage), group, step)
                rhs = pair.right.matrix(pair.rhs, self._later(pair.stage, stage), I32(0), step)
                own = dialect.multiply_shared(code, self._instruction, lhs, rhs, across, own)
            found += own
        dialect.commit_products(code)
        found = dialect.end_products(code, found)
        return [found[first : first + each] for first in range(0, len(found), each)]

    def _multiplied_weights(
        self, values: TensorOperand, parts: list[list[ll.Value]], sums: list[ll.Value], first: ll.Value
    ) -> list[ll.Value]:
        code, dialect, across = self._code, self._dialect, (False, values.across)
        terms = [term for weights in parts for term in self._words(weights)]
        # Words stay in their registers as long as the products take.
        held = dialect.begin_products(code, [*sums, *(word for term in terms for word in term)])
        sums, words = held[: len(sums)], held[len(sums) :]
        for number in range(len(terms)):
            stage, step = divmod(number // self._terms, self._steps)
            rhs = self._values.matrix(values, self._later(first, stage), I32(0), step)
            own = words[4 * number : 4 * number + 4]
            sums = dialect.multiply_shared(code, self._instruction, own, rhs, across, sums)
        dialect.commit_products(code)
        return dialect.end_products(code, sums)
