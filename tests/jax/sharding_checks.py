"""Arrays that several devices hold in parts, and programs that they run together: checks in the form of
`device_checks.py`, which runs them, on two devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import custom_partitioning, shard_alike

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((4, 6)).astype(np.float32)


def raises(kind, text, function, *arguments):
    with pytest.raises(kind, match=text):
        jax.block_until_ready(function(*arguments))


def divided(spec, shape=(4, 6)):
    """An array of which both devices have parts, and the same on the host."""
    mesh = jax.sharding.Mesh(jax.devices(), ("x",))
    array = RANDOM.standard_normal(shape).astype(np.float32)
    return jax.device_put(array, jax.sharding.NamedSharding(mesh, spec)), array


def divided_arrays():
    rows, columns, everywhere = (jax.sharding.PartitionSpec(*axes) for axes in (("x",), (None, "x"), ()))
    for spec in (rows, columns, everywhere):
        x, array = divided(spec)
        np.testing.assert_array_equal(np.asarray(x), array)
        y = jax.jit(lambda x: (x + 1, x.T, (x @ x.T).sum(), x))(x)
        for one, other in zip(y, (array + 1, array.T, (array @ array.T).sum(), array), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
            assert one.devices() == set(jax.devices())
        for wanted in (rows, columns, everywhere):
            wanted = jax.sharding.NamedSharding(x.sharding.mesh, wanted)
            z = jax.jit(lambda x: x * 2, out_shardings=wanted)(x)
            assert z.sharding == wanted
            np.testing.assert_array_equal(z, array * 2)
    x, array = divided(rows)
    given = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(given, array + 1)


def collectives():
    lax, x = jax.lax, jax.sharding.PartitionSpec("x")
    array = RANDOM.integers(-50, 50, (4, 6)).astype(np.float32)
    first, second = array[:2], array[2:]
    both = [first + second] * 2
    mesh = jax.sharding.Mesh(jax.devices(), ("x",))
    for function, parts in (
        (lambda x: lax.psum(x, "x"), both),
        (lambda x: lax.pmax(x, "x"), [np.maximum(first, second)] * 2),
        (lambda x: lax.all_gather(x, "x", tiled=True), [array] * 2),
        (lambda x: lax.all_gather(x, "x", axis=1, tiled=True), [np.hstack([first, second])] * 2),
        (lambda x: lax.psum_scatter(x, "x", tiled=True), [both[0][:1], both[0][1:]]),
        (lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), [array[:, :3], array[:, 3:]]),
        (lambda x: lax.ppermute(x, "x", [(0, 1)]), [np.zeros_like(first), first]),
        (lambda x: lax.all_gather(x, "x").reshape(4, 6) * 2, [array * 2] * 2),
        (lambda x: x + lax.axis_index("x"), [first, second + 1]),
        (lambda x: lax.fori_loop(0, 3, lambda _, y: lax.psum(y, "x"), x), [4 * (first + second)] * 2),
        (lambda x: lax.psum(x.astype(jnp.bfloat16), "x").astype(np.float32), both),
        (lambda x: lax.psum(x * 1j, "x").imag, both),
    ):
        mapped = jax.shard_map(function, mesh=mesh, in_specs=x, out_specs=x, check_vma=False)
        for given in (array, jax.device_put(array, jax.sharding.NamedSharding(mesh, x))):
            np.testing.assert_array_equal(jax.jit(mapped)(given), np.concatenate(parts))
    squares = jax.shard_map(
        lambda a: lax.psum((a**2).sum(), "x"), mesh=mesh, in_specs=x, out_specs=jax.sharding.PartitionSpec()
    )
    grad = jax.grad(squares)
    np.testing.assert_array_equal(jax.jit(lambda a: grad(a + 1) * 2)(array), 4 * (array + 1))
    np.testing.assert_array_equal(jax.pmap(lambda x: lax.psum(x, "i"), "i")(np.arange(2)), [1, 1])


def terms_of_sums():
    """Devices hold terms of a sum, as explicit shardings say."""
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        rows, terms = jax.sharding.PartitionSpec("x"), jax.sharding.PartitionSpec(unreduced={"x"})
        x = jax.device_put(X, rows)
        summed = jax.jit(lambda x: jax.lax.dot_general(x, x, (((0,), (0,)), ((), ())), out_sharding=terms))(x)
        whole = jax.jit(lambda x: jax.reshard(x, jax.sharding.PartitionSpec()))(summed)
        np.testing.assert_allclose(whole, X.T @ X, rtol=1e-5)
        np.testing.assert_allclose(sum(np.asarray(part.data) for part in summed.addressable_shards), X.T @ X, rtol=1e-5)


def error_on_one_of_several_devices():
    """The others do not wait for it."""

    def refuse(x):
        if x[0] > 0:
            raise ValueError("no such number")
        return x

    def function(x):
        x = jax.pure_callback(refuse, jax.ShapeDtypeStruct((1,), np.int32), x)
        return jax.lax.psum(x, "x")

    mesh, x = jax.sharding.Mesh(jax.devices(), ("x",)), jax.sharding.PartitionSpec("x")
    mapped = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=x, out_specs=x))
    raises(jax.errors.JaxRuntimeError, "no such number", mapped, np.arange(2, dtype=np.int32))
    np.testing.assert_array_equal(mapped(np.zeros(2, np.int32)), [0, 0])


def sharding_of_one_device():
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    function = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, sharding))
    np.testing.assert_array_equal(function(jax.device_put(X, sharding)), X * 2)


def ordered_callbacks_of_devices():
    mesh, x = jax.sharding.Mesh(jax.devices(), ("x",)), jax.sharding.PartitionSpec("x")
    seen = []

    def function(x):
        jax.experimental.io_callback(lambda part: seen.append(part.tolist()), (), x, ordered=True)
        return x + 1

    mapped = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=x, out_specs=x))
    np.testing.assert_array_equal(mapped(np.arange(4)), np.arange(1, 5))
    jax.effects_barrier()
    assert sorted(seen) == [[0, 1], [2, 3]]


def callbacks_on_parts():
    seen = []
    x, array = divided(jax.sharding.PartitionSpec("x"))
    jax.jit(lambda x: jax.debug.callback(lambda part: seen.append(np.asarray(part)), x + 1, partitioned=True))(x)
    jax.effects_barrier()
    np.testing.assert_array_equal(
        np.concatenate(sorted(seen, key=lambda part: (part != array[:2] + 1).any())), array + 1
    )


def callbacks_under_a_mesh():
    """The mesh of the caller is not that of a callback, which computes with arrays of the CPU platform."""
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    x = jax.sharding.PartitionSpec("x")

    def function(part):
        return jax.pure_callback(lambda part: part + 1, jax.ShapeDtypeStruct(part.shape, part.dtype), part)

    with jax.set_mesh(mesh):
        found = jax.jit(jax.shard_map(function, in_specs=x, out_specs=x, check_vma=False))(jax.device_put(X, x))
        assert jax.sharding.get_mesh() == mesh
    np.testing.assert_array_equal(found, X + 1)


def custom_partitions():
    """A function with partitions of its own is computed on wholes, and its sharding rule is not needed."""

    @custom_partitioning.custom_partitioning
    def scaled(x):
        return x * 2 - x.sum(axis=1, keepdims=True)

    def partition(mesh, arguments, result):
        return mesh, scaled, result.sharding, tuple(argument.sharding for argument in arguments)

    scaled.def_partition(partition=partition, sharding_rule="i j -> i j")
    for spec in (jax.sharding.PartitionSpec("x"), jax.sharding.PartitionSpec(None, "x")):
        x, array = divided(spec)
        y = jax.jit(lambda x: scaled(x) + 1)(x)
        np.testing.assert_allclose(y, array * 2 - array.sum(axis=1, keepdims=True) + 1, rtol=1e-5, atol=1e-5)


def shared_alike():
    """Of values that are to be divided alike, those that nothing else divides follow the others."""
    x, array = divided(jax.sharding.PartitionSpec("x"))
    y, z = jax.jit(lambda x: shard_alike.shard_alike(x * 2, jnp.ones_like(array)))(x)
    assert z.sharding == y.sharding == x.sharding
    np.testing.assert_array_equal(y, array * 2)
    np.testing.assert_array_equal(z, np.ones_like(array))


CHECKS = [
    callbacks_under_a_mesh,
    divided_arrays, collectives, terms_of_sums, error_on_one_of_several_devices, sharding_of_one_device,
    ordered_callbacks_of_devices, callbacks_on_parts, custom_partitions, shared_alike,
]  # fmt: skip
