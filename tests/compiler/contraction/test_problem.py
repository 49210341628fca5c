"""Transposing and simplifying a problem does not change what it computes."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.compiler.contraction.meaning import at, convolution, meaning, points, products
from trivium.compiler.contraction.problem import (
    Access,
    Axis,
    AxisGroup,
    Problem,
    canonicalize,
    dimension,
    lies_across,
    orient,
    swap,
)
from trivium.compiler.kernel.index import Index, constant, variable

CASES = {
    "plain": {}, "padded": {"low": 1}, "strided": {"stride": 2}, "one tap": {"taps": 1}, "dilated taps": {"step": 2},
    "dilated": {"dilation": 2, "low": 2},
}  # fmt: skip


def matmul(batch: int, m: int, n: int, k: int, transposed: bool = False) -> Problem:
    b, i, j, inner = (Axis(extent) for extent in (batch, m, n, k))
    rhs = {b: n * k, inner: 1, j: k} if transposed else {b: n * k, inner: n, j: 1}
    groups = (AxisGroup((axis,)) for axis in (b, i, j, inner))
    lhs, out = {b: m * k, i: k, inner: 1}, {b: m * n, i: n, j: 1}
    return Problem(*groups, Access(Index(lhs)), Access(Index(rhs)), Access(Index(out)))


def by_result(problem: Problem) -> dict[int, Counter[tuple[int, int]]]:
    """Returns the products of every result, by its place."""
    everywhere = points(problem.batch, problem.rows, problem.columns)
    return {at(problem.out.index, point): products(problem, point) for point in everywhere}


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_orienting_keeps_the_results(name: str, channels_last: bool) -> None:
    problem = convolution(channels_last, **CASES[name])
    oriented = orient(problem)
    assert by_result(oriented) == by_result(problem)
    assert oriented.swapped is not channels_last, "the columns are what is contiguous in the result"


@pytest.mark.parametrize(("colors", "columns", "batch"), [(3, 12, 1), (7, 28, 1), (8, 8, 4)])
def test_a_few_neighbours_are_joined_by_other_columns(colors: int, columns: int, batch: int) -> None:
    """Lines of images, which are resized along their length of five, to six."""
    line, color, length, other = (Axis(extent) for extent in (4, colors, 5, 6))
    lhs = Index({line: 5 * colors, length: colors, color: 1})
    rhs, out = Index({length: 6, other: 1}), Index({line: 6 * colors, other: colors, color: 1})
    groups = (AxisGroup(axes) for axes in ((), (line, color), (other,), (length,)))
    problem = Problem(*groups, Access(lhs), Access(rhs), Access(out))
    oriented = orient(problem)
    assert (oriented.columns.extent, oriented.batch.extent) == (columns, batch)
    assert by_result(oriented) == by_result(problem)
    assert meaning(canonicalize(oriented)) == meaning(oriented)


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_canonical_form_keeps_flat_indices(name: str, channels_last: bool) -> None:
    oriented = orient(convolution(channels_last, **CASES[name]))
    assert meaning(canonicalize(oriented)) == meaning(oriented)


def test_axes_that_can_be_one_are_merged_and_those_of_extent_one_dropped() -> None:
    problem = canonicalize(orient(matmul(1, 6, 5, 7)))
    assert [group.axes for group in (problem.batch,)] == [()]
    merged = canonicalize(orient(convolution(True, taps=1)))
    assert [axis.extent for axis in merged.rows.axes] == [30], "images, height and width follow each other in lhs"
    assert [axis.extent for axis in merged.reduction.axes] == [4]


def test_swapping_twice_is_the_problem_itself() -> None:
    problem = matmul(2, 3, 4, 5)
    assert swap(swap(problem)) == problem
    assert swap(problem).lhs == problem.rhs
    assert problem.flops == swap(problem).flops == 2 * 2 * 3 * 4 * 5


def test_a_dimension_has_a_window_where_its_position_can_leave_it() -> None:
    axis = Axis(5)
    start = Access(constant(7))
    inside = dimension(start, 6, 10, variable(axis) + 1)
    assert inside == Access(Index({axis: 10}, 17))
    assert dimension(start, 5, 10, variable(axis) + 1).windowed(axis)
    assert dimension(start, 6, 10, variable(axis) - 1).windowed(axis)
    dilated = dimension(start, 6, 10, variable(axis), dilation=2)
    assert dilated.windowed(axis)
    assert dilated.stride(axis) == 0


def test_what_lies_across() -> None:
    plain, transposed = matmul(1, 2, 3, 4), matmul(1, 2, 3, 4, transposed=True)
    assert not lies_across(plain.rhs, plain.reduction, plain.columns)
    assert lies_across(transposed.rhs, transposed.reduction, transposed.columns)


def test_kernels_lie_across_if_their_windows_are_whole_lines() -> None:
    columns, feature, tap = Axis(8), Axis(5), Axis(3)

    def lies(column: int, of_feature: int, of_tap: int) -> bool:
        access = Access(Index({columns: column, feature: of_feature, tap: of_tap}))
        return lies_across(access, AxisGroup((feature, tap)), AxisGroup((columns,)))

    assert lies(15, 3, 1)
    assert not lies(15, 1, 5)  # the features are together
    assert not lies(20, 4, 1)  # there is a gap
    assert not lies(1, 24, 8)


def test_depthwise_is_elementwise() -> None:
    channel, position, tap = Axis(8), Axis(5), Axis(3)
    lhs, rhs = Access(Index({channel: 1, position: 8, tap: 8})), Access(Index({channel: 3, tap: 1}))
    out = Access(Index({channel: 1, position: 8}))
    problem = Problem(AxisGroup((channel,)), AxisGroup((position,)), AxisGroup(()), AxisGroup((tap,)), lhs, rhs, out)
    assert not problem.elementwise
    assert orient(problem).elementwise
    assert by_result(orient(problem)) == by_result(problem)
