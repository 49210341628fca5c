"""Whole JAX programs run by Trivium and compared with JAX: training steps of flax models with optax, loops, attention,
randomness."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
nn = pytest.importorskip("flax.linen")
optax = pytest.importorskip("optax")

import jax.numpy as jnp

import trivium

pytestmark = pytest.mark.jax

TOLERANCE = 1e-4
IMAGES = np.random.default_rng(0).standard_normal((5, 8, 8, 1)).astype(np.float32)
LABELS = np.array([0, 3, 9, 1, 1])


def assert_close(ours, theirs):
    """Requires that every leaf is within `TOLERANCE` of its scale."""
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    for one, other in ((np.asarray(one), np.asarray(other)) for one, other in pairs):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        scale = max(np.abs(other).max(initial=0), 1e-6)
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE * scale)


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(32)(x.reshape(x.shape[0], -1)))
        return nn.Dense(10)(nn.LayerNorm()(x))


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.max_pool(nn.relu(nn.Conv(8, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.avg_pool(nn.gelu(nn.Conv(16, (3, 3), strides=2)(x)), (2, 2), (2, 2))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


@pytest.mark.parametrize("model", [Mlp(), Cnn()], ids=["mlp", "cnn"])
@pytest.mark.parametrize("optimizer", [optax.adam(1e-2), optax.sgd(1e-2, momentum=0.9)], ids=["adam", "sgd"])
def test_training_step(model, optimizer):
    parameters = jax.jit(model.init)(jax.random.key(0), IMAGES)
    state = optimizer.init(parameters)

    def loss(parameters, images, labels):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(parameters, images), labels).mean()

    def step(parameters, state, images, labels):
        value, gradients = jax.value_and_grad(loss)(parameters, images, labels)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, value

    compiled, reference = trivium.jit(step), jax.jit(step)  # op by op, JAX would compile each op for each batch
    ours = theirs = (parameters, state)
    for count in (5, 5, 3):  # the last batch is smaller
        *ours, our_value = compiled(*ours, IMAGES[:count], LABELS[:count])
        *theirs, their_value = reference(*theirs, IMAGES[:count], LABELS[:count])
        assert_close(our_value, their_value)
    # Adam divides by the square root of tiny second moments: parameters are compared by what they compute.
    apply = jax.jit(model.apply)
    assert_close(apply(ours[0], IMAGES), apply(theirs[0], IMAGES))


def test_gradients_of_every_parameter():
    model = Cnn()
    parameters = jax.jit(model.init)(jax.random.key(1), IMAGES)

    def loss(parameters):
        return (model.apply(parameters, IMAGES) ** 2).mean()

    expected = jax.jit(jax.grad(loss))(parameters)
    assert_close(jax.grad(trivium.jit(loss))(parameters), expected)
    assert_close(trivium.jit(jax.grad(loss))(parameters), expected)


def test_scan_rnn():
    keys = jax.random.split(jax.random.key(2), 3)
    parameters = [jax.random.normal(key, (16, 16)) / 4 for key in keys[:2]]
    sequence = jax.random.normal(keys[2], (12, 4, 16))

    def run(parameters, sequence):
        def cell(state, x):
            state = jnp.tanh(x @ parameters[0] + state @ parameters[1])
            return state, state

        return jax.lax.scan(cell, jnp.zeros_like(sequence[0]), sequence)

    def loss(parameters):
        return (run(parameters, sequence)[1] ** 2).sum()

    assert_close(trivium.jit(run)(parameters, sequence), run(parameters, sequence))
    assert_close(trivium.jit(jax.grad(loss))(parameters), jax.grad(loss)(parameters))


def test_while_loop_newton():
    def root(a):
        def improve(carry):
            x, _ = carry
            better = 0.5 * (x + a / x)
            return better, jnp.abs(better - x)

        return jax.lax.while_loop(lambda carry: carry[1] > 1e-6, improve, (a, jnp.float32(1)))[0]

    values = np.linspace(0.5, 90, 7, dtype=np.float32)
    assert_close(trivium.jit(root)(values[3]), np.sqrt(values[3]))
    batched = trivium.jit(jax.vmap(lambda a: root(a)))
    assert_close(batched(values), jax.vmap(root)(values))


def test_vmap_of_grad():
    def loss(w, x):
        return jnp.log1p(jnp.exp(-jnp.dot(w, x)))

    w, xs = np.ones(6, np.float32), np.random.default_rng(3).standard_normal((9, 6)).astype(np.float32)
    expected = jax.vmap(jax.grad(loss), (None, 0))(w, xs)
    assert_close(trivium.jit(jax.vmap(jax.grad(loss), (None, 0)))(w, xs), expected)
    assert_close(jax.vmap(jax.grad(trivium.jit(loss)), (None, 0))(w, xs), expected)


def attention(q, k, v, mask):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def test_attention_block():
    q, k, v = (np.random.default_rng(s).standard_normal((2, 10, 4, 8)).astype(np.float32) for s in range(3))
    mask = np.tril(np.ones((10, 10), bool))
    assert_close(trivium.jit(attention)(q, k, v, mask), attention(q, k, v, mask))


def test_random_draws_inside_a_compiled_function():
    def draw(key):
        first, second = jax.random.split(key)
        return jax.random.bits(first, (100,)), jax.random.uniform(second, (33,)), jax.random.permutation(first, 20)

    key = jax.random.PRNGKey(42)
    for ours, theirs in zip(trivium.jit(draw)(key), draw(key), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        jax.grad,
        jax.vmap,
        lambda f: jax.vmap(jax.grad(f)),
        jax.hessian,
        jax.jit,
        lambda f: jax.jit(jax.grad(f)),
    ],
    ids=["call", "grad", "vmap", "vmap-grad", "hessian", "jit", "jit-grad"],
)
def test_transformations(transform):
    def function(x):
        return (jnp.sin(x) * x).sum() + jax.nn.gelu(x).sum()

    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    assert_close(transform(trivium.jit(function))(x), transform(function)(x))


def test_forward_mode():
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    ours = jax.jvp(trivium.jit(jnp.tanh), (x,), (x,))
    assert_close(ours, jax.jvp(jnp.tanh, (x,), (x,)))


def test_integer_arguments_have_no_derivative():
    def pick(table, index):
        return {"row": table["t"][index] * 2, "next": index + 1}

    table = {"t": np.arange(6, dtype=np.float32).reshape(2, 3)}
    compiled = trivium.jit(pick)
    assert compiled(table, 1)["next"] == 2
    gradient = jax.grad(lambda t: compiled(t, 1)["row"].sum())(table)
    np.testing.assert_array_equal(gradient["t"], [[0, 0, 0], [2, 2, 2]])


def test_each_shape_is_compiled_once():
    traces = []

    def function(x):
        traces.append(x.shape)
        return x + 1

    compiled = trivium.jit(function)
    for shape in [(3,), (4,), (3,), (4,)]:
        np.testing.assert_array_equal(compiled(np.zeros(shape, np.float32)), np.ones(shape, np.float32))
    assert traces == [(3,), (4,)]
