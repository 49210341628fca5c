"""`trivium.jit` combined with other traces: values that a function closes over, nested calls, JAX's modes, typed
keys."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import trivium

X = jnp.arange(6.0).reshape(2, 3)


def scaled(w):
    return trivium.jit(lambda x: (x * w).sum())(X)


@pytest.mark.parametrize("transform", [jax.grad, jax.jit, trivium.jit, jax.value_and_grad])
def test_values_of_an_outer_trace_are_operands(transform):
    np.testing.assert_allclose(transform(scaled)(2.0), transform(lambda w: (X * w).sum())(2.0))


def test_an_outer_batch_is_an_operand():
    np.testing.assert_allclose(jax.vmap(scaled)(jnp.arange(3.0)), jnp.arange(3.0) * X.sum())


def test_a_scan_of_compiled_steps():
    step = trivium.jit(lambda carry, x: (carry * x, carry))
    product = trivium.jit(lambda xs: jax.lax.scan(step, 1.0, xs)[0])
    np.testing.assert_allclose(product(jnp.arange(1.0, 5.0)), 24)
    np.testing.assert_allclose(jax.grad(product)(jnp.arange(1.0, 5.0)), [24, 12, 8, 6])


def test_the_mode_of_64_bits_is_traced_anew():
    function = trivium.jit(lambda x: x + jnp.ones(3, float))
    x = jnp.zeros(3, jnp.float32)
    assert function(x).dtype == jnp.float32
    with jax.enable_x64(True):
        assert function(x).dtype == jnp.float64


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_typed_keys_go_in_and_out(impl):
    key = jax.random.key(3, impl=impl)
    keys = trivium.jit(lambda key: jax.random.split(key))(key)
    assert keys.dtype == key.dtype
    np.testing.assert_array_equal(jax.random.key_data(keys), jax.random.key_data(jax.random.split(key)))


OPTIONS = {
    "device": "cpu", "target": "x86-64-v2", "threads": 1, "fast_math": True, "autotune": True, "deterministic": False,
    "tf32": True,
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_those_of_compile(name, monkeypatch):
    parameters = inspect.signature(trivium.compile).parameters.values()
    assert list(OPTIONS) == [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    given, compile = [], trivium.compile
    monkeypatch.setattr(trivium, "compile", lambda module, **options: given.append(options) or compile(module))
    function = trivium.jit(lambda x: x @ x.T, **{name: OPTIONS[name]})
    np.testing.assert_allclose(function(X), X @ X.T, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: function(x).sum())(X), jax.grad(lambda x: (x @ x.T).sum())(X))
    defaults = {parameter.name: parameter.default for parameter in parameters}
    assert len(given) > 1
    assert all(options == {key: defaults[key] for key in OPTIONS} | {name: OPTIONS[name]} for options in given)


def test_programs_of_different_options_are_different():
    @jax.grad
    def function(x, **options):
        return trivium.jit(lambda x: jnp.sin(x).sum(), **options)(x)

    for options in ({}, {"deterministic": False}, {"tf32": True}, {}):
        np.testing.assert_allclose(function(X, **options), jnp.cos(X), rtol=1e-6)


def test_unknown_options_are_an_error():
    with pytest.raises(
        trivium.Error, match=r"options fastmath, inline, expected any of device, target, threads, .*tf32, static_"
    ):
        trivium.jit(lambda x: x, fastmath=True, inline=True)


def sums_in_place(x):
    """The sum of the rows so far and twice the first row, in arrays that are changed in place."""
    sums, first = jax.new_ref(jnp.zeros_like(x)), jax.new_ref(x[0])
    first[...] *= 2

    def add(i, total):
        sums[i] = total + x[i]
        return sums[i]

    jax.lax.fori_loop(0, x.shape[0], add, jnp.zeros_like(x[0]))
    return sums[...], first[...]


@pytest.mark.parametrize(
    "transform",
    [lambda f: f, jax.vmap, lambda f: jax.grad(lambda x: sum(map(jnp.sum, f(x)))), lambda f: jax.jvp(f, (X,), (X,))],
    ids=["plain", "vmap", "grad", "jvp"],
)
def test_arrays_that_are_changed_in_place(transform):
    def applied(function):
        found = transform(function)
        return (found(jnp.stack([X, X + 1])) if transform is jax.vmap else found(X)) if callable(found) else found

    for found, expected in zip(
        jax.tree.leaves(applied(trivium.jit(sums_in_place))), jax.tree.leaves(applied(sums_in_place)), strict=True
    ):
        np.testing.assert_allclose(found, expected)


def test_weights_belong_to_the_places_that_they_weigh():
    """Where the coordinates of a turned image are nearly whole, place and weight must follow from the same numbers."""
    turn, shift = jnp.array([[1.1, 0.2], [-0.1, 0.9]]), jnp.array([0.3, 1.0])

    def turned(image):
        places = jnp.stack(jnp.meshgrid(*map(jnp.arange, image.shape), indexing="ij"), -1).astype(jnp.float32)
        coordinates = jnp.einsum("ij,...j->i...", turn, places) + shift[:, None, None]
        return jax.scipy.ndimage.map_coordinates(image, list(coordinates), 1, mode="reflect")

    image = jnp.sin(jnp.arange(99.0) ** 2).reshape(9, 11)
    np.testing.assert_allclose(trivium.jit(turned)(image), turned(image), atol=1e-5)
