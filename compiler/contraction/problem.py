"""A contraction as plain index arithmetic: four groups of axes (batch, rows, columns, reduction) and, for each operand,
how the place of an element follows from them. Matrix products and convolutions in any layout are the same in this
form."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from trivium.compiler.kernel.index import Index, Variable

Axis = Variable
"""A loop of the contraction."""
SHORT_RUN = 8
"""Columns that are fewer neighbours in the result than this fill few lanes, and are joined by others. Measured on
AVX-512 for products of 100x64xN and 64x100, N before 100 in the result: twice as fast for N = 3, 1.46 times for 7, 1.3
for 8, 0.9 for 12; on AVX2 0.93 for 7."""


def factors(index: Index) -> dict[Axis, int]:
    """Returns the axes of an affine expression, each with its factor."""
    return index.terms  # type: ignore[return-value]


@dataclass(frozen=True)
class Window:
    """A dimension with indices that may be out of bounds (padding), or with gaps between its elements (dilation):
    positions outside or between elements read as zero."""

    position: Index
    size: int
    stride: int
    dilation: int = 1

    def uses(self, axis: Axis) -> bool:
        return axis in self.position.terms


@dataclass(frozen=True)
class Access:
    """Where an operand's element is, in elements: at `index`, an affine expression of axes. A dilated window adds
    (position / dilation) * stride to it. All other windows are already part of it, and only say where there is an
    element."""

    index: Index
    windows: tuple[Window, ...] = ()

    def stride(self, axis: Axis) -> int:
        """Returns the number of elements between neighbours on `axis`, ignoring dilated windows."""
        return self.index.terms.get(axis, 0)

    def windowed(self, axis: Axis) -> bool:
        return any(window.uses(axis) for window in self.windows)


@dataclass(frozen=True)
class AxisGroup:
    """Axes that are treated as one flat index; the last one varies fastest."""

    axes: tuple[Axis, ...]

    @property
    def extent(self) -> int:
        return math.prod(axis.extent for axis in self.axes)


@dataclass(frozen=True)
class Problem:
    """out[batch, rows, columns] = sum over reduction of lhs[batch, rows, reduction] * rhs[batch, columns,
    reduction]."""

    batch: AxisGroup
    rows: AxisGroup
    columns: AxisGroup
    reduction: AxisGroup
    lhs: Access
    rhs: Access
    out: Access
    """The result's layout, as far as it has one: it decides which side becomes the columns."""
    swapped: bool = False

    @property
    def elementwise(self) -> bool:
        """Whether lhs also varies along the columns, as in a depthwise convolution: then vectors are multiplied lane by
        lane."""
        return any(self.lhs.stride(axis) for axis in self.columns.axes)

    @property
    def flops(self) -> int:
        return 2 * self.batch.extent * self.rows.extent * self.columns.extent * self.reduction.extent

    @property
    def read(self) -> int:
        """The number of elements of both factors; 0 where windows share elements, of which each is in many products."""
        if self.elementwise or self.lhs.windows or self.rhs.windows:
            return 0
        return self.batch.extent * self.reduction.extent * (self.rows.extent + self.columns.extent)


def dimension(access: Access, size: int, stride: int, position: Index, dilation: int = 1) -> Access:
    """Returns `access` with one more dimension, which has a window if its position can be out of bounds or is
    dilated."""
    low, high = position.range
    inside = low >= 0 and high < size and dilation == 1
    windows = access.windows if inside else (*access.windows, Window(position, size, stride, dilation))
    return Access(access.index + position * stride if dilation == 1 else access.index, windows)


def lies_across(access: Access, lines: AxisGroup, across: AxisGroup) -> bool:
    """Whether a matrix is contiguous along `lines`, not `across`: then reading square blocks along memory and
    transposing them is faster than gathering. Lines may be of several axes, as in the weights of a convolution."""
    if access.windows or not lines.axes or len(across.axes) != 1:
        return False
    run = 1
    for axis in reversed(lines.axes):
        if access.stride(axis) != run:
            return False
        run *= axis.extent
    return access.stride(across.axes[0]) != 1


def swap(problem: Problem) -> Problem:
    """Returns the transposed problem, with rows and columns exchanged. Useful if the rows, not the columns, are
    contiguous in the result."""
    return replace(
        problem,
        rows=problem.columns,
        columns=problem.rows,
        lhs=problem.rhs,
        rhs=problem.lhs,
        swapped=not problem.swapped,
    )


def orient(problem: Problem) -> Problem:
    """Returns the problem with the result's contiguous side as columns, axes that are not contiguous there (such as the
    images of a batch) as batch, and the rows in their order in the memory of lhs."""
    channels = [axis for axis in problem.batch.axes if _lanes_alike(problem, axis)]
    if problem.columns.extent == 1 and channels:
        batch = tuple(axis for axis in problem.batch.axes if axis is not channels[0])
        problem = replace(problem, batch=AxisGroup(batch), columns=AxisGroup((*problem.columns.axes, channels[0])))
    elif _contiguity(problem, problem.columns) < _contiguity(problem, problem.rows):
        problem = _separate(swap(problem))
    return replace(problem, rows=_by_reach(problem.rows, problem.lhs))


def _by_reach(group: AxisGroup, access: Access) -> AxisGroup:
    """Sorts the axes by the distance between neighbours, the largest first."""
    return AxisGroup(tuple(sorted(group.axes, key=lambda axis: -abs(access.stride(axis)))))


def _lanes_alike(problem: Problem, axis: Axis) -> bool:
    """Whether lhs and the result are both contiguous along a batch axis."""
    return (
        axis.extent > 1 and problem.out.stride(axis) == 1 == problem.lhs.stride(axis) and not problem.lhs.windowed(axis)
    )


def canonicalize(problem: Problem) -> Problem:
    """Drops axes of extent 1, sorts the reduction in the order of lhs in memory, and merges neighbours where both
    operands allow it. Flat indices over batch, rows and columns keep their meaning."""
    problem = _drop_units(problem)
    problem = replace(problem, reduction=_by_reach(problem.reduction, problem.lhs))
    for name in ("batch", "rows", "columns", "reduction"):
        problem = _merge(problem, name)
    return problem


def _contiguity(problem: Problem, group: AxisGroup) -> int:
    """Returns the length of the contiguous run that `group` has in the result."""
    run = 1
    for axis in reversed(group.axes):
        if problem.out.stride(axis) != run and axis.extent != 1:
            break
        run *= axis.extent
    return run


def _separate(problem: Problem) -> Problem:
    """Turns column axes beyond the contiguous run in the result into batch axes, such as the axis of images; not in a
    product with a run that would fill few lanes, such as the colors of images."""
    run, axes = 1, list(problem.columns.axes)
    kept: list[Axis] = []
    while axes and (axes[-1].extent == 1 or problem.out.stride(axes[-1]) == run):
        run *= axes[-1].extent
        kept.insert(0, axes.pop())
    if run < SHORT_RUN and not problem.rhs.windows:
        return problem
    return replace(problem, batch=AxisGroup((*problem.batch.axes, *axes)), columns=AxisGroup(tuple(kept)))


def _drop_units(problem: Problem) -> Problem:
    groups = {
        name: AxisGroup(tuple(axis for axis in getattr(problem, name).axes if axis.extent != 1))
        for name in ("batch", "rows", "columns", "reduction")
    }
    return replace(problem, **groups)


def _merge(problem: Problem, name: str) -> Problem:
    """Merges neighbours (outer, inner) into one axis if outer's stride is inner's stride times inner's extent in every
    operand."""
    axes = list(getattr(problem, name).axes)
    merged: list[Axis] = []
    for axis in axes:
        if merged and _mergeable(problem, merged[-1], axis):
            outer = merged.pop()
            both = Axis(outer.extent * axis.extent)
            problem = replace(
                problem, **{key: _joined(getattr(problem, key), outer, axis, both) for key in ("lhs", "rhs")}
            )
            axis = both
        merged.append(axis)
    return replace(problem, **{name: AxisGroup(tuple(merged))})


def _mergeable(problem: Problem, outer: Axis, inner: Axis) -> bool:
    return all(
        access.stride(outer) == access.stride(inner) * inner.extent
        and not access.windowed(outer)
        and not access.windowed(inner)
        for access in (problem.lhs, problem.rhs)
    )


def _joined(access: Access, outer: Axis, inner: Axis, both: Axis) -> Access:
    terms = {axis: factor for axis, factor in access.index.terms.items() if axis not in (outer, inner)}
    return replace(access, index=Index({**terms, both: access.stride(inner)}, access.index.offset))
