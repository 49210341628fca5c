"""Programs compute on the threads of PyTorch's ops. Each case runs in a new process, whose threads are known."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.torch

PROGRAM = """
import ctypes, os, threading
import numpy as np
import torch
import trivium.torch
from trivium.backends import native

def threads_of_ops():
    # The threads that OpenMP's team has now: PyTorch's ops run on them.
    found = set()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: found.add(threading.get_native_id()))
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib/libtorch_cpu.so"))
    library.GOMP_parallel(function, None, 0, 0)
    return found

def threads_of_loops(limit):
    # Those that take part in the loop of a program: each waits until all have come. Its first run records the limit.
    together = threading.Barrier(limit)
    def body(context, begin, end, participant):
        found.add(threading.get_native_id())
        together.wait(20)
    kinds = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
    function = ctypes.CFUNCTYPE(None, *kinds)(body)
    arguments = function, None, ctypes.c_int64(limit), ctypes.c_int64(1), ctypes.c_int32(limit)
    for threads in (0, limit):
        found = set()
        assert run(lambda: native.load().trivium_parallel_for(*arguments), threads) == limit
    return found

def run(work, threads):
    # Runs a program that does this, and returns how many threads its loops have asked for.
    @ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)
    def entry(*_):
        work()
        return 0
    frame = (ctypes.c_void_p * 5)(ctypes.cast(entry, ctypes.c_void_p).value, 0, 0, 0, threads)
    function = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(native.address("trivium_run"))
    assert function(ctypes.addressof(frame)) == 0
    return frame[4] or 0

def wave(x):
    return torch.sin(x) * 2 + x

compiled, x = torch.compile(wave, backend="trivium"), torch.randn(512, 512)
torch.testing.assert_close(compiled(x), wave(x))
"""


def run(text: str, **environment: str) -> None:
    given = {**os.environ, "TRIVIUM_NUM_THREADS": "3", "OMP_NUM_THREADS": "2", **environment}
    command = [sys.executable, "-c", PROGRAM + text]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_loops_use_the_threads_of_ops() -> None:
    run("assert threads_of_loops(2) == threads_of_ops() and len(threads_of_ops()) == 2")


def test_loops_for_more_threads_use_those_of_the_runtime() -> None:
    run("assert len(threads_of_loops(3)) == 3 and len(threads_of_loops(3) & threads_of_ops()) == 1")


def test_threads_that_sleep_at_once_are_left_to_ops() -> None:
    run("assert len(threads_of_loops(2) & threads_of_ops()) == 1", OMP_WAIT_POLICY="PASSIVE")


def test_another_thread_uses_those_of_its_own_ops() -> None:
    run(
        """
def check():
    assert len(threads_of_loops(2) & threads_of_ops()) == 1
    compiled(x)
    found.append(threads_of_loops(2) == threads_of_ops())

found = []
thread = threading.Thread(target=check)
thread.start()
thread.join()
assert found == [True]
assert threads_of_loops(2) == threads_of_ops()
"""
    )


def test_a_forked_child_has_threads_of_its_own() -> None:
    run(
        """
expected = wave(x).numpy()
child = os.fork()
if child == 0:
    here = threads_of_loops(2)
    # PyTorch's own ops would wait for threads that the child does not have.
    is_right = len(here) == 2 and os.getpid() in here and np.allclose(compiled(x).numpy(), expected, atol=1e-5)
    os._exit(0 if is_right else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    )


def test_a_child_that_is_forked_within_a_run_ends_it() -> None:
    run(
        """
children = []
for turn in range(3):
    run(lambda: children.append(os.fork()), 2)
    if children[-1] == 0:
        os._exit(len(threads_of_loops(2)))
    assert threads_of_loops(2) == threads_of_ops()
assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [2, 2, 2]
"""
    )


def test_changes_of_the_number_of_threads_are_followed() -> None:
    run(
        """
for count in (1, 2, 3, 2):
    torch.set_num_threads(count)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.sin(x) * 2 + x, backend="trivium")
    torch.testing.assert_close(compiled(x), wave(x))
"""
    )
