"""Control flow and calls to the host, compiled: nested, with captured values, with every kind of exit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import count_up, expect_same, program_of, some, whole
from tests.random_programs.generator import scalar_region
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.types import I1, I32, tensor

LESS = ops.ComparisonDirection.LT


def test_nested_loops_see_values_from_around():
    def main(b, x, y):
        scaled = b.add(ops.Multiply(x, y))

        def inner(b, j, total):
            return [b.add(ops.Add(total, scaled))]

        def outer(b, i, total):
            total = b.add(ops.Tanh(total))
            return count_up(b, i, whole(b, 0), [total], inner)

        return count_up(b, whole(b, 3), whole(b, 0), [y], outer)

    expect_same(program_of([tensor(5)] * 2, main), [some(5), some(5, seed=1)])


def test_loop_that_never_runs():
    def main(b, x):
        return count_up(b, whole(b, 0), whole(b, 0), [x], lambda b, i, v: [b.add(ops.Tanh(v))])

    expect_same(program_of([tensor(5)], main), [some(5)])


def test_loop_whose_limit_is_data():
    def main(b, limit, x):
        return count_up(b, limit, whole(b, 0), [x], lambda b, i, v: [b.add(ops.Add(v, x))])

    module = program_of([tensor(of=I32), tensor(5)], main)
    for limit in (0, 1, 7):
        expect_same(module, [np.array(limit, np.int32), some(5)])


def test_values_that_a_loop_hands_on_are_not_copied():
    def main(b, x, y):
        return count_up(b, whole(b, 2), whole(b, 0), [x, y], lambda b, i, v, w: [b.add(ops.Add(v, w)), w])

    expect_same(program_of([tensor(5)] * 2, main), [some(5), some(5, seed=1)])


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 9])
def test_case(index: int):
    def main(b, index, x):
        branches = [region([], lambda b, op=op: b.add(op(x))) for op in (ops.Tanh, ops.Negate, ops.Abs)]
        return b.add(ops.Case(index, branches))

    expect_same(program_of([tensor(of=I32), tensor(5)], main), [np.array(index, np.int32), some(5)])


@pytest.mark.parametrize("pred", [False, True])
def test_branches_inside_branches(pred: bool):
    def main(b, pred, x):
        def both(b):
            inner = region([], lambda b: b.add(ops.Negate(x)))
            other = region([], lambda b: x)
            (value,) = b.add(ops.If(pred, inner, other))
            return b.add(ops.Add(value, x))

        return b.add(ops.If(pred, region([], both), region([], lambda b: b.add(ops.Tanh(x)))))

    expect_same(program_of([tensor(of=I1), tensor(5)], main), [np.array(pred), some(5)])


def test_tuples_are_their_elements():
    def main(b, x, y):
        pair = b.add(ops.Tuple([x, b.add(ops.Tanh(y))]))
        return b.add(ops.Add(b.add(ops.GetTupleElement(pair, 0)), b.add(ops.GetTupleElement(pair, 1))))

    expect_same(program_of([tensor(5)] * 2, main), [some(5), some(5, seed=1)])


def test_barrier_keeps_several_shapes():
    def main(b, x, y):
        return b.add(ops.OptimizationBarrier([b.add(ops.Tanh(x)), y]))

    expect_same(program_of([tensor(5), tensor(2, 3)], main), [some(5), some(2, 3)])


def test_region_that_captures_a_value():
    """A reduction whose body reads a scalar from outside."""

    def main(b, x, scale):
        start = b.add(ops.Constant(np.float32(0)))
        body = region([tensor()] * 2, lambda b, total, term: b.add(ops.Maximum(total, b.add(ops.Minimum(term, scale)))))
        (top,) = b.add(ops.Reduce([x], [start], [1], body))
        return b.add(ops.Add(top, b.add(ops.Reduce([x], [start], [1], scalar_region(ops.Add)))[0]))

    expect_same(program_of([tensor(4, 5), tensor()], main), [some(4, 5), np.array(0.3, np.float32)])
