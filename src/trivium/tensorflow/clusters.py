"""Functions of which Trivium compiles a part: what has no rule runs in TensorFlow, between compiled clusters, in the
order that data and control edges demand."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.context import anonymous_name

from trivium import journal
from trivium.importers.tensorflow.context import rule
from trivium.importers.tensorflow.graph import (
    called_functions,
    ends_of,
    function_graph,
    location_of,
    needed_nodes,
)
from trivium.importers.tensorflow.types import ELEMENT_TYPES, QUANTIZED
from trivium.ir.errors import UnsupportedOpError
from trivium.tensorflow.compiled import NOTHING, Compiled, Held, Instead, Options
from trivium.tensorflow.copying import CALLS, IsInlined, function_of

log = logging.getLogger("trivium.tensorflow")


class Clustered:
    """A concrete function, compiled as far as possible. Called with its tensors, like `Compiled`."""

    def __init__(self, concrete: Any, arguments: Sequence[tf.Variable], options: Options, names: set[str]):
        self.options, self.names = options, names
        self.outside: set[str] = set()
        """The nodes of this graph that a rule has refused."""
        self.run: Compiled | Stages = Compiled(concrete, arguments, options)
        if any(map(is_foreign, all_nodes(concrete.graph))):
            self._flatten(_is_open_call)
            self._divide()

    def __call__(self, tensors: Sequence[tf.Tensor], instead: Instead = NOTHING) -> list[tf.Tensor]:
        return self._tried(lambda: self.run(tensors, instead))

    def from_values(self, tensors: Sequence[tf.Tensor], values: Mapping[int, tf.Tensor]) -> list[tf.Tensor]:
        """Like a call, with other values of some variables, by their identity."""
        return self._tried(lambda: self.run.from_values(tensors, values))

    def _tried(self, run: Callable[[], list[tf.Tensor]]) -> list[tf.Tensor]:
        """Runs the parts; a node that a rule refuses is taken out, and the rest is divided again. Nothing has run when
        that is found."""
        while True:
            try:
                return run()
            except UnsupportedOpError as error:
                node = error.node
                if not isinstance(self.run, Compiled) or not isinstance(node, tf.Operation):
                    raise
                if node.type in CALLS:
                    self._flatten(lambda x, name=node.name: x.name == name)
                    continue
                self._tell(node, error.ops[0].reason or "it has no rule")
                self.outside.add(node.name)
                self._divide()

    def _flatten(self, is_inlined: IsInlined) -> None:
        """Puts the nodes of functions in the place of their calls."""
        whole = self.run
        assert isinstance(whole, Compiled)
        nodes = needed_nodes(whole.outputs, whole.concrete.graph.control_outputs)
        if any(map(is_inlined, nodes)):
            inputs = [x for x in _arguments(whole.concrete) if x.dtype != tf.resource]
            concrete = function_of(nodes, inputs, whole.outputs, externals_of(whole), variables_of(whole), is_inlined)
            self.run = Compiled(concrete, (), self.options)

    def _divide(self) -> None:
        whole = self.run
        assert isinstance(whole, Compiled)
        for node in all_nodes(whole.concrete.graph):
            if is_foreign(node):
                self._tell(node, "it has no rule" if node.type not in rule else "its types are not numbers")
        self.run = Stages(whole, self.outside, self.names)

    def _tell(self, node: tf.Operation, reason: str) -> None:
        place = location_of(node).describe()
        journal.left(place, f"{place} runs in TensorFlow, between compiled parts: {reason}.")
        if node.type not in self.names:
            self.names.add(node.type)
            log.warning("%s runs in TensorFlow: %s (%s)", node.type, reason, place)


class Stages:
    """The parts of a function, in the order in which they run."""

    def __init__(self, whole: Compiled, outside: set[str], names: set[str]):
        self.externals = externals_of(whole)
        self.inputs = [x.name for x in _arguments(whole.concrete) if x.dtype != tf.resource]
        self.outputs = [x.name for x in whole.outputs]
        self.variables = {id(x): x for x in whole.variables if hasattr(x, "handle")}
        nodes = needed_nodes(whole.outputs, whole.concrete.graph.control_outputs)
        self.parts = [_part(stage, whole, self.externals, names) for stage in divided(nodes, whole.outputs, outside)]

    def __call__(self, tensors: Sequence[tf.Tensor], instead: Instead = NOTHING) -> list[tf.Tensor]:
        values = self.externals | dict(zip(self.inputs, tensors, strict=True))
        for part in self.parts:
            results = part.run([values[name] for name in part.inputs], instead)
            values.update(zip(part.outputs, results, strict=True))
        return [values[name] for name in self.outputs]

    def from_values(self, tensors: Sequence[tf.Tensor], values: Mapping[int, tf.Tensor]) -> list[tf.Tensor]:
        """Like a call, on variables of its own that start with those values: others may use the variables meanwhile."""
        instead = {id(x.handle): _copy_of(x, values.get(key)) for key, x in self.variables.items()}
        try:
            return [tf.identity(x) for x in self(tensors, instead)]
        finally:
            for copy in instead.values():
                tf.raw_ops.DestroyResourceOp(resource=copy.handle)


def _copy_of(variable: Any, value: tf.Tensor | None) -> Held:
    """Returns a new variable with a value, or with the one that a variable has. It must be destroyed."""
    dtype, shape = variable.dtype, tf.TensorShape(variable.shape)
    handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=anonymous_name())
    value = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=dtype) if value is None else value
    tf.raw_ops.AssignVariableOp(resource=handle, value=value)
    return Held(handle, dtype, shape)


@dataclass(frozen=True)
class Part:
    """A function of some of a graph's tensors, by name."""

    run: Any
    inputs: list[str]
    outputs: list[str]


@dataclass
class Stage:
    """Nodes that run together, in Trivium or in TensorFlow, and the tensors that others need of them."""

    is_compiled: bool
    nodes: list[tf.Operation]
    outputs: list[tf.Tensor]


def _part(stage: Stage, whole: Compiled, externals: dict[str, Any], names: set[str]) -> Part:
    inputs = [x for x in {x.name: x for x in _needs(stage)}.values() if x.name not in externals]
    concrete = function_of(stage.nodes, inputs, stage.outputs, externals, variables_of(whole))
    run = Clustered(concrete, (), whole.options, names) if stage.is_compiled else _in_tensorflow(concrete)
    return Part(run, _names(inputs), _names(stage.outputs))


def _in_tensorflow(concrete: Any) -> Callable[[Sequence[tf.Tensor], Instead], list[tf.Tensor]]:
    def run(operands: Sequence[tf.Tensor], instead: Instead) -> list[tf.Tensor]:
        if not instead:
            return list(concrete(*operands) or ())
        captured = [instead[id(x)].handle if id(x) in instead else x for x in concrete.captured_inputs]
        return list(concrete._call_flat(list(operands), captured_inputs=captured) or ())

    return run


def externals_of(whole: Compiled) -> dict[str, Any]:
    """Returns what a function uses from outside, by the names of its inputs: captured tensors, and variables."""
    concrete = whole.concrete
    arguments = [x for x in _arguments(concrete) if x.dtype == tf.resource]
    captures = concrete.graph.inputs[len(concrete.graph.inputs) - len(concrete.captured_inputs) :]
    found = dict(zip(_names(captures), concrete.captured_inputs, strict=True))
    return found | {x.name: y.handle for x, y in zip(arguments, whole.arguments, strict=True)}


def variables_of(whole: Compiled) -> list[tf.Variable]:
    """Returns the variables that a function uses, as far as they are known."""
    return [*whole.concrete.graph.variables, *whole.arguments]


# Which nodes run where


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


def _has_foreign(node: tf.Operation) -> bool:
    """Whether a node must run outside: itself, or something in a function that it calls."""
    graphs = [function_graph(node.graph, name) for name in called_functions(node)] if node.type in rule else []
    return is_foreign(node) or any(is_foreign(x) for graph in graphs for x in all_nodes(graph))


def _is_open_call(node: tf.Operation) -> bool:
    """Whether a node is a call whose function is divided in turn."""
    return node.type in CALLS and _has_foreign(node)


def divided(nodes: Sequence[tf.Operation], outputs: Sequence[tf.Tensor], outside: set[str]) -> list[Stage]:
    """Returns stages that can run one after another: each node is in the first one that its sources allow."""
    foreign = _connected(nodes, {x.name for x in nodes if x.name in outside or _has_foreign(x)}, outputs)
    levels: dict[str, int] = {}
    for node in nodes:
        kind = node.name in foreign
        before = [x.op.name for x in node.inputs] + [x.name for x in node.control_inputs]
        levels[node.name] = max([int(kind), *(levels[x] + ((x in foreign) != kind) for x in before if x in levels)])
    stages = [Stage(level % 2 == 0, [], []) for level in range(max(levels.values(), default=0) + 1)]
    for node in nodes:
        stages[levels[node.name]].nodes.append(node)
    for stage in stages:
        _take_shapes(stage, nodes, outside)
    wanted = {x.name for x in outputs} | {x.name for stage in stages for x in _needs(stage)}
    for level, stage in enumerate(stages):
        own = [x for node in stage.nodes if levels[node.name] == level for x in node.outputs]
        stage.outputs = [x for x in own if x.name in wanted and x.dtype != tf.resource]
    return [stage for stage in stages if stage.nodes]


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


def _needs(stage: Stage) -> list[tf.Tensor]:
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
    pending = [x.op for x in _needs(stage)]
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


def _arguments(concrete: Any) -> list[tf.Tensor]:
    return list(concrete.graph.inputs[: len(concrete.graph.inputs) - len(concrete.captured_inputs)])


def _names(tensors: Sequence[tf.Tensor]) -> list[str]:
    return [x.name for x in tensors]
