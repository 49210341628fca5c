"""Training steps and optimization in JAX."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from benchmarks.rows.with_jax import jax, normal, row  # first: it sets JAX's platforms

import jax.numpy as jnp  # isort: skip
import numpy as np  # isort: skip

LABELS = np.random.default_rng(0).integers(0, 10, 128)


def stepped(loss: Any, parameters: Any, *batch: jax.Array) -> Any:
    """A step of gradient descent."""
    value, gradients = jax.value_and_grad(loss)(parameters, *batch)
    return value, jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def mlp_loss(parameters: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
    *hidden, (w, b) = parameters
    for weight, bias in hidden:
        x = jax.nn.relu(x @ weight + bias)
    return cross_entropy(x @ w + b, labels)


def convnet_loss(parameters: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
    *filters, w = parameters
    for weight in filters:
        x = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return cross_entropy(x.reshape(x.shape[0], -1) @ w, labels)


def newton_cg(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Five steps of Newton's method for a logistic regression, each with ten of conjugate gradients."""

    def loss(w: jax.Array) -> jax.Array:
        return jnp.mean(jnp.logaddexp(0.0, -y * (x @ w))) + 1e-3 * w @ w

    def step(_: int, w: jax.Array) -> jax.Array:
        product = lambda v: jax.jvp(jax.grad(loss), (w,), (v,))[1]  # noqa: E731
        return w - jax.scipy.sparse.linalg.cg(product, jax.grad(loss)(w), maxiter=10)[0]

    return jax.lax.fori_loop(0, 5, step, w)


SIZES = 784, 512, 512, 10
MLP = [(normal(m, n) / m**0.5, np.zeros(n, np.float32)) for m, n in pairwise(SIZES)]
FILTERS = [normal(3, 3, 3, 32) / 5, normal(3, 3, 32, 64) / 17, normal(8 * 8 * 64, 10) / 64]

ROWS = (
    row("MLP step b128", lambda p, *b: stepped(mlp_loss, p, *b), MLP, normal(128, 784), LABELS, quick=True),
    row("convnet step b32", lambda p, *b: stepped(convnet_loss, p, *b), FILTERS, normal(32, 32, 32, 3), LABELS[:32]),
    row(
        "Newton-CG 2000x200",
        newton_cg,
        np.zeros(200, np.float32),
        normal(2000, 200),
        np.sign(normal(2000, seed=1)),
        tolerance=1e-2,
    ),
)
