"""Splits a contraction whose lhs is dilated (the input's gradient of a strided convolution) into several without
dilation. Elements are at every d-th position, so each of d neighbouring results uses its own share of the window's
taps, and no product with the zeros in between is ever computed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from trivium.compiler.contraction.problem import Access, Axis, AxisGroup, Problem, Window, dimension, factors
from trivium.compiler.kernel.index import Index, constant, variable


@dataclass(frozen=True)
class Phase:
    """One share of a problem: a problem of its own, and the split axes of the original in terms of its axes."""

    problem: Problem
    origins: dict[Axis, Index]

    def origin(self, axis: Axis) -> Index:
        """Returns an axis of the original problem in terms of the axes of this one."""
        return self.origins.get(axis) or variable(axis)


def phases(problem: Problem) -> list[Phase]:
    """Returns the shares that make up `problem`; only the problem itself if splitting gains nothing."""
    for window in problem.lhs.windows:
        terms = _place_and_tap(problem, window)
        if terms is not None:
            return [whole for share in _split(problem, window, *terms) for whole in _further(share)]
    return [Phase(problem, {})]


def _further(share: Phase) -> list[Phase]:
    return [Phase(inner.problem, _composed(share.origins, inner.origins)) for inner in phases(share.problem)]


def _composed(outer: dict[Axis, Index], inner: dict[Axis, Index]) -> dict[Axis, Index]:
    """Returns the origins of a share of a share."""
    return {axis: _moved(index, inner) for axis, index in outer.items()} | inner


def _place_and_tap(problem: Problem, window: Window) -> tuple[Axis, Axis, int] | None:
    """Returns the two axes of a window that can be split, place and tap, and the dilation of its taps; None if there
    are no such axes."""
    if window.dilation == 1 or len(window.position.terms) != 2:
        return None
    (one, scale), (other, step) = factors(window.position).items()
    if one in problem.reduction.axes:
        one, scale, other, step = other, step, one, scale
    alone = not any(w.uses(axis) for w in problem.lhs.windows if w is not window for axis in (one, other))
    plain = alone and not problem.rhs.windows and one not in problem.reduction.axes
    fits = scale == 1 and other in problem.reduction.axes and math.gcd(step, window.dilation) == 1
    return (one, other, step) if plain and fits else None


def _split(problem: Problem, window: Window, position: Axis, tap: Axis, step: int) -> list[Phase]:
    """Returns a share for each remainder of the position."""
    d, offset = window.dilation, window.position.offset
    shares = []
    for remainder in range(min(d, position.extent)):
        first = next(u for u in range(d) if (remainder + step * u + offset) % d == 0)
        places, taps = Axis(_count(position.extent, remainder, d)), Axis(_count(tap.extent, first, d))
        origins = {position: variable(places) * d + remainder, tap: variable(taps) * d + first}
        inside = variable(places) + variable(taps) * step + (remainder + step * first + offset) // d
        if taps.extent == 0:
            # Nothing is added up here; the share gets one tap, which reads padding.
            taps = Axis(1)
            origins[tap], inside = variable(taps), constant(-1)
        axes = {position: places, tap: taps}
        shares.append(Phase(_substituted(problem, window, axes, origins, inside), origins))
    return shares


def _count(extent: int, first: int, step: int) -> int:
    """Returns the number of terms of first, first + step, ... below `extent`."""
    return max(0, -(-(extent - first) // step))


def _substituted(
    problem: Problem, window: Window, axes: dict[Axis, Axis], origins: dict[Axis, Index], position: Index
) -> Problem:
    """Returns the problem on new axes, with its window undilated."""
    groups = {
        name: AxisGroup(tuple(axes.get(axis) or axis for axis in getattr(problem, name).axes))
        for name in ("batch", "rows", "columns", "reduction")
    }
    others = tuple(w for w in problem.lhs.windows if w is not window)
    lhs = dimension(Access(_moved(problem.lhs.index, origins), others), window.size, window.stride, position)
    rhs = replace(problem.rhs, index=_moved(problem.rhs.index, origins))
    return replace(problem, **groups, lhs=lhs, rhs=rhs, out=Access(_dense(_moved(problem.out.index, origins))))


def _moved(index: Index, origins: dict[Axis, Index]) -> Index:
    """Returns the expression in terms of the new axes."""
    return index.replace(origins.get)  # type: ignore[arg-type]


def _dense(out: Index) -> Index:
    """Returns the layout of a share of the result as if it were stored alone, so that the order of its axes in memory
    decides what counts as contiguous."""
    terms, step = {}, 1
    for axis, _ in sorted(factors(out).items(), key=lambda item: abs(item[1])):
        terms[axis] = step
        step *= axis.extent
    return Index(terms)
