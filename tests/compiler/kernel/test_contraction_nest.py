"""The plain loop nest of a contraction."""

from __future__ import annotations

import numpy as np

from tests.compiler.lowering.running import program_of
from tests.compiler.targets import TARGET
from trivium.compiler.kernel.contraction_nest import sum_of
from trivium.compiler.kernel.structure import Loop, walk
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.types import tensor


def test_the_sum_of_a_convolution_is_not_one_in_its_epilogue() -> None:
    """Only it may add products that are not rounded."""
    image = tensor(2, 3, 9, 40)
    numbers = ops.ConvDimensionNumbers(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))

    def main(b, x, y, z):
        options = {"padding": [[1, 1], [1, 1]], "feature_group_count": 3, "batch_group_count": 1}
        found = b.add(ops.Convolution(x, y, dimension_numbers=numbers, **options))
        zero = b.add(ops.Constant(np.float32(0)))
        add = region([tensor(), tensor()], lambda b, x, y: b.add(ops.Add(x, y)))
        window = {"window_dimensions": (1, 1, 1, 5), "padding": [[0, 0], [0, 0], [0, 0], [2, 2]]}
        return b.add(ops.Add(found, b.add(ops.ReduceWindow([z], [zero], body=add, **window))[0]))

    (kernel,) = lower(optimize(program_of([image, tensor(3, 1, 3, 3), image], main)), TARGET).kernels()
    sums = [step for step in walk(kernel.body) if isinstance(step, Loop) and step.kind == "reduction"]
    assert [loop.extents for loop in sums] == [(3, 3, 1), (5,)]
    assert sum_of(kernel) is sums[0]
