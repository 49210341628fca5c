"""Whole programs on the CPU: control flow, host calls, constants, threads, and callers' mistakes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from tests.backends.harness import CLIENT, elementwise, load, program_of
from trivium.backends import client, devices
from trivium.backends.cpu.program import emit_program
from trivium.backends.cpu.target import host
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.kernel.structure import Register
from trivium.compiler.program import (
    Arena,
    Array,
    Constant,
    Copy,
    Input,
    Launch,
    Output,
    Program,
    Switch,
    While,
)
from trivium.ir.errors import CompileError, Error, ExecutionError


def scalar_kernel(name: str, dtype: str, result: str, compute: Callable[[KernelBuilder, Register], Register]) -> Kernel:
    b = KernelBuilder(name)
    x, y = b.input("x", dtype, ()), b.output("y", result, ())
    b.store(y, compute(b, b.load(x)))
    return b.build()


DOUBLE = scalar_kernel("double", "f32", "f32", lambda b, x: b.multiply(x, 2.0))
BELOW = scalar_kernel("below", "f32", "i1", lambda b, x: b.compare("LT", x, 100.0))


def test_while_on_the_program_level() -> None:
    x, y = Array("x", "f32", (), Input(0)), Array("y", "f32", (), Output(0))
    state, following = Array("state", "f32", (), Arena(0)), Array("next", "f32", (), Arena(64))
    going = Array("going", "i1", (), Arena(128))
    loop = While([Launch(BELOW, (state, going))], going, [Launch(DOUBLE, (state, following)), Copy(following, state)])
    program = Program("grow", [x], [y], [Copy(x, state), loop, Copy(state, y)], arena_size=192)
    executable = CLIENT.load_program(program)
    assert executable.execute(np.float32(3))[0] == 192
    assert executable.execute(np.float32(1000))[0] == 1000


@pytest.mark.parametrize(("index", "expected"), [(0, 10), (1, 20), (2, 30), (7, 30), (-1, 30)])
def test_switch_takes_the_last_branch_for_what_is_out_of_range(index: int, expected: int) -> None:
    which, y = Array("which", "i32", (), Input(0)), Array("y", "f32", (), Output(0))
    constants = [Array(f"c{n}", "f32", (), Constant(np.array(n, np.float32))) for n in (10, 20, 30)]
    program = Program("choose", [which], [y], [Switch(which, [[Copy(c, y)] for c in constants])])
    assert CLIENT.load_program(program).execute(np.int32(index))[0] == expected


def test_runs_from_several_threads_do_not_disturb_each_other() -> None:
    n = 200_000
    x, y, t = (Array(name, "f32", (n,), s) for name, s in (("x", Input(0)), ("y", Output(0)), ("t", Arena(0))))
    kernel = elementwise("tanh", ["f32"], "f32", n)
    program = Program("two", [x], [y], [Launch(kernel, (x, t)), Launch(kernel, (t, y))], arena_size=4 * n)
    executable = CLIENT.load_program(program)
    wrong: list[int] = []

    def work(seed: int) -> None:
        a = np.random.default_rng(seed).standard_normal(n).astype(np.float32)
        expected = np.tanh(np.tanh(a))
        for _ in range(10):
            if not np.allclose(executable.execute(a)[0], expected, rtol=1e-5):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_results_are_the_callers_own() -> None:
    executable = load(elementwise("negate", ["f32"], "f32", 8))
    a = np.arange(8, dtype=np.float32)
    (first,) = executable.execute(a)
    executable.execute(a + 1)
    np.testing.assert_array_equal(first, -a)


def test_arguments_of_any_layout_and_kind() -> None:
    executable = load(elementwise("negate", ["f32"], "f32", 8))
    a = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(executable.execute(a[::2])[0], -a[::2])

    class Foreign:
        def __dlpack__(self, **options: object) -> object:
            return a[:8].__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return a.__dlpack_device__()

    np.testing.assert_array_equal(executable.execute(Foreign())[0], -a[:8])


def test_wrong_arguments_are_reported() -> None:
    executable = load(elementwise("negate", ["f32"], "f32", 8))
    with pytest.raises(ExecutionError, match="given 2 arguments, expected 1"):
        executable.execute(np.zeros(8, np.float32), 1)
    with pytest.raises(ExecutionError, match="argument 0 of negate has dtype float64, expected float32"):
        executable.execute(np.zeros(8))
    with pytest.raises(ExecutionError, match=r"argument 0 of negate has shape \(4,\), expected \(8,\)"):
        executable.execute(np.zeros(4, np.float32))


def test_buffers() -> None:
    device = devices()[0]
    executable = load(elementwise("negate", ["f32"], "f32", 8))
    buffer = device.client.buffer_from_host(np.ones(8, np.float32))
    (result,) = executable.execute_buffers([buffer])
    assert result.shape == (8,)
    assert result.dtype == np.float32
    assert result.ready.is_ready()
    np.testing.assert_array_equal(result.to_numpy(), -np.ones(8))
    buffer.delete()
    with pytest.raises(ExecutionError, match="deleted"):
        executable.execute_buffers([buffer])


def test_an_unknown_device_is_an_error() -> None:
    with pytest.raises(Error, match="unknown device 'tpu'; expected one of cpu"):
        client("tpu")


def test_kernels_of_equal_structure_are_emitted_once() -> None:
    n = 16
    kernels = [elementwise("tanh", ["f32"], "f32", n) for _ in range(3)]
    x, y = Array("x", "f32", (n,), Input(0)), Array("y", "f32", (n,), Output(0))
    t = [Array(f"t{i}", "f32", (n,), Arena(64 * i)) for i in range(2)]
    program = Program("chain", [x], [y], [], arena_size=128)
    program.steps = [Launch(k, pair) for k, pair in zip(kernels, [(x, t[0]), (t[0], t[1]), (t[1], y)], strict=True)]
    functions = [f for f in emit_program(program, host()).module.functions if f.name.startswith("kernel.")]
    assert len(functions) == 1


def test_unplaced_values_are_refused() -> None:
    program = program_of(elementwise("tanh", ["f32"], "f32", 4))
    program.outputs[0].storage = Arena()
    with pytest.raises(CompileError, match="has no place in the arena"):
        CLIENT.load_program(program)


def test_fast_math_keeps_infinities() -> None:
    executable = load(elementwise("exponential", ["f32"], "f32", 4), fast_math=True)
    got = executable.execute(np.array([-np.inf, 0, 1, np.inf], np.float32))[0]
    np.testing.assert_allclose(got, [0, 1, np.e, np.inf], rtol=1e-6)
