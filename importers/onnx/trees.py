"""Ensembles of decision trees, by their attributes of all versions of `ai.onnx.ml`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx

from trivium.importers.onnx.context import Context, require_same_length, rule
from trivium.importers.onnx.files import array_of
from trivium.importers.onnx.forests import AGGREGATIONS, Forest, Nodes, Numbered, Weights, forest_of, numbered
from trivium.importers.onnx.scores import TRANSFORMS, labels_of, require_transform, rows_of, transformed
from trivium.importers.onnx.tree_classes import classified
from trivium.importers.onnx.tree_walk import combined, reached_leaves
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import F32, F64, ElementType


@rule("ai.onnx.ml::TreeEnsemble")
def tree_ensemble(
    ctx: Context, x: Value, nodes_splits: onnx.TensorProto, nodes_featureids: Sequence[int],
    nodes_modes: onnx.TensorProto, nodes_truenodeids: Sequence[int], nodes_falsenodeids: Sequence[int],
    nodes_trueleafs: Sequence[int], nodes_falseleafs: Sequence[int], leaf_targetids: Sequence[int],
    leaf_weights: onnx.TensorProto, tree_roots: Sequence[int], post_transform: int = 0, aggregate_function: int = 1,
    nodes_hitrates: onnx.TensorProto | None = None, nodes_missing_value_tracks_true: Sequence[int] = (),
    membership_values: onnx.TensorProto | None = None, n_targets: int = 1,
) -> Value:  # fmt: skip
    """TreeEnsemble(X, ...): the leaf that each tree leads to, combined for each target"""
    for name, number, known in (
        ("post_transform", post_transform, TRANSFORMS), ("aggregate_function", aggregate_function, AGGREGATIONS),
    ):  # fmt: skip
        if not 0 <= number < len(known):
            raise Error(f"{name} has {number}, expected 0 to {len(known) - 1}")
    splits, weights, modes = (array_of(t, ctx.folder).reshape(-1) for t in (nodes_splits, leaf_weights, nodes_modes))
    require_same_length(
        nodes_splits=splits, nodes_featureids=nodes_featureids, nodes_modes=modes, nodes_truenodeids=nodes_truenodeids,
        nodes_falsenodeids=nodes_falsenodeids, nodes_trueleafs=nodes_trueleafs, nodes_falseleafs=nodes_falseleafs,
        nodes_missing_value_tracks_true=nodes_missing_value_tracks_true or nodes_featureids,
    )  # fmt: skip
    require_same_length(leaf_weights=weights, leaf_targetids=leaf_targetids)
    leaves, kind = len(weights), _kind(x, splits, weights)
    on_true, on_false = (
        _places(name, ids, is_leaf, leaves, len(splits))
        for name, ids, is_leaf in (
            ("nodes_truenodeids", nodes_truenodeids, nodes_trueleafs),
            ("nodes_falsenodeids", nodes_falsenodeids, nodes_falseleafs),
        )
    )
    tracks = nodes_missing_value_tracks_true or [0] * len(splits)
    sets = list(_sets(np.array([]) if membership_values is None else array_of(membership_values, ctx.folder)))
    nodes = Nodes(nodes_featureids, splits.astype(kind.dtype), modes, tracks, on_true, on_false, sets)
    given = Weights(np.arange(leaves), leaf_targetids, weights.astype(kind.dtype))
    aggregation = AGGREGATIONS[aggregate_function]
    forest = forest_of(np.array(tree_roots) + leaves, nodes, given, leaves, n_targets, aggregation)
    scores = combined(ctx, reached_leaves(ctx, rows_of(ctx, x, kind), forest), forest, aggregation)
    return ctx.convert(transformed(ctx, scores, TRANSFORMS[post_transform]), x.type.element_type)


def _kind(x: Value, *tables: np.ndarray) -> ElementType:
    """Returns the type in which trees are computed: 64 bits if features or numbers of the trees have them."""
    is_wide = x.type.element_type is F64 or any(table.dtype == np.float64 for table in tables)
    return F64 if is_wide else F32


def _places(name: str, ids: Sequence[int], is_leaf: Sequence[int], leaves: int, nodes: int) -> np.ndarray:
    """Returns the places of nodes and leaves that are counted separately."""
    at, counts = np.array(ids, np.int64), np.where(np.array(is_leaf, bool), leaves, nodes)
    if ((at < 0) | (at >= counts)).any():
        raise Error(f"{name} has nodes or leaves that do not exist, expected some of {nodes} nodes and {leaves} leaves")
    return np.where(np.array(is_leaf, bool), at, at + leaves)


def _sets(values: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the sets of values, of which each one ends with NaN; the end of the last one may lack it."""
    start = 0
    for end in [*np.flatnonzero(np.isnan(values)), len(values)]:
        if end < len(values) or start < end:
            yield values[start:end]
        start = end + 1


@rule("ai.onnx.ml::TreeEnsembleRegressor")
def tree_ensemble_regressor(
    ctx: Context, x: Value, nodes_treeids: Sequence[int] = (), nodes_nodeids: Sequence[int] = (),
    nodes_modes: Sequence[str] = (), nodes_featureids: Sequence[int] = (), nodes_values: Sequence[float] = (),
    nodes_values_as_tensor: onnx.TensorProto | None = None, nodes_truenodeids: Sequence[int] = (),
    nodes_falsenodeids: Sequence[int] = (), nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_hitrates: Sequence[float] = (), nodes_hitrates_as_tensor: onnx.TensorProto | None = None,
    target_treeids: Sequence[int] = (), target_nodeids: Sequence[int] = (), target_ids: Sequence[int] = (),
    target_weights: Sequence[float] = (), target_weights_as_tensor: onnx.TensorProto | None = None,
    base_values: Sequence[float] = (), base_values_as_tensor: onnx.TensorProto | None = None, n_targets: int = 0,
    aggregate_function: str = "SUM", post_transform: str = "NONE",
) -> Value:  # fmt: skip
    """TreeEnsembleRegressor(X, ...): the leaf that each tree leads to, combined for each target"""
    require_transform(post_transform)
    if aggregate_function not in AGGREGATIONS:
        raise Error(f"aggregate_function has {aggregate_function}, expected one of {', '.join(AGGREGATIONS)}")
    splits = _either(ctx, "nodes_values", nodes_values, nodes_values_as_tensor)
    weights = _either(ctx, "target_weights", target_weights, target_weights_as_tensor)
    base = _either(ctx, "base_values", base_values, base_values_as_tensor)
    kind = _kind(x, splits, weights)
    found = numbered(
        nodes_treeids, nodes_nodeids, nodes_modes, nodes_truenodeids, nodes_falsenodeids, nodes_featureids,
        splits.astype(kind.dtype), nodes_missing_value_tracks_true,
    )  # fmt: skip
    require_same_length(
        target_weights=weights, target_treeids=target_treeids, target_nodeids=target_nodeids, target_ids=target_ids
    )
    where = list(zip(target_treeids, target_nodeids, strict=True))
    forest = _numbered_forest(found, where, target_ids, weights.astype(kind.dtype), n_targets, aggregate_function)
    scores = combined(ctx, reached_leaves(ctx, rows_of(ctx, x, kind), forest), forest, aggregate_function)
    if len(base) not in (0, n_targets):
        raise Error(f"base_values has {len(base)} entries, expected none or {n_targets}, as many as targets")
    if len(base):
        scores = ctx.plus(scores, ctx.elements(base.astype(kind.dtype)))
    return ctx.convert(transformed(ctx, scores, post_transform), F32)


def _either(ctx: Context, name: str, listed: Sequence[float], tensor: onnx.TensorProto | None) -> np.ndarray:
    """Returns the numbers of an attribute that is a list or a tensor."""
    if tensor is None:
        return np.array(listed, np.float32)
    if listed:
        raise Error(f"{name} and {name}_as_tensor are both given, expected one of them")
    return array_of(tensor, ctx.folder).reshape(-1)


def _numbered_forest(
    found: Numbered, where: Sequence[tuple[int, int]],
    targets: Sequence[int], values: np.ndarray, count: int, aggregation: str = "SUM",
) -> Forest:  # fmt: skip
    """Returns the forest of nodes with numbers. Weights of nodes that are no leaves say nothing."""
    roots, nodes, places, leaves = found
    if missing := [key for key in where if key not in places]:
        raise Error(f"a weight is for node {missing[0][1]} of tree {missing[0][0]}, which does not exist")
    at = np.array([places[key] for key in where], np.int64)
    kept = at < leaves
    given = Weights(at[kept], np.array(targets, np.int64)[kept].tolist(), values[kept])
    forest = forest_of(roots, nodes, given, leaves, count, aggregation)
    if not forest.has_weight.any(1).all():
        raise Error("a leaf has no weight, expected one or more for each leaf")
    return forest


@rule("ai.onnx.ml::TreeEnsembleClassifier")
def tree_ensemble_classifier(
    ctx: Context, x: Value, nodes_treeids: Sequence[int] = (), nodes_nodeids: Sequence[int] = (),
    nodes_modes: Sequence[str] = (), nodes_featureids: Sequence[int] = (), nodes_values: Sequence[float] = (),
    nodes_values_as_tensor: onnx.TensorProto | None = None, nodes_truenodeids: Sequence[int] = (),
    nodes_falsenodeids: Sequence[int] = (), nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_hitrates: Sequence[float] = (), nodes_hitrates_as_tensor: onnx.TensorProto | None = None,
    class_treeids: Sequence[int] = (), class_nodeids: Sequence[int] = (), class_ids: Sequence[int] = (),
    class_weights: Sequence[float] = (), class_weights_as_tensor: onnx.TensorProto | None = None,
    base_values: Sequence[float] = (), base_values_as_tensor: onnx.TensorProto | None = None,
    classlabels_int64s: Sequence[int] = (), classlabels_strings: Sequence[str] = (), post_transform: str = "NONE",
) -> tuple[Value, Value]:  # fmt: skip
    """TreeEnsembleClassifier(X, ...): the label with the highest score, and all scores"""
    require_transform(post_transform)
    labels = labels_of(ctx, "classlabels_int64s", classlabels_int64s, classlabels_strings)
    splits = _either(ctx, "nodes_values", nodes_values, nodes_values_as_tensor)
    weights = _either(ctx, "class_weights", class_weights, class_weights_as_tensor)
    base = _either(ctx, "base_values", base_values, base_values_as_tensor)
    kind = _kind(x, splits, weights)
    found = numbered(
        nodes_treeids, nodes_nodeids, nodes_modes, nodes_truenodeids, nodes_falsenodeids, nodes_featureids,
        splits.astype(kind.dtype), nodes_missing_value_tracks_true,
    )  # fmt: skip
    require_same_length(
        class_weights=weights, class_treeids=class_treeids, class_nodeids=class_nodeids, class_ids=class_ids
    )
    where = list(zip(class_treeids, class_nodeids, strict=True))
    forest = _numbered_forest(found, where, class_ids, weights.astype(kind.dtype), len(labels))
    leaf = reached_leaves(ctx, rows_of(ctx, x, kind), forest)
    label, scores = classified(ctx, leaf, forest, base.astype(kind.dtype), labels, post_transform)
    return label, ctx.convert(scores, F32)
