"""N-grams."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trivium.importers.onnx.context import Context, rule
from trivium.importers.onnx.indexing import scattered
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import F32, I64


@rule("TfIdfVectorizer")
def tf_idf(
    ctx: Context, x: Value, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
    ngram_counts: Sequence[int], ngram_indexes: Sequence[int], pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (), weights: Sequence[float] = (),
) -> Value:  # fmt: skip
    """TfIdfVectorizer(X, ...): how often sequences of a pool occur in each row, with up to so many left out between"""
    if pool_strings or mode not in ("TF", "IDF", "TFIDF"):
        ctx.unsupported("mode", f"{mode}, {len(pool_strings)} strings", "TF, IDF or TFIDF of numbers")
    if any(not 0 <= a <= b for a, b in pairwise([*ngram_counts, len(pool_int64s)])):
        raise Error(f"ngram_counts has {list(ngram_counts)}, expected places in the pool, which do not decrease")
    lengths = [(b - a) // size for size, (a, b) in enumerate(pairwise([*ngram_counts, len(pool_int64s)]), start=1)]
    if sum(lengths) > len(ngram_indexes) or min(ngram_indexes, default=-1) < 0:
        raise Error(f"ngram_indexes has {list(ngram_indexes)}, expected a column for each of {sum(lengths)} sequences")
    is_flat = x.type.rank == 1
    rows = ctx.convert(ctx.unsqueeze(x, [0]) if is_flat else x, I64)
    count = max(ngram_indexes) + 1
    total = ctx.full((ctx.extent(rows, 0), count), 0, F32)
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=(0,), inserted_window_dims=(1,), scatter_dims_to_operand_dims=(1,), index_vector_dim=1
    )
    for length, grams in _pools(pool_int64s, ngram_counts, ngram_indexes).items():
        if not min_gram_length <= length <= max_gram_length:
            continue
        columns = ctx.elements(np.array(list(grams.values()), np.int64)[:, None])
        for step in range(1, max_skip_count + 2 if length > 1 else 2):
            if (found := _occurrences(ctx, rows, np.array(list(grams)), step)) is None:
                break  # the rows are too short, for longer steps as well
            total = scattered(ctx, total, columns, found, numbers, "add")
    if mode != "TF":
        factors = np.zeros(count, np.float32)
        factors[list(ngram_indexes)] = weights or 1
        counted = ctx.convert(ctx.compare("GT", total, ctx.full_like(total, 0)), F32) if mode == "IDF" else total
        total = ctx.times(counted, ctx.elements(factors))
    return ctx.squeeze(total, [0]) if is_flat else total


def _pools(pool: Sequence[int], starts: Sequence[int], columns: Sequence[int]) -> dict[int, dict[tuple[int, ...], int]]:
    """Returns the sequences of each length with the columns where they are counted; the last one of equal ones."""
    found: dict[int, dict[tuple[int, ...], int]] = {}
    remaining = iter(columns)
    for length, (start, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), start=1):
        grams = np.array(pool[start : end - (end - start) % length], np.int64).reshape(-1, length).tolist()
        if grams:
            found[length] = {tuple(gram): next(remaining) for gram in grams}
    return found


def _occurrences(ctx: Context, rows: Value, grams: np.ndarray, step: int) -> Value | None:
    """Returns how often each sequence occurs in each row with every `step`-th element; `None` if none can."""
    count, length = grams.shape
    width = rows.type.shape[1]
    if width is None:
        ctx.unsupported("X", f"type {rows.type}", "rows whose length is known")
    places = width - (length - 1) * step
    if places < 1:
        return None
    same = None
    for index in range(length):
        window = ctx.unsqueeze(ctx.slice(rows, 1, index * step, index * step + places), [2])
        here = ctx.compare("EQ", window, ctx.elements(grams[:, index].reshape(1, 1, count)))
        same = here if same is None else ctx.binary(ops.And, same, here)
    assert same is not None
    return ctx.reduce(ops.Add, ctx.convert(same, F32), [1])
