"""The loop over a jaxpr's equations, and its surroundings: the trace, the function and its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import source_info_util  # the public interface does not expose an equation's source line
from jax.extend import core
from jax.typing import ArrayLike

from trivium.importers.binding import options_of
from trivium.importers.common import GraphImporter, place, role
from trivium.importers.jax.context import WITHOUT_MEANING, Context, Jaxpr, Rule, array_of, rule, type_of
from trivium.importers.jax.definitions import definition_of
from trivium.importers.jax.references import without_references
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.func import Function, Module
from trivium.ir.location import FusedLocation, Location, NameLocation
from trivium.ir.module_path import in_module, module_path
from trivium.ir.stack import with_stack


class JaxprImporter(GraphImporter[core.JaxprEqn, Context]):
    """Converts one jaxpr. Nested ones are converted by separate importers, at the position of their equation."""

    def __init__(self, emit: Context, graph: str = "main"):
        super().__init__(emit, graph)
        emit.enter = _enter
        self.environment: dict[core.Var, Value] = {}
        # Equations of jaxprs that JAX caches between traces have no user line; they inherit it.
        self._around: dict[int, Location] = {}

    def name_of(self, node: core.JaxprEqn) -> str:
        return node.primitive.name

    def rule_of(self, node: core.JaxprEqn) -> Rule | None:
        return rule.find(node.primitive.name) or definition_of(node.primitive)

    def location_of(self, node: core.JaxprEqn) -> Location:
        frame = source_info_util.user_frame(node.source_info.traceback)
        if frame is not None:
            scopes = str(node.source_info.name_stack)
            return place(node.primitive.name, frame.file_name, frame.start_line, frame.function_name, scopes)
        around = self._around.get(id(node), self.emit.location)
        (inner,) = around.children if isinstance(around, FusedLocation) else (around,)
        named = NameLocation(node.primitive.name, inner.child if isinstance(inner, NameLocation) else inner)
        return in_module(named, module_path(around))

    def inner_nodes(self, node: core.JaxprEqn) -> Iterator[core.JaxprEqn]:
        if node.primitive.name not in rule:
            return  # unsupported primitives in JAX's definition of another are found when that is traced
        around = self.location_of(node)
        for jaxpr in _jaxprs_in(node.params.values()):
            for inner in jaxpr.eqns:
                self._around[id(inner)] = around
                yield inner

    def convert(self, node: core.JaxprEqn, rule: Rule) -> None:
        self.emit.op = node.primitive.name
        self.emit.operands = tuple(array_of(atom.aval) for atom in node.invars)
        self.emit.results = tuple(type_of(variable.aval) for variable in node.outvars)
        operands = list(map(self.read, node.invars))
        options = options_of(self.emit, rule, len(operands), node.params, WITHOUT_MEANING)
        results = rule(self.emit, *operands, **options)
        results = (results,) if isinstance(results, Value) else tuple(results)
        self.emit.require_types(results)
        self.environment.update(zip(node.outvars, results, strict=True))

    def read(self, atom: core.Var | core.Literal) -> Value:
        """Returns the value of an operand."""
        if isinstance(atom, core.Literal):
            return self.emit.elements(atom.val, type_of(atom.aval).element_type)
        return self.environment[atom]

    def run(self, closed: core.ClosedJaxpr, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Converts a whole jaxpr. Returns the values of its results."""
        jaxpr = closed.jaxpr
        for variable, constant in zip(jaxpr.constvars, closed.consts, strict=True):
            self.environment[variable] = self.emit.elements(_array(constant))
        self.environment.update(zip(jaxpr.invars, arguments, strict=True))
        self.convert_all(jaxpr.eqns)
        return tuple(map(self.read, jaxpr.outvars))


def _enter(emit: Context, jaxpr: Jaxpr, operands: Sequence[Value]) -> tuple[Value, ...]:
    closed = jaxpr if isinstance(jaxpr, core.ClosedJaxpr) else core.ClosedJaxpr(jaxpr, ())
    return JaxprImporter(emit).run(closed, operands)


@with_stack
def import_module(function: object, args: Sequence[object], kwargs: Mapping[str, object] | None = None) -> Module:
    """Returns the module of a JAX function, traced with arguments like `args` and `kwargs`, or of a `ClosedJaxpr`.

    Arguments and results are the leaves of their pytrees, in JAX's order, with their paths as names."""
    kwargs = dict(kwargs or {})
    if isinstance(function, core.ClosedJaxpr):
        if args or kwargs:
            raise Error(f"a ClosedJaxpr comes with {len(args) + len(kwargs)} arguments, expected none")
        return import_jaxpr(function)
    if not callable(function):
        raise Error(f"from_jax has a {type(function).__name__}, expected a function or a ClosedJaxpr")
    try:
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*args, **kwargs)
    except Exception as error:  # anything that the function raises while it is traced
        name = getattr(function, "__name__", type(function).__name__)
        raise Error(f"JAX cannot trace {name}: {error}") from error
    names = [*_paths(tuple(args), _argument_names(function, len(args))), *_paths(kwargs)]
    return import_jaxpr(closed, names, _paths(shapes))


@with_stack
def import_jaxpr(closed: core.ClosedJaxpr, names: Sequence[str] = (), result_names: Sequence[str] = ()) -> Module:
    """Returns the module of a closed jaxpr; its function is `main`."""
    closed = without_references(closed)
    types = [type_of(variable.aval) for variable in closed.jaxpr.invars]
    results_count = len(closed.jaxpr.outvars)
    names = list(names) or [""] * len(types)
    result_names = list(result_names) or [""] * results_count

    def body(builder: Builder, *arguments: Value) -> tuple[Value, ...]:
        return JaxprImporter(Context(builder.block)).run(closed, arguments)

    main = Function.build(
        "main",
        types,
        body,
        arg_attrs=[role("input", name) for name in names],
        res_attrs=[role("output", name) for name in result_names],
    )
    return Module.build(functions=[main])


def _jaxprs_in(values: Iterable[object]) -> Iterator[core.Jaxpr]:
    for value in values:
        if isinstance(value, core.ClosedJaxpr):
            yield value.jaxpr
        elif isinstance(value, core.Jaxpr):
            yield value
        elif isinstance(value, tuple | list):
            yield from _jaxprs_in(value)


def _array(constant: ArrayLike) -> np.ndarray:
    if isinstance(constant, jax.Array) and jnp.issubdtype(constant.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(constant))
    return np.asarray(constant)


def _argument_names(function: Callable[..., object], count: int) -> list[str]:
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return names[:count] if len(names) >= count else [str(index) for index in range(count)]


def _paths(tree: object, roots: Sequence[str] | None = None) -> list[str]:
    """Returns a name for each leaf: its path, after the argument's own name if there is one."""
    found = []
    for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]:
        root = ""
        if roots is not None:
            position: int = path[0].idx
            root, path = roots[position], path[1:]
        found.append(root + jax.tree_util.keystr(path))
    return found
