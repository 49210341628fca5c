"""The loops of kernels that write what a program for several sizes does not need."""

from __future__ import annotations

import pytest

from trivium.compiler.ends import Digit
from trivium.compiler.kernel import Kernel, KernelBuilder, Loop
from trivium.compiler.kernel.index import Index, variable
from trivium.compiler.kernel.structure import Register
from trivium.compiler.lowering import ends
from trivium.ir.core import Block, Value
from trivium.ir.types import I64, tensor

ROWS, COLUMNS = 6, 40


def ended(kernel: Kernel, arguments: list[Value], needed: dict[Value, ends.Ends]) -> list[tuple[int, int, int, Value]]:
    """The ends of a kernel's loop, with the arguments that are their extents."""
    given = ends.end(kernel, arguments, needed)
    bound = dict(zip(kernel.params, given, strict=True))
    (loop,) = (i for i in kernel.body.instructions if isinstance(i, Loop))
    kernel.verify()
    assert given[: len(arguments)] == tuple(arguments)
    return [(end.dimension, end.step, end.count, bound[end.extent]) for end in loop.ends]  # type: ignore[misc]


def value(*shape: int) -> Value:
    return Block([tensor(*shape)]).arguments[0]


N, M = Block([tensor(of=I64), tensor(of=I64)]).arguments
ROW, COLUMN = Digit(1, ROWS), Digit(1, COLUMNS)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "SHORTEST", 1)


def copied(shape: tuple[int, ...], *loops: int, dtype: str = "f32", twice: bool = False) -> Kernel:
    """A kernel that stores ones in loops over rows and columns, or over both at once, in an array of a shape."""
    b = KernelBuilder("copied")
    outputs = [b.output(f"y{n}", dtype, shape) for n in range(2 if twice else 1)]
    with b.parallel(*loops) as indices:
        row, column = (variable(i) for i in indices) if len(loops) == 2 else split(indices[0])
        places = [row, column] if len(shape) == 2 else [row * COLUMNS + column]
        for y in outputs:
            b.store(y, b.constant(1, dtype), *places)
    return b.build()


def split(index: Register) -> tuple[Index, Index]:
    return variable(index) // COLUMNS, variable(index) % COLUMNS


def test_a_loop_ends_where_what_it_stores_does() -> None:
    y = value(ROWS, COLUMNS)
    kernel = copied((ROWS, COLUMNS), ROWS, COLUMNS)
    assert ended(kernel, [y], {y: ({ROW: N}, {COLUMN: M})}) == [(0, 1, ROWS, N), (1, 1, COLUMNS, M)]
    assert "while #0//1%6 < extent1 while #1//1%40 < extent2" in str(kernel)


def test_digits_of_flat_places_are_those_of_loops() -> None:
    y = value(ROWS * COLUMNS)
    needed = {y: ({Digit(COLUMNS, ROWS): N, COLUMN: M},)}
    found = ended(copied((ROWS * COLUMNS,), ROWS, COLUMNS), [y], needed)
    assert found == [(0, 1, ROWS, N), (1, 1, COLUMNS, M)]


def test_digits_of_a_flat_loop_are_those_of_places() -> None:
    y = value(ROWS, COLUMNS)
    found = ended(copied((ROWS, COLUMNS), ROWS * COLUMNS), [y], {y: ({ROW: N}, {COLUMN: M})})
    assert found == [(0, COLUMNS, ROWS, N), (0, 1, COLUMNS, M)]


def test_a_loop_ends_where_nothing_that_it_stores_is_needed() -> None:
    one, other = value(ROWS, COLUMNS), value(ROWS, COLUMNS)
    kernel = copied((ROWS, COLUMNS), ROWS, COLUMNS, twice=True)
    needed = {one: ({ROW: N}, {COLUMN: M}), other: ({ROW: N}, {COLUMN: N})}
    assert ended(kernel, [one, other], needed) == [(0, 1, ROWS, N)]
    kernel = copied((ROWS, COLUMNS), ROWS, COLUMNS, twice=True)
    assert ended(kernel, [one, other], {one: needed[one]}) == [], "all of the other one is needed"


def test_what_later_launches_read_is_written_as_a_whole() -> None:
    y = value(ROWS, COLUMNS)
    kernel = copied((ROWS, COLUMNS), ROWS, COLUMNS)
    ends.end(kernel, [y], {y: ({ROW: N}, {})}, {y})
    assert "while" not in str(kernel)


def test_an_extent_that_a_kernel_reads_is_not_passed_twice() -> None:
    b = KernelBuilder("filled")
    n, y = b.input("n", "i64", ()), b.output("y", "f32", (ROWS, COLUMNS))
    with b.parallel(ROWS, COLUMNS) as (i, j):
        b.store(y, b.convert(b.load(n), "f32"), i, j)
    result = value(ROWS, COLUMNS)
    kernel = b.build()
    assert ended(kernel, [N, result], {result: ({ROW: N}, {})}) == [(0, 1, ROWS, N)]
    assert kernel.params == [n, y]


def test_integers_may_be_indices_and_are_stored_everywhere() -> None:
    y = value(ROWS, COLUMNS)
    assert ended(copied((ROWS, COLUMNS), ROWS, COLUMNS, dtype="i32"), [y], {y: ({ROW: N}, {})}) == []
    assert ended(copied((ROWS, COLUMNS), ROWS, COLUMNS, dtype="i1"), [y], {y: ({ROW: N}, {})}) == [(0, 1, ROWS, N)]


def test_what_an_update_changes_is_needed() -> None:
    b = KernelBuilder("added")
    y = b.inout("y", "f32", (ROWS, COLUMNS))
    with b.parallel(ROWS, COLUMNS) as (i, j):
        b.update([(y, (i, j))], [b.constant(1.0, "f32")], "add")
    result = value(ROWS, COLUMNS)
    assert ended(b.build(), [result], {result: ({ROW: N}, {})}) == []


def test_short_iterations_are_not_worth_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "SHORTEST", COLUMNS)
    y = value(ROWS, COLUMNS)
    kernel = copied((ROWS, COLUMNS), ROWS, COLUMNS)
    assert ended(kernel, [y], {y: ({ROW: N}, {COLUMN: M})}) == [(0, 1, ROWS, N)]
