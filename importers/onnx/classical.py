"""Operators of classical machine learning: n-grams and trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import onnx

from trivium.importers.emit import neutral
from trivium.importers.onnx.context import Context, rule
from trivium.importers.onnx.files import array_of
from trivium.importers.onnx.indexing import scattered
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import F32, I32, I64

# N-grams


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


# Trees

MODES = {0: "LE", 1: "LT", 2: "GE", 3: "GT", 4: "EQ", 5: "NE"}
"""How a node compares a feature with its split."""

MEMBER = 6
AVERAGE, SUM, LEAST, LARGEST = range(4)


@rule("ai.onnx.ml::TreeEnsemble")
def tree_ensemble(
    ctx: Context, x: Value, nodes_splits: onnx.TensorProto, nodes_featureids: Sequence[int],
    nodes_modes: onnx.TensorProto, nodes_truenodeids: Sequence[int], nodes_falsenodeids: Sequence[int],
    nodes_trueleafs: Sequence[int], nodes_falseleafs: Sequence[int], leaf_targetids: Sequence[int],
    leaf_weights: onnx.TensorProto, tree_roots: Sequence[int], post_transform: int = 0, aggregate_function: int = SUM,
    nodes_hitrates: onnx.TensorProto | None = None, nodes_missing_value_tracks_true: Sequence[int] | None = None,
    membership_values: onnx.TensorProto | None = None, n_targets: int = 1,
) -> Value:  # fmt: skip
    """TreeEnsemble(X, ...): the leaf that each tree leads to, combined for each target"""
    if post_transform or not 0 <= aggregate_function <= LARGEST:
        ctx.unsupported("post_transform", f"{post_transform}, aggregation {aggregate_function}", "0, and 0 to 3")
    nodes = len(nodes_featureids)
    leads = [
        np.array([at + nodes * is_leaf for at, is_leaf in zip(ids, leafs, strict=True)], np.int64)
        for ids, leafs in ((nodes_truenodeids, nodes_trueleafs), (nodes_falsenodeids, nodes_falseleafs))
    ]
    modes = array_of(nodes_modes, ctx.folder)
    sets = list(_sets(membership_values, ctx.folder, int((modes == MEMBER).sum())))
    missing = np.array(nodes_missing_value_tracks_true or [0] * nodes, bool)
    start = ctx.broadcast(ctx.elements(np.array(tree_roots, np.int64)[None]), (ctx.extent(x, 0), len(tree_roots)))
    splits = array_of(nodes_splits, ctx.folder)

    def step(emit: Context, at: Value) -> Value:
        inner = emit.binary(ops.Minimum, at, emit.scalar(nodes - 1, I64))
        feature = emit.take(emit.elements(np.array(nodes_featureids, np.int64)), inner)
        value = _features(emit, x, feature)
        holds = _holds(emit, value, inner, modes, splits, sets)
        tracks = emit.take(emit.elements(missing), inner)
        holds = emit.binary(ops.Or, holds, emit.binary(ops.And, tracks, emit.compare("NE", value, value)))
        yes, no = (emit.take(emit.elements(lead), inner) for lead in leads)
        is_leaf = emit.compare("GE", at, emit.scalar(nodes, I64))
        return emit.select(is_leaf, at, emit.select(holds, yes, no))

    at = start
    for _ in range(_depth(leads, tree_roots, nodes)):
        at = step(ctx, at)
    leaf = ctx.minus(at, ctx.scalar(nodes, I64))
    weight = ctx.take(ctx.elements(array_of(leaf_weights, ctx.folder)), leaf)
    target = ctx.take(ctx.elements(np.array(leaf_targetids, np.int64)), leaf)
    return _combined(ctx, weight, target, n_targets, aggregate_function)


def _depth(leads: Sequence[np.ndarray], roots: Sequence[int], nodes: int) -> int:
    """Returns the number of steps after which every tree has led to a leaf."""
    reached, depth = np.unique(np.array(roots, np.int64)), 0
    while len(reached := reached[reached < nodes]):
        if depth > nodes:
            raise ValueError("a tree leads back to one of its nodes")
        reached, depth = np.unique(np.concatenate([lead[reached] for lead in leads])), depth + 1
    return depth


def _sets(values: onnx.TensorProto | None, folder: str, count: int) -> Iterator[np.ndarray]:
    """Yields the sets of values, which end with NaN."""
    rest = np.array([], np.float32) if values is None else array_of(values, folder)
    for end in np.flatnonzero(np.isnan(rest))[:count]:
        start = 0 if not (before := np.flatnonzero(np.isnan(rest[:end]))).size else int(before[-1]) + 1
        yield rest[start:end]


def _features(ctx: Context, x: Value, feature: Value) -> Value:
    """Returns the feature of each row that each tree asks for."""
    numbers = ops.GatherDimensionNumbers(
        collapsed_slice_dims=(1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,), start_index_map=(1,),
        index_vector_dim=2,
    )  # fmt: skip
    return ctx.add(ops.Gather(x, ctx.unsqueeze(feature, [2]), numbers, slice_sizes=[1, 1]))


def _holds(
    ctx: Context, value: Value, at: Value, modes: np.ndarray, splits: np.ndarray, sets: Sequence[np.ndarray]
) -> Value:
    """Whether the condition of each node holds."""
    mode = ctx.take(ctx.elements(modes.astype(np.int32)), at)
    split = ctx.take(ctx.elements(splits), at)
    holds = None
    for code in sorted({int(mode) for mode in modes}):
        is_member = code == MEMBER
        found = _is_member(ctx, value, at, modes, sets) if is_member else ctx.compare(MODES[code], value, split)
        is_this = ctx.compare("EQ", mode, ctx.scalar(code, I32))
        holds = found if holds is None else ctx.select(is_this, found, holds)
    assert holds is not None
    return holds


def _is_member(ctx: Context, value: Value, at: Value, modes: np.ndarray, sets: Sequence[np.ndarray]) -> Value:
    table = np.full((len(modes), max(map(len, sets), default=0)), np.nan, value.type.dtype)
    for node, members in zip(np.flatnonzero(modes == MEMBER), sets, strict=True):
        table[node, : len(members)] = members
    same = ctx.compare("EQ", ctx.take(ctx.elements(table), at), ctx.unsqueeze(value, [2]))
    return ctx.reduce(ops.Or, same, [2])


def _combined(ctx: Context, weight: Value, target: Value, count: int, how: int) -> Value:
    """Returns the weights of all trees for each target: their sum, mean, least or largest one, 0 if there are none."""
    shape = (*ctx.extents(weight), count)
    is_this = ctx.compare("EQ", ctx.iota(shape, 2), ctx.unsqueeze(target, [2]))
    op = {LEAST: ops.Minimum, LARGEST: ops.Maximum}.get(how, ops.Add)
    kind = weight.type.element_type
    zero, none = ctx.scalar(0, kind), ctx.scalar(neutral(op, kind), kind)
    found = ctx.reduce(op, ctx.select(is_this, ctx.unsqueeze(weight, [2]), none), [1])
    if how == AVERAGE:
        return ctx.scaled(found, 1 / max(int(weight.type.shape[1]), 1))
    return found if how == SUM else ctx.select(ctx.reduce(ops.Or, is_this, [1]), found, zero)
