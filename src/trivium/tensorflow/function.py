"""The function that a user calls: it is traced by TensorFlow, once for each signature of its arguments, and each trace
is compiled by Trivium."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MethodType
from typing import Any, cast

import tensorflow as tf
from tensorflow.python.framework.ops import get_default_graph
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from trivium import journal
from trivium.ir.errors import Error
from trivium.tensorflow.clusters import Clustered
from trivium.tensorflow.compiled import Compiled, Options
from trivium.tensorflow.signatures import Leaves, leaves_of, signature_key
from trivium.tensorflow.tracing import is_tracing, tracing

log = logging.getLogger("trivium.tensorflow")

TRACING_OPTIONS = frozenset(inspect.signature(tf.function).parameters) - {"func", "jit_compile"}
"""What `tf.function` takes; `jit_compile` is accepted and has no meaning, since Trivium compiles anyway."""

TRACED = (
    "TensorFlow traces a function for each new dtype, shape and Python value: it does so less often for tensors "
    "instead of Python numbers, and with input_signature or reduce_retracing=True."
)


def function(f: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compiles a function of tensors, or a `tf.function`, for each new signature of its arguments.

    Usable as `function(f)`, `@function` and `@function(threads=4)`. Options are those of `tf.function`
    (`input_signature`, `autograph`, `reduce_retracing`, `jit_compile`) and those of `trivium.compile`. The result can
    be called like `f`, eagerly, inside another `tf.function` (as a node of its graph) or another
    `trivium.tensorflow.function` (as a part of its program), and under `tf.GradientTape`. Arguments of unknown sizes
    are compiled for each combination of sizes that is met.

    What has no rule runs in TensorFlow, between compiled parts, and the log names it once. `fallback=False` makes it an
    `UnsupportedOpError` that lists all.
    """
    return functools.partial(function, **options) if f is None else Function(f, options)


class Function:
    """A function that is traced by TensorFlow and compiled by Trivium."""

    def __init__(self, f: Callable[..., Any], options: Mapping[str, Any]):
        self.traced: Any = _traceable(f, {name: x for name, x in options.items() if name in TRACING_OPTIONS})
        rest = {name: x for name, x in options.items() if name not in TRACING_OPTIONS and name != "jit_compile"}
        self.fallback = bool(rest.pop("fallback", True))
        self.options = cast(Options, rest)
        self._signature = inspect.signature(getattr(self.traced, "python_function", f))
        self._has_defaults = any(x.default is not x.empty for x in self._signature.parameters.values())
        self._traces: dict[Hashable, Trace] = {}
        self._compiled: dict[Hashable, Compiled | Clustered] = {}
        self._foreign: set[str] = set()
        """The ops that run in TensorFlow, which the log has named."""
        self._is_told = False
        functools.update_wrapper(self, getattr(self.traced, "python_function", f))

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return getattr(self, "__name__", "function")

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if tf.executing_eagerly():
            trace, tensors = self.specialize(args, kwargs)
            return trace.packed(trace.compiled(tensors))
        return _inside_a_graph(self, args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def get_concrete_function(self, *args: object, **kwargs: object) -> Trace:
        """Returns the trace for arguments like these (or `tf.TensorSpec`s). It can be called, and has the graph."""
        return self._trace(args, kwargs, Leaves())

    def specialize(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Trace, list[tf.Tensor]]:
        """Returns the trace for arguments like these, and the tensors among them, in order."""
        args, kwargs = self._bound(args, kwargs)
        leaves = Leaves()
        key = signature_key((args, kwargs), leaves)
        trace = self._traces.get(key)
        if trace is None:
            trace = self._traces[key] = self._trace(args, kwargs, leaves)
        return trace, trace.tensors(args, kwargs)

    def _bound(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Sequence[object], Mapping[str, object]]:
        if not kwargs and not self._has_defaults:
            return args, kwargs
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _trace(self, args: Sequence[object], kwargs: Mapping[str, object], leaves: Leaves) -> Trace:
        with tracing():
            concrete = self.traced.get_concrete_function(*args, **kwargs)
        key = (id(concrete), *(id(x) for x in leaves.variables))
        if key not in self._compiled:
            log.info("tracing %s for %s (%d so far)", self.name, leaves_of(leaves), len(self._compiled))
            if self._compiled:
                journal.left(self.name, f"{self.name} was traced again, for {leaves_of(leaves)}. {TRACED}")
            self._compiled[key] = self._compile(concrete, leaves.variables)
        return Trace(self, concrete, self._compiled[key])

    def _compile(self, concrete: Any, variables: Sequence[tf.Variable]) -> Compiled | Clustered:
        if self.fallback:
            return Clustered(concrete, variables, self.options, self._foreign)
        return Compiled(concrete, variables, self.options)


class Trace:
    """A function for one signature: TensorFlow's concrete function, and what Trivium compiles from it. Has the
    attributes of a concrete function."""

    def __init__(self, owner: Function, concrete: Any, compiled: Compiled | Clustered):
        self.owner, self.concrete, self.compiled = owner, concrete, compiled

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.packed(self.compiled(self.tensors(args, kwargs)))

    def __getattr__(self, name: str) -> Any:
        if name == "concrete":  # not set yet
            raise AttributeError(name)
        return getattr(self.concrete, name)

    def tensors(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[tf.Tensor]:
        """Returns the tensors among arguments, in the order of the graph's inputs."""
        kind = self.concrete.function_type
        return [x for x in kind.unpack_inputs(kind.bind(*args, **kwargs)) if x.dtype != tf.resource]

    def packed(self, outputs: Sequence[tf.Tensor]) -> Any:
        """Returns the outputs in the structure that the function returns."""
        rest = iter(outputs)
        structure = self.concrete.structured_outputs
        flat = tf.nest.flatten(structure, expand_composites=True)
        filled = [None if x is None else next(rest) for x in flat]
        return tf.nest.pack_sequence_as(structure, filled, expand_composites=True)


@tf.autograph.experimental.do_not_convert
def _inside_a_graph(f: Function, args: Sequence[object], kwargs: Mapping[str, object]) -> Any:
    """A call while TensorFlow traces a function around it."""
    if is_tracing():  # by Trivium: the call becomes a part of the program
        return f.traced(*args, **kwargs)
    if GraphOrParentsInXlaContext(get_default_graph()):
        if not f._is_told:
            log.warning("XLA compiles %s, because it is called inside a function with jit_compile=True", f.name)
            f._is_told = True
        return f.traced(*args, **kwargs)
    trace, tensors = f.specialize(args, kwargs)
    return trace.packed(trace.compiled(tensors))


def _traceable(f: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    if not hasattr(f, "get_concrete_function"):
        return tf.function(f, **options)
    if options:
        given = ", ".join(sorted(options))
        raise Error(f"a tf.function is given with the options {given}, expected them in its own tf.function")
    return f
