"""Products of groups of rows: loops over the groups compute what the interpreter does, whatever the sizes are."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.compiler.lowering.running import program_of
from trivium.compiler.passes.ragged_products import FEWEST, SUMMED_ROWS, RaggedProducts
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import type_of

ROWS = ops.RaggedDotDimensionNumbers((), (), (1,), (1,), (0,), (0,))
TURNED = ops.RaggedDotDimensionNumbers((), (), (1,), (2,), (0,), (0,))
SUMS = ops.RaggedDotDimensionNumbers((), (), (0,), (0,), (0,), ())


def program(numbers: ops.RaggedDotDimensionNumbers, *arrays: np.ndarray) -> Module:
    return program_of([type_of(a) for a in arrays], lambda b, *given: b.add(ops.RaggedDot(*given, numbers)))


def operands(numbers: ops.RaggedDotDimensionNumbers, rows: int, groups: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    shapes = {ROWS: (groups, 5, 7), TURNED: (groups, 7, 5), SUMS: (rows, 7)}
    return [rng.integers(-4, 5, shape).astype(dtype) for shape in ((rows, 5), shapes[numbers])]


def sizes_of(rows: int, groups: int) -> Iterator[np.ndarray]:
    """Groups of all sizes, some of them empty, that are fewer rows than there are, as many, or more."""
    rng = np.random.default_rng(groups)
    for total in (0, rows // 2, rows, rows + 3):
        ends = np.sort(rng.integers(0, total + 1, groups - 1))
        yield np.diff(np.concatenate([[0], ends, [total]]))
    yield np.eye(groups, dtype=int)[groups // 2] * rows


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32])
@pytest.mark.parametrize("rows", [1, 6, 31, 5 * SUMMED_ROWS[1] + 37])
@pytest.mark.parametrize("numbers", [ROWS, TURNED, SUMS])
def test_groups_of_all_sizes(numbers: ops.RaggedDotDimensionNumbers, rows: int, dtype: type) -> None:
    groups = FEWEST + 1
    lhs, rhs = operands(numbers, rows, groups, dtype)
    for kind in (np.int32, np.int64):
        sizes = np.zeros(groups, kind)
        module = program(numbers, lhs, rhs, sizes)
        after = module.clone()
        assert RaggedProducts(registers=32).run(after)
        after.verify()
        compiled = trivium.compile(module)
        for given in sizes_of(rows, groups):
            arguments = lhs, rhs, given.astype(kind)
            (expected,) = evaluate(module, *arguments)
            for found in (evaluate(after, *arguments)[0], compiled(*arguments)[0]):
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(
                    found.astype(np.float64),
                    expected.astype(np.float64),
                    rtol=8e-3 if dtype == ml_dtypes.bfloat16 else 0,
                )


def test_rows_of_other_groups_do_not_matter() -> None:
    """Not even if they are no numbers."""
    lhs, rhs = operands(SUMS, 9, 4, np.float32)
    rhs[5:] = np.nan
    module = program(SUMS, lhs, rhs, np.zeros(4, np.int32))
    found = trivium.compile(module)(lhs, rhs, np.array([2, 3, 0, 0], np.int32))[0]
    np.testing.assert_array_equal(found[0], lhs[:2].T @ rhs[:2])
    np.testing.assert_array_equal(found[1], lhs[2:5].T @ rhs[2:5])


def test_matrices_are_not_transposed_as_a_whole() -> None:
    lhs, rhs = operands(TURNED, 9, 4, np.float32)

    def body(b, lhs, rhs, sizes):
        return b.add(ops.RaggedDot(lhs, b.add(ops.Transpose(rhs, (0, 2, 1))), sizes, ROWS))

    sizes = np.array([2, 0, 4, 3])
    module = program_of([type_of(a) for a in (lhs, rhs, sizes)], body)
    compiled = trivium.compile(module)
    np.testing.assert_array_equal(compiled(lhs, rhs, sizes)[0], evaluate(module, lhs, rhs, sizes)[0])
    assert "transpose" not in compiled.stage("graph")


def test_few_groups_are_written_out() -> None:
    lhs, rhs = operands(ROWS, 6, FEWEST - 1, np.float32)
    assert not RaggedProducts(registers=32).run(program(ROWS, lhs, rhs, np.zeros(FEWEST - 1, np.int32)))


def test_batches_are_written_out() -> None:
    numbers = ops.RaggedDotDimensionNumbers((0,), (1,), (2,), (2,), (1,), (0,))
    lhs, rhs = np.ones((2, 6, 5), np.float32), np.ones((4, 2, 5, 7), np.float32)
    assert not RaggedProducts(registers=32).run(program(numbers, lhs, rhs, np.zeros((2, 4), np.int32)))
