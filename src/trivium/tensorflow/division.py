"""Decides which nodes of a function run where: ops without a rule run in TensorFlow; the rest is compiled, in several
parts if a TensorFlow op is between them, or if the sizes of a part depend on data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import tensorflow as tf

from trivium.importers.tensorflow.context import rule
from trivium.importers.tensorflow.counted import followed
from trivium.importers.tensorflow.definitions import INPUTS
from trivium.importers.tensorflow.graph import called_functions, ends_of, function_graph, needed_nodes
from trivium.importers.tensorflow.types import ELEMENT_TYPES, QUANTIZED


@dataclass
class Borders:
    """Where a function is divided: `outside` are nodes that a rule has refused; `cuts` are tensors and nodes that use
    them in a later part, which is compiled for their sizes or their elements. With `fallback`, TensorFlow runs what has
    no rule."""

    fallback: bool
    outside: set[str] = field(default_factory=set)
    cuts: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class Stage:
    """Nodes that run together, in Trivium or in TensorFlow, and the tensors that others need of them."""

    is_compiled: bool
    nodes: list[tf.Operation]
    outputs: list[tf.Tensor]


def is_foreign(node: tf.Operation) -> bool:
    """Whether a node, apart from functions that it calls, has no rule, or a type that the language lacks."""
    tensors = (*node.inputs, *node.outputs)
    return node.type not in rule or not all(x.dtype.base_dtype in _TYPES for x in tensors)


_TYPES = frozenset({*ELEMENT_TYPES, *QUANTIZED, tf.resource, tf.variant})


def all_nodes(graph: tf.Graph, seen: set[str] | None = None) -> Iterable[tf.Operation]:
    """Returns the nodes of a graph and of the functions that it calls, each once."""
    seen = set() if seen is None else seen
    for node in needed_nodes(*ends_of(graph)):
        yield node
        for name in called_functions(node):
            if name not in seen:
                seen.add(name)
                yield from all_nodes(function_graph(node.graph, name), seen)


def has_foreign(node: tf.Operation) -> bool:
    """Whether a node must run outside: itself, or something in a function that it calls."""
    graphs = [function_graph(node.graph, name) for name in called_functions(node)] if node.type in rule else []
    return is_foreign(node) or any(is_foreign(x) for graph in graphs for x in all_nodes(graph))


def divided(nodes: Sequence[tf.Operation], outputs: Sequence[tf.Tensor], borders: Borders) -> list[Stage]:
    """Returns stages that can run one after another: each node is in the first one that its sources allow. Foreign
    nodes are in every second one."""
    levels = _levels(nodes, outputs, borders)
    stages = [Stage(level % 2 == 0, [], []) for level in range(max(levels.values(), default=0) + 1)]
    for node in nodes:
        stages[levels[node.name]].nodes.append(node)
    stays = borders.outside | {name.rpartition(":")[0] for name, _ in borders.cuts}
    for stage in stages:
        _take_shapes(stage, nodes, stays)
    wanted = {x.name for x in outputs} | {x.name for stage in stages for x in needs(stage)}
    for level, stage in enumerate(stages):
        own = [x for node in stage.nodes if levels[node.name] == level for x in node.outputs]
        stage.outputs = [x for x in own if x.name in wanted and x.dtype != tf.resource]
    return [stage for stage in stages if stage.nodes]


def _levels(nodes: Sequence[tf.Operation], outputs: Sequence[tf.Tensor], borders: Borders) -> dict[str, int]:
    """Returns the number of each node's stage. Lists and other variants have no form outside a program: what makes one
    is moved to the stage that uses it, and if that leads nowhere, TensorFlow runs both."""
    foreign = {x.name for x in nodes if x.name in borders.outside or (borders.fallback and has_foreign(x))}
    foreign = _connected(nodes, foreign, outputs)
    lists = [(x.op.name, node.name) for node in nodes for x in node.inputs if x.dtype == tf.variant]
    least: dict[str, int] = {}
    for _ in nodes:
        levels = _earliest(nodes, foreign, borders, least)
        apart = [(make, levels[use]) for make, use in lists if make in levels and levels[make] < levels[use]]
        if not apart:
            return levels
        for make, level in apart:
            least[make] = max(level, least.get(make, 0))
    return _earliest(nodes, _connected(nodes, foreign | {make for make, _ in lists}, outputs), borders, {})


def _earliest(
    nodes: Sequence[tf.Operation], foreign: set[str], borders: Borders, least: Mapping[str, int]
) -> dict[str, int]:
    levels: dict[str, int] = {}
    for node in nodes:
        kind = node.name in foreign
        before = [x.op.name for x in node.inputs] + [x.name for x in node.control_inputs]
        after = [levels[x] + ((x in foreign) != kind) for x in before if x in levels]
        if not kind:
            cut = [x.op.name for x in node.inputs if (x.name, node.name) in borders.cuts and x.op.name in levels]
            after += [levels[x] + 2 - levels[x] % 2 for x in cut]
        levels[node.name] = max([int(kind), *after, least.get(node.name, 0)])
    return levels


Edge = tuple[tf.Tensor, tf.Operation]
"""A tensor, and a node that uses it."""


def edges_of_counted(nodes: Sequence[tf.Operation], node: tf.Operation, counted: Collection[str]) -> list[Edge]:
    """Returns the edges from tensors whose extents depend on data to what cannot be computed with them, among them
    those to `node`. None if it is refused for something inside it."""
    own = [(x, node) for x in node.inputs if x.name in counted]
    edges = [
        (x, user) for user in nodes for i, x in enumerate(user.inputs) if x.name in counted and followed(user) != i
    ]
    return [*own, *edges] if own else []


def edges_to_read(node: tf.Operation) -> list[Edge]:
    """Returns the edges to a node from integers that the graph computes from data: a later part can read them."""
    small = [
        x for x in node.inputs if x.dtype in (tf.int32, tf.int64) and x.shape.rank is not None and x.shape.rank < 2
    ]
    return [(x, node) for x in small if _follows_from_data(x.op)]


def _follows_from_data(node: tf.Operation) -> bool:
    """Whether a node computes with anything but shapes and inputs of its graph."""
    pending, seen = [node], set()
    while pending:
        node = pending.pop()
        if node.name not in seen and node.type not in (*INPUTS, "Const", "Shape", "ShapeN", "Size", "Rank"):
            seen.add(node.name)
            if not _computes_shapes(node):
                return True
            pending += [x.op for x in node.inputs]
    return False


def _connected(nodes: Sequence[tf.Operation], foreign: set[str], outputs: Sequence[tf.Tensor]) -> set[str]:
    """Adds the nodes that exchange lists and other variants with foreign ones, or return them: those have no form
    outside."""
    found = foreign | {x.op.name for x in outputs if x.dtype == tf.variant}
    edges = [(x.op.name, node.name) for node in nodes for x in node.inputs if x.dtype == tf.variant]
    size = -1
    while size != len(found):
        size = len(found)
        found |= {end for edge in edges if found & set(edge) for end in edge}
    return found


def needs(stage: Stage) -> list[tf.Tensor]:
    own = {x.name for node in stage.nodes for x in node.outputs}
    return [x for node in stage.nodes for x in node.inputs if x.name not in own]


_SHAPES = frozenset(
    {
        *("Add", "AddV2", "FloorDiv", "FloorMod", "Maximum", "Minimum", "Mul", "Prod", "Sub"),
        *("Cast", "ConcatV2", "Const", "ExpandDims", "GatherV2", "Identity", "Pack", "Range", "Rank", "Reshape"),
        *("Shape", "ShapeN", "Size", "Squeeze", "StridedSlice"),
    }
)
"""Ops that compute shapes."""


def _take_shapes(stage: Stage, nodes: Sequence[tf.Operation], outside: set[str]) -> None:
    """Copies what computes shapes into the stage: there it is known while importing, where a tensor would not be. Not
    what a rule has refused, which a compiled stage cannot contain."""
    present = {node.name for node in stage.nodes}
    pending = [x.op for x in needs(stage)]
    added: set[str] = set()
    while pending:
        node = pending.pop()
        if node.name not in present | added | outside and _computes_shapes(node):
            added.add(node.name)
            pending += [x.op for x in node.inputs]
    if added:
        own = present | added
        stage.nodes = [node for node in nodes if node.name in own]


def _computes_shapes(node: tf.Operation) -> bool:
    small = all(x.dtype.is_integer and x.shape.rank is not None and x.shape.rank < 2 for x in node.outputs)
    return node.type in _SHAPES and not node.control_inputs and (small or node.type == "Const")
