"""Resource variables: reads see the writes before them, in the order of the control edges; written variables become
results of the program. A variable is identified by its handle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from trivium.importers.tensorflow.checkpoint import Stored
from trivium.importers.tensorflow.context import Context, Known, NonTensor, Operand, rule
from trivium.importers.tensorflow.graph import called_functions, ends_of, function_graph, needed_nodes
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import TensorType

READERS = frozenset(
    {"ReadVariableOp", "VariableShape", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "Identity"}
)
"""Ops that leave a variable unchanged; any other op on a handle may write it."""


DRAWING = frozenset({"RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal"})
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
    """The value of each variable at the cursor, and the variables written so far. `generator` is the state of the
    random generator, in programs that draw."""

    values: dict[Variable, Value | np.ndarray] = field(default_factory=dict)
    written: dict[Variable, None] = field(default_factory=dict)
    generator: Variable | None = None

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
def read_variable(ctx: Context, resource: Operand) -> Value | Known:
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
    update(ctx, resource, lambda old: ctx.plus(old, value))


@rule("AssignSubVariableOp")
def assign_sub_variable(ctx: Context, resource: Operand, value: Value) -> None:
    """AssignSubVariableOp(resource, value)"""
    update(ctx, resource, lambda old: ctx.minus(old, value))


# Ops of optimizers


@rule("ResourceApplyGradientDescent")
def apply_gradient_descent(ctx: Context, var: Operand, alpha: Value, delta: Value) -> None:
    """ResourceApplyGradientDescent(var, alpha, delta)"""
    update(ctx, var, lambda old: ctx.minus(old, ctx.times(alpha, delta)))


@rule("ResourceApplyMomentum")
def apply_momentum(
    ctx: Context, var: Operand, accum: Operand, lr: Value, grad: Value, momentum: Value, *, use_nesterov: bool
) -> None:
    """ResourceApplyMomentum(var, accum, lr, grad, momentum; use_nesterov=false)"""
    speed = update(ctx, accum, lambda old: ctx.plus(ctx.times(old, momentum), grad))
    if use_nesterov:
        speed = ctx.plus(grad, ctx.times(speed, momentum))
    update(ctx, var, lambda old: ctx.minus(old, ctx.times(lr, speed)))


@rule("ResourceApplyKerasMomentum")
def apply_keras_momentum(
    ctx: Context, var: Operand, accum: Operand, lr: Value, grad: Value, momentum: Value, *, use_nesterov: bool
) -> None:
    """ResourceApplyKerasMomentum(var, accum, lr, grad, momentum; use_nesterov=false)"""
    step = ctx.times(lr, grad)
    speed = update(ctx, accum, lambda old: ctx.minus(ctx.times(old, momentum), step))
    if use_nesterov:
        speed = ctx.minus(ctx.times(speed, momentum), step)
    update(ctx, var, lambda old: ctx.plus(old, speed))


@rule("ResourceApplyAdam")
def apply_adam(
    ctx: Context,
    var: Operand,
    m: Operand,
    v: Operand,
    beta1_power: Value,
    beta2_power: Value,
    lr: Value,
    beta1: Value,
    beta2: Value,
    epsilon: Value,
    grad: Value,
    *,
    use_nesterov: bool,
) -> None:
    """ResourceApplyAdam(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad; use_nesterov=false)"""
    one = ctx.constant_like(grad, 1)
    rate = ctx.over(ctx.times(lr, ctx.add(ops.Sqrt(ctx.minus(one, beta2_power)))), ctx.minus(one, beta1_power))
    square = ctx.times(grad, grad)
    first = update(ctx, m, lambda old: _moving(ctx, old, grad, beta1))
    second = update(ctx, v, lambda old: _moving(ctx, old, square, beta2))
    if use_nesterov:
        first = ctx.plus(ctx.times(first, beta1), ctx.times(ctx.minus(one, beta1), grad))
    step = ctx.over(ctx.times(first, rate), ctx.plus(ctx.add(ops.Sqrt(second)), epsilon))
    update(ctx, var, lambda old: ctx.minus(old, step))


@rule("ResourceApplyAdagradV2")
def apply_adagrad(
    ctx: Context, var: Operand, accum: Operand, lr: Value, epsilon: Value, grad: Value, *, update_slots: bool
) -> None:
    """ResourceApplyAdagradV2(var, accum, lr, epsilon, grad; update_slots=true)"""
    total = read_value(ctx, accum)
    if update_slots:
        total = update(ctx, accum, lambda old: ctx.plus(old, ctx.times(grad, grad)))
    step = ctx.over(ctx.times(grad, lr), ctx.plus(ctx.add(ops.Sqrt(total)), epsilon))
    update(ctx, var, lambda old: ctx.minus(old, step))


@rule("ResourceApplyRMSProp")
def apply_rms_prop(
    ctx: Context,
    var: Operand,
    ms: Operand,
    mom: Operand,
    lr: Value,
    rho: Value,
    momentum: Value,
    epsilon: Value,
    grad: Value,
) -> None:
    """ResourceApplyRMSProp(var, ms, mom, lr, rho, momentum, epsilon, grad)"""
    square = update(ctx, ms, lambda old: _moving(ctx, old, ctx.times(grad, grad), rho))
    step = ctx.over(ctx.times(grad, lr), ctx.add(ops.Sqrt(ctx.plus(square, epsilon))))
    speed = update(ctx, mom, lambda old: ctx.plus(ctx.times(old, momentum), step))
    update(ctx, var, lambda old: ctx.minus(old, speed))


def _moving(ctx: Context, old: Value, new: Value, decay: Value) -> Value:
    """Returns `decay * old + (1 - decay) * new`, rounded as in TensorFlow."""
    return ctx.plus(old, ctx.times(ctx.minus(new, old), ctx.minus(ctx.constant_like(new, 1), decay)))


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
