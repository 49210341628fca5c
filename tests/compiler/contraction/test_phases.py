"""The shares of a dilated contraction make up the whole, and multiply no zeros."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.compiler.contraction.meaning import at, convolution, place, points, products
from trivium.compiler.contraction.phases import Phase, phases
from trivium.compiler.contraction.problem import Axis, Problem

CASES = {
    "gradient of the input": {"dilation": 2, "low": 2},
    "dilated by three": {"dilation": 3, "low": 1},
    "dilated taps": {"dilation": 3, "low": 2, "step": 2},
    "fewer taps than phases": {"dilation": 3, "low": 1, "taps": 1},
    "without padding": {"dilation": 2},
}


def whole(problem: Problem) -> dict[tuple[int, ...], Counter[tuple[int, int]]]:
    """Returns the products of every result, by its indices."""
    outer = points(problem.batch, problem.rows, problem.columns)
    return {tuple(point.values()): products(problem, point) for point in outer}


def share(problem: Problem, phase: Phase) -> dict[tuple[int, ...], Counter[tuple[int, int]]]:
    """Returns the products of every result of one share, by its indices in the whole."""
    own = phase.problem
    axes = [axis for group in (problem.batch, problem.rows, problem.columns) for axis in group.axes]
    found = {}
    for point in points(own.batch, own.rows, own.columns):
        indices = tuple(at(phase.origin(axis), point) for axis in axes)
        assert indices not in found
        found[indices] = products(own, point)
    return found


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_shares_make_up_the_whole(name: str, channels_last: bool) -> None:
    problem = convolution(channels_last, **CASES[name])
    found = phases(problem)
    assert len(found) == CASES[name]["dilation"]
    together: dict[tuple[int, ...], Counter[tuple[int, int]]] = {}
    for phase in found:
        part = share(problem, phase)
        assert not together.keys() & part.keys()
        together |= part
        assert all(window.dilation == 1 for window in phase.problem.lhs.windows)
    assert together == whole(problem)


def test_no_product_with_the_zeros_between() -> None:
    """Except for padding, every element that a share reads exists."""
    problem = convolution(True, dilation=2, taps=4)
    inner = sum(phase.problem.flops for phase in phases(problem))
    assert 2 * inner == problem.flops
    for phase in phases(problem):
        own = phase.problem
        (places,) = (axis for axis in own.rows.axes if axis not in problem.rows.axes)
        middle = {**next(points(own.batch, own.rows, own.columns)), places: places.extent // 2}
        assert all(place(own.lhs, {**middle, **steps}) is not None for steps in points(own.reduction))


def test_what_has_no_dilation_is_one_share() -> None:
    problem = convolution(True, low=1)
    (only,) = phases(problem)
    assert only.problem is problem
    axis = Axis(3)
    assert at(only.origin(axis), {axis: 2}) == 2
