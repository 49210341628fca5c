"""A plan says which operand is stored packed, and where a batch finds its panels there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import matmul
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.contraction.plan import Plan
from trivium.backends.cpu.target import level

PLAIN, TURNED = (0, 1, 2), (0, 2, 1)


def plan_of(batch: int, m: int, n: int, k: int, constants: set[str], result: tuple[int, int, int] = PLAIN) -> Plan:
    lhs, rhs = np.empty((batch, m, k), np.float32), np.empty((batch, k, n), np.float32)
    return Lowering(matmul(lhs, rhs, (PLAIN, PLAIN, result)).kernel, level("x86-64-v4"), frozenset(constants)).plan


@pytest.mark.parametrize(
    ("constants", "result", "packed"),
    [
        (set(), PLAIN, None),
        ({"rhs"}, PLAIN, "rhs"),
        ({"lhs"}, PLAIN, None),
        # The result's contiguous side are the columns: the operands change places.
        ({"lhs"}, TURNED, "lhs"),
        ({"rhs"}, TURNED, None),
    ],
)
def test_the_operand_of_the_columns_is_packed(constants: set[str], result: tuple[int, int, int], packed: str) -> None:
    assert plan_of(1, 64, 96, 128, constants, result).packed_operand == packed


def test_panels_of_each_batch_follow_those_before() -> None:
    plan = plan_of(3, 40, 70, 50, {"rhs"})
    packing, (batch,) = plan.packing(4), plan.problem.batch.axes
    assert packing.widths == tuple(size * plan.tiling.lanes for size in plan.tiling.panels.sizes)
    assert sum(packing.widths) >= 70
    assert packing.nbytes == 4 * 3 * 50 * sum(packing.widths)
    assert plan.packed_access().stride(batch) == packing.nbytes // 4 // 3


def test_units_are_shared_out() -> None:
    plan = plan_of(3, 40, 70, 50, {"rhs"})
    assert plan.units == 3 * plan.tiling.chunks.count * plan.tiling.groups.count
