"""Rows of few elements are sorted in one launch without inner loops, stably, along any dimension."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, some
from tests.compiler.lowering.test_sorting import (
    LESS,
    TOTAL,
    expect_sorted,
    first_of_sorted,
    lowered,
    sorted_pairs,
)
from tests.compiler.targets import TARGET
from trivium.compiler.kernel import Loop
from trivium.compiler.kernel.structure import walk
from trivium.compiler.program import Program
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Module
from trivium.ir.types import BF16, F32, I1, I8, TensorType, Type, tensor


def loops(program: Program) -> list[int]:
    return [sum(isinstance(i, Loop) for i in walk(kernel.body)) for kernel in program.kernels()]


@pytest.mark.parametrize(
    ("shape", "dimension"),
    [((16, 2), 1), ((100, 9), 1), ((16, 12), 1), ((7, 40), 0), ((3, 5, 17), 1), ((20, 3, 4), 2), ((2, 3, 40), 0)],
    ids=str,
)
def test_equal_elements_stay_in_order(shape: tuple[int, ...], dimension: int) -> None:
    module, argument = sorted_pairs(shape, dimension, TOTAL), np.round(2 * some(*shape))
    expect_sorted(module, argument, TARGET)
    assert loops(lowered(module, TARGET)) == [1]


@pytest.mark.parametrize("element", [F32, BF16, I8, I1], ids=str)
def test_elements_of_every_kind(element: Type) -> None:
    kind = tensor(50, 5, of=element)
    less = region([tensor(of=element)] * 2, lambda b, p, q: b.add(ops.Compare(p, q, LESS)))
    module = program_of([kind], lambda b, x: b.add(ops.Sort([x], dimension=1, comparator=less)))
    expect_sorted(module, np.random.default_rng(0).integers(-2, 3, (50, 5)).astype(kind.dtype), TARGET)


def test_nan_and_zeros_have_a_place_in_total_order() -> None:
    less = region([tensor()] * 2, lambda b, p, q: b.add(ops.Compare(p, q, LESS, compare_type=TOTAL)))
    module = program_of([tensor(20, 6)], lambda b, x: b.add(ops.Sort([x], dimension=1, comparator=less)))
    every = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, -1.0, 1e-40]
    expect_sorted(module, np.random.default_rng(0).choice(np.float32(every), (20, 6)), TARGET)


def test_two_keys_of_which_the_second_one_decides_between_equal_ones() -> None:
    def less(b, p, q, r, s):
        first, same = b.add(ops.Compare(p, q, LESS)), b.add(ops.Compare(p, q, ops.ComparisonDirection.EQ))
        second = b.add(ops.And(same, b.add(ops.Compare(r, s, LESS))))
        return b.add(ops.Or(first, second))

    kind = tensor(40, 7, of=I8)
    by_both = region([tensor(of=I8)] * 4, less)
    module = program_of(
        [kind], lambda b, x: b.add(ops.Sort([x, b.add(ops.Negate(x))], dimension=1, comparator=by_both))
    )
    expect_sorted(module, np.random.default_rng(0).integers(0, 3, (40, 7)).astype(np.int8), TARGET)


@pytest.mark.parametrize("descending", [False, True])
def test_only_the_first_elements_are_put_in_order(descending: bool) -> None:
    module = first_of_sorted((64, 12), 1, (5, 3), descending)
    expect_sorted(module, np.round(2 * some(64, 12)), TARGET)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8])
@pytest.mark.parametrize("k", [1, 2, 8])
def test_the_greatest_elements_and_their_places(k: int, dtype: type) -> None:
    kind: TensorType = tensor(33, 8).with_element({np.float32: F32, ml_dtypes.bfloat16: BF16, np.int8: I8}[dtype])
    module = program_of([kind], lambda b, x: list(b.add(ops.TopK(x, k=k))))
    expect_sorted(module, np.random.default_rng(0).integers(-3, 4, (33, 8)).astype(dtype), TARGET)
    assert max(loops(lowered(module, TARGET))) == 1


@pytest.mark.parametrize("shape", [(4, 9), (100, 17), (1, 3)])
def test_others_are_sorted_in_loops(shape: tuple[int, int]) -> None:
    module: Module = sorted_pairs(shape, 1, TOTAL)
    assert max(loops(lowered(module, TARGET))) > 1
