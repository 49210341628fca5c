"""Arguments that the caller gives away: checks in the form of `device_checks.py`, which runs them."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.jax import sharding_checks
from tests.jax.sharding_checks import raises


def donation():
    x = jnp.arange(8.0)
    keep = jnp.arange(8.0)
    y = jax.jit(lambda a, b: a + b, donate_argnums=0)(x, keep)
    assert x.is_deleted()
    assert not keep.is_deleted()
    np.testing.assert_array_equal(y, 2 * np.arange(8.0))
    raises(RuntimeError, "deleted", lambda: x + 1)
    twice = jnp.arange(8.0)
    raises(RuntimeError, "argument 0 of .* is donated", lambda: jax.jit(jnp.add, donate_argnums=0)(twice, twice))
    assert not twice.is_deleted()
    # No result has the size of the argument's parts.
    x, _ = sharding_checks.divided(jax.sharding.PartitionSpec("x"))
    jax.jit(lambda x: x @ x.T, donate_argnums=0)(x)
    assert not x.is_deleted()


def donation_in_place():
    """A result is in the memory of an argument that is given away, unless somebody else uses it."""
    add = jax.jit(lambda x, y: (x + y, y.sum()), donate_argnums=0)
    ones = jnp.ones(1000)
    x = jnp.arange(1000.0)
    place, expected = x.unsafe_buffer_pointer(), np.arange(1000.0) + 1
    y, _ = add(x, ones)
    assert y.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(y, expected)
    assert add.lower(ones, ones).compile().memory_analysis().alias_size_in_bytes == 4000
    x = jnp.arange(1000.0)
    view, source = np.asarray(x), np.arange(1000, dtype=np.float32)
    for given in (x, jax.device_put(source)):
        np.testing.assert_array_equal(add(given, ones)[0], expected)
    np.testing.assert_array_equal(view, np.arange(1000))
    np.testing.assert_array_equal(source, np.arange(1000))
    # A run that is queued reads what the next one, which is not, gives away.
    slow = jax.jit(lambda a, x: jnp.sort(a, axis=0)[0, 0] + x)
    for _ in range(5):
        x = ones + 0
        late = slow(jnp.zeros((1500, 1500)), x)
        jax.jit(lambda x: x * 7, donate_argnums=0)(x)
        np.testing.assert_array_equal(late, np.ones(1000))

    # Nobody waits in between, and all results are in one place.
    def wave(x):
        return jnp.tanh(jnp.sin(x) * 1.5 + jnp.cos(x))

    x, y = (jnp.full((1500, 1500), 0.5) + 0 for _ in range(2))
    place = x.unsafe_buffer_pointer()
    for _ in range(8):
        x, y = jax.jit(wave, donate_argnums=0)(x), jax.jit(wave)(y)
        assert x.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(x, y)


CHECKS = [donation, donation_in_place]
