"""From axis indices to addresses: unflattening of flat indices, and the place of an operand's element, for one index or
a vector of them."""

from __future__ import annotations

from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.cpu.contraction.emission import Emission, Number
from trivium.compiler.contraction.problem import Access, Axis, Group

Indices = dict[Axis, Number]


def unflatten(e: Emission, group: Group, flat: Number) -> Indices:
    """The index on each axis of `group` of a flat index over it."""
    indices: Indices = {}
    for axis in reversed(group.axes[1:]):
        flat, indices[axis] = e.divmod(flat, axis.extent)
    if group.axes:
        indices[group.axes[0]] = flat
    return indices


@dataclass
class Place:
    """Where some of an access's axes lead: an offset in elements, and a position in each window. Places of disjoint
    axes add up."""

    offset: Number
    positions: tuple[Number, ...]


def origin(access: Access) -> Place:
    """The place of index 0 on every axis."""
    plain = sum(window.offset * window.stride for window in access.windows if window.dilation == 1)
    return Place(access.offset + plain, tuple(window.offset for window in access.windows))


def place(e: Emission, access: Access, indices: Indices) -> Place:
    """What `indices` add to the origin."""
    offset: Number = 0
    positions: list[Number] = [0] * len(access.windows)
    for axis, value in indices.items():
        offset = e.add(offset, e.mul(value, access.reach(axis)))
        for number, window in enumerate(access.windows):
            for term, scale in window.terms:
                if term is axis:
                    positions[number] = e.add(positions[number], e.mul(value, scale))
    return Place(offset, tuple(positions))


def join(e: Emission, *places: Place) -> Place:
    total = places[0]
    for other in places[1:]:
        positions = tuple(e.add(a, b) for a, b in zip(total.positions, other.positions, strict=True))
        total = Place(e.add(total.offset, other.offset), positions)
    return total


def resolve(e: Emission, access: Access, here: Place) -> tuple[Number, ll.Value | None]:
    """The element's offset, and whether there is one (None: always)."""
    offset, valid = here.offset, None
    for window, position in zip(access.windows, here.positions, strict=True):
        if window.dilation == 1:
            valid = e.both(valid, e.below(position, window.size))
            continue
        quotient, remainder = e.divmod(position, window.dilation)
        inside = e.both(e.below(quotient, window.size), e.below(remainder, 1))
        offset = e.add(offset, e.mul(quotient, window.stride))
        valid = e.both(valid, inside)
    return offset, valid
