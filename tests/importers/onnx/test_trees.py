"""Ensembles of trees, against ONNX Runtime, or ONNX's reference where that is wrong."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import floats
from tests.importers.onnx.checks import by_reference, check_rows, node

pytestmark = pytest.mark.onnx

ROWS = np.concatenate([floats(40, 3), np.ones((2, 3), np.float32), np.full((1, 3), np.nan, np.float32)])
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
BRANCHES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]

# Version 5


def tensor(values: Any, kind: type = np.float32) -> Any:
    return onnx.numpy_helper.from_array(np.array(values, kind))


def forest(kind: type = np.float32, modes: tuple[int, ...] = (0, 1, 2, 3, 4), **more: Any) -> dict[str, Any]:
    """Three trees: of three nodes, of one node, and of one node, with leaves of two targets."""
    return {
        "tree_roots": [0, 3, 4],
        "n_targets": 2,
        "nodes_featureids": [0, 1, 2, 1, 0],
        "nodes_splits": tensor([0.1, -0.3, 0.2, 0.0, 1.0], kind),
        "nodes_modes": tensor(modes, np.uint8),
        "nodes_truenodeids": [1, 0, 2, 4, 6],
        "nodes_trueleafs": [0, 1, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 3, 5, 7],
        "nodes_falseleafs": [0, 1, 1, 1, 1],
        "leaf_targetids": [0, 1, 1, 0, 0, 1, 1, 1],
        "leaf_weights": tensor([5.0, -2.0, 1.5, 0.25, 3.0, 8.0, -1.0, 4.0], kind),
        **more,
    }


@pytest.mark.parametrize("how", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_forests(how: int, kind: type) -> None:
    check_rows("TreeEnsemble", ROWS.astype(kind), version=5, **forest(kind, aggregate_function=how))


def test_missing_values_and_other_comparisons() -> None:
    options = forest(modes=(5, 0, 0, 1, 3), nodes_missing_value_tracks_true=[1, 0, 1, 1, 0])
    check_rows("TreeEnsemble", ROWS, version=5, **options)


def test_members_of_sets() -> None:
    x = np.arange(90).reshape(30, 3).astype(np.float32) % 7
    members = tensor([1, 2, 5, np.nan, 3, np.nan])
    options = forest(modes=(6, 0, 6, 1, 4), membership_values=members)
    check_rows("TreeEnsemble", x, version=5, oracle=by_reference, **options)


@pytest.mark.parametrize("transform", range(4))
def test_transforms_by_their_numbers(transform: int) -> None:
    """ONNX Runtime takes the numbers of SOFTMAX and LOGISTIC for each other."""
    made = node("TreeEnsemble", ROWS, domain="ai.onnx.ml", **forest(post_transform=transform))
    (scores,) = by_reference(node("TreeEnsemble", ROWS, domain="ai.onnx.ml", **forest()), [ROWS])
    powers = np.exp(scores - scores.max(1, keepdims=True))
    sparse = np.where(scores == 0, 0, powers)
    sums = [each / each.sum(1, keepdims=True) for each in (powers, sparse)]
    wanted = [scores, sums[0], 1 / (1 + np.exp(-scores)), sums[1]][transform]
    np.testing.assert_allclose(trivium.compile(trivium.from_onnx(made))(ROWS)[0], wanted, rtol=1e-5, atol=1e-6)


# Older versions


def grown(
    rng: np.random.RandomState, ids: list[int], *, prefix: str = "class", trees: int = 3, depth: int = 2,
    modes: list[str] = BRANCHES, tracks: bool = False, mixed: bool = False, every: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Random trees whose leaves have weights for some of `ids`, or for `every` one."""
    names = ["treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids"]
    found: dict[str, list[Any]] = {f"nodes_{name}": [] for name in names}
    found |= {f"{prefix}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree: int, number: int, left: int) -> int:
        """Adds a node with all nodes below it; returns the next free number."""
        at = len(found["nodes_nodeids"])
        is_leaf = left == 0 or rng.rand() < 0.1
        row = [tree, number, "LEAF", int(rng.randint(3)), float(np.float32(rng.randn())), 0, 0]
        for name, value in zip(names, row, strict=True):
            found[f"nodes_{name}"].append(value)
        if is_leaf:
            chosen = ids if every else rng.choice(ids, rng.randint(1, len(ids) + 1), replace=False)
            for target in chosen:
                weight = (rng.randn() if mixed else rng.rand()) / trees
                for name, value in zip(("treeids", "nodeids", "ids", "weights"), (tree, number, int(target), weight),
                                       strict=True):  # fmt: skip
                    found[f"{prefix}_{name}"].append(value)
            return number + 1
        found["nodes_modes"][at] = str(rng.choice(modes))
        found["nodes_truenodeids"][at] = number + 1
        found["nodes_falsenodeids"][at] = middle = grow(tree, number + 1, left - 1)
        return grow(tree, middle, left - 1)

    for tree in range(trees):
        grow(tree, 0, depth)
    if tracks:
        found["nodes_missing_value_tracks_true"] = rng.randint(0, 2, len(found["nodes_nodeids"])).tolist()
    return found


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_regressors(targets: int, how: str) -> None:
    for seed in range(2):
        trees = grown(np.random.RandomState(seed), list(range(targets)), prefix="target", tracks=seed == 0, mixed=True,
                      every=seed == 1)  # fmt: skip
        base = {"base_values": [0.5, -1.0, 2.0][:targets]} if seed else {}
        check_rows("TreeEnsembleRegressor", ROWS, n_targets=targets, aggregate_function=how, known=seed == 0, **trees,
                   **base)  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_transforms_of_regressors(targets: int, transform: str) -> None:
    trees = grown(np.random.RandomState(3), list(range(targets)), prefix="target", every=True)
    check_rows("TreeEnsembleRegressor", ROWS, n_targets=targets, post_transform=transform, **trees)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("mode", BRANCHES)
def test_comparisons_and_types(mode: str, kind: type) -> None:
    trees = grown(np.random.RandomState(5), [0, 1, 2], modes=[mode], tracks=True)
    x = ROWS.astype(kind) if np.dtype(kind).kind == "f" else (ROWS[:42] * 3).astype(kind)
    check_rows("TreeEnsembleClassifier", x, outputs=2, classlabels_int64s=[3, 1, 2], known=False, **trees)


def test_numbers_of_64_bits() -> None:
    trees = grown(np.random.RandomState(6), [0, 1], prefix="target", every=True)
    values, weights = trees.pop("nodes_values"), trees.pop("target_weights")
    tensors = {"nodes_values_as_tensor": values, "target_weights_as_tensor": weights, "base_values_as_tensor": [0.1, 3]}
    more = {name: tensor(entries, np.float64) for name, entries in tensors.items()}
    hits = tensor([1.0] * len(values), np.float64)
    options = {"n_targets": 2, "nodes_hitrates_as_tensor": hits, **trees, **more}
    check_rows("TreeEnsembleRegressor", ROWS.astype(np.float64), tolerance=1e-6, **options)


def test_no_rows() -> None:
    check_rows("TreeEnsemble", ROWS[:0], version=5, **forest(np.float32))


def test_deep_trees_run_in_a_loop() -> None:
    """A chain of nodes, each of which leads to a leaf or to the next one."""
    depth = 70
    options = {
        "n_targets": 1,
        "nodes_treeids": [0] * (2 * depth + 1),
        "nodes_nodeids": list(range(2 * depth + 1)),
        "nodes_modes": ["BRANCH_LT"] * depth + ["LEAF"] * (depth + 1),
        "nodes_featureids": [at % 3 for at in range(depth)] + [0] * (depth + 1),
        "nodes_values": [2 - at / 20 for at in range(depth)] + [0.0] * (depth + 1),
        "nodes_truenodeids": [*range(1, depth), 2 * depth] + [0] * (depth + 1),
        "nodes_falsenodeids": [depth + at for at in range(depth)] + [0] * (depth + 1),
        "target_treeids": [0] * (depth + 1),
        "target_nodeids": list(range(depth, 2 * depth + 1)),
        "target_ids": [0] * (depth + 1),
        "target_weights": [float(at) for at in range(depth + 1)],
    }
    check_rows("TreeEnsembleRegressor", ROWS, **options)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("count", [1, 3])
def test_classifiers(count: int, transform: str) -> None:
    for seed in range(3):
        rng = np.random.RandomState(seed)
        trees = grown(rng, list(range(count)), tracks=True, mixed=seed == 1, every=seed == 2)
        base = {"base_values": rng.randn(count).tolist()} if seed == 1 else {}
        labels = [5, 9, 2][:count]
        check_rows("TreeEnsembleClassifier", ROWS, outputs=2, classlabels_int64s=labels, post_transform=transform,
                   known=seed == 0, **trees, **base)  # fmt: skip


@pytest.mark.parametrize(("transform", "mixed"), [
    ("NONE", False), ("NONE", True), ("LOGISTIC", False), ("LOGISTIC", True), ("SOFTMAX", True), ("PROBIT", False),
])  # fmt: skip
@pytest.mark.parametrize("base", [0, 1, 2])
@pytest.mark.parametrize("ids", [[0], [1], [0, 1]])
def test_two_classes(ids: list[int], base: int, transform: str, mixed: bool) -> None:
    one_score = base < 2 and ids == [0]
    if one_score and transform == "PROBIT":
        pytest.skip("refused: ONNX Runtime computes one of two scores")
    every = ids == [0, 1] and (base == 1 or transform == "PROBIT")
    trees = grown(np.random.RandomState(base), ids, mixed=mixed, every=every)
    more = {"base_values": [0.25, -0.125][:base]} if base else {}
    check_rows("TreeEnsembleClassifier", ROWS, outputs=2, classlabels_int64s=[7, 3], post_transform=transform,
               known=False, **trees, **more)  # fmt: skip


# Refusals


def refused(message: str, op: str, x: np.ndarray = ROWS, version: int = 3, **options: Any) -> None:
    outputs = 1 + (op == "TreeEnsembleClassifier")
    with pytest.raises(trivium.Error, match=message):
        trivium.from_onnx(node(op, x, outputs=outputs, domain="ai.onnx.ml", version=version, **options))


def test_forests_that_are_refused() -> None:
    for message, options in (
        ("post_transform has 5, expected 0 to 4", {"post_transform": 5}),
        ("aggregate_function has 4, expected 0 to 3", {"aggregate_function": 4}),
        ("a tree leads back to one of its nodes", {"nodes_trueleafs": [0, 0, 1, 1, 1]}),
        ("nodes_modes has 7, expected 0 to 6", {"nodes_modes": tensor([0, 7, 0, 0, 0], np.uint8)}),
        ("membership_values has 0 sets, expected 1", {"nodes_modes": tensor([0, 6, 0, 0, 0], np.uint8)}),
        ("nodes_truenodeids has nodes or leaves that do not exist", {"nodes_truenodeids": [1, 0, 2, 4, 8]}),
        ("tree_roots has nodes or leaves that do not exist", {"tree_roots": [5]}),
        ("leaf_targetids has 7 entries, expected 8", {"leaf_targetids": [0] * 7}),
        ("weights are for target 1 or 0, expected 0 to 0", {"n_targets": 1}),
        ("nodes_featureids has 3, X has type", {"nodes_featureids": [0, 1, 2, 3, 0]}),
        ("nodes_featureids has -1, expected no negative", {"nodes_featureids": [0, 1, 2, -1, 0]}),
        ("nodes_featureids has 4 entries, expected 5", {"nodes_featureids": [0, 1, 2, 1]}),
    ):
        refused(message, "TreeEnsemble", version=5, **forest(**options))


def test_older_trees_that_are_refused() -> None:
    trees = grown(np.random.RandomState(0), [0], prefix="target", trees=2, depth=1)
    one = {"n_targets": 1, **trees}
    for message, options in (
        ("have 0 targets", {"n_targets": 0}),
        ("aggregate_function has MEAN, expected one of", {"aggregate_function": "MEAN"}),
        ("post_transform has SQRT, expected one of", {"post_transform": "SQRT"}),
        ("nodes_modes has BRANCH, expected LEAF or one of", {"nodes_modes": ["BRANCH", "LEAF", "LEAF"] * 2}),
        ("nodes_modes has 5 entries, expected 6", {"nodes_modes": ["LEAF"] * 5}),
        ("nodes_truenodeids has 9, which tree 0 does not have", {"nodes_truenodeids": [9, 0, 0] * 2}),
        ("a tree leads back to one of its nodes", {"nodes_truenodeids": [0, 0, 0] * 2}),
        ("nodes_nodeids has a number twice in one tree", {"nodes_nodeids": [0, 1, 1] * 2}),
        ("nodes_treeids has the nodes of one tree in several", {"nodes_treeids": [0, 0, 1, 1, 1, 0],
                                                                "nodes_nodeids": [0, 1, 0, 1, 2, 2]}),
        ("a weight is for node 7 of tree 0", {"target_nodeids": [7, 2, 1, 2]}),
        ("a leaf has no weight", {"target_nodeids": [2, 2, 1, 2]}),
        ("target_ids has 3 entries, expected 4", {"target_ids": [0] * 3}),
        ("base_values has 2 entries, expected none or 1", {"base_values": [0.0, 1.0]}),
        ("nodes_values and nodes_values_as_tensor are both given", {"nodes_values_as_tensor": tensor([0.0] * 6)}),
    ):  # fmt: skip
        refused(message, "TreeEnsembleRegressor", **one | options)


def test_classifiers_that_are_refused() -> None:
    trees = grown(np.random.RandomState(0), [0], trees=2, depth=1)
    for message, options in (
        ("has no attribute classlabels_int64s", {}),
        ("classlabels_strings has 2 strings, expected integers", {"classlabels_strings": ["a", "b"]}),
        ("PROBIT for one score and two classes", {"classlabels_int64s": [0, 1], "post_transform": "PROBIT"}),
        ("base_values has 3 entries", {"classlabels_int64s": [0, 1], "base_values": [0.0] * 3}),
    ):
        refused(message, "TreeEnsembleClassifier", **trees, **options)
    both = grown(np.random.RandomState(0), [0, 1], trees=2, depth=1)
    refused("base_values has one entry for two classes", "TreeEnsembleClassifier", classlabels_int64s=[0, 1],
            base_values=[0.5], **both)  # fmt: skip
