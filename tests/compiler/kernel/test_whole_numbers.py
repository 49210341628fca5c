"""Kernels that only move complex numbers do so with whole ones, and those that do more do not."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.kernel.interpreter import garbage, run
from trivium.compiler.kernel.whole_numbers import moved_whole


def transposed(dtype: str = "f32", parts: tuple[int, int] = (0, 1), op: str | None = None, offset: int = 0) -> Kernel:
    """Transposes complex numbers. `parts`: where the parts of each come from. `op`: what is done with the real one."""
    b = KernelBuilder("transposed")
    x, y = b.input("x", dtype, (5, 7, 2), offset=offset), b.output("y", dtype, (7, 5, 2))
    with b.parallel(7, 5) as (i, j):
        first, second = (b.load(x, j, i, part) for part in parts)
        b.store(y, b.apply(op, first) if op else first, i, j, 0)
        b.store(y, second, i, j, 1)
    return b.build()


def test_a_transposition_moves_whole_numbers() -> None:
    kernel = transposed()
    whole = moved_whole(kernel)
    assert whole is not None
    assert [(param.dtype, param.shape) for param in whole.params] == [("ui64", (5, 7)), ("ui64", (7, 5))]
    x = np.arange(70, dtype=np.float32)
    for form, dtype in ((kernel, np.float32), (whole, np.uint64)):
        y = garbage(70, np.dtype(np.float32))
        run(form, [x.view(dtype), y.view(dtype)], False)
        np.testing.assert_array_equal(y.reshape(7, 5, 2), x.reshape(5, 7, 2).swapaxes(0, 1))


def test_views_of_every_second_number() -> None:
    b = KernelBuilder("view")
    x, y = b.input("x", "f32", (4, 2), strides=(4, 1), offset=2), b.output("y", "f32", (4, 2))
    with b.parallel(4) as (i,):
        for part in (1, 0):
            b.store(y, b.load(x, i, part), i, part)
    whole = moved_whole(b.build())
    assert whole is not None
    assert (whole.params[0].strides, whole.params[0].offset) == ((2,), 1)


@pytest.mark.parametrize(
    "kernel",
    [
        transposed(parts=(1, 0)),
        transposed(parts=(0, 0)),
        transposed(op="negate"),
        transposed(dtype="f64"),
        transposed(offset=1),
    ],
    ids=["parts change places", "one part twice", "a part is computed", "doubles", "an odd offset"],
)
def test_what_does_more_stays_as_it_is(kernel: Kernel) -> None:
    assert moved_whole(kernel) is None


def test_parts_of_different_numbers_stay_as_they_are() -> None:
    b = KernelBuilder("planes")
    x, y, z = b.input("x", "f32", (4, 2)), b.input("y", "f32", (4, 2)), b.output("z", "f32", (4, 2))
    with b.parallel(4) as (i,):
        b.store(z, b.load(x, i, 0), i, 0)
        b.store(z, b.load(y, i, 1), i, 1)
    assert moved_whole(b.build()) is None


def test_one_part_alone_stays_as_it_is() -> None:
    b = KernelBuilder("real")
    x, y = b.input("x", "f32", (4, 2)), b.output("y", "f32", (4, 2))
    with b.parallel(4) as (i,):
        b.store(y, b.load(x, i, 0), i, 0)
    assert moved_whole(b.build()) is None
