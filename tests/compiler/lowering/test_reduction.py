"""Folds keep the order of their terms if the combiner needs it, and otherwise run in any order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import expect_same, program_of
from trivium.compiler.kernel import Loop, walk
from trivium.compiler.program import Program
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.types import I32, tensor

GT, EQ, GE, LT = (ops.ComparisonDirection[name] for name in ("GT", "EQ", "GE", "LT"))


def product(b, a, c, e, f):
    """Composes the affine maps x -> a * x + c and x -> e * x + f, applying the second one first: associative, not
    commutative."""
    return [b.add(ops.Multiply(a, e)), b.add(ops.Add(b.add(ops.Multiply(a, f)), c))]


def first_greatest(b, value, payload, other, others):
    takes = b.add(ops.Compare(value, other, GE))
    return [b.add(ops.Select(takes, value, other)), b.add(ops.Select(takes, payload, others))]


def argmax(b, value, index, other, others):
    tie = b.add(ops.And(b.add(ops.Compare(value, other, EQ)), b.add(ops.Compare(index, others, LT))))
    takes = b.add(ops.Or(b.add(ops.Compare(value, other, GT)), tie))
    return [b.add(ops.Select(takes, value, other)), b.add(ops.Select(takes, index, others))]


def reduced(combiner, inits: tuple[int, int], *dimensions: int) -> Program:
    shape = (3, 40, 2)
    kind = tensor(*shape, of=I32)

    def body(b, x, y):
        starts = [b.add(ops.Constant(np.int32(init))) for init in inits]
        return b.add(ops.Reduce([x, y], starts, dimensions, region([tensor(of=I32)] * 4, combiner)))

    rng = np.random.default_rng(0)
    return expect_same(program_of([kind, kind], body), [rng.integers(-2, 3, shape, np.int32) for _ in range(2)])


def loops(program: Program) -> set[str]:
    return {i.kind for kernel in program.kernels() for i in walk(kernel.body) if isinstance(i, Loop)}


@pytest.mark.parametrize("dimensions", [(1,), (0, 1), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize(("combiner", "inits"), [(product, (1, 0)), (first_greatest, (-9, 0))])
def test_terms_are_folded_in_order(combiner, inits, dimensions):
    assert "reduction" not in loops(reduced(combiner, inits, *dimensions))


def test_what_commutes_is_folded_in_any_order():
    assert "sequential" not in loops(reduced(argmax, (-9, 99), 1))


def test_a_combiner_may_compute_with_tensors():
    """Computes the greater of two numbers as a reduction of both."""
    scalar = tensor(of=I32)

    def greater(b, x, y):
        pair = [b.add(ops.Reshape(value, result=tensor(1, of=I32))) for value in (x, y)]
        body = region([scalar] * 2, lambda b, x, y: b.add(ops.Maximum(x, y)))
        return b.add(ops.Reduce([b.add(ops.Concatenate(pair, 0))], [x], [0], body))[0]

    def body(b, x):
        start = b.add(ops.Constant(np.int32(-99)))
        return b.add(ops.Reduce([x], [start], [1], region([scalar] * 2, greater)))

    expect_same(
        program_of([tensor(5, 40, of=I32)], body), [np.random.default_rng(0).integers(-50, 50, (5, 40), np.int32)]
    )
