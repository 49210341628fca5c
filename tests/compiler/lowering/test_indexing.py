"""Computed positions: those outside are recognized, however far outside they are."""

from __future__ import annotations

import numpy as np

from tests.compiler.lowering.running import expect_same, program_of, some
from tests.random_programs.generator import scalar_region
from trivium.ir import ops
from trivium.ir.types import UI64, tensor


def test_scatter_far_beyond_the_end_does_not_come_round():
    numbers = ops.ScatterDimensionNumbers((1,), (), (), (), (0,), 1)

    def body(b, x, places, updates):
        return b.add(ops.Scatter([x], places, [updates], numbers, update_computation=scalar_region(ops.Add)))

    module = program_of([tensor(5), tensor(4, 1, of=UI64), tensor(4, 2)], body)
    places = np.array([[0], [2**64 - 1], [3], [2**63]], np.uint64)
    expect_same(module, [some(5), places, some(4, 2, seed=1)])
