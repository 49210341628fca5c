"""The primitive of `trivium.jit`: it carries a function's jaxpr. `jax.grad`, `jax.jvp` and `jax.vmap` transform a call
of it into calls of the transformed jaxpr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
from jax._src.util import weakref_lru_cache  # JAX has no public cache that `jax.clear_caches` clears
from jax.core import AbstractValue, ShapedArray
from jax.extend import core
from jax.interpreters import ad, batching


class Options(NamedTuple):
    """The options of `trivium.compile`."""

    device: str
    target: str | None
    threads: int | None
    fast_math: bool
    autotune: bool
    deterministic: bool
    tf32: bool


trivium_call = core.Primitive("trivium_call")
trivium_call.multiple_results = True


@trivium_call.def_effectful_abstract_eval
def _types(
    *avals: ShapedArray, jaxpr: core.ClosedJaxpr, options: Options
) -> tuple[Sequence[AbstractValue], core.Effects]:
    return jaxpr.out_avals, jaxpr.effects


def _vmap(
    arrays: Sequence[jax.Array], axes: Sequence[int | None], *, jaxpr: core.ClosedJaxpr, options: Options
) -> tuple[list[jax.Array], list[int]]:
    size = next(array.shape[axis] for array, axis in zip(arrays, axes, strict=True) if axis is not None)
    batched = _batched(jaxpr, tuple(axes), size)
    return trivium_call.bind(*arrays, jaxpr=batched, options=options), [0] * len(jaxpr.out_avals)


@weakref_lru_cache
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


@weakref_lru_cache
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


@weakref_lru_cache
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
