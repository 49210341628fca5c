"""Functions of the host, as NumPy computes them: their results are multiplied back, and errors are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from trivium.compiler import host
from trivium.compiler.host import called_op, host_function, python_function, random_state
from trivium.compiler.program import HostCall, PythonCall
from trivium.ir.custom_calls import CUSTOM_CALLS, register_custom_call
from trivium.ir.errors import CompileError, ExecutionError
from trivium.ir.types import C64, F32, tensor

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def call(target: str, **numbers: int) -> HostCall:
    return HostCall(target, numbers, (), ())


def matrices(*shape: int, dtype: type = np.float64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    array = rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else 0)
    return array.astype(dtype)


def adjoint(a: np.ndarray) -> np.ndarray:
    return a.conj().swapaxes(-1, -2)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
def test_cholesky(dtype: type, lower: bool, flat: bool) -> None:
    """The factor's triangle times its adjoint is the matrix; arguments may come in any shape."""
    a = matrices(2, 3, 4, 4, dtype=dtype)
    a = a @ adjoint(a) + 4 * np.eye(4, dtype=dtype)
    (factor,) = host_function(call(host.CHOLESKY, batch=6, order=4, lower=int(lower)))([a.reshape(-1) if flat else a])
    factor = np.tril(factor) if lower else np.triu(factor)
    product = factor @ adjoint(factor) if lower else adjoint(factor) @ factor
    assert factor.dtype == dtype
    np.testing.assert_allclose(product.reshape(a.shape), a, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("transpose", "NTC")
@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left_side", [False, True])
def test_triangular_solve(left_side: bool, lower: bool, unit_diagonal: bool, transpose: str) -> None:
    """The triangle times the solution is the right-hand side; the rest of the matrix is not read."""
    rows, columns = (3, 5) if left_side else (5, 3)
    a, b = (
        matrices(2, 3, 3, dtype=np.complex128) + 3 * np.eye(3),
        matrices(2, rows, columns, dtype=np.complex128, seed=1),
    )
    flags = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
    numbers = {"batch": 2, "rows": rows, "columns": columns, **{name: int(flag) for name, flag in flags.items()}}
    function = host_function(call(host.TRIANGULAR_SOLVE, **numbers, transpose=ord(transpose)))
    (x,) = function([a.reshape(-1), b.reshape(-1)])
    triangle = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        triangle = triangle - triangle * np.eye(3) + np.eye(3)
    triangle = {"N": triangle, "T": triangle.swapaxes(-1, -2), "C": adjoint(triangle)}[transpose]
    np.testing.assert_allclose(triangle @ x if left_side else x @ triangle, b, rtol=1e-9, atol=1e-9)


def test_a_routine_of_lapack() -> None:
    """A host function is found by its plain name, and gets the numbers that the program holds."""
    a = matrices(1, 4, 4) + 4 * np.eye(4)
    factors, pivots, info = host_function(call("getrf", batch=1, m=4, n=4))([a])
    lower, upper = np.tril(factors[0], -1) + np.eye(4), np.triu(factors[0])
    found = a[0].copy()
    for row, pivot in enumerate(pivots[0] - 1):
        found[[row, pivot]] = found[[pivot, row]]
    np.testing.assert_allclose(lower @ upper, found, rtol=1e-12)
    assert not info.any()


def test_random_states_are_all_different() -> None:
    function = host_function(call(host.RANDOM_STATE))
    drawn = [function([])[0] for _ in range(20)] + [random_state()]
    assert {(array.dtype, array.shape) for array in drawn} == {(np.dtype(np.uint64), (3,))}
    assert len({array.tobytes() for array in drawn}) == len(drawn)


def test_an_unknown_function() -> None:
    with pytest.raises(CompileError, match="the host has no function 'sine'"):
        host_function(call("sine"))


PROGRAM = """module {
  func.func @main(%x: tensor<3xf32>, %z: tensor<complex<f32>>) -> (tensor<3xf32>, tensor<complex<f32>>) {
    %0:2 = stablehlo.custom_call @test.host(%x, %z) : (tensor<3xf32>, tensor<complex<f32>>)
      -> (tensor<3xf32>, tensor<complex<f32>>)
    return %0#0, %0#1 : tensor<3xf32>, tensor<complex<f32>>
  }
}"""
CALL = PythonCall("test.host", PROGRAM, (), ())
X, Z = np.array([1, 2, 3], np.float32), np.complex64(1 + 2j)


@pytest.fixture
def registered() -> Iterator:
    """Registers the meaning of the custom call, for one test."""

    def register(evaluate) -> None:
        register_custom_call("test.host", evaluate=evaluate, replace=True)

    yield register
    CUSTOM_CALLS.pop("test.host", None)


def run(given: Sequence[np.ndarray] = (X, Z)) -> Sequence[np.ndarray]:
    function, *_ = python_function(CALL)
    return function(given)


def test_what_is_registered_is_called_with_the_op(registered) -> None:
    registered(lambda op, x, z: (x[::-1] * len(op.results), z.conjugate()))
    function, arguments, results = python_function(CALL)
    assert arguments == results == [tensor(3, of=F32), tensor(of=C64)]
    reversed_, conjugate = function([X, np.asarray(Z)])
    np.testing.assert_array_equal(reversed_, [6, 4, 2])
    assert conjugate == np.conj(Z)
    assert called_op(CALL).call_target_name == "test.host"


def test_what_it_is_given_is_its_own(registered) -> None:
    """The program's memory does not change, whatever is written to the arguments."""
    kept = []

    def evaluate(op, x, z):
        kept.append(x)
        x[:] = 7
        return x, z

    registered(evaluate)
    given = X.copy()
    found, _ = run([given, np.asarray(Z)])
    np.testing.assert_array_equal(given, X)
    given[:] = 0
    np.testing.assert_array_equal(kept[0], [7, 7, 7])
    np.testing.assert_array_equal(found, [7, 7, 7])


@pytest.mark.parametrize(
    ("evaluate", "message"),
    [
        (lambda op, x, z: (x[:2], z), r"custom_call .*shape \(2,\).*tensor<3xf32>"),
        (lambda op, x, z: (x.astype(np.int32), z), "custom_call .*int32.*tensor<3xf32>"),
        (lambda op, x, z: x, "custom_call .*1 .*2"),
        (lambda op, x, z: (x, z, z), "custom_call .*3 .*2"),
        (lambda op, x, z: 1 / 0, "custom_call: ZeroDivisionError: division by zero"),
        (lambda op, x, z: {}["key"], "custom_call: KeyError: 'key'"),
        (lambda op, x, z: (_ for _ in ()).throw(RuntimeError("no more")), "test.host failed: RuntimeError: no more"),
    ],
)
def test_errors_of_the_function_are_reported(registered, evaluate, message: str) -> None:
    registered(evaluate)
    with pytest.raises(ExecutionError, match=message):
        run([X, np.asarray(Z)])


def test_scalars_have_no_dimensions(registered) -> None:
    registered(lambda op, x, z: (x, np.full(5, z)))
    with pytest.raises(ExecutionError, match=r"custom_call .*shape \(5,\).*tensor<complex<f32>>"):
        run([X, np.asarray(Z)])


@pytest.mark.parametrize("meaning", [{}, {"test.host": None}])
def test_what_is_not_registered(registered, meaning: dict) -> None:
    if meaning:
        registered(None)
    with pytest.raises(CompileError, match=r"the target 'test\.host', which is not registered"):
        python_function(CALL)
