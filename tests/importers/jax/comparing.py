"""A JAX function in the language's interpreter and compiled, against JAX itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import trivium


def check(function, arguments, tolerance, run=trivium.evaluate):
    module = trivium.from_jax(function, *arguments)
    module.verify()
    expected = jax.tree_util.tree_leaves(function(*map(jnp.asarray, arguments)))
    for ours, theirs in zip(run(module, *arguments), map(np.asarray, expected), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        if tolerance == 0 or theirs.dtype.kind in "biu":
            np.testing.assert_array_equal(ours, theirs)
            continue
        wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
        scale = np.abs(theirs[np.isfinite(theirs)].astype(wide)).max(initial=1e-30)
        np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=0, atol=tolerance * scale)


def compiled(module, *arguments):
    return trivium.compile(module)(*arguments)


RUNS = pytest.mark.parametrize("run", [trivium.evaluate, compiled], ids=["interpreted", "compiled"])
