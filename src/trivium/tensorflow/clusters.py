"""Functions that Trivium compiles in part: ops without a rule run in TensorFlow, between compiled clusters, in the
order that data and control edges require."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.context import anonymous_name
from tensorflow.python.framework.ops import get_default_graph

from trivium import journal
from trivium.importers.tensorflow.context import rule
from trivium.importers.tensorflow.counted import LaterError
from trivium.importers.tensorflow.graph import CALLS, ends_of, location_of, needed_nodes
from trivium.ir.errors import UnsupportedOpError
from trivium.tensorflow.compiled import Compiled, Setup
from trivium.tensorflow.copying import IsInlined, function_of
from trivium.tensorflow.division import (
    Borders,
    Edge,
    Stage,
    all_nodes,
    divided,
    edges_of_counted,
    edges_to_read,
    has_foreign,
    is_foreign,
    needs,
)
from trivium.tensorflow.signatures import Resource
from trivium.tensorflow.variables import NOTHING, Instead

log = logging.getLogger("trivium.tensorflow")

PART = "part_of_"
"""What the names of parts begin with."""


class Clustered:
    """A concrete function, compiled as far as possible. Called with its tensors, like `Compiled`."""

    def __init__(self, concrete: Any, arguments: Sequence[tf.Variable | Resource], setup: Setup):
        self.setup = setup
        self.borders = Borders(setup.fallback)
        self.run: Compiled | Stages = Compiled(concrete, arguments, setup)
        if setup.fallback and any(map(is_foreign, all_nodes(concrete.graph))):
            self._flatten(lambda node: node.type in CALLS and has_foreign(node))
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
                if cuts := self._found_cuts(error, node):
                    self._report_cut(cuts)
                    self.borders.cuts |= {(tensor.name, user.name) for tensor, user in cuts}
                    self._divide()
                elif node.type in CALLS:
                    self._flatten(lambda x, name=node.name: x.name == name)
                elif self.setup.fallback:
                    self._report(node, error.ops[0].reason or "it has no rule")
                    self.borders.outside.add(node.name)
                    self._divide()
                else:
                    raise

    def _found_cuts(self, error: UnsupportedOpError, node: tf.Operation) -> list[Edge]:
        """Returns the edges of the graph that a part ends with, instead of that a node is refused."""
        assert isinstance(self.run, Compiled)
        if isinstance(error, LaterError):
            nodes = needed_nodes(*ends_of(self.run.concrete.graph))
            return edges_of_counted(nodes, node, error.tensors)
        return [] if self.setup.fallback else edges_to_read(node)

    def _flatten(self, is_inlined: IsInlined) -> None:
        """Puts the nodes of functions in the place of their calls."""
        whole = self.run
        assert isinstance(whole, Compiled)
        nodes = needed_nodes(whole.outputs, whole.concrete.graph.control_outputs)
        if any(map(is_inlined, nodes)):
            inputs = [x for x in _arguments(whole.concrete) if x.dtype != tf.resource]
            variables = variables_of(whole)
            concrete = function_of(nodes, inputs, whole.outputs, externals_of(whole), variables, whole.name, is_inlined)
            self.run = Compiled(concrete, (), self.setup)

    def _divide(self) -> None:
        whole = self.run
        assert isinstance(whole, Compiled)
        for node in all_nodes(whole.concrete.graph):
            if self.setup.fallback and is_foreign(node):
                self._report(node, "it has no rule" if node.type not in rule else "its types are not numbers")
        self.run = Stages(whole, self.borders)

    def _report_cut(self, cuts: Sequence[Edge]) -> None:
        for node in dict.fromkeys(tensor.op for tensor, _ in cuts):
            place = location_of(node).describe()
            text = f"What uses {place} is compiled for each size or value that it has: this depends on data."
            journal.left(place, text)
            log.info(text)

    def _report(self, node: tf.Operation, reason: str) -> None:
        place = location_of(node).describe()
        journal.left(place, f"{place} runs in TensorFlow, between compiled parts: {reason}.")
        if node.type not in self.setup.foreign:
            self.setup.foreign.add(node.type)
            log.warning("%s runs in TensorFlow: %s (%s)", node.type, reason, place)


class Stages:
    """The parts of a function, in the order in which they run."""

    def __init__(self, whole: Compiled, borders: Borders):
        self.externals = externals_of(whole)
        self.inputs = [x.name for x in _arguments(whole.concrete) if x.dtype != tf.resource]
        self.outputs = [x.name for x in whole.outputs]
        self.variables = {id(x): x for x in whole.variables if hasattr(x, "handle")}
        nodes = needed_nodes(whole.outputs, whole.concrete.graph.control_outputs)
        stages = divided(nodes, whole.outputs, borders)
        self.parts = [_part(stage, whole, self.externals) for stage in stages]

    def __call__(self, tensors: Sequence[tf.Tensor], instead: Instead = NOTHING) -> list[tf.Tensor]:
        return self._run(tensors, instead, lambda: [])

    def _run(
        self, tensors: Sequence[tf.Tensor], instead: Instead, before: Callable[[], Sequence[tf.Operation]]
    ) -> list[tf.Tensor]:
        values = self.externals | dict(zip(self.inputs, tensors, strict=True))
        for part in self.parts:
            with tf.control_dependencies(before()):
                results = part.run([values[name] for name in part.inputs], instead)
            values.update(zip(part.outputs, results, strict=True))
        return [values[name] for name in self.outputs]

    def from_values(self, tensors: Sequence[tf.Tensor], values: Mapping[int, tf.Tensor]) -> list[tf.Tensor]:
        """Like a call, on variables of its own that start with those values: others may use the variables meanwhile."""
        before = _since_now()  # graphs of gradients do not order what uses a variable
        instead = {id(x.handle): _copy_of(x, values.get(key)) for key, x in self.variables.items()}
        try:
            return [tf.identity(x) for x in self._run(tensors, instead, before)]
        finally:
            with tf.control_dependencies(before()):
                for copy in instead.values():
                    tf.raw_ops.DestroyResourceOp(resource=copy)


def _since_now() -> Callable[[], Sequence[tf.Operation]]:
    """Returns a function that returns the nodes that have been added to the graph that is being traced, if any is."""
    if tf.executing_eagerly():
        return lambda: []
    graph = get_default_graph()
    count = len(graph.get_operations())
    return lambda: graph.get_operations()[count:]


def _copy_of(variable: Any, value: tf.Tensor | None) -> tf.Tensor:
    """Returns the handle of a new variable with a value, or with the one that a variable has. It must be destroyed."""
    dtype, shape = variable.dtype, tf.TensorShape(variable.shape)
    handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=anonymous_name())
    value = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=dtype) if value is None else value
    tf.raw_ops.AssignVariableOp(resource=handle, value=value)
    return handle


@dataclass(frozen=True)
class Part:
    """A function of some of a graph's tensors, by name."""

    run: Any
    inputs: list[str]
    outputs: list[str]


def _part(stage: Stage, whole: Compiled, externals: dict[str, Any]) -> Part:
    inputs = [x for x in {x.name: x for x in needs(stage)}.values() if x.name not in externals]
    concrete = function_of(
        stage.nodes, inputs, stage.outputs, externals, variables_of(whole), f"{PART}{whole.name.removeprefix(PART)}"
    )
    run = Clustered(concrete, (), whole.setup) if stage.is_compiled else _in_tensorflow(concrete)
    return Part(run, _names(inputs), _names(stage.outputs))


def _in_tensorflow(concrete: Any) -> Callable[[Sequence[tf.Tensor], Instead], list[tf.Tensor]]:
    def run(operands: Sequence[tf.Tensor], instead: Instead) -> list[tf.Tensor]:
        if not instead:
            return list(concrete(*operands) or ())
        captured = [instead.get(id(x), x) for x in concrete.captured_inputs]
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
    return [*whole.concrete.graph.variables, *(x for x in whole.arguments if isinstance(x, tf.Variable))]


def _arguments(concrete: Any) -> list[tf.Tensor]:
    return list(concrete.graph.inputs[: len(concrete.graph.inputs) - len(concrete.captured_inputs)])


def _names(tensors: Sequence[tf.Tensor]) -> list[str]:
    return [x.name for x in tensors]
