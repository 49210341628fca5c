"""`trivium.jit`: a JAX function compiled by Trivium. It is a function of `jax.jit`, so that a call is dispatched as
fast as one of JAX's own; what `jax.jit` traces is one primitive, `trivium_call`, that carries the function's jaxpr."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

import jax
from jax.core import Tracer
from jax.extend import core
from jax.typing import ArrayLike

from trivium.importers.jax.references import without_references
from trivium.jax import lowering
from trivium.jax.call import Options, trivium_call

__all__ = ["jit"]

P = ParamSpec("P")
Returned = TypeVar("Returned")

lowering.register()


def jit(
    function: Callable[P, Returned],
    *,
    device: str = "cpu",
    target: str | None = None,
    threads: int | None = None,
    fast_math: bool = False,
    autotune: bool = False,
    deterministic: bool = True,
    tf32: bool = False,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
) -> Callable[P, Returned]:
    """Like `jax.jit`: traced and compiled at the first call with each combination of shapes and dtypes, then run.

    Works under `jax.grad`, `jax.jvp` and `jax.vmap`, in any nesting; inside of `jax.jit`, it is compiled by whatever
    compiles the rest. Arguments and results are pytrees of arrays, except for static arguments, which are as in
    `jax.jit`. The other options are those of `trivium.compile`. Raises `UnsupportedOpError` with every primitive that
    has no rule.
    """
    options = Options(device, target, threads, fast_math, autotune, deterministic, tf32)
    with_leaves: Callable[..., Returned] = function

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Returned:
        if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
            return function(*args, **kwargs)
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tracer)]  # the others are static

        @functools.wraps(function)
        def of_arrays(*arrays: jax.Array) -> Returned:
            given = dict(enumerate(leaves)) | dict(zip(places, arrays, strict=True))
            args, kwargs = jax.tree_util.tree_unflatten(tree, given.values())
            return with_leaves(*args, **kwargs)

        operands = [leaves[place] for place in places]
        closed, shapes = jax.make_jaxpr(of_arrays, return_shape=True)(*operands)
        if any(isinstance(constant, Tracer) for constant in closed.consts):
            operands = [*closed.consts, *operands]  # what an outer trace computes is an operand
            closed = _lifted(closed, operands)
        results = trivium_call.bind(*operands, jaxpr=without_references(closed), options=options)
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), results)

    return jax.jit(call, static_argnums=static_argnums, static_argnames=static_argnames)


def _lifted(closed: core.ClosedJaxpr, operands: Sequence[ArrayLike]) -> core.ClosedJaxpr:
    """`constants, inputs -> results`: the jaxpr with its constants as operands."""
    count = len(closed.consts)

    def function(*values: jax.Array) -> list[jax.Array]:
        return core.jaxpr_as_fun(core.ClosedJaxpr(closed.jaxpr, values[:count]))(*values[count:])

    return jax.make_jaxpr(function)(*operands)
