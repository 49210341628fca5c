"""Compares the import of a JAX function with JAX itself, equation by equation: each is imported alone, and evaluated on
the values that JAX computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax.extend import core

from trivium.debug.differences import difference
from trivium.debug.parting import Parting
from trivium.importers.jax import import_module
from trivium.ir.interpreter import evaluate


def reference_of(function: Callable[..., object], args: Sequence[object]) -> list[np.ndarray]:
    """Returns JAX's own results."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(function(*args))]


def first_wrong_equation(
    function: Callable[..., object], args: Sequence[object], tolerance: float | None = None
) -> Parting | None:
    """Returns the first equation whose import differs from JAX; `None` if there is none."""
    closed = jax.make_jaxpr(function)(*args)
    jaxpr = closed.jaxpr
    values: dict[core.Var, jax.Array] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values |= dict(zip(jaxpr.invars, map(jax.numpy.asarray, jax.tree.leaves(args)), strict=True))
    for equation in jaxpr.eqns:
        alone = core.ClosedJaxpr(_alone(jaxpr, equation), [])
        results = core.jaxpr_as_fun(alone)(*_variables(equation, values))
        parting = _compared(equation, alone, _variables(equation, values), results, tolerance)
        if parting is not None:
            return parting
        values |= dict(zip(equation.outvars, results, strict=True))
    return None


def _variables(equation: core.JaxprEqn, values: dict[core.Var, jax.Array]) -> list[jax.Array]:
    return [values[atom] for atom in _inputs(equation)]


def _inputs(equation: core.JaxprEqn) -> list[core.Var]:
    return list(dict.fromkeys(atom for atom in equation.invars if isinstance(atom, core.Var)))


def _alone(jaxpr: core.Jaxpr, equation: core.JaxprEqn) -> core.Jaxpr:
    return jaxpr.replace(constvars=[], invars=_inputs(equation), outvars=list(equation.outvars), eqns=[equation])


def _compared(
    equation: core.JaxprEqn,
    alone: core.ClosedJaxpr,
    operands: Sequence[jax.Array],
    results: Sequence[jax.Array],
    tolerance: float | None,
) -> Parting | None:
    module = import_module(alone, ())
    ours = evaluate(module, *map(np.asarray, operands))
    for index, (mine, theirs) in enumerate(zip(ours, results, strict=True)):
        found = difference(mine, np.asarray(theirs), tolerance)
        if found is not None:
            source = next((op.location.describe() for op in module.main.body.block if op.location.describe()), "")
            return Parting(str(equation).strip(), source, index, found, "importing from JAX")
    return None
