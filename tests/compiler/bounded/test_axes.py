"""Extents as one number for each combination of sizes."""

import numpy as np

from trivium.compiler.bounded.axes import Axis, Extent, divided, is_fixed, joined, listed, simple, times

N: Extent = (2, 3, 2, 3)
M: Extent = (4, 4, 7, 7)


def test_space_behind_a_fixed_part_stays_behind() -> None:
    assert joined([(2, 2, 2, 2), N], 4) == Axis(((2, 2, 2, 2), N))
    assert joined([N, (2, 2, 2, 2)], 4) == Axis(((4, 6, 4, 6),))
    assert joined([(1, 1, 1, 1), N, (1, 1, 1, 1), M], 4).bounds == (3, 7)
    assert joined([], 4) == Axis(((1, 1, 1, 1),))


def test_bounds_have_space_for_each_part() -> None:
    rows = Axis((N, M))
    assert rows.extent == times(N, M) == (8, 12, 14, 21)
    assert rows.bounds == (3, 7)
    assert rows.bound == 21
    assert not rows.is_simple
    assert not rows.is_fixed
    assert simple((4,) * 4).is_fixed


def test_quotients_have_no_remainder_in_any_combination() -> None:
    assert divided(times(N, M), M) == N
    assert divided(N, (2, 2, 2, 2)) is None
    assert divided(N, (0, 1, 1, 1)) is None
    assert is_fixed((5, 5, 5))


def test_lists_of_extents() -> None:
    assert listed([np.array([n, m]) for n, m in zip(N, M, strict=True)]) == (N, M)
    assert listed([np.array([[n]]) for n in N]) == (N,)
