"""Inputs for programs under test: random, with the values that break identities (zeros of both signs, infinities,
NaN)."""

from collections.abc import Iterator

import numpy as np

from trivium.ir.func import Function

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)


def random_inputs(function: Function, count: int, seed: int = 0) -> Iterator[list[np.ndarray]]:
    """Yields argument lists for `function`: the first with plain numbers, the others with special values among them."""
    generator = np.random.default_rng(seed)
    for trial in range(count):
        yield [_array(generator, kind, special=trial > 0) for kind in function.function_type.inputs]


def _array(generator: np.random.Generator, kind, special: bool) -> np.ndarray:
    dtype, shape = kind.dtype, kind.static_shape
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return generator.integers(0 if dtype.kind == "u" else -100, 100, shape).astype(dtype)
    values = generator.standard_normal(shape)
    if special:
        values = np.where(generator.random(shape) < 0.5, generator.choice(SPECIAL, shape), values)
    return np.asarray(values).astype(dtype)
