"""Windows that reach beyond their operand: those that are alone along a dimension have no padding any more."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import rewritten
from trivium.compiler.passes.patterns.windows import WINDOWS
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.declare import Op
from trivium.ir.func import Module
from trivium.ir.types import tensor

X = np.random.default_rng(0).integers(-3, 4, (3, 7, 5)).astype(np.float32)  # sums are exact in any order
X[0, 0, 0], X[1, 2, 3], X[2, 6, 4] = -0.0, np.nan, np.inf


def window(kind: type[Op], init: float, sizes: list[int], padding: list[tuple[int, int]], **options: object) -> Module:
    def body(b, x):
        fold = region([tensor()] * 2, lambda b, p, q: b.add(kind(p, q)))
        start = b.add(ops.Constant(np.float32(init)))
        given = {"window_dimensions": sizes, "padding": padding} | options
        return b.add(ops.ReduceWindow([x], [start], body=fold, **given))

    return program_of([tensor(*X.shape)], body)


def windows_of(module: Module) -> list[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]]:
    found = [op for op in module.main.walk() if isinstance(op, ops.ReduceWindow)]
    return [(tuple(op.window_dimensions), tuple(tuple(pair) for pair in op.padding or ())) for op in found]


ALONE: dict[str, tuple[list[int], list[tuple[int, int]], dict, tuple, tuple]] = {
    "after the operand": ([1, 100, 1], [(0, 0), (0, 93), (0, 0)], {}, (1, 7, 1), ((0, 0), (0, 0), (0, 0))),
    "before it": ([1, 10, 1], [(0, 0), (3, 0), (0, 0)], {}, (1, 7, 1), ((0, 0), (0, 0), (0, 0))),
    "part of it": ([1, 10, 2], [(0, 0), (-2, 5), (0, 0)], {}, (1, 5, 2), ((0, 0), (-2, 0), (0, 0))),
    "up to its middle": ([1, 6, 1], [(0, 0), (3, -4), (0, 0)], {}, (1, 3, 1), ((0, 0), (0, -4), (0, 0))),
    "two dimensions": ([1, 9, 8], [(0, 0), (1, 1), (1, 2)], {}, (1, 7, 5), ((0, 0), (0, 0), (0, 0))),
    "with a stride": (
        [1, 9, 2], [(0, 0), (1, 1), (0, 1)], {"window_strides": [1, 9, 2]}, (1, 7, 2), ((0, 0), (0, 0), (0, 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ALONE)
@pytest.mark.parametrize(
    ("kind", "init"), [(ops.Add, 0.0), (ops.Add, -0.0), (ops.Maximum, -np.inf), (ops.Minimum, 0.5), (ops.Multiply, 1.0)]
)
def test_padding_of_windows_that_are_alone(case: str, kind: type[Op], init: float) -> None:
    sizes, padding, options, left, margins = ALONE[case]
    module = window(kind, init, sizes, padding, **options)
    assert windows_of(rewritten(module, WINDOWS, [X])) == [(left, margins)]


GAPS: dict[str, tuple[list[int], list[tuple[int, int]], list[int]]] = {
    "one dimension": ([1, 3, 1], [(0, 0), (2, 2), (0, 0)], [1, 3, 1]),
    "part of what is repeated": ([1, 4, 1], [(0, 0), (1, 2), (0, 0)], [1, 4, 1]),
    "two dimensions": ([1, 3, 2], [(0, 0), (2, 2), (1, 0)], [1, 3, 2]),
    "cut": ([1, 2, 3], [(0, 0), (-3, 0), (2, -4)], [1, 2, 3]),
}


@pytest.mark.parametrize("by_pad", [False, True])
@pytest.mark.parametrize("case", GAPS)
def test_windows_that_reach_to_the_next_element(case: str, by_pad: bool) -> None:
    sizes, padding, apart = GAPS[case]
    if not by_pad:
        module = window(ops.Add, 0.0, sizes, padding, base_dilations=apart)
    else:

        def body(b, x):
            fold = region([tensor()] * 2, lambda b, p, q: b.add(ops.Add(p, q)))
            zero, edges = b.add(ops.Constant(np.float32(0))), zip(*padding, strict=True)
            padded = b.add(ops.Pad(x, zero, *edges, [gap - 1 for gap in apart]))
            return b.add(ops.ReduceWindow([padded], [zero], sizes, body=fold))

        module = program_of([tensor(*X.shape)], body)
    assert not windows_of(rewritten(module, WINDOWS, [X]))


@pytest.mark.parametrize(
    "module",
    [
        window(ops.Add, 0.0, [1, 3, 1], [(0, 0), (2, 3), (0, 0)], base_dilations=[1, 3, 1]),  # beyond the last element
        window(ops.Add, 0.0, [1, 3, 1], [(0, 0), (3, 2), (0, 0)], base_dilations=[1, 3, 1]),
        window(ops.Add, 0.0, [1, 4, 1], [(0, 0), (3, 2), (0, 0)], base_dilations=[1, 3, 1]),  # sometimes two elements
        window(ops.Maximum, 0.0, [1, 3, 1], [(0, 0), (2, 2), (0, 0)], base_dilations=[1, 3, 1]),
        window(ops.Add, 1.0, [1, 10, 1], [(0, 0), (1, 2), (0, 0)]),  # each initial value counts
        window(ops.Multiply, 0.5, [1, 10, 1], [(0, 0), (1, 2), (0, 0)]),
        window(ops.Subtract, 0.0, [1, 10, 1], [(0, 0), (1, 2), (0, 0)]),
        window(ops.Add, 0.0, [1, 5, 1], [(0, 0), (2, 2), (0, 0)]),  # several windows
        window(ops.Add, 0.0, [1, 7, 5], [(0, 0), (0, 0), (0, 0)]),
        window(ops.Add, 0.0, [1, 20, 1], [(0, 0), (3, 4), (0, 0)], base_dilations=[1, 2, 1]),
        window(ops.Add, 0.0, [1, 9, 1], [(0, 0), (5, 5), (0, 0)], window_dilations=[1, 2, 1]),
        window(ops.Add, 0.0, [1, 3, 1], [(0, 0), (3, -7), (0, 0)]),  # nothing but padding
    ],
)
def test_what_stays(module: Module) -> None:
    assert windows_of(rewritten(module, WINDOWS, [X])) == windows_of(module)
