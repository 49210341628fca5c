"""Which arguments of a kernel may share bytes. Each answer is compared with what the iterations access."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.compiler.kernel.kernels import scaled
from tests.random_programs.in_place import runs_in_place
from trivium.compiler.kernel import Buffer, Kernel, KernelBuilder, Register, may_share

Body = Callable[[KernelBuilder, Buffer, Buffer], object]


def built(body: Body) -> Kernel:
    """Returns a kernel of a 4 x 4 operand and result."""
    b = KernelBuilder("built")
    body(b, b.input("x", "f32", (4, 4)), b.output("y", "f32", (4, 4)))
    return b.build()


def total(b: KernelBuilder, x: Buffer, *place: Register | int | None) -> Register:
    """Returns a sum along the dimension for which `place` has None."""
    with b.reduction(4, inits=[b.constant(0.0, "f32")], combiner="add") as terms:
        terms.yield_(b.load(x, *(terms.index if at is None else at for at in place)))
    return terms.result


def centred(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    with b.parallel(4) as (i,):
        mean = total(b, x, i, None)
        with b.parallel(4) as (j,):
            b.store(y, b.subtract(b.load(x, i, j), mean), i, j)


def columns(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    with b.parallel(4) as (i,):
        mean = total(b, x, None, i)
        with b.parallel(4) as (j,):
            b.store(y, mean, j, i)


def reversed_rows(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    """All of a row is in scratch before it is overwritten."""
    with b.parallel(4) as (i,):
        row = b.scratch("f32", (4,))
        with b.parallel(4) as (j,):
            b.store(row, b.load(x, i, b.subtract(3, j)), j)
        with b.parallel(4) as (j,):
            b.store(y, b.load(row, j), i, j)


def transposed(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    with b.parallel(4, 4) as (i, j):
        b.store(y, b.load(x, j, i), i, j)


def other_row(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    with b.parallel(4) as (i,):
        mean = total(b, x, b.subtract(3, i), None)
        with b.parallel(4) as (j,):
            b.store(y, mean, i, j)


def rows_to_columns(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    with b.parallel(4) as (i,):
        mean = total(b, x, i, None)
        with b.parallel(4) as (j,):
            b.store(y, mean, j, i)


def first_element(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    """The loop that writes a row reads an element that its first iteration overwrites."""
    with b.parallel(4) as (i,), b.parallel(4) as (j,):
        b.store(y, b.load(x, i, 0), i, j)


def read_again(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    with b.parallel(4) as (i,):
        with b.parallel(4) as (j,):
            b.store(y, b.load(x, i, j), i, j)
        with b.parallel(4) as (j,):
            b.store(y, b.load(x, i, b.subtract(3, j)), i, j)


def in_turns(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    """A sequential loop around both: its second iteration reads what the first one wrote."""
    with b.parallel(4) as (i,), b.sequential(2):
        mean = total(b, x, i, None)
        with b.parallel(4) as (j,):
            b.store(y, mean, i, j)


def whole_sum(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    """Every row needs the whole operand."""
    with b.parallel(4) as (i,):
        row = total(b, x, 0, None)
        with b.parallel(4) as (j,):
            b.store(y, row, i, j)


def beside(b: KernelBuilder, x: Buffer, y: Buffer) -> None:
    first = b.load(x, 0, 0)
    with b.parallel(4, 4) as (i, j):
        b.store(y, first, i, j)


@pytest.mark.parametrize("body", [centred, columns, reversed_rows])
def test_rows_are_overwritten_when_they_have_been_read(body: Body) -> None:
    kernel = built(body)
    assert runs_in_place(kernel, *kernel.params)
    assert may_share(kernel, *kernel.params, loops_in_order=True)
    assert not may_share(kernel, *kernel.params)


@pytest.mark.parametrize(
    "body", [transposed, other_row, rows_to_columns, first_element, read_again, in_turns, whole_sum]
)
def test_elements_that_are_still_read_are_not_overwritten(body: Body) -> None:
    kernel = built(body)
    assert not runs_in_place(kernel, *kernel.params)
    assert not may_share(kernel, *kernel.params, loops_in_order=True)
    assert not may_share(kernel, *kernel.params)


def test_single_loops_work_in_place_on_every_device() -> None:
    kernel = scaled()
    assert may_share(kernel, *kernel.params)


def test_loops_without_order_read_nothing_beside_the_loop() -> None:
    """Threads that begin late would read what others have written."""
    kernel = built(beside)
    assert may_share(kernel, *kernel.params, loops_in_order=True)
    assert not may_share(kernel, *kernel.params)
