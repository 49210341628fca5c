"""Primitives that JAX defines by a function, and those with short rules: against JAX itself, with gradients."""

from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax import lax
from jax.experimental import sparse
from jax.scipy import special

import trivium
from tests.importers.jax.comparing import RUNS, check, compiled

pytestmark = pytest.mark.jax

RNG = np.random.default_rng(0)
POSITIVE, OTHER = (RNG.uniform(0.2, 6, (3, 5)) for _ in range(2))
UNIT = RNG.uniform(0.05, 0.95, (3, 5))
NORMAL = RNG.standard_normal((3, 5))

SPECIAL = {
    "igamma": (lax.igamma, POSITIVE, OTHER),
    "igammac": (lax.igammac, POSITIVE, OTHER),
    "igamma_grad_a": (lax.igamma_grad_a, POSITIVE, OTHER),
    "random_gamma_grad": (lax.random_gamma_grad, POSITIVE, OTHER),
    "betainc": (lax.betainc, POSITIVE, OTHER, UNIT),
    "bessel_i0e": (lax.bessel_i0e, NORMAL * 6),
    "bessel_i1e": (lax.bessel_i1e, NORMAL * 6),
    "i0": (special.i0, NORMAL),
    "gammainc": (special.gammainc, POSITIVE, OTHER),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_meaning_of_special_function(name):
    function, *arguments = SPECIAL[name]
    check(function, [x.astype(np.float32) for x in arguments], 3e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_function(name, dtype):
    function, *arguments = SPECIAL[name]
    with jax.enable_x64(dtype == "float64"):
        arrays = [np.asarray(jnp.asarray(x, dtype)) for x in arguments]
        check(function, arrays, {"float32": 3e-6, "float64": 1e-12, "bfloat16": 1e-2}[dtype], compiled)


GRADIENTS = {
    "gammainc": lambda x: special.gammainc(x, x + 1).sum(),
    "gammaincc": lambda x: special.gammaincc(x + 0.5, x).sum(),
    "betainc": lambda x: special.betainc(2.0, 3.0, x / 7).sum(),
    "i0e": lambda x: special.i0e(x).sum(),
    "i1e": lambda x: special.i1e(x).sum(),
    "gamma_draws": lambda x: jax.random.gamma(jax.random.key(3), x).sum(),
    "fft": lambda x: (jnp.abs(jnp.fft.fft(x)) ** 3).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name):
    function, x = GRADIENTS[name], POSITIVE.astype(np.float32)
    value, gradient = jax.value_and_grad(trivium.jit(function))(x)
    expected, theirs = jax.value_and_grad(function)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(gradient, theirs, atol=2e-5 * np.abs(theirs).max())


@partial(lax.composite, name="test.twice")
def twice(x, *, by):
    return x * by


@jax.custom_batching.custom_vmap
def squared(x):
    return x * x


@squared.def_vmap
def _(size, batched, x):
    return x * x + 0, True


def linear(x):
    return jax.custom_derivatives.linear_call(lambda r, t: t * r, lambda r, t: t * r, 3.0, x)


F = NORMAL.astype(np.float32)
MANY = RNG.permutation(600).reshape(2, 300).astype(np.float32)
WORDS = RNG.integers(0, 2**32, (20,), np.uint32)
CASES = {
    "composite": (lambda x: twice(x, by=3), F),
    "custom_vmap": (squared, F),
    "custom_vmap_batched": (jax.vmap(squared), F),
    "linear_call": (linear, F),
    "platform": (lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), F),
    "no_platform": (lambda x: lax.platform_dependent(x, tpu=jnp.sin, default=jnp.cos), F),
    "mulhi": (lax.mulhi, WORDS, WORDS[::-1].copy()),
    "mulhi_signed": (lax.mulhi, WORDS.view(np.int32), WORDS[::-1].view(np.int32).copy()),
    "approx_max": (lambda x: lax.approx_max_k(x, 2), F),
    "approx_min": (lambda x: lax.approx_min_k(x, 3, reduction_dimension=0), F),
    "approx_not_aggregated": (lambda x: lax.approx_max_k(x, 2, aggregate_to_topk=False), MANY),
    "ragged_dot": (lambda x, y: lax.ragged_dot(x, jnp.stack([y, y * 2]), jnp.array([2, 1])), F, F.T.copy()),
    "scaled_dot": (
        lambda x, y: lax.scaled_dot(x, y.T, lhs_scale=jnp.full((3, 1), 2.0), preferred_element_type=jnp.float32),
        *(np.tile(F, (1, 7))[:, :32], np.tile(F, (1, 7))[:, :32]),
    ),
    "cg": (lambda x: jax.scipy.sparse.linalg.cg(x @ x.T + 4 * jnp.eye(3), x[:, 0])[0], F),
    "bicgstab": (lambda x: jax.scipy.sparse.linalg.bicgstab(x @ x.T + 4 * jnp.eye(3), x[:, 0])[0], F),
    "bcoo": (lambda x: sparse.BCOO.fromdense(x, nse=15) @ x.T, F),
    "bcsr": (lambda x: sparse.BCSR.fromdense(x, nse=15) @ x.T, F),
    "gamma": (lambda x: jax.random.gamma(jax.random.key(1), jnp.abs(x) + 0.5), F),
    "poisson": (lambda x: jax.random.poisson(jax.random.key(1), jnp.abs(x) * 3), F),
    "beta": (lambda x: jax.random.beta(jax.random.key(1), jnp.abs(x) + 0.5, 2.0), F),
    "window_select": (
        jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME").sum()),
        F,
    ),
    "matrix_rank": (jnp.linalg.matrix_rank, F),
}


@RUNS
@pytest.mark.parametrize("name", CASES)
def test_primitive(name, run):
    function, *arguments = CASES[name]
    check(function, arguments, 1e-5, run)


def test_hidden_draws_lie_between_the_bounds():
    drawn = trivium.compile(trivium.from_jax(lambda: lax.rng_uniform(2.0, 3.0, (1000,))))()[0]
    assert drawn.shape == (1000,)
    assert 2 <= drawn.min() < 2.1 < 2.9 < drawn.max() < 3
