"""Signals during runs and compilations. Each test is a separate process, which sends itself a real signal while it is
busy, and must notice it within 0.2 s of processor time, which does not depend on other load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np
import pytest

import trivium
from tests.backends.harness import CLIENT, elementwise, python_call
from trivium.backends.cpu.interrupts import CHECK
from trivium.compiler.driver import CompileOptions
from trivium.compiler.program import Arena, Array, Input, Launch, Output, Program
from trivium.ir.errors import ExecutionError

LATE = 0.2

COUNT = """func.func @main(%n: tensor<i64>) -> tensor<i64> {{
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %r = stablehlo.while(%i = %zero) : tensor<i64>
    cond {{
      %going = stablehlo.compare LT, %i, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %going : tensor<i1>
    }} do {{
      {body}
      stablehlo.return %next : tensor<i64>
    }}
  return %r : tensor<i64>
}}"""
NEXT = "%next = stablehlo.add %i, %one : tensor<i64>"
NEXT_OF_INNER = """%step = stablehlo.minimum %inner, %one : tensor<i64>
      %next = stablehlo.add %i, %step : tensor<i64>"""
INNER = """%inner = stablehlo.while(%j = %zero) : tensor<i64>
        cond {
          %more = stablehlo.compare LT, %j, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
          stablehlo.return %more : tensor<i1>
        } do {
          %k = stablehlo.add %j, %one : tensor<i64>
          stablehlo.return %k : tensor<i64>
        }
      """
FOREVER = np.array(1 << 60)
N = 1 << 20


def counter(inner: str = "") -> Callable[[Any], tuple[Any, ...]]:
    """Returns a program that counts to its argument; with `inner`, it counts that far again in every iteration."""
    return trivium.compile(trivium.parse(COUNT.format(body=inner + NEXT_OF_INNER if inner else NEXT)), threads=1)


def launches(count: int, *host: Callable[..., Any]) -> Any:
    """Returns an executable that computes a slow function of many elements `count` times, and then calls the host."""
    kernel = elementwise("lgamma", ["f64"], "f64", N)
    x, y, t = (Array(n, "f64", (N,), s) for n, s in (("x", Input(0)), ("y", Output(0)), ("t", Arena(0))))
    steps: list[Any] = [Launch(kernel, (x, y)) for _ in range(count)]
    steps += [python_call(function, (y,), (t,)) for function in host]
    return CLIENT.load_program(Program("many", [x], [y], steps, arena_size=8 * N), CompileOptions(threads=1))


def after(seconds: float, number: int = signal.SIGINT) -> list[float]:
    """Sends this process a signal after a delay. Returns a list that then contains the processor time at which it was
    sent."""
    sent: list[float] = []

    def send() -> None:
        time.sleep(seconds)
        sent.append(time.process_time())
        os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()
    return sent


def assert_interrupted(
    run: Callable[[], object], error: type[BaseException] = KeyboardInterrupt, seconds: float = 0.3
) -> None:
    """Checks that `run` ends with the interrupt that is sent to it, in time."""
    sent = after(seconds)
    with pytest.raises(KeyboardInterrupt):
        run()
    late = time.process_time() - sent[0]
    assert late < LATE, f"noticed after {late:.3f} s"


# The code of the processes


def in_a_loop() -> None:
    count = counter()
    assert_interrupted(lambda: count(FOREVER))
    assert_interrupted(lambda: count(FOREVER))
    assert count(np.array(1000)) == (1000,)


def in_a_loop_within_a_loop() -> None:
    count = counter(INNER)
    assert_interrupted(lambda: count(FOREVER))
    assert count(np.array(10)) == (10,)
    many = np.array(1 << 18)  # now the inner loop ends before it checks
    assert_interrupted(lambda: count(many))


def between_launches() -> None:
    executable = launches(3000)
    x = np.full(N, 4.0)
    assert_interrupted(lambda: executable.execute(x))
    (frame,) = executable._frames
    np.testing.assert_allclose(launches(1).execute(x)[0], np.log(6.0))
    y = np.empty(N)
    assert_interrupted(lambda: executable.execute_at([x.ctypes.data, y.ctypes.data]))
    assert executable._frames == [frame]


def in_a_host_call() -> None:
    executable = launches(1, lambda x: time.sleep(60))
    assert_interrupted(lambda: executable.execute(np.zeros(N)), seconds=1)


def before_a_host_call() -> None:
    """The signal arrives in the kernel just before: the call's first instruction notices it, and it is not lost."""
    called = []
    executable = launches(10, lambda x: called.append(1) or x)
    began = time.monotonic()
    executable.execute(np.zeros(N))
    whole = time.monotonic() - began
    for share in np.linspace(0.3, 0.97, 6):
        sent = after(share * whole)
        try:
            executable.execute(np.zeros(N))
            while True:  # the run was faster than before
                time.sleep(0.001)
        except KeyboardInterrupt:
            assert sent


def in_a_run_within_a_host_call() -> None:
    count = counter()
    executable = launches(1, lambda x: count(FOREVER))
    assert_interrupted(lambda: executable.execute(np.zeros(N)), seconds=1)
    assert count(np.array(1000)) == (1000,)


def exit_from_a_host_call() -> None:
    with pytest.raises(SystemExit, match="7"):
        launches(1, lambda x: sys.exit(7)).execute(np.zeros(N))


def errors_of_a_host_call() -> None:
    def fail(x: np.ndarray) -> None:
        raise ValueError("no such thing")

    with pytest.raises(ExecutionError, match=r"custom_call: ValueError: no such thing") as caught:
        launches(1, fail).execute(np.zeros(N))
    assert isinstance(caught.value.__cause__, ValueError)


def a_handler_that_raises() -> None:
    def handle(number: int, frame: object) -> None:
        raise TimeoutError("enough")

    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(TimeoutError, match="enough"):
        counter()(FOREVER)


def a_handler_that_returns() -> None:
    count, handled = counter(), []
    signal.signal(signal.SIGUSR1, lambda number, frame: handled.append(time.process_time()))
    sent = after(0.1, signal.SIGUSR1)
    turns = 1 << 31
    assert count(np.array(turns)) == (turns,)
    end = time.process_time()
    assert sent[0] < handled[0] < min(end, sent[0] + LATE)


def with_threads() -> None:
    program = trivium.parse(COUNT.format(body=NEXT))
    count = trivium.compile(program)
    sent = after(0.3)
    with pytest.raises(KeyboardInterrupt):
        count(FOREVER)
    assert sent


def beside_another_thread() -> None:
    """A run in another thread continues; the main thread notices the signal, and can run programs."""
    count, results = counter(), []
    thread = threading.Thread(target=lambda: results.append(count(np.array(1 << 28))))
    thread.start()
    sent = after(0.2)
    with pytest.raises(KeyboardInterrupt):
        time.sleep(60)
    assert sent
    assert count(np.array(5)) == (5,)
    thread.join()
    assert results == [(1 << 28,)]


def in_a_forked_child() -> None:
    """The thread that forks becomes the child's main thread."""
    count = counter()
    status = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            try:
                assert_interrupted(lambda: count(FOREVER))
                assert count(np.array(1000)) == (1000,)
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(1)
            os._exit(0)
        status.append(os.waitpid(child, 0)[1])

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert status == [0]


def in_a_compilation() -> None:
    body = "%x0 = stablehlo.add %x, %x : tensor<8xf32>\n"
    for n in range(1500):
        body += f"%y{n} = stablehlo.tanh %x{n} : tensor<8xf32>\n"
        body += f"%x{n + 1} = stablehlo.reverse %y{n}, dims = [0] : tensor<8xf32>\n"
    head = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32>"
    module = trivium.parse(f"{head} {{\n{body}return %x1500 : tensor<8xf32>\n}}")
    began = time.process_time()
    expected = trivium.compile(module)(np.ones(8, np.float32))[0]
    whole = time.process_time() - began
    for share in np.linspace(0.1, 0.85, 5):
        sent = after(share * whole)
        with pytest.raises(KeyboardInterrupt):
            deque((trivium.compile(module) for _ in repeat(None)), maxlen=0)
        assert time.process_time() - sent[0] < LATE
    np.testing.assert_array_equal(trivium.compile(module)(np.ones(8, np.float32))[0], expected)


PROCESSES = {
    process.__name__: process
    for process in (
        in_a_loop,
        in_a_loop_within_a_loop,
        between_launches,
        in_a_host_call,
        before_a_host_call,
        in_a_run_within_a_host_call,
        exit_from_a_host_call,
        errors_of_a_host_call,
        a_handler_that_raises,
        a_handler_that_returns,
        with_threads,
        beside_another_thread,
        in_a_forked_child,
        in_a_compilation,
    )
}


def test_small_programs_never_ask() -> None:
    kernel = elementwise("tanh", ["f32"], "f32", 1000)
    x, y = Array("x", "f32", (1000,), Input(0)), Array("y", "f32", (1000,), Output(0))
    executable = CLIENT.load_program(Program("small", [x], [y], [Launch(kernel, (x, y))] * 5))
    assert CHECK not in executable.stage("llvm")
    assert CHECK not in launches(1).stage("llvm")
    assert launches(4).stage("llvm").count(f'call i32 @"{CHECK}"') == 3


@pytest.mark.parametrize("name", PROCESSES)
def test_signals(name: str) -> None:
    environment = {**os.environ, "TRIVIUM_CACHE": "0"}
    command = [sys.executable, "-m", "tests.backends.cpu.test_interrupts", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ignored" not in done.stderr  # Python's text for an exception that was lost


if __name__ == "__main__":
    # A shell's job in the background inherits that the signal is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    PROCESSES[sys.argv[1]]()
