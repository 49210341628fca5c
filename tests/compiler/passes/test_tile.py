"""Tiling: attention of every form computes the same bits in tiles, and no value as large as the scores remains."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.passes.patterns.running import splat
from tests.random_programs.generator import scalar_region
from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.tile import Tile
from trivium.compiler.pipeline import CLEAN_UP
from trivium.compiler.target import TileSizes
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import BF16, F32, I1, I64, TensorType, tensor

HEADS, ROWS, COLUMNS, DEPTH = 3, 10, 12, 2
SCORES = tensor(HEADS, ROWS, COLUMNS)
QUERY, KEY, VALUE = tensor(HEADS, ROWS, DEPTH), tensor(HEADS, COLUMNS, DEPTH), tensor(HEADS, COLUMNS, DEPTH)

SIZES = {
    "heads": TileSizes(largest=1000, tile=480, rows=2),
    "rows that are no multiple": TileSizes(largest=400, tile=150, rows=3),
    "single rows": TileSizes(largest=100, tile=1, rows=1),
}

Middle = Callable[[Builder, Value], Value]


def fold(b: Builder, scores: Value, op: type, start: float) -> Value:
    """A reduction of the last dimension, broadcast along it again."""
    kind = scores.type
    last = kind.rank - 1
    init = b.add(ops.Constant(np.asarray(start, kind.dtype)))
    (folded,) = b.add(ops.Reduce([scores], [init], [last], scalar_region(op, kind.element_type)))
    return b.add(ops.BroadcastInDim(folded, broadcast_dimensions=tuple(range(last)), result=kind))


def softmax(b: Builder, scores: Value) -> Value:
    power = b.add(ops.Exponential(b.add(ops.Subtract(scores, fold(b, scores, ops.Maximum, -np.inf)))))
    return b.add(ops.Divide(power, fold(b, power, ops.Add, 0.0)))


def causal(b: Builder, scores: Value) -> Value:
    positions = scores.type.with_element(I64)
    row, column = (b.add(ops.Iota(iota_dimension=d, result=positions)) for d in (1, 2))
    mask = b.add(ops.Compare(row, column, comparison_direction="GE"))
    return softmax(b, b.add(ops.Select(mask, scores, splat(b, -1e9, scores.type))))


def padding(b: Builder, scores: Value) -> Value:
    """A constant mask of the keys of each head."""
    mask = b.add(ops.Constant(np.arange(HEADS * COLUMNS).reshape(HEADS, COLUMNS) % 5 != 0))
    kept = b.add(ops.BroadcastInDim(mask, broadcast_dimensions=(0, 2), result=scores.type.with_element(I1)))
    return softmax(b, b.add(ops.Select(kept, scores, splat(b, -1e9, scores.type))))


def narrow(b: Builder, scores: Value) -> Value:
    weights = softmax(b, scores)
    return b.add(ops.Convert(b.add(ops.Convert(weights, result=SCORES.with_element(BF16))), result=SCORES))


def reversed_keys(b: Builder, scores: Value) -> Value:
    return b.add(ops.Reverse(b.add(ops.Tanh(scores)), dimensions=(2,)))


def cut_and_padded(b: Builder, scores: Value) -> Value:
    cut = b.add(ops.Slice(scores, (0, 0, 2), (HEADS, ROWS, COLUMNS), (1, 1, 1)))
    return b.add(ops.Pad(cut, b.add(ops.Constant(np.float32(0))), (0, 0, 0), (0, 0, 2), (0, 0, 0)))


MIDDLES = [softmax, causal, padding, narrow, reversed_keys, cut_and_padded]
SWAPPED = ops.DotDimensionNumbers((0,), (0,), (2,), (2,))
WEIGHTED = ops.DotDimensionNumbers((0,), (0,), (2,), (1,))
TRANSPOSED = ops.DotDimensionNumbers((0,), (0,), (1,), (2,))


def attention(middle: Middle, transposed: bool = False) -> Module:
    """Scores, ops on these, and the sums that they weight: of values, or as rows of a transposed result."""

    def body(b: Builder, query: Value, key: Value, value: Value) -> Value:
        weights = middle(b, b.add(ops.DotGeneral(query, key, SWAPPED)))
        if not transposed:
            return b.add(ops.DotGeneral(weights, value, WEIGHTED))
        flipped = b.add(ops.Transpose(weights, (0, 2, 1)))
        return b.add(ops.DotGeneral(value, flipped, ops.DotDimensionNumbers((0,), (0,), (1,), (1,))))

    return Module.build(functions=[Function.build("main", [QUERY, KEY, VALUE], body)])


def tiled(module: Module, sizes: TileSizes) -> Module:
    return run_passes(module.clone(), (CLEAN_UP, Tile(sizes), CLEAN_UP), verify=True)


def largest(module: Module) -> int:
    """Returns the bytes of the largest value that is not a constant."""
    kinds = [kind for op in module.walk() if not isinstance(op, ops.Constant) for kind in op.result_types]
    return max(kind.size * kind.dtype.itemsize for kind in kinds if isinstance(kind, TensorType))


def given(module: Module) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [
        generator.standard_normal(kind.static_shape).astype(kind.dtype) for kind in module.main.function_type.inputs
    ]


def require_same(before: Module, after: Module) -> None:
    for wanted, found in zip(evaluate(before, *given(before)), evaluate(after, *given(before)), strict=True):
        assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize(("middle", "transposed"), list(itertools.product(MIDDLES, (False, True))))
def test_attention(middle: Middle, transposed: bool, sizes: TileSizes) -> None:
    before = attention(middle, transposed)
    after = tiled(before, sizes)
    require_same(before, after)
    assert largest(after) < largest(before)


def test_one_value_as_both_factors_is_needed_in_parts_and_whole() -> None:
    numbers = ops.DotDimensionNumbers((), (), (1,), (1,))

    def body(b: Builder, x: Value, y: Value) -> Value:
        return b.add(ops.DotGeneral(b.add(ops.Tanh(b.add(ops.DotGeneral(x, x, numbers)))), y, numbers))

    before = Module.build(functions=[Function.build("main", [tensor(12, 2), tensor(3, 12)], body)])
    after = tiled(before, SIZES["single rows"])
    require_same(before, after)
    assert largest(after) < largest(before)


def unchanged(body: Callable[..., object], *kinds: TensorType, sizes: TileSizes = SIZES["single rows"]) -> bool:
    return not Tile(sizes).run(Module.build(functions=[Function.build("main", kinds, body)]))


def test_small_scores_remain() -> None:
    sizes = TileSizes(largest=SCORES.size * 4, tile=64, rows=1)
    assert not Tile(sizes).run(attention(softmax))


def test_a_tile_is_as_large_as_what_each_tile_reads_again() -> None:
    """Two layers: every tile of rows reads both weights, which may be larger than what is in between."""
    rows, inner, outer = 64, 16, 8
    numbers = ops.DotDimensionNumbers((), (), (1,), (0,))
    kinds = tensor(rows, outer), tensor(outer, inner), tensor(inner, outer)

    def body(b: Builder, x: Value, up: Value, down: Value) -> Value:
        hidden = b.add(ops.Tanh(b.add(ops.DotGeneral(x, up, numbers))))
        return b.add(ops.DotGeneral(hidden, down, numbers))

    before = Module.build(functions=[Function.build("main", kinds, body)])
    weights = 4 * 2 * outer * inner
    sizes = TileSizes(largest=64, tile=64, rows=1)
    after = tiled(before, sizes)
    require_same(before, after)
    products = [op for op in after.walk() if isinstance(op, ops.DotGeneral)]
    assert [op.result.type.static_shape for op in products] == [(weights // (4 * inner), inner), (16, outer)]
    assert unchanged(body, tensor(16, outer), *kinds[1:], sizes=sizes)


def test_sizes_grow_with_threads_up_to_a_number() -> None:
    sizes = TileSizes(largest=100, tile=10, rows=3, threads=4)
    assert [sizes.shared(threads) for threads in (1, 2, 4, 64)] == [
        TileSizes(100 * n, 10 * n, rows=3) for n in (1, 2, 4, 4)
    ]


def test_scores_that_are_needed_elsewhere_remain() -> None:
    def body(b: Builder, query: Value, key: Value, value: Value) -> list[Value]:
        scores = b.add(ops.DotGeneral(query, key, SWAPPED))
        return [b.add(ops.DotGeneral(scores, value, WEIGHTED)), scores]

    assert unchanged(body, QUERY, KEY, VALUE)


def test_a_sum_over_rows_needs_all_of_them() -> None:
    """The second product sums over the rows, and the sum before it over the heads."""

    def body(b: Builder, query: Value, key: Value, value: Value) -> Value:
        scores = b.add(ops.DotGeneral(query, key, SWAPPED))
        zero = b.add(ops.Constant(np.float32(0)))
        (summed,) = b.add(ops.Reduce([scores], [zero], [0], scalar_region(ops.Add, F32)))
        spread = b.add(ops.BroadcastInDim(summed, broadcast_dimensions=(1, 2), result=SCORES))
        sorted_ = b.add(ops.Reverse(b.add(ops.Add(scores, spread)), dimensions=(0, 2)))
        return b.add(ops.DotGeneral(sorted_, value, ops.DotDimensionNumbers((0,), (0,), (1,), (1,))))

    assert unchanged(body, QUERY, KEY, tensor(HEADS, ROWS, DEPTH))
