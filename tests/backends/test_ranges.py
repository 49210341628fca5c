"""For which sizes programs are compiled: which sizes vary together, and what a program may lose before there is a
better one."""

from __future__ import annotations

import pytest

from trivium.backends.estimates import Costs
from trivium.backends.ranges import MOST_COMBINATIONS, Ranges, Sizes, Together, half, octave, shown


def together(*seen: Sizes) -> Together:
    found = Together()
    for sizes in seen:
        found.see(sizes)
    return found


@pytest.mark.parametrize(
    ("seen", "leaders"),
    [
        ([(4, 4)], []),
        ([(4, 4), (7, 7), (5, 5)], [0]),
        ([(4, 5), (7, 8), (6, 7)], [0]),
        ([(4, 12), (7, 21), (6, 18)], [0]),
        ([(12, 4), (21, 7), (18, 6)], [0]),
        ([(4, 9, -1), (7, 9, -1), (5, 9, -1)], [0]),
        ([(2, 20), (3, 30), (4, 17)], [0, 1]),
        ([(2, 9, 3, 9), (2, 4, 3, 4), (5, 9, 6, 9)], [0, 1]),
    ],
)
def test_sizes_that_vary_together_have_one_leader(seen: list[Sizes], leaders: list[int]) -> None:
    found = together(*seen)
    assert found.leaders == leaders
    for sizes in seen:
        assert found.combinations([range(sizes[leader], sizes[leader] + 1) for leader in leaders]) == [sizes]


def test_what_follows_from_a_leader_is_among_the_combinations() -> None:
    assert together((4, 5, 8, 3), (6, 7, 12, 3), (5, 6, 10, 3)).combinations([range(2, 5)]) == [
        (2, 3, 4, 3),
        (3, 4, 6, 3),
        (4, 5, 8, 3),
    ]
    # Sizes that no number of rows has are left out.
    assert together((4, 2), (8, 4), (6, 3)).combinations([range(3, 7)]) == [(4, 2), (6, 3)]
    assert together((4, 1), (8, 5), (6, 3)).combinations([range(2, 5)]) == [(3, 0), (4, 1)]


def test_only_what_is_unexpected_is_remembered() -> None:
    found = together((4, 4), (7, 7), *((n, n) for n in range(100)))
    assert found.seen == [(4, 4), (7, 7)]
    found.see((3, 4))
    assert found.leaders == [0, 1]


@pytest.mark.parametrize(
    ("size", "expected"), [(-1, (-1, -1)), (0, (0, 0)), (1, (1, 1)), (2, (2, 8)), (9, (9, 16)), (65, (65, 128))]
)
def test_the_widest_ranges(size: int, expected: tuple[int, int]) -> None:
    found = octave(size)
    assert (found[0], found[-1]) == expected
    while len(found) > 1:
        found = half(found, size)
        assert size in found
    assert list(found) == [size]


def test_ranges_for_people() -> None:
    assert shown([(2, 9, 2), (3, 9, 3)]) == "sizes from 2 to 3"
    assert shown([(2, 9), (3, 10)]) == "sizes from 2 to 3, 9 to 10"
    assert shown([(2, 9)]) == "its sizes"


SECOND = 60e9
"""The floating-point operations that take a second, as is estimated."""


def costs(running: float) -> Costs:
    """The costs of a program that runs for this many seconds, and takes 1.05 seconds to compile."""
    return Costs(0, round(1 / 1.1e-5), running * SECOND, 0)


def ranges(least: float = 1.0, each: float = 0.1) -> Ranges[str]:
    """Those of a function that takes `least` seconds and `each` more for a row."""
    found: Ranges[str] = Ranges(4)
    for size in (20, 10):
        found.see_exact((size,), costs(least + each * size))
    return found


def compiled(found: Ranges[str], size: int, least: float = 1.0, each: float = 0.1) -> list[int]:
    """Compiles what is wanted, and returns for which sizes that is."""
    wanted = found.wanted((size,))
    rows = [rows for (rows,) in wanted]
    if len(rows) > 1:
        found.add(wanted, f"{rows[0]} to {rows[-1]}", costs(least + each * rows[-1]))
    return rows


def test_a_program_is_replaced_when_it_has_lost_as_much_as_compiling_takes() -> None:
    found = ranges()
    assert found.find((17,)) is None
    assert compiled(found, 17) == list(range(17, 33))
    # With 32 rows nothing is lost, with 30 a fifth of a second, in each run.
    for _ in range(100):
        assert found.find((32,)) == "17 to 32"
    assert [found.find((size,)) for size in (30, 29, 28, 31)] == ["17 to 32"] * 4
    assert found.find((31,)) is None
    assert compiled(found, 31) == list(range(25, 33))
    assert found.find((28,)) == "25 to 32"
    # It is still the one for those sizes that the narrower one does not have.
    assert found.find((24,)) == "17 to 32"
    assert list(found) == ["25 to 32", "17 to 32"]


def test_sizes_that_come_often_get_a_program_of_their_own() -> None:
    found = ranges()
    compiled(found, 17)
    assert found.find((20,)) is None
    assert compiled(found, 20) == [20]


def test_a_program_whose_costs_hardly_grow_stays() -> None:
    found = ranges(1.0, 1e-6)
    compiled(found, 17, 1.0, 1e-6)
    for size in range(17, 33):
        for _ in range(100):
            assert found.find((size,)) == "17 to 32"


@pytest.mark.parametrize(
    ("sizes", "expected"), [((120, 290), "sizes from 113 to 128, 289 to 320"), ((3, 40), "sizes from 2 to 4, 33 to 64")]
)
def test_several_sizes_have_shorter_ranges(sizes: Sizes, expected: str) -> None:
    found: Ranges[str] = Ranges(4)
    for seen in ((100, 300), (110, 310)):
        found.see_exact(seen, costs(1.0))
    wanted = found.wanted(sizes)
    assert sizes in wanted
    assert len(wanted) <= MOST_COMBINATIONS
    assert shown(wanted) == expected


def test_the_least_recently_used_program_goes() -> None:
    found = ranges()
    for size in (17, 33, 65, 129):
        compiled(found, size)
    assert found.find((32,)) == "17 to 32"
    compiled(found, 257)
    assert list(found) == ["65 to 128", "129 to 256", "17 to 32", "257 to 512"]
    assert found.find((64,)) is None
