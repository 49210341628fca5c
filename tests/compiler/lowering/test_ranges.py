"""What a branch knows about a loop variable: the simplified index is the same number wherever the branch runs."""

from __future__ import annotations

import pytest

from trivium.compiler.lowering.index import Index, Quotient, Remainder, Variable, constant, variable
from trivium.compiler.lowering.ranges import Part, part_where, simplified

ROW, PLACE = Variable(4), Variable(64)
FLAT = variable(ROW) * 64 + variable(PLACE)


def _value(index: Index, values: dict[Variable, int]) -> int:
    found = index.replace(lambda symbol: constant(values[symbol]))  # type: ignore[index]
    assert not found.terms
    return found.offset


def _expect_same(before: Index, condition: Index, low: int, high: int) -> tuple[Part, Index]:
    """Expects that `before` has the same values, wherever the condition is in a range, after simplifying."""
    part = part_where(condition, low, high)
    assert part is not None
    after, count = simplified(before, {part.whole: part}.get), 0
    for row in range(ROW.extent):
        for place in range(PLACE.extent):
            values = {ROW: row, PLACE: place}
            if low <= _value(condition, values) <= high:
                number = (place - part.first) // part.step
                assert 0 <= number < part.number.extent
                assert _value(after, values | {part.number: number}) == _value(before, values)
                count += 1
    assert count == part.number.extent * ROW.extent, "exactly these numbers occur"
    return part, after


@pytest.mark.parametrize(("low", "high", "shift"), [(0, 31, 32), (32, 63, -32), (5, 5, 3)])
def test_a_range(low: int, high: int, shift: int) -> None:
    """The place stays in its row, so that neither row nor place are quotients, and are in terms of the variable."""
    flat = FLAT + shift
    _, row = _expect_same(flat // 64, variable(PLACE), low, high)
    _, place = _expect_same(flat % 64, variable(PLACE), low, high)
    assert (row, place) == (variable(ROW), variable(PLACE) + shift)


@pytest.mark.parametrize("value", [0, 1, 2])
def test_a_remainder(value: int) -> None:
    condition = variable(PLACE) % 3
    part, after = _expect_same((FLAT - variable(PLACE) % 3) // 3, condition, value, value)
    assert part.step == 3
    assert not any(isinstance(atom, Remainder) for atom in after.terms)


@pytest.mark.parametrize("value", [0, 1])
def test_pairs(value: int) -> None:
    """The other one of two neighbours is the one before, or after: no quotient is left."""
    swapped = variable(PLACE) // 2 * 2 + 1 - value
    _, after = _expect_same(swapped, variable(PLACE) % 2, value, value)
    assert after == variable(PLACE) + (1 - 2 * value)


def test_what_does_not_divide() -> None:
    """The number of an even place is its half, which remains a quotient of the variable for the kernel to compute."""
    part, after = _expect_same(variable(PLACE) // 2, variable(PLACE) % 2, 0, 0)
    assert after == variable(part.number)


@pytest.mark.parametrize(
    ("index", "low", "high"),
    [
        (variable(PLACE), 0, 63),
        (variable(PLACE), 70, 80),
        (FLAT, 0, 10),
        (variable(PLACE) % 3, 0, 1),
        (FLAT % 100, 0, 0),
        (constant(3), 0, 1),
    ],
    ids=["all of it", "none of it", "two variables", "several remainders", "a remainder of two", "no variable"],
)
def test_nothing_is_known(index: Index, low: int, high: int) -> None:
    assert part_where(index, low, high) is None


def test_quotients_of_other_variables_stay() -> None:
    other = Variable(10)
    index = Index({Quotient(variable(other), 3): 1})
    part = part_where(variable(PLACE), 0, 3)
    assert part is not None
    assert simplified(index, {PLACE: part}.get) == index
