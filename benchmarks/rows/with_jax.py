"""Contenders of JAX programs: the same function on Trivium's device and on JAX's own CPU platform (XLA), in one
process. Must be imported before anything else imports JAX."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

os.environ["JAX_PLATFORMS"] = "trivium,cpu"

import jax
import numpy as np

from benchmarks.row import OURS, Call, Row

PLATFORMS = {OURS: "trivium", "xla": "cpu"}


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def row(
    name: str,
    program: Callable[..., Any],
    *arguments: Any,
    libraries: Callable[..., Mapping[str, Call]] | None = None,
    **fields: Any,
) -> Row:
    """Prepares `program` on both platforms. `libraries` prepares calls of other contenders from the same arguments."""

    def make(threads: int) -> dict[str, Call]:
        calls = {name: compiled(program, arguments, platform) for name, platform in PLATFORMS.items()}
        return calls | dict(libraries(*arguments) if libraries else {})

    return Row(name, make, **fields)


def compiled(program: Callable[..., Any], arguments: Any, platform: str) -> Call:
    """Returns a call of the jitted program, with arguments on the device."""
    there = jax.device_put(arguments, jax.devices(platform)[0])
    run = jax.jit(program)
    return lambda: jax.block_until_ready(run(*there))
