"""What JAX's users do with a device, on Trivium: each function is one check, in a process in which Trivium is the
default platform. `python -m tests.jax.device_checks` runs all, or those named, and prints one line of JSON for each."""

import ctypes
import functools
import gc
import json
import os
import sys
import traceback

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import buffer_callback

import trivium
from tests.jax import (
    dlpack_checks,
    donation_checks,
    layout_checks,
    lowering_checks,
    option_checks,
    program_checks,
    sharding_checks,
)
from tests.jax.release import is_soon
from tests.jax.sharding_checks import X, raises
from trivium.jax import lowering
from trivium.pjrt.foreign import address, handler

RANDOM = np.random.default_rng(0)
SQUARE = RANDOM.standard_normal((3, 5, 5)).astype(np.float32)


def same(function, *arguments, rtol=1e-5, atol=1e-5):
    """Requires that `function` returns the same on Trivium as on JAX's CPU platform."""
    results = []
    for platform in (jax.default_backend(), "cpu"):
        device = jax.devices(platform)[0]
        placed = jax.device_put(arguments, device)
        with jax.default_device(device):
            results.append(jax.jit(function)(*placed))
    ours, expected = map(jax.tree.leaves, results)
    assert all(leaf.devices() == {jax.devices()[0]} for leaf in ours)
    for one, other in zip(ours, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=rtol, atol=atol)


def jit():
    assert jax.default_backend() == os.environ["JAX_PLATFORMS"]
    same(lambda x: x + 1, X)
    same(lambda x: {"a": (x, x.T), "b": []}, X)
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(jnp.arange(8)), np.arange(1, 9))


def grad():
    same(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)), X)
    same(jax.jacrev(lambda x: jnp.sin(x) @ x.T), X)
    same(jax.hessian(lambda x: jnp.sum(x**3)), X[0])


def vmap():
    same(jax.vmap(lambda a, b: jnp.outer(a, b)), X, X)


def control_flow():
    same(lambda x: jax.lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(6), x), X)
    same(jax.grad(lambda x: jax.lax.scan(lambda c, row: (jnp.sin(c) + row, c), jnp.zeros(6), x)[0].sum()), X)
    same(lambda n: jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, 1)), np.int32(7))
    same(lambda x: jax.lax.fori_loop(0, 5, lambda i, y: y.at[i].add(i), x), X[0])
    for index in (-1, 0, 1, 5):
        branches = [jnp.sin, jnp.cos, jnp.exp]
        same(lambda i, x, branches=branches: jax.lax.switch(i, branches, x), np.int32(index), X)


def sort():
    same(lambda x: (jnp.sort(x), jnp.argsort(x, axis=0), jax.lax.top_k(x, 3), jnp.cumsum(x)), X)


def convolution():
    image = RANDOM.standard_normal((2, 3, 8, 8)).astype(np.float32)
    kernel = RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32)
    same(lambda x, w: jax.lax.conv_general_dilated(x, w, (2, 2), "SAME"), image, kernel)
    same(jax.grad(lambda w, x: jnp.sum(jax.lax.conv(x, w, (1, 1), "VALID") ** 2)), kernel, image, rtol=1e-3)


def products_of_mixed_types():
    def dot(x, y, precision=None):
        return jax.lax.dot(x, y, precision=precision, preferred_element_type=np.float32)

    same(lambda x, y: dot(x, y, "BF16_BF16_F32"), X, X.astype(jnp.bfloat16).T, atol=0.1)
    small, wide = X.astype(jnp.float8_e5m2), X.astype(jnp.float8_e4m3fn).T
    np.testing.assert_allclose(jax.jit(dot)(small, wide), np.float32(small) @ np.float32(wide), rtol=1e-6)


def random():
    same(lambda seed: jax.random.normal(jax.random.key(seed), (5,)), np.int32(3))
    same(lambda seed: jax.random.permutation(jax.random.key(seed), 10), np.int32(3))
    same(lambda seed: jax.random.gamma(jax.random.key(seed), 2.0, (4,)), np.int32(3), rtol=1e-4)


def element_types():
    for dtype in (
        jnp.bfloat16,
        jnp.float16,
        jnp.int8,
        jnp.uint16,
        jnp.bool_,
        jnp.complex64,
        jnp.float8_e4m3fn,
        jnp.int4,
    ):
        x = jnp.asarray([0, 1, 2, 1], dtype)
        assert np.asarray(jax.jit(lambda x: jnp.concatenate([x, x]))(x)).dtype == dtype
    same(lambda x: jnp.dot(x.astype(jnp.bfloat16), x.T.astype(jnp.bfloat16), preferred_element_type=jnp.float32), X)


def bits_of_narrow_floats():
    """Whatever only moves elements keeps every bit of all codes, NaNs too."""
    random = np.random.default_rng(0)  # other checks depend on what they draw from the common one
    names = [name for name in dir(jnp) if name.startswith("float8_")]
    for dtype in [
        *map(np.dtype, map(functools.partial(getattr, jnp), names)),
        jnp.dtype("bfloat16"),
        np.dtype("float16"),
    ]:
        width = np.dtype(f"uint{8 * dtype.itemsize}")
        bits = random.permutation(1 << 8 * dtype.itemsize).astype(width).reshape(16, -1)
        cast = functools.partial(jax.lax.bitcast_convert_type, new_dtype=dtype)
        places = random.permutation(16)

        @jax.jit
        def moved(bits, x, places=places, cast=cast, width=width):
            y = cast(bits)
            chosen = jnp.where(bits % 3 == 0, y, x[::-1])
            rest = (x.T, jnp.concatenate([x[:, 3:], x[:, :3]], 1), x[places], x[1:9:3], jnp.copy(x))
            return y, chosen, *rest, jax.lax.bitcast_convert_type(y, width)

        expected = (
            bits, np.where(bits % 3 == 0, bits, bits[::-1]), bits.T, np.roll(bits, -3, axis=1), bits[places],
            bits[1:9:3], bits, bits,
        )  # fmt: skip
        for one, other in zip(moved(bits, jax.device_put(bits.view(dtype))), expected, strict=True):
            np.testing.assert_array_equal(np.ascontiguousarray(one).view(width), other)


def x64():
    with jax.enable_x64(True):
        same(lambda x: jnp.linalg.inv(x) @ jnp.exp(x), SQUARE.astype(np.float64), rtol=1e-9)


def linear_algebra():
    symmetric = SQUARE @ SQUARE.transpose(0, 2, 1) + 5 * np.eye(5, dtype=np.float32)
    same(jnp.linalg.cholesky, symmetric)
    same(lambda a: jnp.linalg.eigh(a)[0], symmetric)
    same(jnp.linalg.svdvals, SQUARE)
    same(jnp.linalg.qr, SQUARE)
    same(lambda a: jnp.linalg.qr(a[:, :, :3], mode="complete"), SQUARE)
    same(jax.scipy.linalg.lu, SQUARE[0])
    same(lambda a, b: jnp.linalg.solve(a, b), SQUARE, SQUARE, rtol=1e-3)
    same(lambda a: jnp.sort(jnp.abs(jnp.linalg.eigvals(a))), SQUARE, rtol=1e-3)
    # Two equal diagonal elements in a row have two such forms, which rounding chooses between.
    form, vectors = jax.scipy.linalg.schur(SQUARE[0])
    np.testing.assert_allclose(vectors @ form @ vectors.T, SQUARE[0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(np.tril(form, -2), 0)
    same(jax.scipy.linalg.expm, SQUARE[0], rtol=1e-3)
    same(jax.grad(lambda a: jnp.sum(jnp.linalg.eigh(a)[0] ** 2)), symmetric[0], rtol=1e-3)
    u, s, v = jnp.linalg.svd(SQUARE, full_matrices=False)
    np.testing.assert_allclose((u * s[:, None]) @ v, SQUARE, rtol=1e-4, atol=1e-5)


def host_memory():
    """A copy keeps its values whatever becomes of the original; the host accesses the device's memory directly."""
    x = np.arange(1 << 12, dtype=np.float32)
    y = jnp.array(x)
    x[:] = -1
    np.testing.assert_array_equal(np.asarray(y), np.arange(1 << 12))
    view = np.asarray(y)
    assert view.ctypes.data == y.unsafe_buffer_pointer()
    del y
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(1 << 12))
    room = np.zeros(1 << 12, np.uint8)
    aligned = room[-room.ctypes.data % 64 :][:1024]
    assert jax.device_put(aligned).unsafe_buffer_pointer() == aligned.ctypes.data
    strided = np.arange(24, dtype=np.int32).reshape(4, 6)[::2, ::-1].T
    np.testing.assert_array_equal(jax.device_put(strided), strided)


def memory_is_given_back():
    device = jax.devices()[0]
    before = device.memory_stats()["bytes_in_use"]
    y = jax.jit(lambda x: x * 2)(jax.device_put(np.zeros(1 << 20, np.float32).view(np.int32)))
    y.block_until_ready()
    assert device.memory_stats()["bytes_in_use"] >= before + (4 << 20)
    y.delete()
    raises(RuntimeError, "deleted", np.asarray, y)
    del y
    assert is_soon(lambda: device.memory_stats()["bytes_in_use"] <= before)


def memory_is_used_again():
    """Memory of large buffers serves the next ones of that size."""
    run, device = jax.jit(lambda x: x + 1), jax.devices()[0]
    for count in (1 << 18, 1 << 21, 100):
        x = jnp.zeros(count, np.float32).block_until_ready()
        before = device.memory_stats()["bytes_in_use"]
        first, second = run(x), run(x)
        places = {y.block_until_ready().unsafe_buffer_pointer() for y in (first, second)}
        assert len(places) == 2
        del first, second
        assert is_soon(lambda before=before: device.memory_stats()["bytes_in_use"] <= before)
        again = [run(x) for _ in range(2)]
        if count > 100:
            assert {y.block_until_ready().unsafe_buffer_pointer() for y in again} == places
        for y in again:
            np.testing.assert_array_equal(y, 1)


def several_devices():
    first, second = jax.devices()
    x = jax.device_put(X, second)
    y = jax.jit(lambda x: x + 1)(x)
    assert y.devices() == {second}
    assert jax.device_put(y, first).devices() == {first}
    np.testing.assert_array_equal(jax.device_put(y, first), X + 1)


def callbacks():
    shape = jax.ShapeDtypeStruct((4, 6), np.float32)
    function = jax.jit(lambda x: jax.pure_callback(lambda a: np.sin(a), shape, x) + 1)
    np.testing.assert_allclose(function(X), np.sin(X) + 1, rtol=1e-6)
    seen = []
    io = jax.jit(lambda x: jax.experimental.io_callback(lambda a: seen.append(float(a)), None, x, ordered=True))
    for number in range(3):
        io(number)
    jax.effects_barrier()
    assert seen == [0.0, 1.0, 2.0]

    def loop(x):
        def body(i, c):
            jax.debug.callback(lambda a: seen.append(int(a)), i, ordered=True)
            return c

        return jax.lax.fori_loop(0, 3, body, x)

    jax.block_until_ready(jax.jit(loop)(X))
    jax.effects_barrier()
    assert seen[3:] == [0, 1, 2]


def callbacks_on_memory():
    def add(context, out, x, y):
        assert out.writeable
        assert not x.writeable
        np.asarray(out)[...] = np.asarray(x) + np.asarray(y)

    function = buffer_callback.buffer_callback(add, jax.ShapeDtypeStruct(X.shape, X.dtype))
    np.testing.assert_array_equal(jax.jit(function)(X, 2 * X), 3 * X)
    rows = buffer_callback.buffer_callback(add, jax.ShapeDtypeStruct(X[0].shape, X.dtype), vmap_method="sequential")
    np.testing.assert_array_equal(jax.vmap(rows)(X, X), 2 * X)

    def double(context, out, x):
        np.asarray(out)[...] *= 2

    in_place = buffer_callback.buffer_callback(
        double, jax.ShapeDtypeStruct(X.shape, X.dtype), input_output_aliases={0: 0}
    )
    np.testing.assert_array_equal(jax.jit(in_place)(X), 2 * X)


def branches_of_platforms():
    """If a function has one implementation for each of JAX's platforms, the CPU's is used."""
    cases = (({"tpu": 2, "cpu": 1}, 1), ({"cpu": 1, "default": 3}, 3), ({"cpu": 1, jax.default_backend(): 4}, 4))
    for branches, wanted in cases:
        functions = {name: functools.partial(jnp.add, number) for name, number in branches.items()}
        found = jax.jit(lambda x, functions=functions: jax.lax.platform_dependent(x, **functions))(X)
        np.testing.assert_array_equal(found, X + wanted)


def error_of_a_callback():
    def fail(x):
        raise ValueError("the callback's own words")

    shape = jax.ShapeDtypeStruct((4, 6), np.float32)
    raises(
        jax.errors.JaxRuntimeError, "the callback's own words", jax.jit(lambda x: jax.pure_callback(fail, shape, x)), X
    )
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(X), X + 1)


def error_of_an_unknown_custom_call():
    function = jax.jit(lambda x: jax.ffi.ffi_call("nobody_knows_this", jax.ShapeDtypeStruct((4, 6), np.float32))(x))
    raises(jax.errors.JaxRuntimeError, "nobody_knows_this", function, X)


def error_of_too_much_memory():
    raises(jax.errors.JaxRuntimeError, "memory", jax.jit(lambda: jnp.ones((1 << 20, 1 << 20), jnp.float32)))


def foreign_functions():
    """A handler that a user registers for the CPU: here one of JAX's own, registered by hand."""
    from jaxlib import lapack

    lapack.prepare_lapack_call("potrf_ffi", np.dtype(np.float32))
    matrix = SQUARE[0] @ SQUARE[0].T + np.eye(5, dtype=np.float32)
    call = jax.ffi.ffi_call(
        "lapack_spotrf_ffi",
        (jax.ShapeDtypeStruct((5, 5), np.float32), jax.ShapeDtypeStruct((), np.int32)),
        input_layouts=[(1, 0)],
        output_layouts=[(1, 0), ()],
        input_output_aliases={0: 0},
    )
    factor, info = jax.jit(lambda a: call(a, uplo=np.uint8(ord("L"))))(matrix)
    assert int(info) == 0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-4, atol=1e-5)


def foreign_functions_of_this_platform():
    """Handlers and types that are registered for the platform; states of calls are deleted with the program."""
    deleted = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleted.append)
    for platform in (jax.default_backend(), "cpu"):
        name = f"device_checks.{platform}"
        number, info, seen = ctypes.c_int64(), (ctypes.c_size_t * 3)(24, 0, address(deleter)), []
        first = handler(lambda call, number=number: call.set_state(number.value, 77))
        main = handler(lambda call, number=number, seen=seen: seen.append(call.state(number.value)))
        kind = {"type_id": number, "type_info": info}
        kind = {key: jax.ffi.pycapsule(ctypes.addressof(value)) for key, value in kind.items()}
        jax.ffi.register_ffi_type(name, kind, platform=platform)
        stages = {"instantiate": jax.ffi.pycapsule(address(first)), "execute": jax.ffi.pycapsule(address(main))}
        jax.ffi.register_ffi_target(name, stages, platform=platform)
        call = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((2,), np.float32), has_side_effect=True)
        compiled = jax.jit(call).lower(np.zeros(2, np.float32)).compile()
        for _ in range(3):
            jax.block_until_ready(compiled(np.zeros(2, np.float32)))
        assert seen == [77, 77, 77]
        del compiled
        jax.clear_caches()
        assert is_soon(lambda: deleted)
        assert deleted == [77]
        deleted.clear()


def functions_of_trivium_jit():
    """On JAX's CPU platform, too, whose interface of foreign functions changes with its version."""
    function = trivium.jit(lambda x: jnp.sin(x).sum())
    for platform in (jax.default_backend(), "cpu"):
        x = jax.device_put(np.arange(8, dtype=np.float32), jax.devices(platform)[0])
        derivative = jax.grad(function)
        np.testing.assert_allclose(derivative(x), np.cos(np.arange(8)), rtol=1e-5)
        assert derivative(x).devices() == x.devices()
    del function, derivative
    assert is_soon(lambda: not lowering._executables)


def compiled():
    built = jax.jit(lambda x: x @ x.T).lower(X).compile()
    assert built.cost_analysis()["flops"] > 0
    assert built.memory_analysis().output_size_in_bytes == 64
    assert "entry_computation_layout={(f32[4,6]{1,0})->f32[4,4]{1,0}}" in built.as_text()
    np.testing.assert_allclose(built(X), X @ X.T, rtol=1e-5)
    for array in (jnp.ones((2, 3)), jnp.float32(1), jnp.ones(4, jnp.int4)):
        assert array.format.layout.major_to_minor == tuple(range(array.ndim))


def exported():
    exported = jax.export.export(jax.jit(lambda x: jnp.sin(x) * 2), platforms=["cpu", jax.default_backend()])(X)
    restored = jax.export.deserialize(exported.serialize())
    np.testing.assert_allclose(restored.call(X), np.sin(X) * 2, rtol=1e-6)


def threads():
    from concurrent.futures import ThreadPoolExecutor

    function = jax.jit(lambda x: jnp.tanh(x @ x.T).sum(axis=0))
    expected = np.asarray(function(X))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: np.asarray(function(X)), range(200)))
    assert all(np.array_equal(result, expected) for result in results)


def training():
    """A multilayer perceptron of flax has the same losses as on JAX's CPU platform."""
    import flax.linen as nn
    import optax

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Dense(32)(x))
            return nn.Dense(3)(nn.LayerNorm()(x))

    inputs = RANDOM.standard_normal((64, 8)).astype(np.float32)
    labels = RANDOM.integers(0, 3, 64)

    def losses(device):
        with jax.default_device(device):
            model, optimizer = Model(), optax.adamw(1e-2)
            parameters = model.init(jax.random.key(0), inputs)
            state = optimizer.init(parameters)

            def loss(parameters):
                logits = model.apply(parameters, inputs)
                return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

            @jax.jit
            def step(parameters, state):
                value, gradients = jax.value_and_grad(loss)(parameters)
                updates, state = optimizer.update(gradients, state, parameters)
                return optax.apply_updates(parameters, updates), state, value

            curve = []
            for _ in range(20):
                parameters, state, value = step(parameters, state)
                curve.append(float(value))
            return curve

    ours, expected = (losses(jax.devices(platform)[0]) for platform in (jax.default_backend(), "cpu"))
    assert ours[-1] < ours[0] / 2
    np.testing.assert_allclose(ours, expected, rtol=1e-3)


CHECKS = [
    jit, grad, vmap, control_flow, sort, convolution, products_of_mixed_types, random, element_types,
    bits_of_narrow_floats, x64,
    linear_algebra, host_memory, memory_is_given_back, memory_is_used_again, several_devices, callbacks,
    callbacks_on_memory, error_of_a_callback, branches_of_platforms, error_of_an_unknown_custom_call,
    error_of_too_much_memory, foreign_functions, foreign_functions_of_this_platform, functions_of_trivium_jit,
    compiled, exported,
    threads, training,
    *sharding_checks.CHECKS,
    *lowering_checks.CHECKS,
    *option_checks.CHECKS,
    *layout_checks.CHECKS,
    *dlpack_checks.CHECKS,
    *donation_checks.CHECKS,
    *program_checks.CHECKS,
]  # fmt: skip


def main() -> None:
    for check in CHECKS:
        if sys.argv[1:] and check.__name__ not in sys.argv[1:]:
            continue
        try:
            check()
            failure = ""
        except BaseException:
            failure = traceback.format_exc()
        print(json.dumps({"name": check.__name__, "failure": failure}), flush=True)


if __name__ == "__main__":
    main()
