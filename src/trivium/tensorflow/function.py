"""The function that a user calls: it is traced by TensorFlow, once for each signature of its arguments, and each trace
is compiled by Trivium."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
from tensorflow.python.framework.ops import get_default_graph
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext
from tensorflow.python.saved_model.save_context import in_save_context

from trivium import journal
from trivium.backends.recent import Recent
from trivium.ir.errors import Error
from trivium.tensorflow.clusters import Clustered
from trivium.tensorflow.compiled import Options, Setup
from trivium.tensorflow.signatures import Leaves, Resource, leaves_of, signature_key
from trivium.tensorflow.tracing import OWN, is_tracing, tracing
from trivium.tensorflow.variables import Instead

log = logging.getLogger("trivium.tensorflow")

TRACING_OPTIONS = frozenset(inspect.signature(OWN).parameters) - {"func", "jit_compile"}
"""What `tf.function` takes; `jit_compile` is accepted and has no meaning, since Trivium compiles anyway."""

MOST_TRACES = 8
"""The number of traces of one function at which the log warns."""

MOST_SIGNATURES = 1024
"""How many signatures a function remembers the traces of; TensorFlow finds those of others again."""

TRACED = (
    "TensorFlow traces a function for each new dtype, shape and Python value. To trace less often, pass tensors "
    "instead of Python numbers, or set input_signature or reduce_retracing=True."
)


def function(f: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compiles a function of tensors, or a `tf.function`, for each new signature of its arguments.

    Usable as `function(f)`, `@function` and `@function(threads=4)`. Options are those of `tf.function`
    (`input_signature`, `autograph`, `reduce_retracing`, `jit_compile`) and those of `trivium.compile`. The result can
    be called like `f`, eagerly, inside another `tf.function` (as a node of its graph) or another
    `trivium.tensorflow.function` (as a part of its program), and under `tf.GradientTape`. Arguments of unknown sizes
    are compiled for the first two combinations of sizes, then for ranges of them; the last `programs=64` are kept.

    What has no rule runs in TensorFlow, between compiled parts, and the log names it once. `fallback=False` makes it an
    `UnsupportedOpError` that lists all.
    """
    return functools.partial(function, **options) if f is None else Function(f, options)


class Function:
    """A function that is traced by TensorFlow and compiled by Trivium."""

    autograph_info__: Mapping[str, object] = {}
    """The mark of what AutoGraph must call as it is, instead of converting its code."""

    def __init__(self, f: Callable[..., Any], options: Mapping[str, Any]):
        self.traced: Any = _traceable(f, {name: x for name, x in options.items() if name in TRACING_OPTIONS})
        rest = {name: x for name, x in options.items() if name not in TRACING_OPTIONS and name != "jit_compile"}
        self.fallback = bool(rest.pop("fallback", True))
        own = {"fallback": self.fallback, "programs": int(rest.pop("programs", Setup.programs))}
        if own["programs"] < 1:
            raise Error(f"the option programs has {own['programs']}, expected a positive number")
        self._options = {**rest, **own}
        self._setup = Setup(cast(Options, rest), lambda gradient: Function(gradient, self._options), **own)
        self._signature = inspect.signature(getattr(self.traced, "python_function", f))
        self._has_defaults = any(x.default is not x.empty for x in self._signature.parameters.values())
        self._methods: WeakKeyDictionary[object, Function] = WeakKeyDictionary()
        self._traces: Recent[Hashable, Trace] = Recent(MOST_SIGNATURES)
        self._compiled: dict[Hashable, Trace] = {}
        self._is_reported = False
        functools.update_wrapper(self, getattr(self.traced, "python_function", f))

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return getattr(self, "__name__", "function")

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if tf.executing_eagerly():
            trace, inputs = self.specialize(args, kwargs)
            return trace.run(inputs)
        return _inside_a_graph(self, args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if instance not in self._methods:  # TensorFlow's method, which does not keep the instance alive
            self._methods[instance] = Function(self.traced.__get__(instance, owner), self._options)
        return self._methods[instance]

    def get_concrete_function(self, *args: object, **kwargs: object) -> Trace:
        """Returns the trace for arguments like these (or `tf.TensorSpec`s). It can be called, and has the graph."""
        leaves = Leaves()
        signature_key((args, kwargs), leaves)
        return self._trace(args, kwargs, leaves)

    def specialize(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Trace, list[tf.Tensor]]:
        """Returns the trace for arguments like these, and the inputs of its graph among them, in order."""
        args, kwargs = self._bound(args, kwargs)
        leaves = Leaves()
        key = (_replica(), signature_key((args, kwargs), leaves))
        trace = self._traces.get(key)
        if trace is None:
            trace = self._trace(args, kwargs, leaves)
            self._traces.put(key, trace)
        kind = trace.concrete.function_type
        return trace, kind.unpack_inputs(kind.bind(*args, **kwargs))

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
            concrete = self._concrete(args, kwargs)
        resources = _in_order(leaves.resources, concrete, args, kwargs)
        key = (id(concrete), *(id(x) for x in resources if isinstance(x, tf.Variable)))
        if key not in self._compiled:
            self._report(leaves)
            compiled = Clustered(concrete, resources, self._setup)
            self._compiled[key] = Trace(concrete, compiled, [x.handle for x in resources])
        return self._compiled[key]

    def _concrete(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Any:
        try:
            return self.traced.get_concrete_function(*args, **kwargs)
        except RuntimeError as error:
            if "merge_call" not in str(error):
                raise
            replicas = tf.distribute.get_strategy().num_replicas_in_sync
            raise Error(
                f"{self.name} synchronizes replicas (an optimizer does), while it is called by each of {replicas} "
                "replicas of a tf.distribute.Strategy, which TensorFlow allows outside of functions alone; expected a "
                "function that does not, such as a model's call"
            ) from error

    def _report(self, leaves: Leaves) -> None:
        count = len(self._compiled)
        log.info("tracing %s for %s (%d so far)", self.name, leaves_of(leaves), count)
        if count:
            journal.left(self.name, f"{self.name} was traced again, for {leaves_of(leaves)}. {TRACED}")
        if count == MOST_TRACES:
            log.warning("%s has been traced %d times, and is once more. %s", self.name, count, TRACED)


class Trace(ConcreteFunction):
    """A concrete function of TensorFlow's that runs what Trivium has compiled from it. `handles` are those of the
    variables and other resources that were its arguments."""

    def __init__(self, concrete: Any, compiled: Clustered, handles: Sequence[tf.Tensor]):
        self.__dict__.update(concrete.__dict__)
        self.concrete, self.compiled, self.handles = concrete, compiled, handles

    def _call_flat(self, tensor_inputs: Sequence[Any], captured_inputs: Sequence[tf.Tensor]) -> Any:
        """TensorFlow calls this with the inputs of the graph, when it has bound arguments to them."""
        if in_save_context():  # other programs must be able to load what is saved
            return self.concrete._call_flat(tensor_inputs, captured_inputs)
        inputs = [getattr(x, "handle", x) for x in tensor_inputs]
        for given, wanted in zip(inputs, self.concrete.graph.inputs, strict=False):
            if given.dtype != wanted.dtype or not wanted.shape.is_compatible_with(given.shape):
                has, expected = (f"{x.dtype.name}{x.shape}" for x in (given, wanted))
                raise Error(f"argument {wanted.op.name} of {self.concrete.graph.name} has {has}, expected {expected}")
        return self.run(inputs)

    def run(self, inputs: Sequence[tf.Tensor]) -> Any:
        """Returns what the function returns for inputs of its graph."""
        return self.packed(self.compiled(self.tensors(inputs), self._instead(inputs)))

    def tensors(self, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the inputs that are no resources."""
        return [x for x in inputs if x.dtype != tf.resource] if self.handles else list(inputs)

    def _instead(self, inputs: Sequence[tf.Tensor]) -> Instead:
        """Returns the resources that are not those for which the function was traced."""
        given = [x for x in inputs if x.dtype == tf.resource] if self.handles else []
        return {id(mine): x for mine, x in zip(self.handles, given, strict=True) if mine is not x}

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
        if not f._is_reported:
            log.warning("XLA compiles %s, because it is called inside a function with jit_compile=True", f.name)
            f._is_reported = True
        return f.traced(*args, **kwargs)
    trace, inputs = f.specialize(args, kwargs)
    return trace.run(inputs)


def _replica() -> tuple[int, Hashable] | None:
    """Returns which replica of a strategy calls: each has its own variables."""
    if not tf.distribute.has_strategy():
        return None
    context = tf.distribute.get_replica_context()
    number = None if context is None else tf.get_static_value(context.replica_id_in_sync_group)
    return id(tf.distribute.get_strategy()), None if number is None else int(number)


def _in_order(
    resources: Sequence[tf.Variable | Resource], concrete: Any, args: Sequence[object], kwargs: Mapping[str, object]
) -> list[tf.Variable | Resource]:
    """Returns resources in the order of the inputs of a graph, where each is once."""
    if not resources:
        return []
    given = concrete.function_type.bind_partial(*args, **kwargs).arguments
    leaves = Leaves()
    for parameter in concrete.function_type._sorted_parameters:
        signature_key(given.get(parameter.name), leaves)
    return list({id(x.handle): x for x in leaves.resources}.values())


def _traceable(f: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    if not hasattr(f, "get_concrete_function"):
        return OWN(f, **options)
    if options:
        given = ", ".join(sorted(options))
        raise Error(f"a tf.function is given with the options {given}, expected them in its own tf.function")
    return f
