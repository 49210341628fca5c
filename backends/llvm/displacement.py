"""From the axes of a contraction to addresses: the contribution of some of an access's axes to the position of an
element, for one index or a vector of them. Parts of it can thus be computed outside the loops that they do not depend
on."""

from __future__ import annotations

from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm.numbers import Number, below
from trivium.backends.llvm.vectors import Vectors
from trivium.compiler.contraction.problem import Access, Axis, AxisGroup
from trivium.compiler.kernel.index import Index

Indices = dict[Axis, Number]


def unflatten(group: AxisGroup, flat: Number) -> Indices:
    """Returns the index on each axis of `group` for a flat index over it."""
    indices: Indices = {}
    for axis in reversed(group.axes[1:]):
        flat, indices[axis] = divmod(flat, axis.extent)
    if group.axes:
        indices[group.axes[0]] = flat
    return indices


@dataclass(frozen=True)
class Displacement:
    """A share of an element's position: an offset in elements, and one share of the position in each window. The shares
    of disjoint axes add up."""

    offset: Number
    positions: tuple[Number, ...] = ()

    def __add__(self, other: Displacement) -> Displacement:
        positions = tuple(a + b for a, b in zip(self.positions, other.positions, strict=True))
        return Displacement(self.offset + other.offset, positions)


def origin(access: Access) -> Displacement:
    """Returns the displacement of index 0 on every axis."""
    return Displacement(access.index.offset, tuple(window.position.offset for window in access.windows))


def displacement(access: Access, indices: Indices) -> Displacement:
    """Returns the displacement that `indices` add to the origin."""
    positions = tuple(terms_of(window.position, indices) for window in access.windows)
    return Displacement(terms_of(access.index, indices), positions)


def terms_of(expression: Index, indices: Indices) -> Number:
    """Returns the contribution of `indices` to an affine expression."""
    total: Number = 0
    for axis, value in indices.items():
        total = total + value * expression.terms.get(axis, 0)
    return total


def resolve(e: Vectors, access: Access, here: Displacement) -> tuple[Number, ll.Value | None]:
    """Returns the offset of the element whose whole displacement this is, and whether the element exists (None:
    always)."""
    offset, valid = here.offset, None
    for window, position in zip(access.windows, here.positions, strict=True):
        if window.dilation == 1:
            valid = e.conjunction(valid, below(e, position, window.size))
            continue
        quotient, remainder = divmod(position, window.dilation)
        inside = e.conjunction(below(e, quotient, window.size), below(e, remainder, 1))
        offset = offset + quotient * window.stride
        valid = e.conjunction(valid, inside)
    return offset, valid
