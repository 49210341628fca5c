"""Loops of many small steps, in double precision where the original programs use it."""

from __future__ import annotations

from typing import Any

from benchmarks.rows.with_jax import jax, normal, row  # first: it sets JAX's platforms

import jax.numpy as jnp  # isort: skip
import numpy as np  # isort: skip

jax.config.update("jax_enable_x64", True)


def rotated(matrix: jax.Array, step: jax.Array) -> jax.Array:
    """10,000 products of a 3x3 matrix, carried by a scan."""
    return jax.lax.scan(lambda carry, _: (carry @ step, None), matrix, None, length=10_000)[0]


def counted(x: jax.Array) -> jax.Array:
    """A `while` over two scalars."""
    return jax.lax.while_loop(lambda c: c[0] < 100_000, lambda c: (c[0] + 1, c[1] * 0.99999 + 1.0), (0, x))[1]


def searched(table: jax.Array) -> jax.Array:
    """A `while` that reads one element of a table in each iteration."""
    stop = table.max()
    step = lambda c: (jnp.maximum(c[0], table[c[1]]), c[1] + 1)  # noqa: E731
    return jax.lax.while_loop(lambda c: c[0] < stop, step, (jnp.int32(0), jnp.int32(0)))[1]


def orbit(state: jax.Array) -> jax.Array:
    """The gradient of a planet's squared distance after 1,000 steps, with respect to its initial state."""

    def final(state: jax.Array) -> jax.Array:
        def step(carry: Any, _: None) -> Any:
            place, velocity = carry
            velocity = velocity - 1e-3 * place / (place @ place) ** 1.5
            return (place + 1e-3 * velocity, velocity), None

        (place, _), _ = jax.lax.scan(step, (state[:2], state[2:]), None, length=1000)
        return place @ place

    return jax.grad(final)(state)


JOINTS = 35


def mass_matrix(angles: jax.Array) -> jax.Array:
    """The mass matrix of a chain of joints: frames by consecutive products of 4x4 matrices, then Jacobians and their
    sums."""
    frame, frames = jnp.eye(4), []
    for joint in range(JOINTS):
        c, s = jnp.cos(angles[joint]), jnp.sin(angles[joint])
        turn = jnp.eye(4).at[:2, :2].set(jnp.array([[c, -s], [s, c]])).at[0, 3].set(0.1)
        frame = frame @ turn
        frames.append(frame)
    world = jnp.stack(frames)
    axes, origins = world[:, :3, 2], world[:, :3, 3]
    linear = jnp.cross(axes[None], origins[:, None] - origins[None])
    linear = linear * jnp.tril(jnp.ones((JOINTS, JOINTS)))[..., None]
    angular = axes[None] * jnp.tril(jnp.ones((JOINTS, JOINTS)))[..., None]
    return jnp.einsum("bik,bjk->ij", linear, linear) + jnp.einsum("bik,bjk->ij", angular, angular)


def recurrent(state: jax.Array, inputs: jax.Array, w: jax.Array, u: jax.Array) -> jax.Array:
    """A recurrent network over a sequence."""
    return jax.lax.scan(lambda h, x: (jnp.tanh(x @ w + h @ u), None), state, inputs)[0]


def layered(state: jax.Array, weights: jax.Array) -> jax.Array:
    """A network of equal layers, whose weights are a stack."""
    return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), state, weights)[0]


ANGLE = 0.001
TURN = np.array([[np.cos(ANGLE), -np.sin(ANGLE), 0], [np.sin(ANGLE), np.cos(ANGLE), 0], [0, 0, 1]])

ROWS = (
    row("f64 3x3 scan, 10000 steps", rotated, np.eye(3), TURN, quick=True),
    row("scalar while, 100000 steps", counted, np.float32(1), quick=True),
    row("while over a table, 100000 steps", searched, np.arange(100_000, dtype=np.int32)),
    row("orbit gradient, 1000 steps", orbit, np.array([1.0, 0, 0, 1.0])),
    row("mass matrix of 35 joints", mass_matrix, np.linspace(0, 1, JOINTS)),
    row(
        "RNN scan 64x8x256",
        recurrent,
        normal(8, 256),
        normal(64, 8, 256, seed=1),
        normal(256, 256) / 16,
        normal(256, 256, seed=2) / 16,
        quick=True,
    ),
    row("scan over 24 layers of 8x768x768", layered, normal(8, 768), normal(24, 768, 768, seed=1) / 28),
)
