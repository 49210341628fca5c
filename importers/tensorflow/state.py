"""Resource variables: reads see the writes before them, in the order of the control edges; written variables become
results of the program. A variable is identified by its handle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from trivium.importers.tensorflow.checkpoint import Stored
from trivium.importers.tensorflow.context import Context, NonTensor, Operand, rule
from trivium.importers.tensorflow.graph import called_functions, ends_of, function_graph, needed_nodes
from trivium.ir.core import Block, Value
from trivium.ir.errors import Error
from trivium.ir.types import TensorType

READERS = frozenset(
    {
        *("Identity", "LookupTableFindV2", "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"),
        "VarIsInitializedOp",
    }
)
"""Ops that leave a variable, or a table, unchanged; any other op on a handle may write it."""


DRAWING = frozenset(
    {
        *("Multinomial", "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoissonV2", "RandomShuffle"),
        *("RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"),
    }
)
"""Ops that draw from the hidden generator. The program then has its state as an argument, and a new one as a result."""


@dataclass(eq=False)
class Variable(NonTensor):
    """A variable of the program: `role` is `parameter` if it is trained, `state` if it is written, otherwise
    `buffer`."""

    name: str
    type: TensorType
    role: str
    handle: tf.Tensor | Stored | None = None


@dataclass
class State:
    """The value of each variable at the cursor (of a stack, a list), and the variables written so far. `generator` is
    the state of the random generator, in programs that draw. `block` is the program's outermost one; there, `lengths`
    has the lists whose length depends on data: their lengths, and how many elements they have room for."""

    values: dict[Variable, Operand] = field(default_factory=dict)
    written: dict[Variable, None] = field(default_factory=dict)
    generator: Variable | None = None
    block: Block | None = None
    lengths: list[tuple[Value, int]] = field(default_factory=list)

    def write(self, variable: Variable, value: Value) -> None:
        if value.type.shape != variable.type.shape:
            raise Error(f"variable {variable.name} has type {variable.type}, is assigned {value.type}")
        self.values[variable] = value
        self.written[variable] = None


def written_inputs(graph: tf.Graph, known: dict[tf.Graph, set[int]] | None = None) -> set[int]:
    """Returns which inputs of a function are variables that it, or a function that it calls, may write."""
    known = {} if known is None else known
    if graph in known:
        return known[graph]
    known[graph] = found = set()
    position = {tensor.name: index for index, tensor in enumerate(graph.inputs)}
    for node in needed_nodes(*ends_of(graph)):
        for index in _written_operands(graph, node, known):
            source = _origin(node.inputs[index])
            if source.name in position:
                found.add(position[source.name])
    return found


def draws(graph: tf.Graph, seen: set[tf.Graph] | None = None) -> bool:
    """Whether a function, or one that it calls, draws from TensorFlow's hidden random generator."""
    seen = set() if seen is None else seen
    seen.add(graph)
    for node in needed_nodes(*ends_of(graph)):
        inner = [function_graph(graph, name) for name in called_functions(node)]
        if node.type in DRAWING or any(draws(x, seen) for x in inner if x not in seen):
            return True
    return False


def _written_operands(graph: tf.Graph, node: tf.Operation, known: dict[tf.Graph, set[int]]) -> set[int]:
    handles = {index for index, tensor in enumerate(node.inputs) if tensor.dtype == tf.resource}
    if not handles or node.type in READERS:
        return set()
    names = called_functions(node)
    if not names:
        return handles
    # Functions receive the last operands: a conditional's first one is its predicate.
    found = set()
    for name in names:
        inner = function_graph(graph, name)
        shift = len(node.inputs) - len(inner.inputs)
        found |= {index + shift for index in written_inputs(inner, known)}
    return found & handles


def _origin(tensor: tf.Tensor) -> tf.Tensor:
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


# Reads


@rule("ReadVariableOp")
def read_variable(ctx: Context, resource: Operand) -> Operand:
    """ReadVariableOp(resource) -> value"""
    return ctx.state.values[variable_of(ctx, resource)]


@rule("VariableShape")
def variable_shape(ctx: Context, input: Operand) -> np.ndarray:
    """VariableShape(input) -> output"""
    return np.array(variable_of(ctx, input).type.shape, ctx.element_type.dtype)


@rule("VarIsInitializedOp")
def var_is_initialized(ctx: Context, resource: Operand) -> np.ndarray:
    """VarIsInitializedOp(resource) -> is_initialized"""
    variable_of(ctx, resource)
    return np.array(True)


# Writes


@rule("AssignVariableOp")
def assign_variable(ctx: Context, resource: Operand, value: Value) -> None:
    """AssignVariableOp(resource, value)"""
    ctx.state.write(variable_of(ctx, resource), value)


@rule("AssignAddVariableOp")
def assign_add_variable(ctx: Context, resource: Operand, value: Value) -> None:
    """AssignAddVariableOp(resource, value)"""
    _require_numbers(ctx)
    update(ctx, resource, lambda old: ctx.plus(old, value))


@rule("AssignSubVariableOp")
def assign_sub_variable(ctx: Context, resource: Operand, value: Value) -> None:
    """AssignSubVariableOp(resource, value)"""
    _require_numbers(ctx)
    update(ctx, resource, lambda old: ctx.minus(old, value))


def _require_numbers(ctx: Context) -> None:
    """Rejects a sum of booleans, or of quantized integers: TensorFlow has no kernel for them."""
    dtype = ctx.node.inputs[1].dtype
    if dtype.is_bool or dtype.is_quantized:
        ctx.unsupported("value", f"dtype {dtype.name}", "a number that is not quantized")


# Helpers


def variable_of(ctx: Context, handle: Operand) -> Variable:
    """Returns the variable of a handle."""
    if isinstance(handle, Variable):
        return handle
    ctx.unsupported("resource", "a resource that is not a variable", "a variable")


def read_value(ctx: Context, handle: Operand) -> Value:
    """Returns the value of a variable at the cursor."""
    return ctx.value(ctx.state.values[variable_of(ctx, handle)])


def update(ctx: Context, handle: Operand, change: Callable[[Value], Value]) -> Value:
    """Writes the result of `change` on a variable's value, and returns it."""
    value = change(read_value(ctx, handle))
    ctx.state.write(variable_of(ctx, handle), value)
    return value
