"""Scratch memory that is too large for the stack comes after the arena, so that runs allocate nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import CLIENT, load, program_of, run
from trivium.backends.llvm.workspace import STACK_LIMIT
from trivium.compiler import memory
from trivium.compiler.driver import CompileOptions
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.ir.errors import CompileError


def reversed_rows(rows: int, extent: int, buffers: int = 1) -> Kernel:
    """Copies each row through scratch memory."""
    b = KernelBuilder("reverse")
    x, y = b.input("x", "f32", (rows, extent)), b.output("y", "f32", (rows, extent))
    with b.parallel(rows) as (i,):
        source = x
        for _ in range(buffers):
            scratch = b.scratch("f32", (extent,))
            with b.parallel(extent) as (j,):
                b.store(scratch, b.load(source, *([i] if source is x else []), j), j)
            source = scratch
        with b.parallel(extent) as (j,):
            b.store(y, b.load(source, b.subtract(extent - 1, j)), i, j)
    return b.build()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("extent", [10, STACK_LIMIT // 4, STACK_LIMIT // 4 + 1, 50_000])
def test_each_thread_has_its_own(extent: int, threads: int) -> None:
    a = np.random.default_rng(0).standard_normal((37, extent)).astype(np.float32)
    np.testing.assert_array_equal(run(reversed_rows(37, extent, 2), a, threads=threads), a[:, ::-1])


def test_small_scratch_takes_no_workspace_and_large_scratch_all_of_it() -> None:
    def temporaries(kernel: Kernel, threads: int) -> int:
        return load(kernel, threads=threads).memory_analysis().temp_size_in_bytes

    assert temporaries(reversed_rows(4, 100), 1) == 0
    assert temporaries(reversed_rows(400, STACK_LIMIT // 4, 3), 1) == 2 * STACK_LIMIT
    assert temporaries(reversed_rows(400, 50_000), 1) == 200_000
    assert temporaries(reversed_rows(400, 50_000), 2) == 2 * 200_000


def test_runs_allocate_nothing() -> None:
    text = load(reversed_rows(400, 50_000), threads=2).stage("llvm")
    assert "malloc" not in text


def test_scratch_beyond_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_limit", lambda: 4_999_999)
    program = program_of(reversed_rows(4, 250_000))
    with pytest.raises(CompileError, match=r"reverse needs 1000000 bytes .* expected at most 4999999 bytes"):
        CLIENT.load_program(program, CompileOptions(threads=1))
