"""Operations of JAX on whole arrays, and short loops: those in which a compiler is slow if it computes lane by lane,
reads memory across its rows, or copies an array to change an element of it."""

from __future__ import annotations

from typing import Any

from benchmarks.rows.with_jax import jax, normal, row  # first: it sets JAX's platforms

import jax.numpy as jnp  # isort: skip
import numpy as np  # isort: skip


def uniform(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, np.float32)


def positive(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 1 << 31, (1024, 1024), np.uint32)


def normalized(images: jax.Array) -> jax.Array:
    return (images / 255.0 - jnp.array([0.485, 0.456, 0.406])) / jnp.array([0.229, 0.224, 0.225])


def overlaps(one: jax.Array, other: jax.Array) -> jax.Array:
    """The common area of each two boxes."""
    corners = jnp.maximum(one[:, None, :2], other[:, :2]), jnp.minimum(one[:, None, 2:], other[:, 2:])
    sides = jnp.clip(corners[1] - corners[0], 0)
    return sides[..., 0] * sides[..., 1]


def cheapest_paths(costs: jax.Array) -> jax.Array:
    """The least costs from one corner of a table, element by element."""

    def element(i: Any, j: Any, table: jax.Array) -> jax.Array:
        return table.at[i, j].set(jnp.minimum(table[i - 1, j], table[i, j - 1]) + costs[i, j])

    rows, columns = costs.shape

    def line(i: Any, table: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(1, columns, lambda j, table: element(i, j, table), table)

    return jax.lax.fori_loop(1, rows, line, costs)


def lstm(inputs: jax.Array, w: jax.Array, u: jax.Array) -> jax.Array:
    """The last state of a recurrent network over one sequence."""

    def step(carry: Any, x: jax.Array) -> Any:
        hidden, cell = carry
        take, forget, new, out = jnp.split(x @ w + hidden @ u, 4, -1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(take) * jnp.tanh(new)
        return (jax.nn.sigmoid(out) * jnp.tanh(cell), cell), None

    zeros = jnp.zeros((inputs.shape[1], u.shape[0]))
    return jax.lax.scan(step, (zeros, zeros), inputs)[0][0]


def after_experts(rows: jax.Array, matrices: jax.Array, sizes: jax.Array) -> jax.Array:
    return jnp.sin(jax.lax.ragged_dot(rows, matrices, sizes)).sum()


def forces(points: jax.Array) -> jax.Array:
    """The forces between particles in a box that is repeated in all directions."""

    def energy(points: jax.Array) -> jax.Array:
        apart = jnp.mod(points[:, None] - points + 3.0, 6.0) - 3.0
        squares = jnp.sum(apart * apart, -1)
        near = (squares < 1.0) & (squares > 0.0)
        return jnp.sum(jnp.where(near, (1.0 - jnp.sqrt(jnp.where(near, squares, 1.0))) ** 2, 0.0))

    return -jax.grad(energy)(points)


def turned(matrices: jax.Array, vectors: jax.Array) -> jax.Array:
    return jnp.einsum("nij,nj->ni", matrices, vectors)


def homogeneous(points: jax.Array) -> jax.Array:
    return jnp.concatenate([points, jnp.ones((points.shape[0], 1))], -1)


def take_along_rows(x: jax.Array, at: jax.Array) -> jax.Array:
    return jnp.take_along_axis(x, at, 1, mode="clip")


def places(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, columns, (rows, columns), np.int32)


def medians(image: jax.Array) -> jax.Array:
    """The median of each pixel and its neighbours."""
    moved = [jnp.roll(image, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return jnp.sort(jnp.stack(moved, -1), -1)[..., 4]


PLANES = normal(8, 128, 128) + 1j * normal(8, 128, 128, seed=1)
EXPERTS = normal(512, 256), normal(8, 256, 512, seed=1) / 16, np.array([80, 17, 64, 120, 0, 51, 92, 88], np.int32)
"""Rows, the matrix of each expert, and how many rows each one has."""

ROWS = (
    row("normalized images 4x224x224x3", normalized, uniform(4, 224, 224, 3), quick=True),
    row("overlaps of 1000x1000 boxes", overlaps, uniform(1000, 4), uniform(1000, 4, seed=1)),
    row("cross products of 100k", jnp.cross, normal(100_000, 3), normal(100_000, 3, seed=1)),
    row("unit vectors of 100k", lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True), normal(100_000, 3)),
    row("probabilities of 3 classes, 100k", jax.nn.softmax, normal(100_000, 3), quick=True),
    row("3x3 matrices by vectors, 100k", turned, normal(100_000, 3, 3), normal(100_000, 3, seed=1)),
    row("forces between 300 particles", forces, 6 * uniform(300, 3)),
    row("homogeneous coordinates of 100k", homogeneous, normal(100_000, 3)),
    row("medians of 3x3 pixels, 512x512", medians, uniform(512, 512)),
    row("transpose (2, 0, 1) of 64x128x128", lambda x: x.transpose(2, 0, 1), normal(64, 128, 128), quick=True),
    row("sums of columns 1024x1024", lambda x: x.sum(0), normal(1024, 1024)),
    row("every third 1024x1024", lambda x: x[::2, ::3], normal(1024, 1024)),
    row("8x1024x1024", jnp.matmul, normal(8, 1024), normal(1024, 1024, seed=1)),
    row("u32 quotients 1024x1024", lambda x, y: x // (y >> 16), positive(0), positive(1)),
    row("polynomial of degree 7, 1M", lambda x: jnp.polyval(jnp.arange(8.0), x), uniform(1024, 1024)),
    row("quantiles of the normal distribution, 1M", jax.scipy.special.ndtri, uniform(1024, 1024)),
    row("trigamma 100k", jax.grad(lambda x: jax.scipy.special.digamma(x).sum()), 0.1 + uniform(100_000)),
    row("modified Bessel function 100k", jax.scipy.special.i1e, normal(100_000)),
    row("take along rows 1024x1024", take_along_rows, normal(1024, 1024), places(1024, 1024)),
    row("resizing 64x64x3 to 112x112x3", lambda x: jax.image.resize(x, (112, 112, 3), "bilinear"), uniform(64, 64, 3)),
    row("FFT of 8 planes 128x128", jnp.fft.fft2, PLANES.astype(np.complex64)),
    row("cheapest paths 300x300", cheapest_paths, uniform(300, 300), quick=True),
    row("8 experts of 256x512, 512 rows", jax.lax.ragged_dot, *EXPERTS),
    row("8 experts of 256x512, 512 rows, gradient", jax.grad(after_experts, (0, 1)), *EXPERTS),
    row("LSTM 512 s64 b1", lstm, normal(64, 1, 512), normal(512, 2048) / 32, normal(512, 2048, seed=1) / 32),
)
