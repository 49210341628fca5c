"""Arrays that are shared with other frameworks through DLPack: checks in the form of `device_checks.py`, which runs
them."""

import gc
import importlib.util

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.jax.sharding_checks import X, raises


def exported_arrays():
    """Other frameworks read the memory of arrays in place."""
    import torch

    x = jnp.asarray(X) + 0
    assert x.__dlpack_device__() == (1, 0)
    for read in (torch.from_dlpack, np.from_dlpack):
        np.testing.assert_array_equal(read(x), X)
    shared = torch.from_dlpack(x)
    assert shared.data_ptr() == x.unsafe_buffer_pointer()
    there = jax.device_put(x, jax.devices("cpu")[0])
    for array in (x, there):
        np.testing.assert_array_equal(np.from_dlpack(array, device="cpu", copy=True), X)
        array.__dlpack__(dl_device=array.__dlpack_device__())
    for dtype in (bool, np.uint8, np.int32, np.complex64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        array = jnp.asarray(X > 0).astype(dtype)
        values = torch.from_dlpack(array).to(torch.complex64).numpy()
        np.testing.assert_array_equal(values, np.asarray(array).astype(np.complex64))
    # The memory lives as long as somebody reads it.
    donated = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(donated, X * 2 + 1)
    del x
    gc.collect()
    jnp.zeros(X.shape) + 1
    np.testing.assert_array_equal(shared, X)
    spread = jax.device_put(X[:2], NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x")))
    raises(BufferError, "unsharded", torch.from_dlpack, spread)
    np.testing.assert_array_equal(torch.from_dlpack(spread.addressable_shards[1].data), X[1:2])


def imported_arrays():
    """Arrays of the host are on this device, in place."""
    import torch

    given = torch.from_numpy(X.copy())
    x = jnp.from_dlpack(given)
    assert x.devices() == {jax.devices()[0]}
    assert x.unsafe_buffer_pointer() == given.data_ptr()
    np.testing.assert_array_equal(jax.jit(jnp.matmul)(x, x.T), jax.jit(jnp.matmul)(X, X.T))
    for part in (given.T, given[1:], given.flatten()[3:8], given.to(torch.bfloat16), given > 0, given[:0]):
        taken = jnp.from_dlpack(part)
        assert taken.devices() == {jax.devices()[0]}
        np.testing.assert_array_equal(taken.astype(np.float32), part.to(torch.float32))
    copy = jnp.from_dlpack(given, copy=True)
    assert copy.devices() == {jax.devices()[0]}
    assert copy.unsafe_buffer_pointer() != given.data_ptr()
    donated = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(donated, X * 2 + 1)
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(jnp.from_dlpack(copy) + 1, X + 1)
    cpu = jax.devices("cpu")[0]
    assert jnp.from_dlpack(given, device=cpu).devices() == {cpu}
    with jax.default_device(cpu):
        assert jnp.from_dlpack(given).devices() == {cpu}


CHECKS = [exported_arrays, imported_arrays] if importlib.util.find_spec("torch") else []
