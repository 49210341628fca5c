"""Elements that are taken at the same places: what is computed before they are, and that the results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, some
from trivium.compiler.passes.cse import CommonSubexpressions
from trivium.compiler.passes.dce import DeadCode
from trivium.compiler.passes.shared_rows import SharedRows
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import I64, tensor

ROWS, COLUMNS = 5, 6
UPPER, LOWER = np.array([0, 0, 1, 1, 2, 3, 4, 4, 9]), np.array([-1, 1, 1, 2, 2, 4, 4, 0, 3])
LEFT, RIGHT = np.array([0, 1, 1, 2, 3, 5, 7]), np.array([1, 2, 2, 3, 4, 5, 0])


def vector(b, numbers: np.ndarray):
    return b.add(ops.Constant(np.asarray(numbers, np.int64)))


def take(b, x, places, dimension: int):
    shape = x.type.static_shape
    numbers = ops.GatherDimensionNumbers(
        tuple(d for d in range(len(shape)) if d != dimension), (dimension,), (), (), (dimension,), 1
    )
    return b.add(ops.Gather(x, places, numbers, [1 if d == dimension else e for d, e in enumerate(shape)]))


def grid(b, x, rows, columns):
    """Returns the elements of a matrix at all pairs of two vectors."""
    count = rows.type.shape[0], columns.type.shape[0]
    parts = []
    for d, places in enumerate((rows, columns)):
        spread = b.add(ops.BroadcastInDim(places, (d,), result=tensor(*count, of=I64)))
        parts.append(b.add(ops.Reshape(spread, result=tensor(*count, 1, of=I64))))
    numbers = ops.GatherDimensionNumbers((), (0, 1), (), (), (0, 1), 2)
    return b.add(ops.Gather(x, b.add(ops.Concatenate(parts, 2)), numbers, (1, 1)))


def between(b, first, second, weights, dimension: int):
    """Returns first + (second - first) * weights."""
    spread = b.add(ops.BroadcastInDim(weights, (dimension,), result=first.type))
    return b.add(ops.Add(first, b.add(ops.Multiply(b.add(ops.Subtract(second, first)), spread))))


def changed(module: Module, *given: np.ndarray) -> Module:
    """Returns what the pass makes of a module; the results are the same, bit for bit."""
    before = evaluate(module, *given)
    after = module.clone()
    SharedRows().run(after)
    CommonSubexpressions().run(after)
    DeadCode().run(after)
    after.verify()
    for result, wanted in zip(evaluate(after, *given), before, strict=True):
        np.testing.assert_array_equal(result, wanted)
    return after


def shapes(module: Module, kind: type) -> list[tuple[int, ...]]:
    return [op.results[0].type.static_shape for op in module.main.body.block if isinstance(op, kind)]


@pytest.mark.parametrize("turned", [False, True])
def test_columns_of_a_resized_image_are_combined_once(turned: bool) -> None:
    def main(b, x, across, down):
        if turned:
            x = b.add(ops.Transpose(x, (1, 0)))
        upper, lower, left, right = (vector(b, each) for each in (UPPER, LOWER, LEFT, RIGHT))
        lines = [
            between(b, grid(b, x, rows, left), grid(b, x, rows, right), across, 1) for rows in (upper, lower)
        ]  # fmt: skip
        return between(b, *lines, down, 0)

    image = (COLUMNS, ROWS) if turned else (ROWS, COLUMNS)
    module = program_of([tensor(*image), tensor(len(LEFT)), tensor(len(UPPER))], main)
    after = changed(module, some(*image), some(len(LEFT)), some(len(UPPER)))
    # Two columns, combined for each row of the image, then two rows of the results.
    assert shapes(after, ops.Gather) == [(ROWS, 7), (ROWS, 7), (9, 7), (9, 7)]
    assert shapes(after, ops.Multiply) == [(ROWS, 7), (9, 7)]


def test_rows_of_two_arrays() -> None:
    def main(b, x, y, ids):
        return b.add(ops.Multiply(take(b, x, ids, 0), take(b, y, ids, 0)))

    module = program_of([tensor(ROWS, 3), tensor(ROWS, 3), tensor(8, of=I64)], main)
    after = changed(module, some(ROWS, 3), some(ROWS, 3, seed=1), np.array([0, 4, 4, 1, 9, -3, 2, 2]))
    assert shapes(after, ops.Gather) == [(8, 3)]
    assert shapes(after, ops.Multiply) == [(ROWS, 3)]


def test_takes_of_takes() -> None:
    def main(b, x, y, ids):
        left = vector(b, LEFT)
        one, two = (take(b, take(b, each, ids, 0), left, 1) for each in (x, y))
        return b.add(ops.Add(one, two))

    module = program_of([tensor(ROWS, COLUMNS), tensor(ROWS, COLUMNS), tensor(8, of=I64)], main)
    after = changed(module, some(ROWS, COLUMNS), some(ROWS, COLUMNS, seed=1), np.array([0, 4, 4, 1, 9, -3, 2, 2]))
    assert shapes(after, ops.Add) == [(ROWS, COLUMNS)]


def of_fewer_rows(b, x, y):
    ids = vector(b, np.array([4, 1]))
    return b.add(ops.Add(take(b, x, ids, 0), take(b, y, ids, 0)))


def of_other_rows(b, x, y):
    return b.add(ops.Add(take(b, x, vector(b, UPPER), 0), take(b, y, vector(b, LOWER), 0)))


def of_arrays_of_different_extents(b, x, y):
    """Places are clamped to each of them."""
    ids = vector(b, UPPER)
    less = b.add(ops.Slice(y, (0, 0), (ROWS - 1, COLUMNS), (1, 1)))
    return b.add(ops.Add(take(b, x, ids, 0), take(b, less, ids, 0)))


@pytest.mark.parametrize("main", [of_fewer_rows, of_other_rows, of_arrays_of_different_extents])
def test_others_stay(main) -> None:
    module = program_of([tensor(ROWS, COLUMNS), tensor(ROWS, COLUMNS)], main)
    after = changed(module, some(ROWS, COLUMNS), some(ROWS, COLUMNS, seed=1))
    gathers = shapes(module, ops.Gather)
    assert shapes(after, ops.Gather) == gathers
    assert shapes(after, ops.Add) == [gathers[0]]
