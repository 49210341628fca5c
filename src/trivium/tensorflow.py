"""Trivium as TensorFlow's compiler: `trivium.tensorflow.function(f)` is a `tf.function` whose graph runs as Trivium's
machine code. Tensors are passed without a copy; variables are read before and written after a run. Gradients work,
because the graph of a gradient is traced and compiled like any other."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import MethodType
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record

from trivium.api import compile
from trivium.importers.tensorflow.module import Program
from trivium.importers.tensorflow.source import import_concrete
from trivium.importers.tensorflow.types import empty, to_array, to_tensor
from trivium.ir.errors import Error

log = logging.getLogger("trivium.tensorflow")


def function(f: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compiles a function of tensors, or a `tf.function`, for each new signature of its arguments.

    Usable as `function(f)`, `@function` and `@function(threads=4)`. Options are those of `trivium.compile`. The result
    can be called like `f`, eagerly, inside another `tf.function`, and under `tf.GradientTape`.
    """
    return functools.partial(function, **options) if f is None else Function(f, options)


class Function:
    """A function that is traced by TensorFlow and compiled by Trivium."""

    def __init__(self, f: Callable[..., Any], options: Mapping[str, Any]):
        self.traced: Any = f if hasattr(f, "get_concrete_function") else tf.function(f)
        self.options = dict(options)
        self._signature = inspect.signature(getattr(self.traced, "python_function", f))
        self._specializations: dict[Hashable, Specialization] = {}
        functools.update_wrapper(self, getattr(self.traced, "python_function", f))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        specialization, tensors = self.specialize(args, kwargs)
        return specialization(tensors)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def specialize(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Specialization, list[Any]]:
        """Returns the code for arguments like these, compiled if necessary, and the tensors among them, in order."""
        if kwargs:
            bound = self._signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        leaves: list[Any] = []
        key = _key((args, kwargs), leaves)
        found = self._specializations.get(key)
        if found is None:
            name = getattr(self, "__name__", "function")
            log.info("compiling %s for %s (%d so far)", name, leaves_of(leaves), len(self._specializations))
            found = self._specializations[key] = Specialization(self, args, kwargs, leaves)
        return found, [tf.convert_to_tensor(x) for x in leaves if not _is_variable(x)]


class Specialization:
    """A function for one signature: its concrete graph, the program imported from it, and the machine code."""

    def __init__(self, owner: Function, args: Sequence[Any], kwargs: Mapping[str, Any], leaves: Sequence[Any]):
        self.owner = owner
        self.call = (tuple(args), dict(kwargs))
        self.concrete = owner.traced.get_concrete_function(*args, **kwargs)
        self.program: Program = import_concrete(self.concrete, leaves, "arguments")
        self.executable = compile(self.program.module, **owner.options)
        variables = {id(x.handle): x for x in (*self.concrete.graph.variables, *filter(_is_variable, leaves))}
        self.variables: list[Any] = [
            GENERATOR if x.handle is None else variables[id(x.handle)] for x in self.program.arguments
        ]
        self.written: list[Any] = [
            GENERATOR if x.handle is None else variables[id(x.handle)] for x in self.program.written
        ]
        self.structure = self.concrete.structured_outputs
        self.types = [result.type for result in self.executable.signature.results]

    def __call__(self, tensors: Sequence[tf.Tensor]) -> Any:
        if is_recorded():
            results = self.differentiable([*(x.read_value() for x in self.variables), *tensors])
        else:
            results = self.run([*map(_value, self.variables), *tensors])
        count = len(results) - len(self.written)
        for variable, value in zip(self.written, results[count:], strict=True):
            if variable is not GENERATOR:
                tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
        return self.packed(results[:count])

    def packed(self, outputs: Sequence[tf.Tensor]) -> Any:
        """Returns the outputs in the structure that the function returns."""
        rest = iter(outputs)
        flat = tf.nest.flatten(self.structure, expand_composites=True)
        filled = [None if x is None else next(rest) for x in flat]
        return tf.nest.pack_sequence_as(self.structure, filled, expand_composites=True)

    def differentiable(self, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the program on the values of its variables and its inputs, and registers its gradient with
        TensorFlow."""

        @tf.custom_gradient
        def run(*operands: tf.Tensor) -> Any:
            return self.run(operands), lambda *upstream: self.gradients(operands, upstream)

        results = run(*operands)
        return list(results) if isinstance(results, list | tuple) else [results]

    def run(self, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the machine code immediately, or as a node of the graph that is being traced."""
        if tf.executing_eagerly():
            results = [empty(kind) for kind in self.types]
            arrays = (*map(to_array, operands), *results)
            self.executable.loaded.execute_at([array.__array_interface__["data"][0] for array in arrays])
            return list(map(to_tensor, results))
        dtypes = [kind.dtype for kind in self.types]
        results = tf.numpy_function(lambda *arrays: list(self.executable(*arrays)), operands, dtypes)
        for result, kind in zip(results, self.types, strict=True):
            result.set_shape(kind.shape)
        return results

    # Gradients

    def gradients(self, operands: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor]) -> list[tf.Tensor | None]:
        """Returns the gradient of each operand. The forward pass is recomputed from the same values."""
        count = len(self.variables)
        outputs = upstream[: len(upstream) - len(self.written)]
        wanted = [dy for dy in outputs if dy.dtype.is_floating or dy.dtype.is_complex]
        backward, tensors = self.backward.specialize((list(operands[count:]), wanted), {})
        # Variables have the values from the forward pass, even if they have been assigned since.
        seen = {id(variable): value for variable, value in zip(self.variables, operands, strict=False)}
        values = [seen[id(x)] if id(x) in seen else x.read_value() for x in backward.variables]
        results = iter(backward.differentiable([*values, *tensors]))
        differentiable = [x is not GENERATOR and _is_differentiable(x) for x in self.variables]
        differentiable += map(_is_differentiable, operands[count:])
        return [next(results) if flag else None for flag in differentiable]

    @functools.cached_property
    def backward(self) -> Function:
        """The gradients of variables and of inputs, as a function of the inputs and the upstream gradients."""
        args, kwargs = self.call
        # Including those that are not trainable, because a tape may watch them explicitly.
        variables = [x for x in self.variables if x is not GENERATOR and _is_differentiable(x)]

        def gradient(inputs: list[tf.Tensor], upstream: list[tf.Tensor]) -> list[tf.Tensor]:
            sources = [x for x in inputs if _is_differentiable(x)]
            with tf.GradientTape() as tape:
                tape.watch([*variables, *sources])
                positional, named = _filled((args, kwargs), iter(inputs))
                outputs = tf.nest.flatten(self.owner.traced(*positional, **named), expand_composites=True)
            targets = [y for y in outputs if y is not None and _is_differentiable(y)]
            found = tape.gradient(
                targets,
                [*variables, *sources],
                output_gradients=upstream,
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            return [tf.convert_to_tensor(x) for x in found]

        return Function(gradient, self.owner.options)


class _Generator:
    """A placeholder among the variables for the random generator's state, which TensorFlow draws anew each time."""

    def read_value(self) -> tf.Tensor:
        return tf.random.uniform((3,), tf.int64.min, tf.int64.max, tf.int64)


GENERATOR = _Generator()


def is_recorded() -> bool:
    """Whether gradients may be requested, by a tape or by the graph that is being traced."""
    return record.could_possibly_record() or not tf.executing_eagerly()


def _value(variable: Any) -> tf.Tensor:
    """Returns the value of a variable at the lowest cost, without recording the read."""
    if variable is GENERATOR:
        return variable.read_value()
    return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)


# Signatures: tensors are identified by dtype and shape, everything else by value or identity


def _key(x: Any, leaves: list[Any]) -> Hashable:
    if isinstance(x, tf.Tensor | np.ndarray | np.generic):
        leaves.append(x)
        return str(x.dtype) if isinstance(x, np.ndarray | np.generic) else x.dtype.name, tuple(x.shape)
    if isinstance(x, list | tuple):
        return type(x), tuple(_key(entry, leaves) for entry in x)
    if isinstance(x, Mapping):
        return type(x), tuple((name, _key(x[name], leaves)) for name in sorted(x))
    if _is_variable(x):
        leaves.append(x)
        return _Same(x)
    if isinstance(x, tf.RaggedTensor | tf.SparseTensor | tf.IndexedSlices):
        raise Error(f"an argument is a {type(x).__name__}, expected dense tensors: pass its components")
    return (type(x), x) if isinstance(x, bool | int | float | complex | str | bytes | None) else _Same(x)


class _Same:
    """Equal only to the same object, which it keeps alive, so that its address is not reused."""

    def __init__(self, x: Any):
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.x is other.x

    def __hash__(self) -> int:
        return id(self.x)


def _filled(x: Any, tensors: Iterator[tf.Tensor]) -> Any:
    """Returns a structure with its tensors replaced, in order."""
    if isinstance(x, tf.Tensor | np.ndarray | np.generic):
        return next(tensors)
    if isinstance(x, list | tuple):
        entries = [_filled(entry, tensors) for entry in x]
        return type(x)(*entries) if hasattr(x, "_fields") else type(x)(entries)
    if isinstance(x, Mapping):
        return {name: _filled(x[name], tensors) for name in sorted(x)}
    return x


def _is_variable(x: Any) -> bool:
    return isinstance(x, tf.Variable)


def _is_differentiable(x: Any) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


def leaves_of(leaves: Sequence[Any]) -> str:
    """Formats dtypes and shapes for the log."""
    return ", ".join(f"{x.dtype}{list(x.shape)}" for x in leaves) or "no tensors"
