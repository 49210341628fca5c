"""Ensembles of decision trees as arrays. ONNX has two forms of attributes for them, of which one tells leaves from
nodes; both become a `Forest`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trivium.importers.emit import require_computable
from trivium.importers.onnx.context import require_same_length
from trivium.ir.errors import Error

MODES = {0: "LE", 1: "LT", 2: "GE", 3: "GT", 4: "EQ", 5: "NE"}
"""How a node compares a feature with its split."""

MEMBER = 6
"""The mode of a node that asks whether a feature is in a set."""

BRANCHES = {"BRANCH_LEQ": 0, "BRANCH_LT": 1, "BRANCH_GTE": 2, "BRANCH_GT": 3, "BRANCH_EQ": 4, "BRANCH_NEQ": 5}
"""The modes by their names in older models."""

AGGREGATIONS = ("AVERAGE", "SUM", "MIN", "MAX")
"""The values of `aggregate_function`, in the order of their numbers."""

COMBINED: dict[str, Callable[..., None]] = {"MIN": np.minimum.at, "MAX": np.maximum.at}
"""How weights of a leaf for the same target are combined, where they are not added."""


@dataclass(frozen=True)
class Forest:
    """Trees whose leaves and nodes have places: first those of all leaves, then those of all nodes. What a leaf has of
    a node means nothing, except that it leads to itself."""

    roots: np.ndarray
    """The place where each tree starts."""

    features: np.ndarray
    splits: np.ndarray
    modes: np.ndarray
    tracks: np.ndarray
    """Whether the condition of each node holds for a feature that is NaN."""

    leads: np.ndarray
    """Where each place leads to if its condition does not hold, and if it holds."""

    members: np.ndarray
    """The sets of nodes that ask for members, a row for each place, filled with NaN."""

    weights: np.ndarray
    """The weights of each leaf for each target, 0 where it has none."""

    has_weight: np.ndarray
    depth: int

    @property
    def leaves(self) -> int:
        return len(self.weights)

    @property
    def used_modes(self) -> list[int]:
        """The modes of the nodes, of which there may be none."""
        return np.unique(self.modes[self.leaves :]).tolist()

    def always_has(self, target: int) -> bool:
        """Whether some tree has a weight for a target in each of its leaves."""
        return any(self.has_weight[reached, target].all() for reached in self._leaves_of_trees)

    @cached_property
    def _leaves_of_trees(self) -> list[np.ndarray]:
        every = (_reached(self.leads, np.array([root])) for root in self.roots)
        return [places[places < self.leaves] for places in every]


@dataclass(frozen=True)
class Nodes:
    """Nodes and leaves by places; `sets` are those of the nodes that ask for members, in order."""

    features: Sequence[int]
    splits: np.ndarray
    modes: np.ndarray
    tracks: Sequence[int]
    on_true: np.ndarray
    on_false: np.ndarray
    sets: Sequence[np.ndarray] = ()


@dataclass(frozen=True)
class Weights:
    """Weights of leaves for targets."""

    leaves: npt.ArrayLike
    targets: Sequence[int]
    values: np.ndarray


def forest_of(
    roots: npt.ArrayLike, nodes: Nodes, weights: Weights, leaves: int, targets: int, aggregation: str = "SUM"
) -> Forest:
    """Returns the forest of nodes, of which the first one is at the place after the last leaf."""
    _require_valid(nodes, weights, targets)
    count, has_weight = leaves + len(nodes.features), _has(weights, leaves, targets)
    itself = np.arange(leaves)
    leads = np.stack([np.concatenate([itself, nodes.on_false]), np.concatenate([itself, nodes.on_true])], 1)
    starts = np.array(roots, np.int64)
    for name, places in (("tree_roots", starts), ("a node's successors", leads)):
        if places.size and not (places.min() >= 0 and places.max() < count):
            raise Error(f"{name} has nodes or leaves that do not exist, expected some of {count}")
    return Forest(
        roots=starts.astype(np.int32),
        features=_behind(leaves, nodes.features, np.int32),
        splits=_behind(leaves, nodes.splits, nodes.splits.dtype),
        modes=_behind(leaves, nodes.modes, np.int32),
        tracks=_behind(leaves, nodes.tracks, np.bool_),
        leads=leads.astype(np.int32),
        members=_members(leaves, nodes),
        weights=_table(weights, has_weight, aggregation),
        has_weight=has_weight,
        depth=_depth(leads, starts, leaves),
    )


def _require_valid(nodes: Nodes, weights: Weights, targets: int) -> None:
    if targets < 1:
        raise Error(f"the trees have {targets} targets or classes, expected one or more")
    if nodes.features and min(nodes.features) < 0:
        raise Error(f"nodes_featureids has {min(nodes.features)}, expected no negative features")
    if weights.targets and not (min(weights.targets) >= 0 and max(weights.targets) < targets):
        most = targets - 1
        raise Error(f"weights are for target {max(weights.targets)} or {min(weights.targets)}, expected 0 to {most}")
    unknown = set(np.unique(nodes.modes).tolist()) - {*MODES, MEMBER}
    if unknown:
        raise Error(f"nodes_modes has {min(unknown)}, expected 0 to {MEMBER}")


def _behind(leaves: int, values: npt.ArrayLike, dtype: npt.DTypeLike) -> np.ndarray:
    """Returns what nodes have, behind zeros for the leaves."""
    return np.concatenate([np.zeros(leaves, dtype), np.asarray(values, dtype)])


def _members(leaves: int, nodes: Nodes) -> np.ndarray:
    askers = np.flatnonzero(nodes.modes == MEMBER)
    if len(askers) != len(nodes.sets):
        raise Error(f"membership_values has {len(nodes.sets)} sets, expected {len(askers)}, one for each such node")
    places, width = leaves + len(nodes.features), max(map(len, nodes.sets), default=0)
    require_computable(places * width, "the table of members")
    table = np.full((places, width), np.nan, nodes.splits.dtype)
    for asker, members in zip(askers, nodes.sets, strict=True):
        table[leaves + asker, : len(members)] = members
    return table


def _table(weights: Weights, has_weight: np.ndarray, aggregation: str) -> np.ndarray:
    start = {"MIN": np.inf, "MAX": -np.inf}.get(aggregation, 0)
    table = np.full(has_weight.shape, start, weights.values.dtype)
    COMBINED.get(aggregation, np.add.at)(table, (np.asarray(weights.leaves), np.array(weights.targets)), weights.values)
    return np.where(has_weight, table, table.dtype.type(0))


def _has(weights: Weights, leaves: int, targets: int) -> np.ndarray:
    require_computable(leaves * targets, "the table of weights")
    found = np.zeros((leaves, targets), bool)
    found[np.asarray(weights.leaves), np.array(weights.targets)] = True
    return found


def _reached(leads: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Returns the places to which trees lead, with the roots."""
    seen, front = np.zeros(len(leads), bool), np.unique(roots)
    while len(front):
        seen[front] = True
        following = np.unique(leads[front])
        front = following[~seen[following]]
    return np.flatnonzero(seen)


def _depth(leads: np.ndarray, roots: np.ndarray, leaves: int) -> int:
    """Returns the number of steps after which every tree has led to a leaf. Nodes may have several predecessors, but
    none is its own."""
    places = _reached(leads, roots)
    nodes = places[places >= leaves]
    waiting = np.bincount(leads[nodes].reshape(-1), minlength=len(leads))
    ready, done, depth = nodes[waiting[nodes] == 0], 0, 0
    while len(ready):
        done, depth = done + len(ready), depth + 1
        following = leads[ready].reshape(-1)
        following = following[following >= leaves]
        np.subtract.at(waiting, following, 1)
        following = np.unique(following)
        ready = following[waiting[following] == 0]
    if done < len(nodes):
        raise Error("a tree leads back to one of its nodes, expected none")
    return depth


class Numbered(NamedTuple):
    """Nodes that have numbers in their trees."""

    roots: list[int]
    nodes: Nodes
    places: dict[tuple[int, int], int]
    """The place of each node and leaf, by its tree and number."""

    leaves: int


def numbered(
    treeids: Sequence[int], nodeids: Sequence[int], modes: Sequence[str], truenodeids: Sequence[int],
    falsenodeids: Sequence[int], featureids: Sequence[int], splits: np.ndarray, tracks: Sequence[int],
) -> Numbered:  # fmt: skip
    """Returns the nodes of the older form: a tree begins with its root, and leaves are nodes with the mode `LEAF`."""
    require_same_length(
        nodes_nodeids=nodeids, nodes_treeids=treeids, nodes_modes=modes, nodes_truenodeids=truenodeids,
        nodes_falsenodeids=falsenodeids, nodes_featureids=featureids, nodes_values=splits,
        nodes_missing_value_tracks_true=tracks or nodeids,
    )  # fmt: skip
    if unknown := set(modes) - {*BRANCHES, "LEAF"}:
        raise Error(f"nodes_modes has {min(unknown)}, expected LEAF or one of {', '.join(BRANCHES)}")
    is_leaf = np.array([mode == "LEAF" for mode in modes], bool)
    leaves, inner = int(is_leaf.sum()), np.flatnonzero(~is_leaf).tolist()
    place = np.where(is_leaf, np.cumsum(is_leaf) - 1, leaves + np.cumsum(~is_leaf) - 1).tolist()
    places = dict(zip(zip(treeids, nodeids, strict=True), place, strict=True))
    if len(places) < len(nodeids):
        raise Error("nodes_nodeids has a number twice in one tree, expected once")
    starts = [at for at, tree in enumerate(treeids) if at == 0 or treeids[at - 1] != tree]
    if len(starts) > len(set(treeids)):
        raise Error("nodes_treeids has the nodes of one tree in several places, expected them together")

    def led(name: str, ids: Sequence[int]) -> np.ndarray:
        try:
            return np.array([places[treeids[at], ids[at]] for at in inner], np.int64)
        except KeyError as error:
            tree, missing = error.args[0]
            raise Error(f"{name} has {missing}, which tree {tree} does not have") from None

    nodes = Nodes(
        features=[featureids[at] for at in inner],
        splits=splits[inner],
        modes=np.array([BRANCHES[modes[at]] for at in inner], np.int32),
        tracks=[int(tracks[at] == 1) if tracks else 0 for at in inner],
        on_true=led("nodes_truenodeids", truenodeids),
        on_false=led("nodes_falsenodeids", falsenodeids),
    )
    return Numbered([place[at] for at in starts], nodes, places, leaves)
