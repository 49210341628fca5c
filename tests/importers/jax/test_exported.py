"""Exported JAX functions inside a function: their programs are included unchanged."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax import export

import trivium
from tests.importers.jax.comparing import RUNS, check

pytestmark = pytest.mark.jax

X, Y = (np.random.default_rng(i).standard_normal(shape).astype(np.float32) for i, shape in enumerate([(3, 4), (4, 2)]))


def exported(function, *arguments, **options):
    return export.deserialize(export.export(jax.jit(function), **options)(*arguments).serialize(vjp_order=1))


@RUNS
def test_exported_function(run):
    program = exported(lambda x, unused, y: (jnp.sin(x) @ y, x.sum()), X, X, Y)
    check(lambda x, y: jax.tree_util.tree_map(lambda z: z * 2, program.call(x, x, y)), [X, Y], 2e-6, run)


@RUNS
def test_function_for_several_platforms(run):
    function = lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)  # noqa: E731
    program = exported(function, X, platforms=["tpu", "cpu"])
    check(program.call, [X], 2e-6, run)


def test_gradient_of_an_exported_function():
    program = exported(lambda x: jnp.tanh(x).sum(), X)
    gradient = jax.grad(trivium.jit(program.call))(X)
    np.testing.assert_allclose(gradient, 1 - np.tanh(X) ** 2, rtol=1e-5)


def test_function_for_other_platforms_is_refused():
    program = exported(jnp.sin, X, platforms=["tpu"])
    closed = jax.make_jaxpr(program.call)(X)
    with pytest.raises(trivium.UnsupportedOpError, match=r"platforms has \('tpu',\), expected the CPU among them"):
        trivium.from_jax(closed)


def test_function_of_symbolic_shapes_is_refused():
    (shape,) = [export.symbolic_shape("n, 4")]
    program = exported(jnp.sin, jax.ShapeDtypeStruct(shape, np.float32))
    with pytest.raises(trivium.UnsupportedOpError, match="dynamic shapes inside"):
        trivium.from_jax(program.call, X)
