"""Sorts by threads that share scratch memory: rows in one launch; tiles of long rows, which are merged in passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import some
from tests.compiler.lowering.test_sorting import TOTAL, lowered, names, sorted_pairs
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import tensor, type_of

SHARED = replace(TARGET, shared_memory_bytes=48 << 10)
SMALL = replace(TARGET, shared_memory_bytes=2 << 10)
"""Groups sort tiles of a few dozen elements."""


@pytest.mark.parametrize("target", [SHARED, SMALL], ids=["rows", "tiles"])
@pytest.mark.parametrize(("shape", "dimension"), [((64,), 0), ((100,), 0), ((3, 131), 1), ((200, 2), 0)])
def test_every_dimension(shape: tuple[int, ...], dimension: int, target: object) -> None:
    """The elements come with their places, and many are equal: a sort that is not stable would show."""
    module, argument = sorted_pairs(shape, dimension, TOTAL), np.round(some(*shape), 1)
    program, expected = lowered(module, target), evaluate(module, argument)  # type: ignore[arg-type]
    for result, wanted in zip(interpret(program, argument), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_launches() -> None:
    assert names(lowered(sorted_pairs((4, 100), 1, TOTAL), SHARED)) == [""]
    tiled = names(lowered(sorted_pairs((4, 200), 1, TOTAL), SMALL))
    assert tiled == ["_operand0", "_operand1", "_tiles", "_merge32", "_merge64", "_merge128", "_end"]


@pytest.mark.parametrize("target", [SHARED, SMALL], ids=["rows", "tiles"])
@pytest.mark.parametrize(("dtype", "descending"), [(np.int32, True), (np.uint8, False), (np.float64, False)])
def test_keys(dtype: type, descending: bool, target: object) -> None:
    argument = np.random.default_rng(0).integers(0, 50, (2, 300)).astype(dtype)
    kind = type_of(argument)
    direction = ops.ComparisonDirection.GT if descending else ops.ComparisonDirection.LT
    order = ops.ComparisonType.TOTALORDER if dtype is np.float64 else None
    less = region(
        [tensor(of=kind.element_type)] * 2, lambda b, x, y: b.add(ops.Compare(x, y, direction, compare_type=order))
    )
    main = Function.build("main", [kind], lambda b, x: b.add(ops.Sort([x], dimension=1, comparator=less)))
    module = Module.build(functions=[main])
    (expected,) = evaluate(module, argument)
    (result,) = interpret(lowered(module, target), argument)  # type: ignore[arg-type]
    np.testing.assert_array_equal(result, expected)
