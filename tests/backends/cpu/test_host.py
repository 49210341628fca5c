"""Functions of the host: factorizations in all types and shapes, and calls of Python functions that fail."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.compiler.lowering.running import program_of
from trivium.ir import ops
from trivium.ir.custom_calls import CUSTOM_CALLS, register_custom_call
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import TransposeMode
from trivium.ir.types import tensor, type_of

DTYPES = [np.float32, np.float64, np.complex64, np.complex128, np.float16, ml_dtypes.bfloat16]


def numbers(*shape: int, dtype: object, seed: int = 0) -> np.ndarray:
    parts = np.random.default_rng(seed).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if np.dtype(dtype).kind == "c" else parts[0]).astype(dtype)


def positive(*shape: int, dtype: object) -> np.ndarray:
    """Returns Hermitian positive-definite matrices."""
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    x = numbers(*shape, shape[-1], dtype=dtype).astype(wide)
    return (x @ x.conj().swapaxes(-1, -2) + 4 * np.eye(shape[-1])).astype(dtype)


def tolerance(dtype: object) -> float:
    return 100 * float(ml_dtypes.finfo(np.dtype(dtype)).eps)


# Cholesky


def factor(x: np.ndarray, *, lower: bool) -> np.ndarray:
    module = program_of([type_of(x)], lambda b, a: b.add(ops.Cholesky(a, lower=lower)))
    (found,) = trivium.compile(module)(x)
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    return found


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (2, 3, 33)])
def test_cholesky(shape, dtype, lower):
    x = positive(*shape, dtype=dtype)
    noise = np.triu(np.ones(x.shape[-2:], bool), 1)
    noisy = x.copy()
    noisy[..., noise if lower else noise.T] = np.nan
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    wanted = np.linalg.cholesky(x.astype(wide))
    wanted = wanted if lower else wanted.conj().swapaxes(-1, -2)
    found = factor(noisy, lower=lower)
    np.testing.assert_allclose(found.astype(wide), wanted, rtol=tolerance(dtype), atol=tolerance(dtype))
    assert (found[..., noise if lower else noise.T] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_only_the_factors_of_matrices_without_one_are_nan(dtype):
    x = positive(3, 4, dtype=dtype)
    x[1] = -x[1]
    found = factor(x, lower=True)
    assert np.isnan(found[1].astype(np.complex128)).all()
    assert np.isfinite(found[[0, 2]].astype(np.complex128)).all()


@pytest.mark.parametrize("wrong", [0.0, -1.0])
def test_matrices_that_are_hardly_wrong(wrong):
    x = np.eye(3, dtype=np.float32)
    x[2, 2] = wrong
    assert np.isnan(factor(x, lower=True)).all()


def test_nan_stays():
    x = np.eye(3)
    x[2, 2] = np.nan
    assert np.isnan(factor(x, lower=True)[2, 2])


# Triangular systems


def solve(a: np.ndarray, b: np.ndarray, **options: object) -> tuple[np.ndarray, np.ndarray]:
    """Returns the compiled result, and the op's own evaluation."""

    def main(builder, a, b):
        return builder.add(ops.TriangularSolve(a, b, **options))

    module = program_of([type_of(a), type_of(b)], main)
    return trivium.compile(module)(a, b)[0], evaluate(module, a, b)[0]


@pytest.mark.parametrize("mode", [TransposeMode.NO_TRANSPOSE, TransposeMode.TRANSPOSE, TransposeMode.ADJOINT])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_solve(dtype, left, lower, unit, mode):
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    a = (numbers(2, 4, 4, dtype=wide) / 4 + 2 * np.eye(4)).astype(dtype)
    unread = np.triu(np.ones((4, 4), bool), 0 if unit else 1)
    a[..., unread if lower else unread.T] = np.nan
    b = numbers(2, *((4, 3) if left else (3, 4)), dtype=dtype, seed=1)
    found, wanted = solve(a, b, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=mode)
    assert np.isfinite(wanted.astype(wide)).all()
    np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), rtol=tolerance(dtype), atol=tolerance(dtype))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (65, 7)])
def test_sizes(shape):
    a = (numbers(shape[0], shape[0], dtype=np.float64) / 16 + 4 * np.eye(shape[0])).astype(np.float64)
    options = {"left_side": True, "lower": False, "unit_diagonal": False, "transpose_a": TransposeMode.NO_TRANSPOSE}
    found, wanted = solve(a, numbers(*shape, dtype=np.float64), **options)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_a_singular_system_is_not_an_error():
    options = {"left_side": True, "lower": True, "unit_diagonal": False, "transpose_a": TransposeMode.NO_TRANSPOSE}
    found, _ = solve(np.zeros((2, 2)), np.ones((2, 1)), **options)
    assert not np.isfinite(found).any()


# Calls of Python functions


def calling(function: Callable, x: np.ndarray) -> np.ndarray:
    """Compiles and runs a custom call of the function."""
    register_custom_call("test.function", evaluate=function)
    try:
        return trivium.compile(module_calling(x))(x)[0]
    finally:
        del CUSTOM_CALLS["test.function"]


def module_calling(x: np.ndarray) -> Module:
    kind = type_of(x)

    def main(builder, x):
        doubled = builder.add(ops.Add(x, x))
        return builder.add(ops.CustomCall([doubled], "test.function", results=[kind]))

    return program_of([kind], main)


def test_python_is_called():
    np.testing.assert_array_equal(calling(lambda op, x: np.sort(x), np.array([3.0, 1, 2])), [2, 4, 6])


def test_an_error_of_the_call_names_the_op():
    def fail(op, x):
        raise ValueError("no such thing")

    with pytest.raises(ExecutionError, match=r"custom_call: ValueError: no such thing(?s:.*)test\.function"):
        calling(fail, np.zeros(3))


def test_an_error_of_ours_stays():
    def fail(op, x):
        raise Error("mine")

    with pytest.raises(Error, match=r"mine(?s:.*)test\.function"):
        calling(fail, np.zeros(3))


def test_other_exceptions_are_reported_with_the_target():
    def fail(op, x):
        raise RuntimeError("broken")

    with pytest.raises(ExecutionError, match=r"host call test\.function failed: RuntimeError: broken"):
        calling(fail, np.zeros(3))


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_signals_pass(signal):
    def stop(op, x):
        raise signal

    with pytest.raises(signal):
        calling(stop, np.zeros(3))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros(4), "returned shape (4,)"),
        (np.zeros(3, np.float32), "returned dtype float32"),
        ((np.zeros(3), np.zeros(3)), "returned 2 results, expected 1"),
    ],
)
def test_results_are_checked(result, message):
    with pytest.raises(ExecutionError) as error:
        calling(lambda op, x: result, np.zeros(3))
    assert message in str(error.value)


def test_what_is_called_may_keep_and_change_its_arguments():
    kept = []

    def keep(op, x):
        kept.append(x)
        x += 1
        return x

    x = np.array([1.0, 2, 3])
    np.testing.assert_array_equal(calling(keep, x), [3, 5, 7])
    np.testing.assert_array_equal(kept[0], [3, 5, 7])
    np.testing.assert_array_equal(x, [1, 2, 3])


def test_failures_of_threads_are_their_own():
    def fail(op, x):
        raise ValueError(f"number {x[0]:.0f}")

    register_custom_call("test.function", evaluate=fail)
    try:
        compiled = trivium.compile(module_calling(np.zeros(3)))
    finally:
        del CUSTOM_CALLS["test.function"]
    seen = {}

    def run(number: int) -> None:
        for _ in range(20):
            with pytest.raises(ExecutionError) as error:
                compiled(np.full(3, number / 2))
            seen.setdefault(number, set()).add(f"number {number}" in str(error.value))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {number: {True} for number in range(4)}


def test_a_scalar_and_nothing():
    kind = tensor(0)

    def main(builder, x, y):
        return builder.add(ops.CustomCall([x, y], "test.function", results=[tensor(), kind]))

    register_custom_call("test.function", evaluate=lambda op, x, y: (np.float32(x * 2), y))
    try:
        found = trivium.compile(program_of([tensor(), kind], main))(np.float32(4), np.zeros(0, np.float32))
    finally:
        del CUSTOM_CALLS["test.function"]
    assert (found[0], found[1].shape) == (8, (0,))


# Random draws


def test_forked_processes_draw_other_numbers() -> None:
    """A child process has its parent's memory, and thus the key and the count of its draws."""
    module = trivium.parse("""func.func @main() -> tensor<4xf64> {
      %a = stablehlo.constant dense<0.0> : tensor<f64>
      %b = stablehlo.constant dense<1.0> : tensor<f64>
      %n = stablehlo.constant dense<4> : tensor<1xi64>
      %0 = stablehlo.rng %a, %b, %n, distribution = UNIFORM : (tensor<f64>, tensor<f64>, tensor<1xi64>) -> tensor<4xf64>
      return %0 : tensor<4xf64>
    }""")
    run = trivium.compile(module, threads=1)
    run()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, run()[0].tobytes())
        os._exit(0)
    of_child = np.frombuffer(os.read(reading, 32))
    assert os.waitpid(child, 0)[1] == 0
    (of_parent,) = run()
    os.close(reading)
    os.close(writing)
    assert not set(of_child) & set(of_parent)
