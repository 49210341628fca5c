"""The loop over a TensorFlow graph: it orders the nodes, reads their operands, calls the rules, and keeps what they
return. Values that are known during import (shapes and everything that follows from them) are computed immediately."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function.atomic_function import AtomicFunction
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

from trivium.importers.common import RAW_ERRORS, GraphImporter, place
from trivium.importers.tensorflow.context import Context, Operand, Rule, rule
from trivium.importers.tensorflow.counted import ELEMENTWISE, Counted, LaterError, followed, require_sized
from trivium.importers.tensorflow.definitions import INPUTS, functions_of
from trivium.importers.tensorflow.hiding import hide_constants
from trivium.importers.tensorflow.inference import declared, has_unknown_rank, inferred
from trivium.importers.tensorflow.schema import attribute_of, bind, schema_of
from trivium.ir import ops
from trivium.ir.core import Block, Region, Value
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.interpreter import Interpreter
from trivium.ir.location import Location
from trivium.ir.types import TensorType

MAX_KNOWN = 4096
"""The number of elements of the largest array that is computed during import."""


CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
"""Ops that call a function and do nothing else."""


class FunctionImporter(GraphImporter[tf.Operation, Context]):
    """Converts the nodes of one function's graph. `values` holds the conversion of each tensor, by its name: a `Value`,
    an array that is known during import, a `Variable`, or a `TensorList`."""

    def __init__(self, emit: Context, graph: tf.Graph, values: dict[str, Operand], name: str = "main"):
        super().__init__(emit, name)
        emit.enter = self._enter
        self.functions = graph
        self.values = values

    def name_of(self, node: tf.Operation) -> str:
        return node.type

    def rule_of(self, node: tf.Operation) -> Rule | None:
        return rule.find(node.type)

    def location_of(self, node: tf.Operation) -> Location:
        return location_of(node)

    def describe(self, node: tf.Operation) -> str:
        return f"{node.name} = {node.type}({', '.join(tensor.name for tensor in node.inputs)})"

    def inner_nodes(self, node: tf.Operation) -> Iterable[tf.Operation]:
        for name in called_functions(node):
            yield from needed_nodes(*ends_of(function_graph(self.functions, name)))

    def convert(self, node: tf.Operation, rule: Rule) -> None:
        emit = self.emit
        operands = [self.values[tensor.name] for tensor in node.inputs]
        emit.op, emit.node, emit.results = node.type, node, self._result_types(node, operands)
        try:
            if _can_be_computed(node) and all(isinstance(x, np.ndarray) and x.size <= MAX_KNOWN for x in operands):
                results = self._fold(node, rule, operands)
            else:
                results = self._call(node, rule, operands)
        except UnsupportedOpError as error:
            error.node = node
            if isinstance(error, LaterError):
                error.tensors = frozenset(name for name, x in self.values.items() if isinstance(x, Counted))
            raise
        except RAW_ERRORS:
            self._infer(node, operands)  # raises a clear error if TensorFlow rejects the operands
            for index, x in enumerate(operands):
                if isinstance(x, Value) and not x.type.is_static:
                    emit.unsupported(str(index), f"the type {x.type}", "known sizes")
            raise
        emit.require_types(results)
        self.values.update((tensor.name, result) for tensor, result in zip(node.outputs, results, strict=True))

    def _result_types(self, node: tf.Operation, operands: Sequence[Operand]) -> Sequence[TensorType | None]:
        return self._infer(node, operands) if has_unknown_rank(node) else [*map(declared, node.outputs)]

    def _infer(self, node: tf.Operation, operands: Sequence[Operand]) -> Sequence[TensorType | None]:
        return [*map(declared, node.outputs)] if called_functions(node) else inferred(node, operands)

    def _enter(self, emit: Context, name: str, operands: Sequence[Operand]) -> list[Operand]:
        return convert_graph(emit, function_graph(self.functions, name), operands, name)

    def _call(self, node: tf.Operation, rule: Rule, operands: Sequence[Operand]) -> Sequence[Operand]:
        if node.type not in CALLS and any(isinstance(x, Counted) for x in operands):
            return self._follow(node, rule, operands)
        positional, named = bind(self.emit, node, rule, operands)
        results = rule(self.emit, *positional, **named)
        if results is None:
            return ()
        return results if isinstance(results, Sequence) else (results,)

    def _follow(self, node: tf.Operation, rule: Rule, operands: Sequence[Operand]) -> Sequence[Operand]:
        """Converts a node that treats each row of an operand alone, of which only some rows exist."""
        place = followed(node)
        counted = operands[place] if place is not None else None
        if not isinstance(counted, Counted) or (counted.dimension and node.type not in ELEMENTWISE):
            require_sized(self.emit, operands)
        assert isinstance(counted, Counted)
        given = [counted.rows if index == place else x for index, x in enumerate(operands)]
        require_sized(self.emit, given)
        return [counted.with_rows(x) for x in self._call(node, rule, given)]

    def _fold(self, node: tf.Operation, rule: Rule, operands: Sequence[Operand]) -> Sequence[Operand]:
        """Returns the results of a node whose operands are known: computed, unless they are large, or only some of
        their rows exist."""
        block = Block()
        with self.emit.inside(block):
            results = self._call(node, rule, operands)
        values = [result for result in results if isinstance(result, Value)]
        has_rows = any(isinstance(result, Counted) for result in results)
        if has_rows or sum(math.prod(value.type.shape) for value in values) > MAX_KNOWN:
            for op in block:
                self.emit.block.insert(op.detach(), self.emit.before)
            return results
        block.append(ops.Return(values))
        with np.errstate(all="ignore"):
            computed = iter(Interpreter().run(Region([block]), {}))
        return [np.asarray(next(computed)) if isinstance(result, Value) else result for result in results]


def _can_be_computed(node: tf.Operation) -> bool:
    """Whether a node has no effects, calls nothing, and returns arrays."""
    arrays = all(tensor.dtype not in (tf.resource, tf.variant) for tensor in node.outputs)
    return arrays and not schema_of(node.type).is_stateful and not called_functions(node)


def convert_graph(emit: Context, graph: tf.Graph, operands: Sequence[Operand], name: str = "main") -> list[Operand]:
    """Converts a function's graph for operands, at the cursor. Returns the results for its outputs."""
    values = {tensor.name: operand for tensor, operand in zip(graph.inputs, operands, strict=True)}
    importer = FunctionImporter(emit, graph, values, name)
    importer.convert_all(needed_nodes(*ends_of(graph)))
    return [values[tensor.name] for tensor in graph.outputs]


def ends_of(graph: tf.Graph) -> tuple[list[tf.Tensor], list[tf.Operation]]:
    """Returns what a function computes: the tensors that it returns, and the ops that it must run."""
    return list(graph.outputs), list(getattr(graph, "control_outputs", ()))


def needed_nodes(outputs: Iterable[tf.Tensor], controls: Iterable[tf.Operation] = ()) -> list[tf.Operation]:
    """Returns the nodes that lead to tensors and ops, along data and control edges, in execution order."""
    before: dict[tf.Operation, list[tf.Operation]] = {}
    stack = [*(tensor.op for tensor in outputs), *controls]
    while stack:
        node = stack.pop()
        if node not in before and node.type not in INPUTS:
            sources = dict.fromkeys([*(tensor.op for tensor in node.inputs), *node.control_inputs])
            before[node] = [source for source in sources if source.type not in INPUTS]
            stack += before[node]
    return _ordered(before)


def _ordered(before: dict[tf.Operation, list[tf.Operation]]) -> list[tf.Operation]:
    """Returns a topological order that keeps the order of creation where possible."""
    index = {node: node._id if hasattr(node, "_id") else position for position, node in enumerate(before)}
    after: dict[tf.Operation, list[tf.Operation]] = {node: [] for node in before}
    waiting = {node: len(sources) for node, sources in before.items()}
    for node, sources in before.items():
        for source in sources:
            after[source].append(node)
    ready = [(index[node], position, node) for position, node in enumerate(before) if not waiting[node]]
    heapq.heapify(ready)
    ordered: list[tf.Operation] = []
    while ready:
        *_, node = heapq.heappop(ready)
        ordered.append(node)
        for user in after[node]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (index[user], len(ordered), user))
    return ordered


def called_functions(node: tf.Operation) -> list[str]:
    """Returns the names of the functions that a node calls."""
    attributes = schema_of(node.type).attributes.items()
    values = [attribute_of(node, name) for name, attribute in attributes if attribute.kind in ("func", "list(func)")]
    names = [name for value in values for name in (value if isinstance(value, tuple) else (value,))]
    return [name for name in names if isinstance(name, str)]


def function_graph(graph: tf.Graph, name: str) -> tf.Graph:
    """Returns the graph of a function in a graph's library."""
    holder = _holder(graph, name)
    if isinstance(holder, LoadedGraph):
        return holder.function(name)
    found = holder._get_function(name)
    if hasattr(found, "graph"):
        return found.graph
    # Functions that are defined in TensorFlow 1's way, as those of `ctc_loss` still are, and some of gradients of
    # gradients, which a graph has only in its library.
    built = _OLDER.setdefault(holder, {})
    if name not in built:
        definition = _definition(holder, name) if found is None else found.definition
        with _Library(holder).as_default() as library:
            built[name] = function_def_to_graph(_with_calls(definition, holder))
        built[name].library = library  # TensorFlow's own reference, to the graph around it, is weak
    return built[name]


_OLDER: WeakKeyDictionary[tf.Graph, dict[str, Any]] = WeakKeyDictionary()


class _Library(FuncGraph):
    """The graph around one that is built from a definition: what no graph around has may be called by the definition,
    and TensorFlow's context has it. Such are the functions that a gradient calls whose forward function ran before."""

    def __init__(self, around: tf.Graph):
        with around.as_default():
            super().__init__("library")

    def _is_function(self, name: str) -> bool:
        return not _holder(self.outer_graph, name)._is_function(name) and context.context().has_function(name)


def _definition(holder: tf.Graph, name: str) -> FunctionDef:
    found = next((x for x in holder.as_graph_def().library.function if x.signature.name == name), None)
    if found is None and not context.context().has_function(name):
        raise Error(f"the graph has no function {name}, expected one in its library")
    return context.context().get_function_def(name) if found is None else found


def _with_calls(definition: FunctionDef, holder: tf.Graph) -> FunctionDef:
    """Returns a definition in which ops that are named as a function of the graph are calls of it."""
    copy, renamed = FunctionDef(), {}
    copy.CopyFrom(definition)
    for node in copy.node_def:
        if holder._is_function(node.op):
            signature = holder._get_function(node.op).definition.signature
            renamed |= {
                f"{node.name}:{x.name}:0": f"{node.name}:output:{i}" for i, x in enumerate(signature.output_arg)
            }
            node.attr.clear()
            node.attr["f"].func.name, node.op = node.op, "PartitionedCall"
            node.attr["Tin"].list.type.extend(x.type for x in signature.input_arg)
            node.attr["Tout"].list.type.extend(x.type for x in signature.output_arg)
    for node in copy.node_def:
        node.input[:] = [renamed.get(x, x) for x in node.input]
    for name, x in dict(copy.ret).items():
        copy.ret[name] = renamed.get(x, x)
    return copy


def add_function(to: tf.Graph, graph: tf.Graph, name: str) -> None:
    """Adds a function in the library of a graph that TensorFlow has traced to that of another, with those it calls."""
    found = _holder(graph, name)._get_function(name)
    if isinstance(found, AtomicFunction):
        to._add_function_recursive(found)
    else:
        found.add_to_graph(to)


def _holder(graph: tf.Graph, name: str) -> tf.Graph:
    """Returns the innermost graph around, whose library has the function."""
    while not graph._is_function(name) and getattr(graph, "outer_graph", None) is not None:
        graph = graph.outer_graph
    return graph


class LoadedGraph(FuncGraph):
    """A graph read from a file: its library has definitions of functions, whose graphs it builds. It takes ownership of
    the definition."""

    def __init__(self, definition: tf.compat.v1.GraphDef):
        super().__init__("main")
        self.functions: dict[str, tf.Graph] = {}
        # Once requested, TensorFlow's own graph would stay in this process forever, under names that others use too.
        self.definitions = functions_of(definition)
        hide_constants(definition)
        with self._building("the graph"):
            tf.graph_util.import_graph_def(definition, name="")

    def function(self, name: str) -> tf.Graph:
        """Returns the graph of a function, which is built once."""
        if name not in self.functions:
            with self._building(f"function {name}"):
                self.functions[name] = graph = function_def_to_graph(self.definitions[name])
                graph.loaded_in = self  # TensorFlow's own reference, to the graph around it, is weak
        return self.functions[name]

    @contextmanager
    def _building(self, what: str) -> Iterator[None]:
        try:
            with self.as_default():
                yield
        except Exception as error:  # various types: definitions come from files
            raise Error(f"TensorFlow cannot build {what}: {error}") from error


_LIBRARIES = ("/site-packages/", str(Path(__file__).parent))
"""Folders whose frames are not the user's."""


def location_of(node: tf.Operation) -> Location:
    """Returns the user's line, and the op; nodes of loaded graphs have only their name."""
    traceback = getattr(node, "copied_from", node).traceback
    frames = traceback.get_user_frames() if traceback is not None else []
    own = [frame for frame in frames if not any(part in frame.filename for part in _LIBRARIES)]
    scope = node.name.rpartition("/")[0]
    if not own:
        return place(node.type, function=node.name, path=scope)
    frame = own[-1]
    return place(node.type, frame.filename, frame.lineno, frame.name, scope)
