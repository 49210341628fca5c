"""How often a kernel of rows runs over its row, and what it stores in between."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tests.compiler.fusion.test_fuser import fold, softmax, spread
from tests.compiler.lowering.running import expect_same, program_of, some
from tests.compiler.targets import TARGET
from trivium.compiler.kernel import Scratch, walk
from trivium.compiler.lower import lower
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.types import tensor


def text(module: Module) -> str:
    (kernel,) = lower(module, TARGET).kernels()
    return str(kernel)


def test_reductions_that_do_not_depend_on_each_other_share_a_loop() -> None:
    def body(b, x):
        low, high = fold(b, x, ops.Minimum, math.inf, [1]), fold(b, x, ops.Maximum, -math.inf, [1])
        return b.add(ops.Subtract(high, low))

    module = program_of([tensor(5, 9)], body)
    assert text(module).count("reduction") == 1
    expect_same(module, [some(5, 9)])


def test_reductions_of_what_others_gave_follow_them() -> None:
    module = program_of([tensor(5, 9)], softmax)
    assert text(module).count("reduction") == 2
    expect_same(module, [some(5, 9)])


def test_costly_intermediates_of_several_loops_are_stored() -> None:
    module = program_of([tensor(5, 9)], softmax)
    (kernel,) = lower(module, TARGET).kernels()
    assert str(kernel).count("= exponential") == 1

    small = replace(TARGET, fusion=replace(TARGET.fusion, scratch_row=8))
    (again,) = lower(module, small).kernels()
    assert str(again).count("= exponential") == 2
    assert not any(isinstance(instruction, Scratch) for instruction in walk(again.body))


def test_an_intermediate_that_is_a_result_is_stored_there() -> None:
    def body(b, x):
        power = b.add(ops.Exponential(x))
        return power, b.add(ops.Divide(power, spread(b, fold(b, power, ops.Add, 0, [1]), x, [0])))

    module = program_of([tensor(5, 9)], body)
    (kernel,) = lower(module, TARGET).kernels()
    assert str(kernel).count("= exponential") == 1
    assert not any(isinstance(instruction, Scratch) for instruction in walk(kernel.body))
    expect_same(module, [np.asarray(some(5, 9))])
