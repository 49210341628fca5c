"""Contractions whose lhs is dilated (the input's gradient of a strided convolution) as several without: elements lie
at every d-th position, so of d neighbouring results each sees its own share of the window's taps, and no product
with the zeros between is ever computed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from trivium.compiler.contraction.problem import Access, Axis, Group, Problem, Window, dimension

Origin = tuple[Axis, int, int]
"""An axis of the original problem: index = axis * scale + offset."""


@dataclass(frozen=True)
class Phase:
    """One share of a problem: the problem, and where those of the original's axes went that were split."""

    problem: Problem
    origins: dict[Axis, Origin]

    def origin(self, axis: Axis) -> Origin:
        return self.origins.get(axis, (axis, 1, 0))


def phases(problem: Problem) -> list[Phase]:
    """The shares that make up `problem`; itself alone where nothing is to be gained."""
    for window in problem.lhs.windows:
        terms = _place_and_tap(problem, window)
        if terms is not None:
            return [whole for share in _split(problem, window, *terms) for whole in _further(share)]
    return [Phase(problem, {})]


def _further(share: Phase) -> list[Phase]:
    return [Phase(inner.problem, share.origins | inner.origins) for inner in phases(share.problem)]


def _place_and_tap(problem: Problem, window: Window) -> tuple[Axis, Axis, int] | None:
    """The axes of a window that can be split, and by how much its taps are dilated."""
    if window.dilation == 1 or len(window.terms) != 2:
        return None
    (one, scale), (other, step) = window.terms
    if one in problem.reduction.axes:
        one, scale, other, step = other, step, one, scale
    alone = not any(w.uses(axis) for w in problem.lhs.windows if w is not window for axis in (one, other))
    plain = alone and not problem.rhs.windows and one not in problem.reduction.axes
    fits = scale == 1 and other in problem.reduction.axes and math.gcd(step, window.dilation) == 1
    return (one, other, step) if plain and fits else None


def _split(problem: Problem, window: Window, position: Axis, tap: Axis, step: int) -> list[Phase]:
    """A share for each remainder of the position."""
    d = window.dilation
    shares = []
    for remainder in range(min(d, position.extent)):
        first = next(u for u in range(d) if (remainder + step * u + window.offset) % d == 0)
        places = Axis(_count(position.extent, remainder, d))
        taps = Axis(_count(tap.extent, first, d))
        origins = {position: (places, d, remainder), tap: (taps, d, first)}
        terms, offset = ((places, 1), (taps, step)), (remainder + step * first + window.offset) // d
        if taps.extent == 0:
            # Nothing is added up here: one tap, which reads padding.
            taps = Axis(1)
            origins[tap] = (taps, 1, 0)
            terms, offset = (), -1
        shares.append(Phase(_substituted(problem, window, origins, terms, offset), origins))
    return shares


def _count(extent: int, first: int, step: int) -> int:
    """Of first, first + step, ... below `extent`."""
    return max(0, -(-(extent - first) // step))


def _substituted(
    problem: Problem, window: Window, origins: dict[Axis, Origin], terms: tuple[tuple[Axis, int], ...], offset: int
) -> Problem:
    groups = {
        name: Group(tuple(origins[axis][0] if axis in origins else axis for axis in getattr(problem, name).axes))
        for name in ("batch", "rows", "columns", "reduction")
    }
    others = tuple(w for w in problem.lhs.windows if w is not window)
    lhs = _moved(replace(problem.lhs, windows=others), origins)
    lhs = dimension(lhs, window.size, window.stride, terms, offset)
    out = _dense(_moved(problem.out, origins))
    return replace(problem, **groups, lhs=lhs, rhs=_moved(problem.rhs, origins), out=out)


def _moved(access: Access, origins: dict[Axis, Origin]) -> Access:
    """The access in terms of the new axes."""
    strides, offset = {}, access.offset
    for axis, stride in access.strides.items():
        new, scale, shift = origins.get(axis, (axis, 1, 0))
        strides[new] = stride * scale
        offset += stride * shift
    return replace(access, strides=strides, offset=offset)


def _dense(out: Access) -> Access:
    """The share of the result as if it lay by itself: what is contiguous there is walked along."""
    strides, step = {}, 1
    for axis, stride in sorted(out.strides.items(), key=lambda item: abs(item[1])):
        strides[axis] = step if stride else 0
        step *= axis.extent if stride else 1
    return replace(out, strides=strides)
