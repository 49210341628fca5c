"""Lowerings that JAX has only for the CPU and that Trivium adopts, and functions that ask how an array is divided:
checks in the form of `device_checks.py`, which runs them, on two devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

X = np.arange(8, dtype=np.float32).reshape(2, 4)


def rules_for_the_cpu():
    """A user-defined primitive that has a rule for the CPU only."""
    double = Primitive("double")
    double.def_abstract_eval(lambda x: x)
    mlir.register_lowering(double, mlir.lower_fun(lambda x: x + x, multiple_results=False), platform="cpu")
    np.testing.assert_array_equal(jax.jit(double.bind)(X), X + X)


def exported_for_the_cpu():
    for platforms in (["cpu"], ["cpu", "tpu"]):
        exported = jax.export.export(jax.jit(lambda x: jnp.sin(x) * 2), platforms=platforms)(X)
        restored = jax.export.deserialize(exported.serialize())
        result = jax.jit(restored.call, donate_argnums=0)(jnp.asarray(X))
        assert result.devices() == {jax.devices()[0]}
        np.testing.assert_allclose(result, np.sin(X) * 2, rtol=1e-6)


def inspected_shardings():
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    seen = []

    @jax.jit
    def function(x):
        y = jnp.sin(x).T
        jax.debug.inspect_array_sharding(y, callback=seen.append)
        return y

    spec = jax.sharding.PartitionSpec("x", None)
    with jax.set_mesh(mesh):
        function(jax.device_put(X, jax.NamedSharding(mesh, spec)))
    assert seen == [jax.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "x"))]


def lapack_by_other_layouts():
    """A call that is not as JAX itself writes it means what it means on the CPU, down to rows taken for columns."""
    from jaxlib import lapack

    lapack.prepare_lapack_call("geqrf_ffi", np.dtype(np.float32))
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
    shapes = jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((3, 4), x.dtype)
    factor = jax.jit(jax.ffi.ffi_call("lapack_sgeqrf_ffi", shapes))
    found = factor(x)
    with jax.default_device(jax.devices("cpu")[0]):
        expected = factor(x)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    nothing = jax.jit(lambda: jax.ffi.ffi_call("lapack_sgetrf_ffi", jax.ShapeDtypeStruct((2,), np.float32))())
    compiled = nothing.lower().compile()
    with pytest.raises(jax.errors.JaxRuntimeError, match="Wrong number of arguments"):
        jax.block_until_ready(compiled())


def scattered_windows():
    """A window that is not whole in the operand is dropped, and so are its derivatives."""
    numbers = jax.lax.ScatterDimensionNumbers((1,), (), (0,))
    x, updates = jnp.arange(10.0), 20 + jnp.arange(6.0).reshape(3, 2)
    for dtype in (np.int8, np.int32, np.uint32):
        places = np.array([[9], [-1], [4]]).astype(dtype)
        for method in (jax.lax.scatter, jax.lax.scatter_add, jax.lax.scatter_sub, jax.lax.scatter_max):
            result = jax.jit(lambda x, y, places=places, method=method: method(x, places, y, numbers))(x, updates)
            expected = np.arange(10.0)
            expected[4:6] = {"scatter_add": [28, 30], "scatter_sub": [-20, -20]}.get(method.__name__, [24, 25])
            np.testing.assert_array_equal(result, expected)
    kept, inside = jax.grad(lambda x, y: jax.lax.scatter_max(x, places, y, numbers).sum(), (0, 1))(x, updates)
    np.testing.assert_array_equal(kept, [1, 1, 1, 1, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(inside, [[0, 0], [0, 0], [1, 1]])


def products_of_groups():
    """Each group of rows is multiplied with its own matrix only, on one device and divided over all."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((64, 16), np.float32), rng.standard_normal((5, 16, 8), np.float32)
    sizes = np.array([10, 0, 31, 3, 20], np.int32)
    results = jax.value_and_grad(lambda x, y, sizes: jnp.sin(jax.lax.ragged_dot(x, y, sizes)).sum(), (0, 1))
    assert jax.jit(results).lower(x, y, sizes).as_text().count('"chlo.ragged_dot"') == 3
    with jax.default_device(jax.devices("cpu")[0]):
        expected = jax.tree.leaves(jax.jit(results)(x, y, sizes))
    mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.device_put(x, jax.NamedSharding(mesh, jax.sharding.PartitionSpec("x")))
    for given in (x, rows):
        for found, wanted in zip(jax.tree.leaves(jax.jit(results)(given, y, sizes)), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


CHECKS = [
    scattered_windows, products_of_groups, lapack_by_other_layouts, rules_for_the_cpu, exported_for_the_cpu,
    inspected_shardings,
]  # fmt: skip
