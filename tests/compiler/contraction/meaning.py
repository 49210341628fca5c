"""The meaning of a contraction's problem, element by element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product

from trivium.compiler.contraction.problem import Access, Axis, AxisGroup, Problem, dimension, factors
from trivium.compiler.kernel.index import Index

Point = Mapping[Axis, int]


def at(index: Index, point: Point) -> int:
    """Returns the value of an affine expression; axes that a problem has dropped, because they have one index, are
    0."""
    return index.offset + sum(factor * point.get(axis, 0) for axis, factor in factors(index).items())


def place(access: Access, point: Point) -> int | None:
    """Returns where an element is; None if there is no element, which reads as zero."""
    offset = at(access.index, point)
    for window in access.windows:
        quotient, rest = divmod(at(window.position, point), window.dilation)
        if rest or not 0 <= quotient < window.size:
            return None
        offset += quotient * window.stride if window.dilation != 1 else 0
    return offset


def points(*groups: AxisGroup) -> Iterator[dict[Axis, int]]:
    """Yields every combination of indices, in row-major order."""
    axes = [axis for group in groups for axis in group.axes]
    for indices in product(*(range(axis.extent) for axis in axes)):
        yield dict(zip(axes, indices, strict=True))


def products(problem: Problem, point: Point) -> Counter[tuple[int, int]]:
    """Returns the places of the elements that are multiplied for one result, in the original problem's lhs and rhs."""
    found: Counter[tuple[int, int]] = Counter()
    for inner in points(problem.reduction):
        lhs, rhs = (place(access, {**point, **inner}) for access in (problem.lhs, problem.rhs))
        if lhs is not None and rhs is not None:
            found[(rhs, lhs) if problem.swapped else (lhs, rhs)] += 1
    return found


def meaning(problem: Problem) -> list[Counter[tuple[int, int]]]:
    """Returns the products of every result, in the order of the flat indices over batch, rows and columns."""
    return [products(problem, point) for point in points(problem.batch, problem.rows, problem.columns)]


def convolution(
    channels_last: bool, *, dilation: int = 1, stride: int = 1, low: int = 0, taps: int = 3, step: int = 1
) -> Problem:
    """A convolution of 2 images of 5 x 3 elements and 4 channels with 6 features; windows slide over the longer
    side."""
    size = 5
    extent = ((size - 1) * dilation + 1 + 2 * low - (taps - 1) * step - 1) // stride + 1
    batch, height, width, feature, channel, tap = (Axis(n) for n in (2, extent, 3, 6, 4, taps))
    strides = {batch: 60, channel: 1, width: 4} if channels_last else {batch: 60, channel: 15, width: 1}
    row = 12 if channels_last else 3
    lhs = Access(Index(strides))
    lhs = dimension(lhs, size, row, Index({height: stride, tap: step}, -low), dilation)
    rhs = Access(Index({feature: 4 * taps, channel: taps, tap: 1}))
    results = (batch, height, width, feature) if channels_last else (batch, feature, height, width)
    out, run = {}, 1
    for axis in reversed(results):
        out[axis] = run
        run *= axis.extent
    groups = (AxisGroup(()), AxisGroup((batch, height, width)), AxisGroup((feature,)), AxisGroup((channel, tap)))
    return Problem(*groups, lhs, rhs, Access(Index(out)))
