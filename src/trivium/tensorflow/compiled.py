"""A TensorFlow concrete function as machine code: imported and compiled for combinations of sizes, or for ranges of
them, run eagerly or as a node of a graph, with a gradient that is compiled as well."""

from __future__ import annotations

import functools
import itertools
import logging
import math
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.framework.ops import get_default_graph

from trivium import journal
from trivium.api import compile
from trivium.backends.pjrt import LoadedExecutable
from trivium.backends.ranged import OpenSizes, RangedPrograms
from trivium.backends.ranges import Sizes
from trivium.backends.recent import FULL, MOST_PROGRAMS, Recent
from trivium.backends.specializing import COMPILED_AT_ONCE
from trivium.compiler.passes.refine import shape_arguments
from trivium.compiler.pipeline import inline_used
from trivium.executable import Executable
from trivium.importers.tensorflow.counted import LaterError
from trivium.importers.tensorflow.module import (
    Interface,
    Program,
    captured,
    import_graph,
    interface_of,
)
from trivium.importers.tensorflow.source import count_of
from trivium.importers.tensorflow.state import Variable
from trivium.importers.tensorflow.types import QUANTIZED, to_array, to_tensor, type_of
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.func import Module
from trivium.ir.types import TensorType
from trivium.tensorflow.code import Code, RangedCode
from trivium.tensorflow.rows import Rows
from trivium.tensorflow.signatures import Resource, extents
from trivium.tensorflow.variables import GENERATOR, NOTHING, Instead, Reader, exchanged, readable, resource_of

log = logging.getLogger("trivium.tensorflow")


PADDED = "To compile less often, pad inputs to a few sizes."


class Options(TypedDict, total=False):
    """Keyword arguments of `trivium.compile`."""

    device: str
    target: str | None
    threads: int | None
    fast_math: bool
    autotune: bool
    deterministic: bool
    tf32: bool


@dataclass(frozen=True)
class Setup:
    """How a function and its parts are compiled."""

    options: Options
    function: Callable[[Callable[..., Any]], Any]
    """Makes a `trivium.tensorflow.Function`: gradients are such functions."""
    fallback: bool = True
    """Whether TensorFlow runs what has no rule."""
    foreign: set[str] = field(default_factory=set)
    """The ops that run in TensorFlow, which the log has named."""
    programs: int = MOST_PROGRAMS
    """How many programs are kept of each graph whose sizes are unknown."""


class Compiled:
    """The machine code of a concrete function. Called with the tensors that it takes, returns those that it returns;
    `arguments` are the variables and other resources among its arguments."""

    def __init__(self, concrete: Any, arguments: Sequence[tf.Variable | Resource], setup: Setup):
        self.concrete, self.setup = concrete, setup
        self.arguments = list({id(x.handle): x for x in arguments}.values())
        self.outputs = list(concrete.outputs)[: count_of(concrete.structured_outputs)]
        self.captures: list[tf.Tensor] = []
        """Tensors that the function uses, as operands of the program after its arguments: they may have gradients."""
        self.inputs = self._inputs()
        known = {id(x.handle): x for x in (*concrete.graph.variables, *arguments)}
        interface: Interface = interface_of(concrete.graph, self.inputs, "arguments")
        self.variables = [readable(x, known) for x in interface.kept]
        self.written = [readable(x, known) for x in interface.written]
        self._reader = Reader(self.variables)
        self._is_prepared = False
        self._read: tuple[int, ...] = ()
        """The positions of the operands whose elements are known while importing."""
        self._room = 0
        """How many rows results have at least whose number depends on data."""
        self._code: Recent[tuple[Any, ...], Code] = Recent(setup.programs)

    def _inputs(self) -> list[Variable | Any]:
        """Says what each input of the graph is: a variable, an array, or `None` for an operand."""
        resources = iter(self.arguments)
        externals = self.concrete.captured_inputs
        given = self.concrete.graph.inputs[: len(self.concrete.graph.inputs) - len(externals)]
        found: list[Any] = [resource_of(next(resources)) if x.dtype == tf.resource else None for x in given]
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
        variables, written = exchanged(self.variables, instead), exchanged(self.written, instead)
        if is_recorded():
            results = self.differentiable([*(x.read_value() for x in variables), *tensors, *self.captures])
        else:
            read = Reader(variables) if instead else self._reader
            results = self.run([*read(), *tensors, *self.captures])
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
        if not tf.executing_eagerly():
            operands = list(map(tf.identity, operands))  # those of other graphs are captured, with their gradients
        with record.stop_recording():
            results = self.run(operands)
        record.record_operation(
            self.name, results, list(operands), lambda *upstream: self.gradients(operands, upstream)
        )
        return results

    # Running

    def run(self, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the machine code immediately, or as a node of the graph that is being traced."""
        if tf.executing_eagerly():
            results = self._results(operands, lambda code, given: code.run_at(given))
            return self._as_declared(list(map(to_tensor, results)))
        declared = [*self.outputs, *self.written]
        with get_default_graph().gradient_override_map(dict.fromkeys(NODES, self._gradient_name)):
            results = tf.numpy_function(
                self._run_arrays,
                operands,
                [QUANTIZED.get(x.dtype, x.dtype) for x in declared],
                stateful=bool(self.written),
                name=re.sub(r"\W+", "_", self.name).strip("_") or None,
            )
        for result, like in zip(results, declared, strict=True):
            result.set_shape(like.shape)
        return self._as_declared(results)

    def _run_arrays(self, *arrays: np.ndarray) -> list[np.ndarray]:
        return self._results(arrays, lambda code, given: code.run(given))

    def _results(
        self, operands: Sequence[Any], run: Callable[[Code | RangedCode, Sequence[Any]], list[np.ndarray]]
    ) -> list[np.ndarray]:
        """Returns the results for operands: once more, with enough room, if more rows exist than the program has room
        for."""
        while True:
            code = self.code(operands)
            results = run(code, [x for i, x in enumerate(operands) if i not in self._read] if self._read else operands)
            needed = code.rows.needed(results)
            if not needed:
                return code.rows.cut(results)
            self._room = needed

    def _as_declared(self, results: list[tf.Tensor]) -> list[tf.Tensor]:
        """Returns results of which some are quantized in the dtypes that TensorFlow has for that."""
        if not self._is_quantized:
            return results
        declared = [x.dtype for x in (*self.outputs, *self.written)]
        return [tf.bitcast(x, y) if y in QUANTIZED else x for x, y in zip(results, declared, strict=True)]

    @functools.cached_property
    def _is_quantized(self) -> bool:
        return any(x.dtype in QUANTIZED for x in (*self.outputs, *self.written))

    def code(self, operands: Sequence[Any]) -> Code | RangedCode:
        """Returns the machine code for operands of these sizes, compiled if necessary."""
        found = self._code.get(self._key(operands)) or self._ranged(operands)
        if found is None:
            log.info("compiling %s for %s", self.concrete.name, ", ".join(str(tuple(x.shape)) for x in operands))
            found = self._compile(operands)
            if self._code.put(self._key(operands), found):  # the import may have read elements
                log.warning(FULL, self.name, self._code.most)
            if self._ranges is not None:
                sizes = _sizes(self._ranges, operands)
                self._ranges.see_exact(sizes, found.executable.loaded, found.executable.module)
        return found

    def _ranged(self, operands: Sequence[Any]) -> RangedCode | None:
        """Returns the machine code for a range of sizes that runs with these operands, if it does."""
        if self._is_static or self._read or self._room or len(self._code) < COMPILED_AT_ONCE or self._ranges is None:
            return None
        sizes = _sizes(self._ranges, operands)
        found = self._ranges.find(sizes)
        return None if found is None else RangedCode(found, sizes, Rows(self.name, ()))

    @functools.cached_property
    def _ranges(self) -> RangedPrograms | None:
        """The programs for ranges of sizes, if some are unknown."""
        inputs = [x for x, y in zip(self.concrete.graph.inputs, self.inputs, strict=True) if y is None]
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in (*self.variables, *inputs)]
        if self._is_static or any(x.shape.rank is None for x in specs):
            return None

        def opened() -> Module:
            module = inline_used(self._import(specs, counted=False).module)
            if shape_arguments(module.main):
                raise Error("its extents follow from elements of its arguments")
            return module

        def compiled(module: Module, sizes: str) -> LoadedExecutable:
            log.info("compiling %s for %s", self.concrete.name, sizes)
            executable = compile(module, **self.setup.options)
            self._tell(sizes, executable)
            return executable.loaded

        return RangedPrograms(self.name, OpenSizes(list(map(type_of, specs))), opened, compiled, self.setup.programs)

    def _key(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        shapes = () if self._is_static else tuple(map(extents, operands))
        return self._room, *shapes, *(np.asarray(operands[i]).tobytes() for i in self._read)

    def prepare(self, operands: Sequence[Any]) -> None:
        """Raises what importing the function would raise, before it becomes a node of a graph. Where sizes are unknown,
        small ones stand for them; an error that they may have caused is left to the run."""
        shapes = [x.shape for x in operands]
        if self._read:
            return
        if all(shape.is_fully_defined() for shape in shapes):
            self._prepare(operands)
        elif all(shape.rank is not None for shape in shapes) and not self._is_prepared:
            self._is_prepared = True
            sizes = [tf.TensorShape([2 if size is None else size for size in shape]) for shape in shapes]
            try:
                self._import([tf.TensorSpec(size, x.dtype) for size, x in zip(sizes, operands, strict=True)])
            except UnsupportedOpError:
                raise
            except Error as error:
                log.debug("importing %s for small sizes: %s", self.concrete.name, error)

    def _prepare(self, operands: Sequence[Any]) -> None:
        try:
            self.code(operands)
        except UnsupportedOpError as error:
            is_later = isinstance(error, LaterError) and not error.from_numbers
            if is_later or not self._counts(operands):  # whose elements are known when the node runs
                raise

    @functools.cached_property
    def name(self) -> str:
        """The name of the Python function."""
        return self.concrete.graph.name

    @functools.cached_property
    def _is_static(self) -> bool:
        values = (*self.concrete.inputs, *self.variables)
        return all(x.shape.is_fully_defined() for x in values if x.dtype != tf.resource)

    def _compile(self, operands: Sequence[Any]) -> Code:
        program = self._imported(operands)
        executable = compile(program.module, **self.setup.options)
        shapes = ", ".join("x".join(map(str, x.shape)) or "a scalar" for x in operands)
        self._tell(f"the shapes {shapes}" if shapes else "no arguments", executable)
        types = [result.type for result in executable.signature.results]
        return Code(executable, types, Rows(self.name, program.outputs, program.lists))

    def _tell(self, given: str, executable: Executable) -> None:
        journal.compiled((id(self), self.concrete.name), self.name, given, executable.loaded, PADDED)

    def _imported(self, operands: Sequence[Any]) -> Program:
        """Imports the function; without fallback, what cannot be imported for any integers is imported for those that
        are given, such as lengths or the splits of ragged tensors: compiled once for each of their values."""
        try:
            return self._import(operands)
        except UnsupportedOpError as error:
            if isinstance(error, LaterError) and not error.from_numbers:
                raise
            counts = self._counts(operands)
            if self._read or not counts or any(tf.is_symbolic_tensor(operands[i]) for i in counts):
                raise
            self._read = counts
        try:
            return self._import(operands)
        except UnsupportedOpError:
            self._read = ()
            raise

    def _counts(self, operands: Sequence[Any]) -> tuple[int, ...]:
        """Returns the positions of the operands whose elements may be read: short lists of integers."""
        if self.setup.fallback:
            return ()
        given = enumerate(operands[len(self.variables) :], len(self.variables))
        return tuple(i for i, x in given if tf.as_dtype(x.dtype) in (tf.int32, tf.int64) and _is_short(x.shape))

    def _import(self, operands: Sequence[Any], counted: bool = True) -> Program:
        """Imports the function for these operands. If it is not `counted`, it is for ranges of sizes, and there is no
        row too many in results whose extents depend on data."""
        given = [np.array(to_array(x)) if i in self._read else type_of(x) for i, x in enumerate(operands)]
        rest = iter(given[len(self.variables) :])
        inputs = [next(rest) if x is None else x for x in self.inputs]
        pairs = zip(self.concrete.graph.inputs, inputs, strict=True)
        names = [tensor.op.name for tensor, x in pairs if isinstance(x, TensorType)]
        room = self._room if counted else None
        return import_graph(
            self.concrete.graph,
            inputs,
            names,
            parameters="arguments",
            count=len(self.outputs),
            room=room,
            of_ranges=not counted,
        )

    # Gradients

    def gradients(self, operands: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor | None]) -> list[tf.Tensor | None]:
        """Returns the gradient of each operand, `None` where there is none. The forward pass is recomputed from the
        same values."""
        count = len(self.variables)
        # In a graph, a result without a gradient has no upstream one.
        given = zip(self.outputs, upstream, strict=False)
        wanted = [dy if _is_differentiable(y) else None for y, dy in given]
        trace, inputs = self.backward.specialize((list(operands[count:]), wanted), {})
        # Variables have the values from the forward pass, even if they have been assigned since.
        seen = {id(variable): value for variable, value in zip(self.variables, operands, strict=False)}
        results = iter(trace.packed(trace.compiled.from_values(trace.tensors(inputs), seen)))
        differentiable = [x is not GENERATOR and _is_differentiable(x) for x in self.variables]
        differentiable += map(_is_differentiable, operands[count:])
        return [next(results) if flag else None for flag in differentiable]

    @functools.cached_property
    def _gradient_name(self) -> str:
        """The name under which TensorFlow finds the gradient of a node in a graph. It lives as long as the program, and
        uses the node's own inputs, so that the gradients of gradients can be built in any graph."""
        name = f"Trivium{next(NUMBERS)}"
        program = weakref.ref(self)

        @tf.autograph.experimental.do_not_convert
        def gradient(node: tf.Operation | None, *upstream: tf.Tensor | None) -> list[tf.Tensor | None]:
            found = program()
            assert found is not None  # the node's function keeps it
            if node is None:  # while TensorFlow saves a graph
                raise Error(
                    f"{found.name} is compiled, and a node of a graph that is being saved, expected TensorFlow's own "
                    "functions there, or the concrete function of a compiled one as a signature"
                )
            return found.gradients(list(node.inputs), upstream)

        tf.RegisterGradient(name)(gradient)
        return name

    @functools.cached_property
    def backward(self) -> Any:
        """The gradients of variables and of operands, as a function of the operands and the upstream gradients."""
        # Including those that are not trainable, because a tape may watch them explicitly.
        variables = [x for x in self.variables if x is not GENERATOR and _is_differentiable(x)]

        def gradient(operands: list[tf.Tensor], upstream: list[tf.Tensor | None]) -> list[tf.Tensor | None]:
            sources = [x for x in operands if _is_differentiable(x)]
            outputs = self._called(operands)
            targets = [y for y, dy in zip(outputs, upstream, strict=True) if dy is not None]
            given = [dy for dy in upstream if dy is not None]
            # Not by a tape: those record nothing while TensorFlow computes a derivative in forward mode.
            found = tf.gradients(targets, [*(x.handle for x in variables), *sources], given)
            return [None if x is None else tf.convert_to_tensor(x) for x in found]

        return self.setup.function(gradient)

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


MOST_COUNTS = 1024
"""The number of integers that may be read while importing."""


def _is_short(shape: Sequence[int]) -> bool:
    return len(shape) < 2 and math.prod(shape) <= MOST_COUNTS


NODES = ("PyFunc", "PyFuncStateless")
"""The types of the node that runs a program."""

NUMBERS = itertools.count()


def _sizes(ranges: RangedPrograms, operands: Sequence[tf.Tensor]) -> Sizes:
    return ranges.sizes.of(list(map(extents, operands)), {})


def is_recorded() -> bool:
    """Whether gradients may be requested, by a tape or by the graph that is being traced."""
    return record.could_possibly_record() or not tf.executing_eagerly()


def _is_differentiable(x: Any) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex
