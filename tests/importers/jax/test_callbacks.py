"""Calls of Python functions and of foreign functions, against JAX itself."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax.experimental import io_callback

import trivium
from tests.importers.jax.comparing import RUNS, check

pytestmark = pytest.mark.jax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
LIKE_X = jax.ShapeDtypeStruct(X.shape, X.dtype)
SCALAR = jax.ShapeDtypeStruct((), np.float32)

PURE = {
    "one": lambda x: jax.pure_callback(lambda a: np.sin(a) * 2, LIKE_X, x) + 1,
    "tree": lambda x: jax.pure_callback(
        lambda a: {"sum": a.sum(), "twice": a + a}, {"sum": SCALAR, "twice": LIKE_X}, x
    ),
    "wider_result": lambda x: jax.pure_callback(lambda a: np.asarray(a, np.float64) / 3, LIKE_X, x),
    "batched": lambda x: jax.vmap(jax.vmap(lambda y: jax.pure_callback(np.cos, SCALAR, y, vmap_method="sequential")))(
        x
    ),
    "expanded": lambda x: jax.vmap(
        lambda y: jax.pure_callback(np.cos, jax.ShapeDtypeStruct((3,), np.float32), y, vmap_method="expand_dims")
    )(x),
}


@RUNS
@pytest.mark.parametrize("name", PURE)
def test_pure_callback(name, run):
    check(PURE[name], [X], 1e-6, run)


def test_gradient_beside_a_callback():
    @jax.custom_jvp
    def sine(x):
        return jax.pure_callback(np.sin, SCALAR, x)

    sine.defjvps(lambda t, value, x: t * jnp.cos(x))
    gradient = jax.grad(trivium.jit(lambda x: sine(x * 2)))(np.float32(0.3))
    np.testing.assert_allclose(gradient, 2 * np.cos(0.6), rtol=1e-6)


def test_effects_happen_once_and_in_order():
    seen = []

    def function(x):
        for value in (x[0], x[1], x[0] + x[1]):
            io_callback(lambda a: seen.append(float(a)), None, value, ordered=True)
        return x * 2

    run = trivium.jit(function)
    for start in (1, 5):
        np.testing.assert_array_equal(run(np.array([start, 2], np.float32)), [start * 2, 4])
    assert seen == [1, 2, 3, 5, 2, 7]


def test_results_of_effects():
    counter = iter(range(10))
    run = trivium.jit(lambda x: io_callback(lambda a: a + next(counter), SCALAR, x))
    assert [float(run(np.float32(10))) for _ in range(3)] == [10, 11, 12]


def test_effects_in_loops():
    seen = []

    def step(i, x):
        jax.debug.callback(lambda a: seen.append(int(a)), i)
        return x + 1

    assert int(trivium.jit(lambda x: jax.lax.fori_loop(0, 4, step, x))(np.int32(0))) == 4
    assert seen == [0, 1, 2, 3]


def test_debug_print(capfd):
    trivium.jit(lambda x: (jax.debug.print("the sum is {s}", s=x.sum()), x)[1])(X)
    assert "the sum is 15.0" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda a: np.zeros(2, np.float32), r"shape \(2,\)"),
        (lambda a: np.zeros(X.shape, np.int32), "dtype int32"),
    ],
)
def test_callbacks_that_go_wrong(function, message):
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        trivium.jit(lambda x: jax.pure_callback(function, LIKE_X, x))(X)


def test_the_same_function_has_one_number():
    def function(a):
        return a

    programs = [trivium.from_jax(lambda x: jax.pure_callback(function, LIKE_X, x), X) for _ in range(2)]
    assert str(programs[0]) == str(programs[1])


def factored(matrix, **layouts):
    kinds = jax.ShapeDtypeStruct(matrix.shape, np.float32), jax.ShapeDtypeStruct((), np.int32)
    call = jax.ffi.ffi_call("lapack_spotrf_ffi", kinds, input_output_aliases={0: 0}, **layouts)
    return call(matrix, uplo=np.uint8(ord("L")))


def test_foreign_function():
    """Uses one of JAX's own handlers that are registered for the CPU."""
    from jaxlib import lapack

    lapack.prepare_lapack_call("potrf_ffi", np.dtype(np.float32))
    matrix = X @ X.T + np.eye(2, dtype=np.float32)
    columns = {"input_layouts": [(1, 0)], "output_layouts": [(1, 0), ()]}
    for layouts in ({}, columns):
        ours, info = trivium.jit(lambda a, layouts=layouts: factored(a, **layouts))(matrix)
        theirs, _ = jax.jit(lambda a, layouts=layouts: factored(a, **layouts))(matrix)
        assert int(info) == 0
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_attributes_of_foreign_functions():
    options = {"flag": True, "count": 3, "rate": 0.5, "text": "a", "narrow": np.int8(-1), "half": np.float32(0.5)}
    call = jax.ffi.ffi_call("somebody", SCALAR, has_side_effect=True)
    program = str(trivium.from_jax(lambda: call(**options, many=np.arange(2, dtype=np.int32))))
    for written in ("flag = true", "count = 3 : i64", "rate = 5.000000e-01 : f64", 'text = "a"', "narrow = -1 : i8"):
        assert written in program, program
    for written in ("half = 5.000000e-01 : f32", "many = dense<[0, 1]> : tensor<2xi32>", "has_side_effect = true"):
        assert written in program, program


def test_unknown_foreign_functions_are_named():
    with pytest.raises(trivium.Error, match="nobody_knows_this"):
        trivium.jit(jax.ffi.ffi_call("nobody_knows_this", SCALAR))(np.float32(1))


@pytest.mark.parametrize("ordered", [False, True])
def test_effects_inside_of_other_transformations(ordered):
    seen = []

    def function(x):
        jax.debug.callback(lambda a: seen.append(float(a)), x, ordered=ordered)
        return x * x

    assert float(jax.jit(trivium.jit(function))(np.float32(3))) == 9
    jax.effects_barrier()
    assert seen == [3]
    assert float(jax.grad(trivium.jit(function))(np.float32(4))) == 8
    assert seen == [3, 4]


def test_effects_with_unused_results_happen():
    seen = []
    inner = trivium.jit(lambda x: io_callback(lambda a: seen.append(float(a)), None, x))
    assert float(jax.jit(lambda x: (inner(x), x + 1)[1])(np.float32(1))) == 2
    jax.effects_barrier()
    assert seen == [1]


def test_threads_that_import_at_once_call_their_own_functions():
    def program(number):
        return trivium.jit(lambda x: jax.pure_callback(lambda a: a + np.float32(number), SCALAR, x))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: float(program(number)(np.float32(0))), range(40)))
    assert found == list(range(40))
