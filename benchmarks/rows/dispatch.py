"""The cost of a call from JAX: programs that compute almost nothing, arrays that come from the host, and arrays that go
back to it; on Trivium's device, and by `trivium.jit` on JAX's CPU platform."""

from __future__ import annotations

from collections.abc import Callable

import trivium
from benchmarks.row import OURS, Call, Row
from benchmarks.rows.with_jax import PLATFORMS, jax  # first: it sets JAX's platforms

import jax.numpy as jnp  # isort: skip
import numpy as np  # isort: skip

SMALL, LARGE = np.ones(8, np.float32), np.ones((1024, 256), np.float32)


def row(name: str, call: Callable[[jax.Device], Call], quick: bool = False) -> Row:
    """Returns what `call` prepares for a device."""
    return Row(
        name, lambda _: {peer: call(jax.devices(platform)[0]) for peer, platform in PLATFORMS.items()}, quick=quick
    )


def added(array: np.ndarray, use: Callable[[jax.Array], object]) -> Callable[[jax.Device], Call]:
    """x + 1, and a use of the result."""

    def call(device: jax.Device) -> Call:
        x, add = jax.device_put(array, device), jax.jit(lambda x: x + 1)
        return lambda: use(add(x))

    return call


def added_to_many(device: jax.Device) -> Call:
    """x + 1 for 64 arrays, in one program."""
    many, add = [jax.device_put(SMALL, device) for _ in range(64)], jax.jit(lambda xs: [x + 1 for x in xs])
    return lambda: jax.block_until_ready(add(many))


def mixed(name: str, function: Callable, *arrays: np.ndarray, quick: bool = False) -> Row:
    """`trivium.jit` and `jax.jit` of a function, both on JAX's CPU platform."""

    def make(_: int) -> dict[str, Call]:
        there = jax.device_put(arrays, jax.devices("cpu")[0])
        compiled = {OURS: trivium.jit(function), "xla": jax.jit(function)}
        return {name: lambda run=run: jax.block_until_ready(run(*there)) for name, run in compiled.items()}

    return Row(f"trivium.jit: {name}", make, quick=quick)


def eager_sine(device: jax.Device) -> Call:
    """A function of `jax.numpy` outside of `jit`."""
    x = jax.device_put(SMALL, device)
    return lambda: jnp.sin(x)


ROWS = (
    row("x + 1, 8 elements", added(SMALL, jax.block_until_ready), quick=True),
    row("x + 1, 8 elements, to NumPy", added(SMALL, np.asarray)),
    row("x + 1, 1 MB", added(LARGE, jax.block_until_ready)),
    row("x + 1, 64 arrays of 8 elements", added_to_many),
    row("device_put, 8 elements", lambda device: lambda: jax.device_put(SMALL, device)),
    row("device_put, 1 MB", lambda device: lambda: jax.block_until_ready(jax.device_put(LARGE, device))),
    row("jnp.sin, 8 elements, not in jit", eager_sine),
    mixed("x + 1, 8 elements", lambda x: x + 1, SMALL, quick=True),
    mixed("x + 1, 1 MB", lambda x: x + 1, LARGE),
    mixed("x + 1, 64 arrays of 8 elements", lambda *xs: [x + 1 for x in xs], *[SMALL] * 64),
    mixed("gradient of a sum of sines, 8 elements", jax.grad(lambda x: jnp.sin(x).sum()), SMALL),
)
