"""Sorts that threads share, of keys that split evenly and of others."""

from __future__ import annotations

from collections.abc import Callable
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

pytestmark = pytest.mark.skipif(not host().sorts_keys, reason="this processor has no instructions for it")

INPUTS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "random": lambda g, n: g.integers(-(2**31), 2**31, n),
    "ascending": lambda g, n: np.arange(n),
    "descending": lambda g, n: -np.arange(n),
    "equal": lambda g, n: np.full(n, 7),
    "two values": lambda g, n: g.integers(0, 2, n),
    "mostly one value": lambda g, n: np.where(g.random(n) < 0.01, g.integers(-9, 9, n), 3),
    "far apart": lambda g, n: g.choice([-1, 1], n) * 2 ** g.integers(0, 31, n),
}


def sorting(count: int, dtype: str) -> Kernel:
    """Sorts a copy of the argument."""
    b = KernelBuilder("sorting")
    x, y = b.input("x", dtype, (1, count)), b.output("y", dtype, (1, count))
    with b.parallel(1) as (row,):
        keys = b.scratch(dtype, (count,))
        with b.parallel(count) as (index,):
            b.store(keys, b.load(x, row, index), index)
        b.sort_keys(keys, count, 0)
        with b.parallel(count) as (index,):
            b.store(y, b.load(keys, index), row, index)
    return b.build()


@pytest.mark.parametrize("dtype", ["i32", "i64"])
@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("count", [40, 700, 30_000])
def test_keys_of_every_kind(count: int, threads: int, dtype: str) -> None:
    target = replace(host(), wake_cost=0.0).with_threads(threads)
    run = CpuExecutable(assemble_program(program_of(sorting(count, dtype)), target))
    for name, make in INPUTS.items():
        keys = make(np.random.default_rng(0), count).astype("int" + dtype[1:])
        (result,) = run.execute(keys[None])
        np.testing.assert_array_equal(result[0], np.sort(keys), err_msg=name)


def test_few_keys_are_sorted_by_one_thread() -> None:
    def calls(count: int, target: CpuTarget) -> bool:
        return PARALLEL_FOR in str(emit_program(program_of(sorting(count, "i32")), target).module)

    assert calls(200_000, host().with_threads(2))
    assert not calls(200_000, host().with_threads(1))
    assert not calls(1000, host().with_threads(2))
