"""Copies that threads share: every byte arrives, wherever pieces end, and nothing behind the last one."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.copies import PIECE, SHARED
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.program import emit_program
from trivium.backends.cpu.target import host
from trivium.backends.cpu.threads import PARALLEL_FOR
from trivium.compiler.program import Arena, Array, Copy, Input, Output, Program

SIZES = 0, 1, SHARED - 1, SHARED, SHARED + 1, SHARED + PIECE - 1, 3 * SHARED + 7 * PIECE + 5


def copying(nbytes: int) -> Program:
    x, y = (Array(name, "ui8", (nbytes,), kind(0)) for name, kind in (("x", Input), ("y", Output)))
    return Program("copying", [x], [y], [Copy(x, y)])


@pytest.mark.parametrize("nbytes", SIZES)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_byte_arrives(nbytes: int, threads: int) -> None:
    executable = CpuExecutable(assemble_program(copying(nbytes), host().with_threads(threads)))
    x = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    y = np.full(nbytes + 1, 7, np.uint8)
    executable.execute_at([x.ctypes.data, y.ctypes.data])
    np.testing.assert_array_equal(y[:nbytes], x)
    assert y[nbytes] == 7


def test_only_large_copies_are_shared_and_only_among_several_threads() -> None:
    def is_shared(nbytes: int, threads: int) -> bool:
        return PARALLEL_FOR in str(emit_program(copying(nbytes), host().with_threads(threads)).module)

    assert is_shared(SHARED, 2)
    assert not is_shared(SHARED - 1, 2)
    assert not is_shared(SHARED, 1)


def test_all_copies_of_a_program_are_one_function() -> None:
    x, *results = (Array(f"x{n}", "f64", (SHARED,), Input(0) if n == 0 else Output(n - 1)) for n in range(3))
    program = Program("copies", [x], results, [Copy(x, result) for result in results])
    target = host().with_threads(2)
    module = str(emit_program(program, target).module)
    assert module.count("define internal") == 1
    assert module.count(f'call void @"{PARALLEL_FOR}"') == 2
    values = np.arange(SHARED, dtype=np.float64)
    for result in CpuExecutable(assemble_program(program, target)).execute(values):
        np.testing.assert_array_equal(result, values)


def test_places_that_overlap_are_copied_by_one_thread() -> None:
    """In the arena, a copy's destination may begin in its source, which nothing reads later: bytes that another thread
    has not read would be overwritten."""
    nbytes, shift = 3 * SHARED, PIECE + 3
    x, y = Array("x", "ui8", (nbytes,), Input(0)), Array("y", "ui8", (nbytes,), Output(0))
    below, above = (Array(name, "ui8", (nbytes,), Arena(at)) for name, at in (("below", 0), ("above", shift)))
    for first, second in ((below, above), (above, below)):
        steps = [Copy(x, first), Copy(first, second), Copy(second, y)]
        program = Program("moving", [x], [y], steps, arena_size=nbytes + shift)
        target = host().with_threads(2)
        assert str(emit_program(program, target).module).count(f'call void @"{PARALLEL_FOR}"') == 2
        values = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
        np.testing.assert_array_equal(CpuExecutable(assemble_program(program, target)).execute(values)[0], values)
