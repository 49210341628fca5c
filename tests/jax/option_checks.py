"""Checks of the compiler's options on Trivium's device."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from tests.jax.sharding_checks import X, raises


def compiler_options():
    """XLA's options are accepted, and have no effect, those of Trivium have one; others are errors, as are values of
    other types."""
    lowered = jax.jit(jnp.sin).lower(X)
    built = lowered.compile(compiler_options={"xla_embed_ir_in_executable": True, "optimization_level": "1"})
    np.testing.assert_allclose(built(X), np.sin(X), rtol=1e-6)
    wrong = {
        "No such compile option: 'fast'": {"fast": True},
        "No such compile option: 'xla_fast'": {"optimization_level": "1", "xla_fast": True},
        "'trivium_fast', expected one of trivium_fast_math, trivium_autotune": {"trivium_fast": True},
        "trivium_fast_math has '0.500000', expected True or False": {"trivium_fast_math": 0.5},
        "trivium_tf32 has 'yes', expected True or False": {"xla_embed_ir_in_executable": True, "trivium_tf32": "yes"},
        "xla_embed_ir_in_executable, 'fast' is not a valid bool value": {"xla_embed_ir_in_executable": "fast"},
    }
    for message, options in wrong.items():
        raises(RuntimeError, message, lambda options=options: lowered.compile(compiler_options=options))


def fast_math():
    """An option of the compiler: convolutions are computed in another way."""

    def convolution(image, kernel):
        return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    image, kernel = (jnp.sin(jnp.arange(size, dtype=jnp.float32)).reshape(shape) for size, shape in
                     ((56 * 56 * 64, (1, 56, 56, 64)), (9 * 64 * 64, (3, 3, 64, 64))))  # fmt: skip
    strict = jax.jit(convolution)(image, kernel)
    for value, same in ((True, False), (False, True), ("true", False), ("0", True)):
        found = jax.jit(convolution, compiler_options={"trivium_fast_math": value})(image, kernel)
        np.testing.assert_allclose(found, strict, rtol=0, atol=1e-4 * np.abs(strict).max())
        assert bool((found == strict).all()) == same


def options_of_several_devices():
    """Whatever devices a program runs on, XLA's options are read."""
    x = jax.device_put(X, NamedSharding(jax.make_mesh((2,), ("a",)), PartitionSpec("a")))
    total = jax.jit(jnp.sum, compiler_options={"xla_embed_ir_in_executable": True})
    np.testing.assert_allclose(total(x), X.sum(), rtol=1e-6)
    lowered = jax.pmap(jnp.sin).lower(X[:2])
    raises(
        RuntimeError,
        "'x' is not a valid bool value",
        lambda: lowered.compile(compiler_options={"xla_embed_ir_in_executable": "x"}),
    )


CHECKS = compiler_options, fast_math, options_of_several_devices
