"""Programs on a device: control flow, calls of the host, constants, temporaries, and callers' mistakes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import trivium
from tests.backends.harness import elementwise, program_of, python_call
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.executable import GpuExecutable
from trivium.compiler.program import Array, Constant, Copy, Input, Launch, Output, Program, Switch
from trivium.ir.errors import ExecutionError
from trivium.ir.interpreter import evaluate

COUNTING = """func.func @main(%n: tensor<i32>, %x: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<3xf32> cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.add %y, %y : tensor<3xf32>
    stablehlo.return %j, %z : tensor<i32>, tensor<3xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<3xf32>
}"""

CHOLESKY = """func.func @main(%x: tensor<4x4xcomplex<f64>>) -> tensor<4x4xcomplex<f64>> {
  %0 = stablehlo.cholesky %x, lower = true : tensor<4x4xcomplex<f64>>
  %1 = stablehlo.add %0, %0 : tensor<4x4xcomplex<f64>>
  return %1 : tensor<4x4xcomplex<f64>>
}"""


def test_a_loop_reads_one_number_back(device: GpuClient) -> None:
    executable = device.compile(trivium.parse(COUNTING))
    for turns in (0, 1, 5):
        count, doubled = executable.execute(np.int32(turns), np.arange(3, dtype=np.float32))
        assert count == turns
        np.testing.assert_array_equal(doubled, np.arange(3) * 2.0**turns)


@pytest.mark.parametrize(("index", "expected"), [(0, 10), (1, 20), (2, 30), (7, 30), (-1, 30)])
def test_switch_takes_the_last_branch_for_what_is_out_of_range(device: GpuClient, index: int, expected: int) -> None:
    which, y = Array("which", "i32", (), Input(0)), Array("y", "f32", (), Output(0))
    constants = [Array(f"c{n}", "f32", (), Constant(np.array(n, np.float32))) for n in (10, 20, 30)]
    program = Program("choose", [which], [y], [Switch(which, [[Copy(c, y)] for c in constants])])
    assert device.load_program(program).execute(np.int32(index))[0] == expected


def test_temporaries_are_in_the_memory_of_results(device: GpuClient) -> None:
    """Two of them, beside each other, in the memory of a result that is computed last."""
    x, y = Array("x", "f32", (4,), Input(0)), Array("y", "f32", (64,), Output(0))
    a, b, z = (Array(n, "f32", (4,), place) for n, place in (("a", Output(0)), ("b", Output(0, 128)), ("z", Output(1))))
    steps = [Copy(x, a), Copy(a, b), Copy(b, z), Copy(Array("c", "f32", (64,), Constant(np.ones(64, np.float32))), y)]
    results = device.load_program(Program("parts", [x], [y, z], list(steps))).execute(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(results[0], np.ones(64))
    np.testing.assert_array_equal(results[1], np.arange(4))


def test_factorizations_run_on_the_host(device: GpuClient) -> None:
    module = trivium.parse(CHOLESKY)
    a = np.random.default_rng(0).standard_normal((4, 4, 2)).view(np.complex128)[..., 0]
    a = a @ a.conj().T + 4 * np.eye(4)
    (result,) = device.compile(module).execute(a)
    np.testing.assert_allclose(result, evaluate(module, a)[0], rtol=1e-12)


def test_custom_calls_run_on_the_host(device: GpuClient) -> None:
    x, y = Array("x", "f32", (2, 3), Input(0)), Array("y", "f32", (3,), Output(0))
    call = python_call(lambda given: given.sum(0), [x], [y])
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = device.load_program(Program("call", [x], [y], [call])).execute(a)
    np.testing.assert_array_equal(result, [3, 5, 7])


def test_runs_from_several_threads_do_not_meet(device: GpuClient) -> None:
    executable = device.compile(trivium.parse(COUNTING))
    wrong: list[int] = []

    def runs(number: int) -> None:
        for _ in range(5):
            _, doubled = executable.execute(np.int32(3), np.full(3, number, np.float32))
            if (doubled != 8 * number).any():
                wrong.append(number)

    threads = [threading.Thread(target=runs, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_addresses_of_the_host(device: GpuClient) -> None:
    executable = device.load_program(program_of(elementwise("negate", ["f64"], "f64", 7)))
    a, result = np.arange(7.0), np.empty(7)
    executable.execute_at([a.ctypes.data, result.ctypes.data])
    np.testing.assert_array_equal(result, -a)


def test_arguments_in_any_order_in_memory(device: GpuClient) -> None:
    executable = device.load_program(program_of(elementwise("negate", ["f64"], "f64", 7)))
    a = np.arange(14.0)
    np.testing.assert_array_equal(executable.execute(a[::2])[0], -a[::2])


def test_mistakes_of_callers(device: GpuClient) -> None:
    executable = device.load_program(program_of(elementwise("negate", ["f64"], "f64", 7)))
    with pytest.raises(ExecutionError, match="was given 0 arguments, expected 1"):
        executable.execute()
    with pytest.raises(ExecutionError, match="has dtype float32"):
        executable.execute(np.zeros(7, np.float32))


def test_nothing_is_launched_for_empty_arrays(device: GpuClient) -> None:
    executable = device.load_program(program_of(elementwise("negate", ["f64"], "f64", 0)))
    assert executable.execute(np.zeros(0))[0].shape == (0,)


def test_a_failed_launch_says_where_it_comes_from(device: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = elementwise("negate", ["f64"], "f64", 7)
    program = program_of(kernel)
    assert isinstance(program.steps[0], Launch)
    executable = device.load_program(program)
    assert isinstance(executable, GpuExecutable)

    def fails(*_: object) -> None:
        raise ExecutionError("no")

    monkeypatch.setattr(device.driver, "launch", fails)
    with pytest.raises(ExecutionError, match=r"while: running k0_negate"):
        executable.execute(np.zeros(7))
