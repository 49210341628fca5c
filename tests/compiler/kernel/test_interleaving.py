"""Which accesses are done together, and how many instructions that takes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trivium.compiler.kernel import KernelBuilder, Loop, expression
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.interleaving import MOST, interleaved, shuffles


def found(step: int, loaded: Sequence[int], stored: Sequence[int | str]) -> list[list[int]]:
    """Returns the places in a row, in order, of the groups of a loop over rows of `step` elements, of which some are
    loaded, and some stored; "x" stands for a load of the stored buffer, and "if" for a store to it in a branch."""
    b = KernelBuilder("rows")
    x, y = b.input("x", "f32", (64 * step,)), b.inout("y", "f32", (64 * step,))
    with b.parallel(64) as (i,):
        place = lambda column: expression([(i, step)], column)  # noqa: E731
        values = [b.load(x, place(column)) for column in loaded]
        for column in stored:
            if column == "x":
                values.append(b.load(y, place(0)))
            elif column == "if":
                with b.if_(b.compare("LT", i, 3)) as branch:
                    b.store(y, values[0], place(0))
                    branch.yield_()
                with branch.otherwise():
                    branch.yield_()
            else:
                b.store(y, values[0], place(int(column)))
    (loop,) = (each for each in b.build().body.instructions if isinstance(each, Loop))
    groups = interleaved(loop.body, i, Analysis(loop.body))
    order = [each for each in loop.body.instructions if groups.get(each)]
    assert all(each in groups for group in groups.values() for each in group)
    return [[access.indices[0].offset for access in groups[each]] for each in order]


def test_neighbours_of_all_lanes_are_a_group() -> None:
    assert found(3, [0, 2, 1], []) == [[0, 1, 2]]
    assert found(3, [0], [2, 0, 1]) == [[0, 1, 2]]
    assert found(2, [0, 1, 0], [0, 1]) == [[0, 1], [0, 1]]


def test_rows_that_begin_elsewhere_are_groups() -> None:
    assert found(3, [1, 2, 3], []) == [[1, 2, 3]]
    assert found(2, [0, 1, 2, 3], []) == [[0, 1], [2, 3]]


def test_rows_with_gaps_are_no_group() -> None:
    assert found(3, [0, 2], [0, 1]) == []
    assert found(MOST + 1, list(range(MOST + 1)), []) == []


@pytest.mark.parametrize("other", ["x", "if"])
def test_stores_do_not_move_beyond_other_accesses(other: str) -> None:
    assert found(3, [0], [0, 1, other, 2]) == []
    assert found(3, [0], [other, 0, 1, 2, other]) == [[0, 1, 2]]


def test_of_stores_to_one_element_none_moves() -> None:
    assert found(2, [0], [0, 0, 1]) == []


def test_powers_of_two_take_fewer_instructions() -> None:
    assert [shuffles(count) for count in (2, 3, 4, 6, 8, 9, 16)] == [2, 6, 8, 18, 24, 72, 64]
