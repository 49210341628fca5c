"""Sums of segments of rows, as kernels and as the ops that other compilers know."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.compiler.lowering.running import program_of
from tests.compiler.lowering.test_sorting import lowered, names
from tests.compiler.targets import TARGET
from tests.ir.decompositions.test_decompositions import expand
from trivium.compiler.interpreter import interpret
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import type_of

ADDED = ops.RaggedDotDimensionNumbers((), (), (0,), (0,), (0,), ())
LENGTHS = ([3, 0, 5, 1, 0], [20, 0, 0, 0, 0], [0, 0, 0, 0, 31], [0, 0, 0, 0, 0], [6, 7, 6, 7, 6])


def program(*arrays: np.ndarray) -> Module:
    return program_of([type_of(a) for a in arrays], lambda b, *given: b.add(ops.RaggedDot(*given, ADDED)))


def small_numbers(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Returns numbers whose sums of products are exact."""
    rng = np.random.default_rng(len(shape))
    whole = rng.integers(-2, 3, (2, *shape))
    return (whole[0] + 1j * whole[1] if np.dtype(dtype).kind == "c" else whole[0]).astype(dtype)


@pytest.mark.parametrize("columns", [(), (1,), (3,), (64,), (2, 37)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.int8, np.uint32, np.complex64, bool])
def test_every_type(dtype: type, columns: tuple[int, ...]) -> None:
    rows = small_numbers((31, *columns), dtype)
    for weights in (small_numbers((31,), dtype), small_numbers((31, 1), dtype)):
        module = program(weights, rows, np.int32(LENGTHS[0]))
        compiled, kernels, expanded = trivium.compile(module), lowered(module, TARGET), expand(module.clone())
        for lengths in map(np.int32, LENGTHS):
            given = weights, rows, lengths
            (expected,) = evaluate(module, *given)
            all_found = compiled(*given), interpret(kernels, *given), evaluate(expanded, *given)
            for (found,) in all_found:
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_many_segments_of_gathered_rows(threads: int) -> None:
    """Which are read where they are: neither they nor their products are in memory."""
    rng = np.random.default_rng(0)
    table, weights = rng.normal(size=(500, 48)).astype(np.float32), rng.normal(size=9000).astype(np.float32)
    places, lengths = rng.integers(0, 500, (9000, 1)), rng.multinomial(9000, np.full(3000, 1 / 3000))

    def body(b: Builder, table: Value, places: Value, weights: Value, lengths: Value) -> Value:
        numbers = ops.GatherDimensionNumbers(
            offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1
        )
        return b.add(ops.RaggedDot(weights, b.add(ops.Gather(table, places, numbers, (1, 48))), lengths, ADDED))

    arguments = table, places, weights, lengths
    module = program_of([type_of(a) for a in arguments], body)
    assert names(lowered(module, TARGET)) == ["ragged_dot_0_begin", "ragged_dot_0"]
    (found,) = trivium.compile(module, threads=threads)(*arguments)
    terms = np.float64(weights)[:, None] * table[places[:, 0]]
    expected = np.add.reduceat(np.concatenate([terms, np.zeros((1, 48))]), np.cumsum(lengths) - lengths)
    np.testing.assert_allclose(found, np.where(lengths[:, None] > 0, expected, 0), rtol=1e-4, atol=1e-5)


def test_rows_of_other_segments_do_not_matter() -> None:
    """Not even if they are no numbers."""
    rows = np.full((6, 5), np.nan, np.float32)
    rows[1:3] = 2
    (found,) = trivium.compile(program(rows[:, 0], rows, np.int64([1, 2, 0])))(rows[:, 0], rows, np.int64([1, 2, 0]))
    np.testing.assert_array_equal(found, [[np.nan] * 5, [8.0] * 5, [0.0] * 5])


def test_lengths_that_cannot_be() -> None:
    """Nothing outside of the rows is read."""
    rows, lengths = np.ones((4, 3), np.float32), np.int64([-5, 2, 1 << 62, 3, -(1 << 62)])
    (found,) = trivium.compile(program(rows[:, 0], rows, lengths))(rows[:, 0], rows, lengths)
    assert ((found >= 0) & (found <= 4)).all()


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0,)])
def test_nothing_to_add(shape: tuple[int, ...]) -> None:
    rows, weights, lengths = np.ones(shape, np.float32), np.ones(shape[0], np.float32), np.zeros(2000, np.int64)
    (found,) = trivium.compile(program(weights, rows, lengths))(weights, rows, lengths)
    np.testing.assert_array_equal(found, np.zeros((2000, *shape[1:]), np.float32))
