"""How `trivium.jit` is called: through `jax.jit`, by a custom call in XLA's program. It must behave as `jax.jit` does,
whatever the arguments are, and live as long as it is needed."""

import gc
import os
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import Tracer
from jax.experimental import io_callback
from jax.experimental.serialize_executable import serialize

import trivium
from tests.jax.release import is_soon
from trivium.backends.plugin.foreign_program import HANDLER, ForeignProgram
from trivium.jax import lowering

pytestmark = pytest.mark.jax

X = jnp.arange(8, dtype=jnp.float32)


def lowered(function: Any, *args: object) -> Any:
    return function.lower(*args)


def add_one(x):
    return x + 1


def test_a_call_is_one_custom_call():
    program = lowered(trivium.jit(add_one), X).as_text()
    assert program.count("custom_call") == 1
    assert HANDLER in program


@pytest.mark.parametrize("transform", [jax.grad, jax.vmap, jax.value_and_grad])
def test_so_is_a_derivative(transform):
    function = transform(trivium.jit(lambda x: jnp.sin(x * x).sum()))
    np.testing.assert_allclose(function(X)[0], transform(lambda x: jnp.sin(x * x).sum())(X)[0], rtol=1e-5)


def test_inside_of_another_function_it_is_inlined():
    function = trivium.jit(add_one)
    for outer in (jax.jit(lambda x: function(x) * 2), jax.jit(jax.grad(lambda x: function(x).sum()))):
        assert HANDLER not in lowered(outer, X).as_text()
    assert HANDLER not in jax.export.export(cast(Any, function))(X).mlir_module()


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "int8", "uint8", "int16", "uint32", "int32", "int4", "uint4", "float16", "bfloat16", "float32"),
        *("float8_e4m3fn", "float4_e2m1fn", "complex64", "float64", "int64", "complex128"),
    ],
)
def test_types(dtype):
    with jax.enable_x64(dtype in ("float64", "int64", "complex128")):
        x = jnp.array([[1, 0, 3], [-2, 0, 6]], jnp.float32).astype(dtype)
        for function in (lambda x: (x.T, x), lambda x: x[:, ::2], lambda x: jnp.where(x == x[0, 1], x[1], x)):
            for ours, theirs in zip(
                jax.tree.leaves(trivium.jit(function)(x)), jax.tree.leaves(function(x)), strict=True
            ):
                assert ours.dtype == theirs.dtype == dtype
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_scalars_and_empty_arrays(shape):
    x = np.ones(shape, np.float32)
    for function in (add_one, lambda x: (x, x.sum(), jnp.zeros(0)), lambda x: jnp.concatenate([x.reshape(-1)] * 2)):
        jax.tree.map(np.testing.assert_array_equal, trivium.jit(function)(x), jax.jit(function)(x))


def test_functions_without_arguments_or_results():
    assert trivium.jit(lambda: jnp.arange(3))().tolist() == [0, 1, 2]
    assert trivium.jit(lambda x: ())(X) == ()
    assert trivium.jit(lambda x: {"a": None})(X) == {"a": None}


@pytest.mark.parametrize("value", [2, 2.5, True, 1j, np.float32(3), np.int8(4), X])
def test_weak_types_are_those_of_jax(value):
    def function(x):
        return x, x * 2, x + X

    ours, theirs = trivium.jit(function)(value), jax.jit(function)(value)
    assert [jax.typeof(x) for x in ours] == [jax.typeof(x) for x in theirs]
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_denormal_numbers_are_those_of_the_type():
    """XLA calls programs in a mode that flushes denormal numbers of f32 to zero."""
    small = np.array([2**-9, 7 * 2**-9, 1], jnp.float8_e4m3fn)
    np.testing.assert_array_equal(trivium.jit(lambda x: x.astype(np.float32))(small), small.astype(np.float32))
    tiny = np.array([1e-40, -3e-45, 1], np.float32)
    np.testing.assert_array_equal(trivium.jit(lambda x: x * 3)(tiny), tiny * 3)


def test_pytrees_and_keywords():
    def function(tree, *, scale, others=()):
        return {"sum": tree["a"][0] + tree["b"] * scale, "others": [x * 2 for x in others], "none": None}

    given = {"a": (X, None), "b": X}
    for rest in ({"scale": 2.0}, {"scale": X, "others": (X, np.int32(3))}):
        ours, theirs = trivium.jit(function)(given, **rest), function(given, **rest)
        assert jax.tree.structure(ours) == jax.tree.structure(theirs)
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_static_arguments():
    traces = []

    def function(x, count, mode="add"):
        traces.append((count, mode))
        return jnp.stack([x] * count) if mode == "stack" else x + count

    compiled = trivium.jit(function, static_argnums=1, static_argnames="mode")
    for _ in range(2):
        assert compiled(X, 3, mode="stack").shape == (3, 8)
        np.testing.assert_array_equal(compiled(X, 2), X + 2)
    assert traces == [(3, "stack"), (2, "add")]
    np.testing.assert_array_equal(jax.grad(lambda x: compiled(x, 3, mode="stack").sum())(X), np.full(8, 3))


def test_more_arguments_than_the_handler_has_room_for():
    many = [np.full(2, number, np.float32) for number in range(150)]
    ours: Any = trivium.jit(lambda xs: [sum(xs), *xs[::-1]])(many)
    assert ours[0][0] == sum(range(150))
    assert [float(x[1]) for x in ours[1:]] == list(range(149, -1, -1))


def test_donated_arguments():
    x = jnp.arange(1000.0)
    result = jax.jit(trivium.jit(lambda x: x * 2), donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(result, np.arange(1000.0) * 2)


def test_results_do_not_share_memory_with_arguments():
    x = np.arange(8, dtype=np.float32)
    first = trivium.jit(lambda x: (x, x.reshape(2, 4)))(x)
    x[:] = 0
    for result in first:
        np.testing.assert_array_equal(np.asarray(result).reshape(-1), np.arange(8))


def test_threads_that_call_one_function():
    function = trivium.jit(lambda x: jnp.sort(jnp.cumsum(x @ x.T, axis=1), axis=0) + x.sum())
    inputs = [np.random.default_rng(seed).standard_normal((40, 30)).astype(np.float32) for seed in range(8)]
    expected = [np.asarray(function(x)) for x in inputs]

    def call(number):
        return all(np.array_equal(function(inputs[number]), expected[number]) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(8)))


def test_inputs_that_are_not_ready():
    slow = jax.jit(lambda x: jnp.linalg.matrix_power(x @ x.T / 400, 20))
    x = np.random.default_rng(0).standard_normal((400, 400)).astype(np.float32)
    np.testing.assert_allclose(trivium.jit(add_one)(slow(x)), np.asarray(slow(x)) + 1)


def test_an_unreferenced_function_is_released(monkeypatch):
    programs = []

    def made(loaded):
        program = ForeignProgram(loaded)
        programs.extend((weakref.ref(program), weakref.ref(loaded)))
        return program

    monkeypatch.setattr(lowering, "ForeignProgram", made)
    function = trivium.jit(lambda x: x + 2)
    function(X)
    compiled = lowered(trivium.jit(lambda x: x + 3), X).compile()
    gc.collect()
    np.testing.assert_array_equal(function(X), X + 2)
    np.testing.assert_array_equal(compiled(X), X + 3)
    assert len(programs) == 4
    assert all(program() is not None for program in programs[:3])
    del function, compiled
    assert is_soon(lambda: not any(program() for program in programs))


def test_derivatives_are_released_with_their_function(monkeypatch):
    programs = []

    def made(loaded):
        programs.append(weakref.ref(loaded))
        return ForeignProgram(loaded)

    monkeypatch.setattr(lowering, "ForeignProgram", made)
    function = trivium.jit(lambda x: jnp.sin(x).sum())
    derivative = jax.value_and_grad(function)
    derivative(X)
    assert len([program for program in programs if program() is not None]) >= 2
    del function, derivative
    assert is_soon(lambda: not any(program() for program in programs))


def test_a_compiled_function_runs_after_all_caches_are_cleared():
    function = trivium.jit(lambda x: x * 5)
    written = lowered(function, X)
    compiled = [written.compile() for _ in range(2)]
    del function, written
    jax.clear_caches()
    gc.collect()
    for each in compiled:
        np.testing.assert_array_equal(each(X), X * 5)


def test_what_is_compiled_cannot_be_serialized():
    compiled = lowered(trivium.jit(add_one), X).compile()
    with pytest.raises(trivium.Error, match=r"cannot be serialized; jax\.export writes"):
        serialize(compiled)


def test_a_program_of_another_process_is_refused():
    foreign = jax.ffi.ffi_call(HANDLER, jax.ShapeDtypeStruct((8,), np.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="compiled by Trivium in another process"):
        jax.block_until_ready(foreign(X, number=np.int64(1), program=np.int64(64)))


def test_unsupported_ops_are_reported_before_anything_runs():
    with pytest.raises(trivium.Error, match="nobody_knows_this"):
        trivium.jit(jax.ffi.ffi_call("nobody_knows_this", jax.ShapeDtypeStruct((), np.float32)))(X)


def test_without_jit_the_function_is_called():
    with jax.disable_jit():
        kinds = []
        trivium.jit(lambda x: kinds.append(type(x)))(X)
    assert not issubclass(kinds[0], Tracer)


def test_on_other_platforms_the_program_runs_in_a_callback(monkeypatch):
    monkeypatch.setattr(lowering, "ON_THE_HOST", ())
    seen = []

    def function(x, key):
        io_callback(lambda a: seen.append(float(a)), None, x[2])
        return {"x": x + 1, "key": key, "zero": jnp.zeros(0)}

    compiled, key = trivium.jit(function), jax.random.key(3)
    assert "callback" in lowered(compiled, X, key).as_text()
    result = compiled(X, key)
    np.testing.assert_array_equal(result["x"], X + 1)
    assert jnp.array_equal(jax.random.key_data(result["key"]), jax.random.key_data(key))
    jax.effects_barrier()
    assert seen == [2]
    np.testing.assert_array_equal(jax.grad(lambda x: trivium.jit(jnp.sum)(x * x))(X), 2 * X)


def run(script, **environment):
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


CACHED = """
import os, sys
import jax, numpy as np, trivium
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
x = np.arange(8, dtype=np.float32)
function = trivium.jit(lambda x: x * int(sys.argv[1] if len(sys.argv) > 1 else 3))
assert function(x).tolist() == (x * 3).tolist()
assert jax.grad(lambda x: function(x).sum())(x).tolist() == [3] * 8
jax.jit(lambda x: x * 2)(x)
print(*os.listdir(jax.config.jax_compilation_cache_dir))
"""


def test_the_persistent_cache_holds_no_address(tmp_path):
    for _ in range(2):
        kept = run(CACHED, JAX_PLATFORMS="cpu", JAX_COMPILATION_CACHE_DIR=str(tmp_path)).split()
        assert kept
        assert not any(HANDLER.encode() in (tmp_path / name).read_bytes() for name in kept)


DEVICES = """
import jax, numpy as np, trivium
from jax.experimental import io_callback
from jax.sharding import NamedSharding, PartitionSpec
x = np.arange(8, dtype=np.float32)
mesh = jax.make_mesh((2,), ("x",))
halves = jax.device_put(x, NamedSharding(mesh, PartitionSpec("x")))
assert np.asarray(trivium.jit(lambda x: x[::-1] * 2)(halves)).tolist() == (x[::-1] * 2).tolist()
other = jax.device_put(x, jax.devices()[1])
assert trivium.jit(lambda x: x + 1)(other).devices() == {jax.devices()[1]}
"""


def test_arrays_of_several_devices():
    run(DEVICES, JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=2")


ON_TRIVIUM = """
import jax, numpy as np, trivium
from jax.experimental import io_callback
from trivium.backends.plugin.foreign_program import HANDLER
x, seen = np.arange(8, dtype=np.float32), []
function = trivium.jit(lambda x: x + 1, fast_math=True)
assert HANDLER in function.lower(x).as_text()
assert function(x).tolist() == (x + 1).tolist()
assert function(x).devices() == {jax.devices("trivium")[0]}
def effects(x):
    for i in range(3):
        io_callback(lambda a: seen.append(float(a)), None, x[i], ordered=True)
    return x * 2
assert trivium.jit(effects)(x).tolist() == (x * 2).tolist()
jax.effects_barrier()
assert seen == [0, 1, 2], seen
assert jax.grad(lambda x: trivium.jit(lambda x: (x * x).sum())(x))(x).tolist() == (2 * x).tolist()

import weakref
from tests.jax.release import is_soon
from trivium.jax import lowering
jax.clear_caches()
assert function(x).tolist() == (x + 1).tolist()
programs = [weakref.ref(run.loaded) for by_options in lowering._executables.values() for run in by_options.values()]
assert programs
del function
assert is_soon(lambda: not any(program() for program in programs))
"""


def test_on_the_device_of_trivium():
    run(ON_TRIVIUM, JAX_PLATFORMS="trivium")
