"""The buffer plan: unnecessary copies are dropped, loops and updates work in place, dead bytes are reused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import expect_same, program_of, some
from tests.compiler.targets import TARGET
from trivium.compiler.lower import lower
from trivium.compiler.program import Copy, Program, walk
from trivium.compiler.verifier import verify
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.errors import CompileError
from trivium.ir.types import I1, I32, tensor


def copies(program: Program) -> int:
    return sum(isinstance(step, Copy) for step in walk(program.steps))


def counted(limit: int):
    def cond(b, i, *rest):
        return b.add(ops.Compare(i, b.add(ops.Constant(np.int32(limit))), ops.ComparisonDirection.LT))

    return cond


def one_more(b, i):
    return b.add(ops.Add(i, b.add(ops.Constant(np.int32(1)))))


def test_results_are_computed_where_the_caller_gets_them():
    program = expect_same(program_of([tensor(4)], lambda b, x: b.add(ops.Tanh(x))), [some(4)])
    assert (copies(program), program.arena_size) == (0, 0)


def test_returned_arguments_are_copied():
    program = expect_same(program_of([tensor(4)], lambda b, x: [x, x]), [some(4)])
    assert copies(program) == 2


def test_one_value_returned_twice():
    def body(b, x):
        y = b.add(ops.Tanh(x))
        return [y, y]

    assert copies(expect_same(program_of([tensor(4)], body), [some(4)])) == 1


def test_reshape_is_free():
    def body(b, x):
        less = region([tensor()] * 2, lambda b, x, y: b.add(ops.Compare(x, y, ops.ComparisonDirection.LT)))
        (ordered,) = b.add(ops.Sort([x], dimension=1, comparator=less))
        return b.add(ops.Reshape(ordered, result=tensor(24)))

    module = program_of([tensor(4, 6)], body)
    program = expect_same(module, [some(4, 6)])
    assert copies(program) == 0


def test_loop_updates_in_place():
    """A scan that writes one row per iteration moves nothing else."""

    def body(b, i, stack):
        row = b.add(ops.Constant(np.ones((1, 8), np.float32)))
        zero = b.add(ops.Constant(np.int32(0)))
        return [one_more(b, i), b.add(ops.DynamicUpdateSlice(stack, row, [i, zero]))]

    def main(b, stack):
        start = b.add(ops.Constant(np.int32(1)))
        types = [tensor(of=I32), stack.type]
        return b.add(ops.While([start, stack], region(types, counted(4)), region(types, body)))[1]

    program = expect_same(program_of([tensor(5, 8)], main), [some(5, 8)])
    inside = [step for step in walk(program.steps) if isinstance(step, Copy) and step.source.nbytes > 8]
    assert len(inside) == 1  # the argument is the caller's: one copy before the loop


def test_loop_that_swaps():
    def main(b, x, y):
        start = b.add(ops.Constant(np.int32(0)))
        types = [start.type, x.type, y.type]
        swapped = region(types, lambda b, i, x, y: [one_more(b, i), y, x])
        return b.add(ops.While([start, x, y], region(types, counted(3)), swapped))[1:]

    expect_same(program_of([tensor(3)] * 2, main), [some(3), some(3, seed=1)])


def test_branches_write_one_result():
    def main(b, pred, x):
        true = region([], lambda b: b.add(ops.Tanh(x)))
        false = region([], lambda b: x)
        return b.add(ops.If(pred, true, false))

    module = program_of([tensor(of=I1), tensor(4)], main)
    for pred in (True, False):
        expect_same(module, [np.array(pred), some(4)])


def test_dead_bytes_are_used_again():
    """A chain of products needs two buffers at a time."""

    def main(b, x):
        for _ in range(8):
            x = b.add(ops.DotGeneral(x, x, ops.DotDimensionNumbers((), (), (1,), (0,))))
        return x

    program = expect_same(program_of([tensor(16, 16)], main), [some(16, 16) / 4])
    assert program.arena_size <= 2 * 16 * 16 * 4


def test_dynamic_shapes_are_named():
    module = program_of([tensor(None, 4)], lambda b, x: b.add(ops.Tanh(x)))
    with pytest.raises(CompileError, match=r"tensor<\?x4xf32>, expected a tensor of static shape"):
        lower(module, TARGET)


def test_sums_are_added_in_place():
    """A loop that accumulates a product overwrites the sum."""

    def body(b, i, total, x):
        product = b.add(ops.DotGeneral(x, x, ops.DotDimensionNumbers((), (), (0,), (0,))))
        return [one_more(b, i), b.add(ops.Add(total, product)), x]

    def main(b, total, x):
        start = b.add(ops.Constant(np.int32(0)))
        types = [start.type, total.type, x.type]
        return b.add(ops.While([start, total, x], region(types, counted(3)), region(types, body)))[1]

    program = expect_same(program_of([tensor(8, 8), tensor(5, 8)], main), [some(8, 8), some(5, 8)])
    assert copies(program) == 2  # the counter and the argument, before the loop
    assert program.arena_size < 8 * 8 * 4


@pytest.mark.parametrize("loops_in_order", [True, False])
def test_rows_are_overwritten_by_what_is_computed_from_them(loops_in_order: bool):
    """Each row of a product less its largest element, in place where the loops over a row run one after the other."""

    def main(b, x):
        product = b.add(ops.DotGeneral(x, x, ops.DotDimensionNumbers((), (), (1,), (0,))))
        larger = region([tensor()] * 2, lambda b, x, y: b.add(ops.Maximum(x, y)))
        low = b.add(ops.Constant(np.float32(-np.inf)))
        (largest,) = b.add(ops.Reduce([product], [low], [1], larger))
        spread = b.add(ops.BroadcastInDim(largest, broadcast_dimensions=(0,), result=product.type))
        rows = b.add(ops.Subtract(product, spread))
        return b.add(ops.DotGeneral(rows, rows, ops.DotDimensionNumbers((), (), (1,), (0,))))

    target = replace(TARGET, loops_in_order=loops_in_order)
    program = expect_same(program_of([tensor(16, 16)], main), [some(16, 16)], target=target)
    verify(program, loops_in_order)
    assert (program.arena_size < 2 * 16 * 16 * 4) == loops_in_order
    if loops_in_order:
        with pytest.raises(CompileError, match="share bytes"):
            verify(program)
