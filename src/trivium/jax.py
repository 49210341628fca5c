"""`trivium.jit`: a JAX function compiled by Trivium. A call becomes one primitive, `trivium_call`, that carries the
function's jaxpr; `jax.grad`, `jax.jvp` and `jax.vmap` transform it into calls of the transformed jaxpr, compiled by
Trivium as well. Inside `jax.jit` it is inlined, and compiled by whatever compiles the rest."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import ParamSpec, TypeVar

import jax
import numpy as np
from jax.core import AbstractValue, ShapedArray, Tracer
from jax.extend import core
from jax.interpreters import ad, batching, mlir
from jax.typing import ArrayLike

import trivium
from trivium.backends.plugin.foreign import register_foreign_functions
from trivium.executable import Executable
from trivium.importers.jax import import_jaxpr
from trivium.jax_plugin import registered_with_jax

P = ParamSpec("P")
Returned = TypeVar("Returned")

Options = tuple[str, int | None, bool, bool]
"""The device, the threads, whether math may be fast, and whether schedules are measured, as in `trivium.compile`."""

CACHED = 1024
"""Jaxprs whose derivatives and machine code are kept; the least recently used ones go first."""

MODES = ("jax_enable_x64", "jax_default_matmul_precision", "jax_numpy_dtype_promotion", "jax_default_prng_impl")
"""The settings of JAX that change what a function is traced to."""


def jit(
    function: Callable[P, Returned],
    *,
    device: str = "cpu",
    threads: int | None = None,
    fast_math: bool = False,
    autotune: bool = False,
) -> Callable[P, Returned]:
    """Like `jax.jit`: traced and compiled at the first call with each combination of shapes and dtypes, then run.

    Works under `jax.grad`, `jax.jvp` and `jax.vmap`, in any nesting. Arguments and results are pytrees of arrays. The
    options are those of `trivium.compile`. Raises `UnsupportedOpError` with every primitive that has no rule.
    """
    options = (device, threads, fast_math, autotune)
    traced: dict[Hashable, tuple[core.ClosedJaxpr, object]] = {}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Returned:
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        key = (tree, *map(_abstract, leaves), *_modes())
        if key not in traced:
            closed, shapes = jax.make_jaxpr(function, return_shape=True)(*args, **kwargs)
            out_tree = jax.tree_util.tree_structure(shapes)
            if any(isinstance(constant, Tracer) for constant in closed.consts):
                # What an outer trace computes is an operand; and it is another one in the next trace.
                operands = [*closed.consts, *leaves]
                results = trivium_call.bind(*operands, jaxpr=_lifted(closed, operands), options=options)
                return jax.tree_util.tree_unflatten(out_tree, results)
            traced[key] = closed, out_tree
        closed, out_tree = traced[key]
        return jax.tree_util.tree_unflatten(out_tree, trivium_call.bind(*leaves, jaxpr=closed, options=options))

    return call


trivium_call = core.Primitive("trivium_call")
trivium_call.multiple_results = True


def _abstract(leaf: ArrayLike) -> Hashable:
    kind = jax.typeof(leaf)
    return kind.shape, kind.dtype, getattr(kind, "weak_type", False)


def _modes() -> tuple:
    return tuple(getattr(jax.config, name) for name in MODES)


def _lifted(closed: core.ClosedJaxpr, operands: Sequence[ArrayLike]) -> core.ClosedJaxpr:
    """`constants, inputs -> results`: the jaxpr with its constants as operands."""
    count = len(closed.consts)

    def function(*values: jax.Array) -> list[jax.Array]:
        return core.jaxpr_as_fun(core.ClosedJaxpr(closed.jaxpr, values[:count]))(*values[count:])

    return jax.make_jaxpr(function)(*operands)


@trivium_call.def_impl
def _run(*arrays: ArrayLike, jaxpr: core.ClosedJaxpr, options: Options) -> list[jax.Array]:
    run = _compiled(jaxpr, options)
    inputs = [
        np.asarray(jax.random.key_data(array) if _is_key(array) else array, dtype=parameter.type.dtype)
        for array, parameter in zip(arrays, run.signature.arguments, strict=True)
    ]
    results = run(*inputs)
    # NumPy has no float0, in which JAX keeps the derivatives of integers; every other result is taken as it is.
    return [
        jax.random.wrap_key_data(jax.device_put(result), impl=aval.dtype._impl)
        if _is_key(aval)
        else jax.device_put(result)
        for result, aval in zip(results, jaxpr.out_avals, strict=True)
    ]


def _is_key(x: ArrayLike | ShapedArray) -> bool:
    return isinstance(x, jax.Array | ShapedArray) and jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key)


@functools.lru_cache(CACHED)
def _compiled(jaxpr: core.ClosedJaxpr, options: Options) -> Executable:
    device, threads, fast_math, autotune = options
    module = import_jaxpr(jaxpr)
    register_foreign_functions(module, [registered_with_jax])
    return trivium.compile(module, device=device, threads=threads, fast_math=fast_math, autotune=autotune)


@trivium_call.def_effectful_abstract_eval
def _types(
    *avals: ShapedArray, jaxpr: core.ClosedJaxpr, options: Options
) -> tuple[Sequence[AbstractValue], core.Effects]:
    return jaxpr.out_avals, jaxpr.effects


def _inlined(*arrays: jax.Array, jaxpr: core.ClosedJaxpr, options: Options) -> Sequence[jax.Array]:
    return core.jaxpr_as_fun(jaxpr)(*arrays)


mlir.register_lowering(trivium_call, mlir.lower_fun(_inlined, multiple_results=True))


def _vmap(
    arrays: Sequence[jax.Array], axes: Sequence[int | None], *, jaxpr: core.ClosedJaxpr, options: Options
) -> tuple[list[jax.Array], list[int]]:
    size = next(array.shape[axis] for array, axis in zip(arrays, axes, strict=True) if axis is not None)
    batched = _batched(jaxpr, tuple(axes), size)
    return trivium_call.bind(*arrays, jaxpr=batched, options=options), [0] * len(jaxpr.out_avals)


@functools.lru_cache(CACHED)
def _batched(jaxpr: core.ClosedJaxpr, axes: tuple[int | None, ...], size: int) -> core.ClosedJaxpr:
    examples = []
    for aval, axis in zip(jaxpr.in_avals, axes, strict=True):
        shape = list(aval.shape)
        if axis is not None:
            shape.insert(axis, size)
        examples.append(jax.ShapeDtypeStruct(tuple(shape), aval.dtype))
    return jax.make_jaxpr(jax.vmap(core.jaxpr_as_fun(jaxpr), in_axes=axes, axis_size=size))(*examples)


batching.primitive_batchers[trivium_call] = _vmap


def _jvp(
    primals: Sequence[jax.Array], tangents: Sequence[jax.Array | ad.Zero], *, jaxpr: core.ClosedJaxpr, options: Options
) -> tuple[list[jax.Array], list[jax.Array | ad.Zero]]:
    """The function with what its derivative needs, and the derivative: linear in the tangents, so that reverse mode can
    transpose it."""
    varied = tuple(not isinstance(tangent, ad.Zero) for tangent in tangents)
    forward, linear = _linearized(jaxpr, varied)
    count = len(jaxpr.out_avals)
    results = trivium_call.bind(*primals, jaxpr=forward, options=options)
    moving = [tangent for tangent, moves in zip(tangents, varied, strict=True) if moves]
    derivatives = iter(trivium_call.bind(*results[count:], *moving, jaxpr=linear, options=options))
    outward = [
        next(derivatives) if _is_differentiable(aval) else ad.Zero(aval.to_tangent_aval()) for aval in jaxpr.out_avals
    ]
    return results[:count], outward


@functools.lru_cache(CACHED)
def _linearized(jaxpr: core.ClosedJaxpr, varied: tuple[bool, ...]) -> tuple[core.ClosedJaxpr, core.ClosedJaxpr]:
    """`inputs -> results, residuals` and `residuals, tangents -> tangents of the differentiable results`."""
    function = core.jaxpr_as_fun(jaxpr)
    examples = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in jaxpr.in_avals]
    keeps: dict[str, object] = {}

    def forward(*inputs: jax.Array) -> list[jax.Array]:
        def of_varied(*chosen: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
            supply = iter(chosen)
            given = [next(supply) if moves else value for value, moves in zip(inputs, varied, strict=True)]
            results = function(*given)
            moving = [value for value, aval in zip(results, jaxpr.out_avals, strict=True) if _is_differentiable(aval)]
            return moving, results

        chosen = [value for value, moves in zip(inputs, varied, strict=True) if moves]
        _, derivative, results = jax.linearize(of_varied, *chosen, has_aux=True)
        residuals, keeps["tree"] = jax.tree_util.tree_flatten(derivative)
        return [*results, *residuals]

    forward_jaxpr = jax.make_jaxpr(forward)(*examples)
    residuals = forward_jaxpr.out_avals[len(jaxpr.out_avals) :]

    def linear(*values: jax.Array) -> list[jax.Array]:
        derivative = jax.tree_util.tree_unflatten(keeps["tree"], values[: len(residuals)])
        return derivative(*values[len(residuals) :])

    tangents = [example for example, moves in zip(examples, varied, strict=True) if moves]
    return forward_jaxpr, jax.make_jaxpr(linear)(*residuals, *tangents)


def _is_differentiable(aval: ShapedArray) -> bool:
    return jax.numpy.issubdtype(aval.dtype, jax.numpy.inexact)


ad.primitive_jvps[trivium_call] = _jvp


def _transpose(
    cotangents: Sequence[jax.Array | ad.Zero],
    *values: jax.Array | ad.UndefinedPrimal,
    jaxpr: core.ClosedJaxpr,
    options: Options,
) -> list[jax.Array | None]:
    """Of a call that is linear in the values that are not known yet: their cotangents."""
    linear = tuple(ad.is_undefined_primal(value) for value in values)
    known = [value for value, unknown in zip(values, linear, strict=True) if not unknown]
    given = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    transposed = _transposed(jaxpr, linear)
    found = iter(trivium_call.bind(*known, *given, jaxpr=transposed, options=options))
    return [next(found) if unknown else None for unknown in linear]


@functools.lru_cache(CACHED)
def _transposed(jaxpr: core.ClosedJaxpr, linear: tuple[bool, ...]) -> core.ClosedJaxpr:
    """`known values, cotangents of results -> cotangents of the linear values`."""
    function = core.jaxpr_as_fun(jaxpr)
    structs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in jaxpr.in_avals]
    known = [struct for struct, unknown in zip(structs, linear, strict=True) if not unknown]
    unknown = [struct for struct, unknown in zip(structs, linear, strict=True) if unknown]

    def transpose(*values: jax.Array) -> Sequence[jax.Array]:
        def of_linear(*moving: jax.Array) -> Sequence[jax.Array]:
            fixed, moved = iter(values[: len(known)]), iter(moving)
            return function(*[next(moved) if is_linear else next(fixed) for is_linear in linear])

        return jax.linear_transpose(of_linear, *unknown)(list(values[len(known) :]))

    results = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in jaxpr.out_avals]
    return jax.make_jaxpr(transpose)(*known, *results)


ad.primitive_transposes[trivium_call] = _transpose
