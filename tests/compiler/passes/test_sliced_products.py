"""Products of rows that a loop reads: which of them are computed before it, and that the results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, some
from trivium.compiler.passes.sliced_products import MANY_ROWS, SlicedProducts
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import I32, tensor

ROWS, W = (6, 2, 4), (4, 3)


def looped(compute, shapes=(ROWS, W), turns: int = 6, step: int = 1, by: str = "LT") -> Module:
    """Returns a loop that sums up `compute(b, i, x, y)`, where the body returns y unchanged."""

    def main(b, x, y):
        def number(b, value):
            return b.add(ops.Constant(np.int32(value)))

        total = b.add(ops.Constant(np.zeros((2, 3), np.float32)))
        types = [tensor(of=I32), total.type, y.type]
        cond = region(types, lambda b, i, *_: b.add(ops.Compare(i, number(b, turns), ops.ComparisonDirection(by))))

        def body(b, i, total, y):
            found = compute(b, i, x, y)
            sums = b.add(ops.Add(total, b.add(ops.Reshape(found, result=total.type))))
            return [b.add(ops.Add(i, number(b, step))), sums, y]

        return b.add(ops.While([number(b, 0), total, y], cond, region(types, body)))[1]

    return program_of([tensor(*shape) for shape in shapes], main)


def row(b, i, x, dimension: int = 0, dropped: bool = True):
    zero = b.add(ops.Constant(np.int32(0)))
    sizes = [1 if d == dimension else extent for d, extent in enumerate(x.type.static_shape)]
    starts = [i if d == dimension else zero for d in range(x.type.rank)]
    part = b.add(ops.DynamicSlice(x, starts, sizes))
    shape = [extent for d, extent in enumerate(sizes) if d != dimension]
    return b.add(ops.Reshape(part, result=tensor(*shape))) if dropped else part


def dot(b, x, y, *numbers):
    return b.add(ops.DotGeneral(x, y, ops.DotDimensionNumbers(*numbers)))


def is_moved(module: Module) -> bool:
    """Whether the loop has no product any more; its results are the same."""
    given = [some(*argument.type.static_shape) for argument in module.main.arguments]
    before = evaluate(module, *given)
    SlicedProducts().run(module)
    module.verify()
    np.testing.assert_allclose(evaluate(module, *given)[0], before[0], rtol=1e-5)
    (loop,) = (op for op in module.main.body.block if isinstance(op, ops.While))
    return not any(isinstance(op, ops.DotGeneral) for op in loop.body.block)


def product(b, i, x, y):
    return dot(b, row(b, i, x), y, (), (), (1,), (0,))


MOVED = {
    "rows on the left": (product, (ROWS, W)),
    "rows on the right": (lambda b, i, x, y: dot(b, y, row(b, i, x), (), (), (0,), (1,)), ((6, 2, 4), (4, 3))),
    "columns": (lambda b, i, x, y: dot(b, row(b, i, x, 2), y, (), (), (1,), (0,)), ((2, 4, 6), W)),
    "in the middle": (lambda b, i, x, y: dot(b, row(b, i, x, 1), y, (), (), (0,), (1,)), ((4, 6, 2), (3, 4))),
    "with a dimension of one": (
        lambda b, i, x, y: dot(b, row(b, i, x, dropped=False), y, (), (), (2,), (0,)), (ROWS, W),
    ),
    "batches": (lambda b, i, x, y: dot(b, row(b, i, x), y, (0,), (0,), (1,), (1,)), ((6, 2, 4), (2, 4, 3))),
    "from the last one": (
        lambda b, i, x, y: product(b, b.add(ops.Subtract(b.add(ops.Constant(np.int32(5))), i)), x, y), (ROWS, W),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
def test_products_of_rows_move(name: str) -> None:
    compute, shapes = MOVED[name]
    assert is_moved(looped(compute, shapes))


def test_several_steps_in_a_turn() -> None:
    def compute(b, i, x, y):
        following = b.add(ops.Add(i, b.add(ops.Constant(np.int32(1)))))
        return b.add(ops.Add(product(b, i, x, y), product(b, following, x, y)))

    assert is_moved(looped(compute, step=2))


def with_many_rows() -> Module:
    """The rows keep the processor busy."""

    def compute(b, i, x, y):
        found = dot(b, row(b, i, x), y, (), (), (1,), (0,))
        return b.add(ops.Slice(found, (0, 0), (2, 3), (1, 1)))

    return looped(compute, ((6, MANY_ROWS + 1, 4), W))


def with_large_results() -> Module:
    def compute(b, i, x, y):
        found = dot(b, row(b, i, x), y, (), (), (1,), (0,))
        return b.add(ops.Slice(found, (0, 0), (2, 3), (1, 1)))

    return looped(compute, ((6, 2, 4), (4, 20)))


def with_a_row_that_is_summed() -> Module:
    return looped(lambda b, i, x, y: dot(b, row(b, i, x, dropped=False), y, (), (), (0,), (0,)), ((6, 1, 1), (1, 2, 3)))


STAYING = {
    "few of many rows": lambda: looped(product, turns=2),
    "for an unknown time": lambda: looped(product, by="LE"),
    "many rows": with_many_rows,
    "large results": with_large_results,
    "a row that is summed": with_a_row_that_is_summed,
}


@pytest.mark.parametrize("name", STAYING)
def test_other_products_stay(name: str) -> None:
    assert not is_moved(STAYING[name]())
