"""Loops that are split over threads run each iteration once, together with the code around them."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from tests.backends.harness import program_of
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.program import emit_program
from trivium.backends.cpu.target import CpuTarget, host
from trivium.backends.cpu.threads import PARALLEL_FOR
from trivium.compiler.kernel import Kernel, KernelBuilder

EAGER = replace(host(), split_cost=0.0, wake_cost=0.0, piece_cost=1.0).with_threads(4)
"""A processor on which every loop is worth splitting."""


def run(kernel: Kernel, *arguments: np.ndarray) -> np.ndarray:
    (result,) = CpuExecutable(assemble_program(program_of(kernel), EAGER)).execute(*arguments)
    return result


def counting(shape: tuple[int, ...]) -> Kernel:
    """Stores each element's flat index, plus a scalar of the kernel."""
    b = KernelBuilder("counting")
    x, y = b.input("x", "i64", ()), b.output("y", "i64", shape)
    first = b.multiply(b.load(x), 2)
    with b.parallel(*shape) as indices:
        flat = indices[0]
        for index, extent in zip(indices[1:], shape[1:], strict=True):
            flat = b.add(b.multiply(flat, extent), index)
        b.store(y, b.add(flat, first), *indices)
    return b.build()


@pytest.mark.parametrize(
    "shape", [(2,), (7,), (1000,), (3, 5), (1, 4, 1), (5, 1, 7), (13, 17, 11), (2, 3, 1, 5, 7), (97, 3)], ids=str
)
def test_every_index_comes_once(shape: tuple[int, ...]) -> None:
    """Also with dimensions of one iteration between others; values from before the loop can be used in it."""
    got = run(counting(shape), np.array(21))
    np.testing.assert_array_equal(got, np.arange(np.prod(shape)).reshape(shape) + 42)


def test_the_runtime_is_called_where_work_is_split() -> None:
    def calls(shape: tuple[int, ...], target: CpuTarget) -> bool:
        return PARALLEL_FOR in str(emit_program(program_of(counting(shape)), target).module)

    assert calls((1000, 1000), EAGER)
    assert not calls((1000, 1000), EAGER.with_threads(1))
    assert not calls((5, 5), host().with_threads(4))


def test_rows_have_separate_scratch_memory() -> None:
    rows, extent = 64, 3000
    b = KernelBuilder("rows")
    x, y = b.input("x", "f32", (rows, extent)), b.output("y", "f32", (rows, extent))
    with b.parallel(rows) as (i,):
        scratch = b.scratch("f32", (extent,))
        with b.parallel(extent) as (j,):
            b.store(scratch, b.load(x, i, j), j)
        with b.parallel(extent) as (j,):
            b.store(y, b.load(scratch, b.subtract(extent - 1, j)), i, j)
    a = np.random.default_rng(0).standard_normal((rows, extent)).astype(np.float32)
    np.testing.assert_array_equal(run(b.build(), a), a[:, ::-1])


def test_callers_in_several_threads_share_the_workers() -> None:
    executable = CpuExecutable(assemble_program(program_of(counting((300, 70))), EAGER))
    wrong = []

    def call(number: int) -> None:
        for repeat in range(50):
            (got,) = executable.execute(np.array(number + repeat))
            if got[0, 0] != 2 * (number + repeat) or got[-1, -1] - got[0, 0] != 300 * 70 - 1:
                wrong.append((number, repeat))

    callers = [threading.Thread(target=call, args=(1000 * number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
