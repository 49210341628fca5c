"""A concrete function of TensorFlow as machine code: imported and compiled for each combination of sizes, run eagerly
or as a node of a graph, with a gradient that is compiled as well."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import tensorflow as tf
from tensorflow.python.eager import record

from trivium import journal
from trivium.api import compile
from trivium.executable import Executable
from trivium.importers.tensorflow.module import Interface, captured, import_graph, interface_of, variable_from
from trivium.importers.tensorflow.source import count_of
from trivium.importers.tensorflow.state import Variable
from trivium.importers.tensorflow.types import QUANTIZED, empty, to_array, to_tensor, type_of
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.func import Module
from trivium.ir.types import TensorType
from trivium.tensorflow.signatures import extents

log = logging.getLogger("trivium.tensorflow")


PADDED = "Unknown sizes are compiled for each combination: inputs that are padded to few sizes are compiled less often."


class Options(TypedDict, total=False):
    """Keyword arguments of `trivium.compile`."""

    device: str
    threads: int | None
    fast_math: bool
    autotune: bool


Instead = Mapping[int, "Held"]
"""Variables that take the place of others, by the identity of those's handles."""

NOTHING: Instead = {}


class Compiled:
    """The machine code of a concrete function. Called with the tensors that it takes, returns those that it returns;
    `arguments` are the variables among its arguments."""

    def __init__(self, concrete: Any, arguments: Sequence[tf.Variable], options: Options):
        self.concrete, self.options = concrete, options
        self.arguments = list({id(x): x for x in arguments}.values())
        self.outputs = list(concrete.outputs)[: count_of(concrete.structured_outputs)]
        self.captures: list[tf.Tensor] = []
        """Tensors that the function uses, as operands of the program after its arguments: they may have gradients."""
        self.inputs = self._inputs()
        known = {id(x.handle): x for x in (*concrete.graph.variables, *arguments)}
        interface: Interface = interface_of(concrete.graph, self.inputs, "arguments")
        self.variables = [_readable(x, known) for x in interface.kept]
        self.written = [_readable(x, known) for x in interface.written]
        self._is_prepared = False
        self._code: dict[tuple[Any, ...], Code] = {}

    def _inputs(self) -> list[Variable | Any]:
        """Says what each input of the graph is: a variable, an array, or `None` for an operand."""
        variables = iter(self.arguments)
        externals = self.concrete.captured_inputs
        given = self.concrete.graph.inputs[: len(self.concrete.graph.inputs) - len(externals)]
        found: list[Any] = [variable_from(next(variables)) if x.dtype == tf.resource else None for x in given]
        for tensor in externals:
            if not hasattr(tensor, "numpy") and tensor.dtype != tf.resource:
                raise Error(f"the function uses {tensor.name} of the graph around it, expected it as an argument")
            if tensor.dtype.is_floating or tensor.dtype.is_complex:
                self.captures.append(tensor)
                found.append(None)
            else:
                found.append(captured(tensor, self.concrete.graph.variables))
        return found

    def __call__(self, tensors: Sequence[tf.Tensor], instead: Instead = NOTHING) -> list[tf.Tensor]:
        if not tf.executing_eagerly():
            self.prepare([*self.variables, *tensors, *self.captures])
        variables, written = _exchanged(self.variables, instead), _exchanged(self.written, instead)
        if is_recorded():
            results = self.differentiable([*(x.read_value() for x in variables), *tensors, *self.captures])
        else:
            results = self.run([*map(_value, variables), *tensors, *self.captures])
        count = len(results) - len(written)
        for variable, value in zip(written, results[count:], strict=True):
            if variable is not GENERATOR:
                tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
        return results[:count]

    def from_values(self, tensors: Sequence[tf.Tensor], values: Mapping[int, tf.Tensor]) -> list[tf.Tensor]:
        """Like a call, with other values of some variables, by their identity. Nothing is assigned."""
        if not tf.executing_eagerly():
            self.prepare([*self.variables, *tensors, *self.captures])
        read = [values[id(x)] if id(x) in values else x.read_value() for x in self.variables]
        return self.differentiable([*read, *tensors, *self.captures])[: len(self.outputs)]

    def differentiable(self, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the program on the values of its variables and its inputs, and registers its gradient with
        TensorFlow."""

        @tf.custom_gradient
        def run(*operands: tf.Tensor) -> Any:
            return self.run(operands), lambda *upstream: self.gradients(operands, upstream)

        results = run(*operands)
        return list(results) if isinstance(results, list | tuple) else [results]

    # Running

    def run(self, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the machine code immediately, or as a node of the graph that is being traced."""
        if tf.executing_eagerly():
            code = self.code(operands)
            results = [empty(kind) for kind in code.types]
            arrays = (*map(to_array, operands), *results)
            code.executable.loaded.execute_at([array.__array_interface__["data"][0] for array in arrays])
            return self._as_declared(list(map(to_tensor, results)))
        declared = [*self.outputs, *self.written]
        results = tf.numpy_function(
            lambda *arrays: list(self.code(arrays).executable(*arrays)),
            operands,
            [QUANTIZED.get(x.dtype, x.dtype) for x in declared],
            stateful=bool(self.written),
        )
        for result, like in zip(results, declared, strict=True):
            result.set_shape(like.shape)
        return self._as_declared(results)

    def _as_declared(self, results: list[tf.Tensor]) -> list[tf.Tensor]:
        """Returns results of which some are quantized in the dtypes that TensorFlow has for that."""
        if not self._is_quantized:
            return results
        declared = [x.dtype for x in (*self.outputs, *self.written)]
        return [tf.bitcast(x, y) if y in QUANTIZED else x for x, y in zip(results, declared, strict=True)]

    @functools.cached_property
    def _is_quantized(self) -> bool:
        return any(x.dtype in QUANTIZED for x in (*self.outputs, *self.written))

    def code(self, operands: Sequence[Any]) -> Code:
        """Returns the machine code for operands of these sizes, compiled if necessary."""
        key = () if self._is_static else tuple(map(extents, operands))
        if key not in self._code:
            log.info("compiling %s for %s", self.concrete.name, ", ".join(str(tuple(x.shape)) for x in operands))
            self._code[key] = self._compile(operands)
        return self._code[key]

    def prepare(self, operands: Sequence[Any]) -> None:
        """Raises what importing the function would raise, before it becomes a node of a graph. Where sizes are unknown,
        small ones stand for them; an error that they may have caused is left to the run."""
        shapes = [x.shape for x in operands]
        if all(shape.is_fully_defined() for shape in shapes):
            self.code(operands)
        elif all(shape.rank is not None for shape in shapes) and not self._is_prepared:
            self._is_prepared = True
            sizes = [tf.TensorShape([2 if size is None else size for size in shape]) for shape in shapes]
            try:
                self._import([tf.TensorSpec(size, x.dtype) for size, x in zip(sizes, operands, strict=True)])
            except UnsupportedOpError:
                raise
            except Error as error:
                log.debug("importing %s for small sizes: %s", self.concrete.name, error)

    @functools.cached_property
    def _is_static(self) -> bool:
        values = (*self.concrete.inputs, *self.variables)
        return all(x.shape.is_fully_defined() for x in values if x.dtype != tf.resource)

    def _compile(self, operands: Sequence[Any]) -> Code:
        module = self._import(operands)
        executable = compile(module, **self.options)
        name = re.sub(r"^__[a-z]+_|_\d+$", "", str(self.concrete.name))
        shapes = ", ".join("x".join(map(str, x.shape)) or "a scalar" for x in operands)
        journal.compiled(
            (id(self), self.concrete.name),
            name,
            f"the shapes {shapes}" if shapes else "no arguments",
            executable.loaded,
            PADDED,
        )
        return Code(executable, [result.type for result in executable.signature.results])

    def _import(self, operands: Sequence[Any]) -> Module:
        rest = iter(operands[len(self.variables) :])
        inputs = [type_of(next(rest)) if x is None else x for x in self.inputs]
        pairs = zip(self.concrete.graph.inputs, self.inputs, strict=True)
        names = [tensor.op.name for tensor, x in pairs if x is None]
        return import_graph(self.concrete.graph, inputs, names, parameters="arguments", count=len(self.outputs)).module

    # Gradients

    def gradients(self, operands: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor]) -> list[tf.Tensor | None]:
        """Returns the gradient of each operand, `None` where there is none. The forward pass is recomputed from the
        same values."""
        count = len(self.variables)
        # In a graph, a result without a gradient has no upstream one.
        given = zip(self.outputs, upstream, strict=False)
        wanted = [dy if _is_differentiable(y) else None for y, dy in given]
        trace, tensors = self.backward.specialize((list(operands[count:]), wanted), {})
        # Variables have the values from the forward pass, even if they have been assigned since.
        seen = {id(variable): value for variable, value in zip(self.variables, operands, strict=False)}
        results = iter(trace.packed(trace.compiled.from_values(tensors, seen)))
        differentiable = [x is not GENERATOR and _is_differentiable(x) for x in self.variables]
        differentiable += map(_is_differentiable, operands[count:])
        return [next(results) if flag else None for flag in differentiable]

    @functools.cached_property
    def backward(self) -> Any:
        """The gradients of variables and of operands, as a function of the operands and the upstream gradients."""
        from trivium.tensorflow.function import Function

        # Including those that are not trainable, because a tape may watch them explicitly.
        variables = [x for x in self.variables if x is not GENERATOR and _is_differentiable(x)]

        def gradient(operands: list[tf.Tensor], upstream: list[tf.Tensor | None]) -> list[tf.Tensor | None]:
            sources = [x for x in operands if _is_differentiable(x)]
            with tf.GradientTape() as tape:
                tape.watch([*variables, *sources])
                outputs = self._called(operands)
            targets = [y for y, dy in zip(outputs, upstream, strict=True) if dy is not None]
            given = [dy for dy in upstream if dy is not None]
            found = tape.gradient(targets, [*variables, *sources], output_gradients=given)
            return [None if x is None else tf.convert_to_tensor(x) for x in found]

        return Function(gradient, self.options)

    def _called(self, operands: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        """Calls the concrete function itself, while TensorFlow traces."""
        rest, variables = iter(operands), iter(self.arguments)
        externals = self.concrete.captured_inputs
        inputs = self.concrete.graph.inputs
        count = len(inputs) - len(externals)
        given = [next(variables).handle if x.dtype == tf.resource else next(rest) for x in inputs[:count]]
        others = [next(rest) if x is None else y for x, y in zip(self.inputs[count:], externals, strict=True)]
        results = self.concrete._call_flat(given, captured_inputs=others)
        return [x for x in tf.nest.flatten(results, expand_composites=True) if x is not None]


@dataclass(frozen=True)
class Code:
    """A program for operands of certain sizes, and the types of its results."""

    executable: Executable
    types: list[TensorType]


# Variables


class _Generator:
    """A placeholder among the variables for the random generator's state, which TensorFlow draws anew each time."""

    dtype, shape = tf.int64, tf.TensorShape((3,))

    def read_value(self) -> tf.Tensor:
        return tf.random.uniform((3,), tf.int64.min, tf.int64.max, tf.int64)


GENERATOR = _Generator()


@dataclass(frozen=True)
class Held:
    """A variable of which only the handle is known."""

    handle: Any
    dtype: tf.DType
    shape: tf.TensorShape

    def read_value(self) -> tf.Tensor:
        return tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self.dtype)


def _exchanged(variables: Sequence[Any], instead: Instead) -> list[Any]:
    return [x if x is GENERATOR else instead.get(id(x.handle), x) for x in variables]


def _readable(variable: Variable, known: Mapping[int, tf.Variable]) -> Any:
    if variable.handle is None:
        return GENERATOR
    found = known.get(id(variable.handle))
    if found is not None:
        return found
    return Held(variable.handle, tf.as_dtype(variable.type.dtype), tf.TensorShape(variable.type.shape))


def _value(variable: Any) -> tf.Tensor:
    """Returns the value of a variable at the lowest cost, without recording the read."""
    if variable is GENERATOR:
        return variable.read_value()
    return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)


def is_recorded() -> bool:
    """Whether gradients may be requested, by a tape or by the graph that is being traced."""
    return record.could_possibly_record() or not tf.executing_eagerly()


def _is_differentiable(x: Any) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex
