"""Layouts of arrays, arguments and results, and the memory that they are in: checks in the form of `device_checks.py`,
which runs them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable
from jax.experimental.layout import Format, Layout, with_layout_constraint
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def form(*major_to_minor):
    return Format(Layout(major_to_minor), SingleDeviceSharding(jax.devices()[0]))


def orders(tree):
    return jax.tree.map(lambda each: each.layout.major_to_minor, tree)


def arrays_in_any_layout():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    for order in itertools.permutations(range(3)):
        y = jax.device_put(x, form(*order))
        assert orders(y.format) == order
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(y[1:, 2], x[1:, 2])
        np.testing.assert_allclose(jnp.sin(y), np.sin(x), rtol=1e-6)
        moved = jax.device_put(y, jax.devices()[1])
        assert moved.format.layout == y.format.layout
        np.testing.assert_array_equal(moved, x)
        back = jax.device_put(y, form(0, 1, 2))
        assert orders(back.format) == (0, 1, 2)
        np.testing.assert_array_equal(back, x)


def layouts_of_programs():
    rows, columns = form(0, 1), form(1, 0)
    run = jax.jit(lambda x, y: (x @ y.T, x + y), in_shardings=(columns, rows), out_shardings=(columns, columns))
    compiled = run.lower(X, X).compile()
    assert orders(compiled.input_formats) == (((1, 0), (0, 1)), {})
    assert orders(compiled.output_formats) == ((1, 0), (1, 0))
    for product, total in (run(jax.device_put(X, columns), X), compiled(jax.device_put(X, columns), X)):
        assert orders((product.format, total.format)) == ((1, 0), (1, 0))
        np.testing.assert_array_equal(product, X @ X.T)
        np.testing.assert_array_equal(total, X + X)
    donated = jax.jit(lambda x: x * 2, in_shardings=columns, out_shardings=columns, donate_argnums=0)
    given = jax.device_put(X, columns)
    np.testing.assert_array_equal(donated(given), X * 2)
    assert given.is_deleted()


def layouts_by_default():
    free = Format(Layout.AUTO)
    lowered = jax.jit(lambda x: (x.T, x + 1), in_shardings=free, out_shardings=free).lower(X)
    compiled = lowered.compile()
    # A transposed result is returned as it is in memory.
    assert orders((compiled.input_formats, compiled.output_formats)) == ((((0, 1),), {}), ((1, 0), (0, 1)))
    turned, total = compiled(X)
    assert orders((turned.format, total.format)) == ((1, 0), (0, 1))
    np.testing.assert_array_equal(turned, X.T)
    np.testing.assert_array_equal(total, X + 1)
    columns = jax.device_put(X, form(1, 0))
    # A program without requests takes an array as it is.
    assert orders(jax.jit(lambda x: x + 1).lower(columns).compile().input_formats) == (((1, 0),), {})
    cube = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for given, order in itertools.product(itertools.permutations(range(3)), repeat=2):
        turn = jax.jit(lambda x, order=order: jnp.transpose(x, order), out_shardings=free)
        turned = turn(jax.device_put(cube, form(*given)))
        assert orders(turned.format) == tuple(order.index(dimension) for dimension in given)
        np.testing.assert_array_equal(turned, cube.transpose(order))
    constrained = jax.jit(lambda x: with_layout_constraint(x, Layout((1, 0))) + 1)
    np.testing.assert_array_equal(constrained(X), X + 1)


def layouts_on_several_devices():
    mesh = Mesh(np.array(jax.devices()), ("x",))
    size = len(jax.devices())
    cube = np.random.default_rng(0).normal(size=(2 * size, 3, 4 * size)).astype(np.float32)
    for order in itertools.permutations(range(3)):
        for spec in (PartitionSpec("x"), PartitionSpec(None, None, "x"), PartitionSpec()):
            held = Format(Layout(order), NamedSharding(mesh, spec))
            whole = jax.device_put(jnp.asarray(cube), held)
            for each in (jax.device_put(cube, held), whole):
                assert orders(each.format) == order
                np.testing.assert_array_equal(each, cube)
            run = jax.jit(lambda x: (jnp.tanh(x).sum(0), x + 1, x.T), out_shardings=(None, held, Format(Layout.AUTO)))
            total, more, turned = run(whole)
            np.testing.assert_allclose(total, np.tanh(cube).sum(0), rtol=1e-5)
            np.testing.assert_array_equal(more, cube + 1)
            np.testing.assert_array_equal(turned, cube.T)
            assert orders((more.format, turned.format)) == (order, tuple(2 - dimension for dimension in order))


def layouts_of_parts():
    run, x, held = program_of_parts()
    assert orders(check_parts(run, x, held)) == ((0, 1), (1, 0))


def serialized_layouts_of_parts():
    run, x, held = program_of_parts()
    data = serialize_executable.serialize(run.lower(x).compile())
    formats = check_parts(serialize_executable.deserialize_and_load(*data), x, held)
    # Of a deserialized program's results, older versions report the default layouts, on JAX's CPU platform also.
    assert orders(formats) == ((0, 1), (1, 0)) or jax.__version_info__ < (0, 10)


def program_of_parts():
    """Returns a program that devices run on parts in an order of their own, its argument, and how that is held."""
    mesh = Mesh(np.array(jax.devices()), ("x",))
    shards, whole = PartitionSpec("x"), PartitionSpec()

    @jax.shard_map(mesh=mesh, in_specs=shards, out_specs=(whole, shards))
    def inside(x):
        return jax.lax.psum(x, "x"), x * jax.lax.axis_index("x")

    rows, columns = (Format(Layout(order), NamedSharding(mesh, shards)) for order in ((0, 1), (1, 0)))
    run = jax.jit(inside, in_shardings=columns, out_shardings=(rows, columns), donate_argnums=0)
    x = np.arange(24 * len(jax.devices()), dtype=np.float32).reshape(-1, 6)
    return run, x, columns


def check_parts(run, x, held):
    """Checks the results of `program_of_parts`, and returns their formats."""
    given = jax.device_put(x, held)
    total, own = run(given)
    size = len(jax.devices())
    parts = x.reshape(size, 4, 6)
    np.testing.assert_array_equal(total, parts.sum(0))
    np.testing.assert_array_equal(own, (parts * np.arange(size)[:, None, None]).reshape(x.shape))
    assert given.is_deleted()
    return total.format, own.format


def kinds_of_memory():
    """Arrays may be in the host's memory, from which they are moved, and which programs take arguments from."""
    device = jax.devices()[0]
    kinds = {memory.kind for memory in device.addressable_memories()}
    assert kinds == {"device", "pinned_host", "unpinned_host"}
    assert device.default_memory().kind == "device"
    here = SingleDeviceSharding(device)
    for kind in sorted(kinds - {"device"}):
        there = SingleDeviceSharding(device, memory_kind=kind)
        for x in (jax.device_put(X, there), jax.device_put(jax.device_put(X, here), there)):
            assert x.sharding.memory_kind == kind
            np.testing.assert_array_equal(x, X)
            assert np.asarray(x).ctypes.data == x.unsafe_buffer_pointer()
            back = jax.device_put(x, here)
            assert back.sharding.memory_kind == "device"
            np.testing.assert_array_equal(back, X)
            run = jax.jit(lambda x: jax.device_put(x, jax.memory.Space.Device) @ X.T)
            for y in (run(x), run(x)):
                np.testing.assert_allclose(y, X @ X.T, rtol=1e-5)
                assert y.sharding.memory_kind == "device"
            np.testing.assert_array_equal(x, X)


CHECKS = [
    arrays_in_any_layout, layouts_of_programs, layouts_by_default, layouts_on_several_devices, layouts_of_parts,
    serialized_layouts_of_parts, kinds_of_memory,
]  # fmt: skip
