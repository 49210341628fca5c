"""From a concrete function to a module: which tensors become arguments, which become constants, and which variables are
returned because the program writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.tensor_shape import as_shape

from trivium.importers.common import role
from trivium.importers.tensorflow.checkpoint import Stored
from trivium.importers.tensorflow.context import Context, Operand
from trivium.importers.tensorflow.counted import Counted, counts_of
from trivium.importers.tensorflow.graph import convert_graph
from trivium.importers.tensorflow.state import State, Variable, draws, written_inputs
from trivium.importers.tensorflow.types import element_type_of, to_array
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.func import Function, Module
from trivium.ir.stack import with_stack
from trivium.ir.types import I64, TensorType


@dataclass(frozen=True)
class Program:
    """An imported function. The module's arguments are `arguments` (variables), then the inputs; its results are the
    function's outputs, then the new values of `written`. If the extents of some outputs depend on data, `outputs`
    says what belongs to each, and the last result has where their rows start, and how many there are; then the lengths
    of lists that depend on data, which have room for as many elements as `lists` says."""

    module: Module
    arguments: tuple[Variable, ...]
    written: tuple[Variable, ...]
    outputs: tuple[Output, ...] = ()
    lists: tuple[int, ...] = ()


@dataclass(frozen=True)
class Output:
    """Which result of the module has an output: as a whole, or the rows along a dimension which an op with that name
    has counted. The count is negative if the op's arguments are not as expected."""

    result: int
    op: str = ""
    dimension: int = 0
    expected: str = ""


@with_stack
def import_graph(
    graph: tf.Graph,
    inputs: Sequence[TensorType | Variable | np.ndarray],
    names: Sequence[str],
    outputs: Sequence[str] = (),
    parameters: str = "constants",
    count: int | None = None,
    room: int | None = None,
    of_ranges: bool = False,
) -> Program:
    """Imports a function's graph. `inputs` says what each of its inputs is: a type (an argument of that `names` entry),
    a variable, or a captured array. `count` is the number of its outputs, to which TensorFlow adds others when it
    differentiates the function. With `room`, extents of outputs may depend on data. `of_ranges`: whether another
    program takes the place of one that would be slow."""
    interface = interface_of(graph, inputs, parameters)
    kept, written, generator = interface.kept, interface.written, interface.generator
    types = [*(x.type for x in kept), *(x for x in inputs if isinstance(x, TensorType))]
    placed: list[Output] = []
    lists: list[int] = []

    def body(builder: Builder, *arguments: Value) -> list[Value]:
        constants = {x: None for x in inputs if isinstance(x, Variable) and x not in kept}
        values: dict[Variable, Operand] = {x: read(x) for x in constants}
        values.update(zip(kept, arguments, strict=False))
        given = iter(arguments[len(kept) :])
        operands = [next(given) if isinstance(x, TensorType) else x for x in inputs]
        emit = Context(builder.block)
        emit.state = State(values, generator=generator, block=builder.block)
        emit.room, emit.of_ranges = room, of_ranges
        found = convert_graph(emit, graph, operands)[:count]
        state = [emit.value(emit.state.values[x]) for x in written]
        lists.extend(room for _, room in emit.state.lengths)
        if not lists and not any(isinstance(x, Counted) for x in found):
            return [*(emit.value(x, "output") for x in found), *state]
        return _with_counts(emit, [*found, *state], placed)

    arg_attrs = [role(x.role, x.name) for x in kept] + [role("input", name) for name in names]
    try:
        function = Function.build("main", types, body, arg_attrs=arg_attrs)
    except Error as error:
        if not all(kind.is_static for kind in types):
            error.advice = error.advice or "example inputs: the program then has their sizes"
        raise
    named = [outputs[i] if i < len(outputs) else "" for i in range(len(function.returned) - len(written))]
    results = [role("output", name) for name in named] + [role(x.role, x.name) for x in written]
    results = [role("output")] * len(function.returned) if placed else results
    function.attributes["res_attrs"] = tuple(results)
    return Program(Module.build(functions=[function]), tuple(kept), tuple(written), tuple(placed), tuple(lists))


def _with_counts(emit: Context, outputs: Sequence[Operand], placed: list[Output]) -> list[Value]:
    """Returns the results that have the outputs, each once, and how many rows exist; `placed` becomes what belongs to
    each output."""
    counted = [x for x in outputs if isinstance(x, Counted)]
    values = [x.rows if isinstance(x, Counted) else emit.value(x, "output") for x in outputs]
    results = list(dict.fromkeys(values))
    for output, value in zip(outputs, values, strict=True):
        result = results.index(value)
        is_counted = isinstance(output, Counted)
        placed.append(Output(result, output.op, output.dimension, output.expected) if is_counted else Output(result))
    return [*results, counts_of(emit, counted, [length for length, _ in emit.state.lengths])]


@dataclass(frozen=True)
class Interface:
    """The variables of a function: `kept` are arguments of its program, of which `written` are also results. The others
    are constants. `generator` is the state of the random generator, in programs that draw."""

    kept: tuple[Variable, ...]
    written: tuple[Variable, ...]
    generator: Variable | None


def interface_of(graph: tf.Graph, inputs: Sequence[object], parameters: str) -> Interface:
    """Returns the interface of a function, of whose inputs some are variables."""
    if parameters not in ("constants", "arguments"):
        raise Error(f"parameters has {parameters!r}, expected 'constants' or 'arguments'")
    variables = list(dict.fromkeys(x for x in inputs if isinstance(x, Variable)))
    changing = {id(inputs[index]) for index in written_inputs(graph)}
    generator = Variable("random generator", TensorType((3,), I64), "state") if draws(graph) else None
    if generator is not None:
        variables.append(generator)
        changing.add(id(generator))
    for variable in variables:
        if id(variable) in changing and variable.role == "buffer":
            variable.role = "state"
    kept = [x for x in variables if id(x) in changing or parameters == "arguments"]
    # A variable that some path writes is returned, whether or not the arguments of a specialization lead there.
    return Interface(tuple(kept), tuple(x for x in kept if id(x) in changing), generator)


def read(variable: Variable) -> np.ndarray:
    """Returns the current value of a variable. The array keeps it, whatever is assigned to the variable later."""
    if isinstance(variable.handle, Stored):
        return variable.handle.read()
    dtype = tf.as_dtype(variable.type.dtype)
    return to_array(tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=dtype))


def captured(tensor: tf.Tensor, variables: Sequence[tf.Variable]) -> Variable | np.ndarray | tf.Tensor:
    """Returns what a captured tensor is: a variable, an array, or, for other resources, the tensor itself."""
    if tensor.dtype != tf.resource:
        return to_array(tensor)
    for variable in variables:
        if variable.handle is tensor:
            return variable_from(variable)
    described = getattr(tensor, "_handle_data", None)
    if described is None or not described.is_set or len(described.shape_and_type) != 1:
        return tensor
    shape, dtype = as_shape(described.shape_and_type[0].shape), tf.as_dtype(described.shape_and_type[0].dtype)
    if not shape.is_fully_defined() or dtype in (tf.resource, tf.variant, tf.string):
        return tensor
    return Variable("", TensorType(tuple(shape), element_type_of(dtype)), "buffer", tensor)


def variable_from(variable: tf.Variable) -> Variable:
    """Returns a variable of the user's."""
    shape = variable.shape if variable.shape.is_fully_defined() else variable.value().shape
    kind = TensorType(tuple(shape), element_type_of(variable.dtype))
    return Variable(
        variable.name.partition(":")[0], kind, "parameter" if variable.trainable else "buffer", variable.handle
    )


def declared_variable(handle: tf.Tensor) -> Variable:
    """Returns a variable that a graph declares; its value is not in the graph, and must be given."""
    shape, dtype = as_shape(handle.op.get_attr("shape")), handle.op.get_attr("dtype")
    name = handle.op.get_attr("shared_name").decode() or handle.op.name
    return Variable(name, TensorType(tuple(shape.as_list()), element_type_of(dtype)), "parameter")
