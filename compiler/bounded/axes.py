"""Sizes that vary: an extent is known as one number for each combination of sizes, so that whether two extents are the
same, or one divides the other, is never a matter of algebra."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

Extent = tuple[int, ...]
"""An extent in each combination of sizes."""


class Axis(NamedTuple):
    """A dimension of a value, with space for every combination. Its `parts`, from the major to the minor one, have
    space each: of the two parts of `[batch, length]` flattened, the elements of a row are together, and behind them is
    the space that a longer row would take. Only the first part may be the same in all combinations."""

    parts: tuple[Extent, ...]

    @property
    def extent(self) -> Extent:
        return self.parts[0] if self.is_simple else tuple(map(math.prod, zip(*self.parts, strict=True)))

    @property
    def bounds(self) -> tuple[int, ...]:
        """The space of each part."""
        return tuple(map(max, self.parts))

    @property
    def bound(self) -> int:
        return math.prod(self.bounds)

    @property
    def is_fixed(self) -> bool:
        """Whether the extent is the same in all combinations."""
        return all(map(is_fixed, self.parts))

    @property
    def is_simple(self) -> bool:
        """Whether all space is behind the elements."""
        return len(self.parts) == 1


Axes = tuple[Axis, ...]


def is_fixed(extent: Extent) -> bool:
    return len(set(extent)) == 1


def simple(extent: Extent) -> Axis:
    return Axis((extent,))


def joined(parts: Iterable[Extent], combinations: int) -> Axis:
    """Returns the axis that these parts make. What is fixed joins what is before it: its space stays behind."""
    found: list[Extent] = [(1,) * combinations]
    for part in parts:
        if is_fixed(part) or is_one(found[-1]):
            found[-1] = times(found[-1], part)
        else:
            found.append(part)
    return Axis(tuple(found))


def is_one(extent: Extent) -> bool:
    return set(extent) == {1}


def times(a: Extent, b: Extent) -> Extent:
    return tuple(x * y for x, y in zip(a, b, strict=True))


def divided(a: Extent, b: Extent) -> Extent | None:
    """Returns a quotient, if there is no remainder in any combination."""
    pairs = list(zip(a, b, strict=True))
    return tuple(x // y for x, y in pairs) if all(y and x % y == 0 for x, y in pairs) else None


def extents_of(shapes: Iterable[Sequence[int]]) -> tuple[Extent, ...]:
    """Returns the extents of a value that has one of these shapes in each combination."""
    return tuple(zip(*([int(extent) for extent in shape] for shape in shapes), strict=True))


def listed(numbers: Iterable[np.ndarray]) -> tuple[Extent, ...]:
    """Returns the extents that lists of them have."""
    return extents_of(np.asarray(array).reshape(-1).tolist() for array in numbers)


def different(a: Extent, b: Extent) -> list[int]:
    """Returns the combinations, by number, in which two extents are not the same."""
    return [number for number, pair in enumerate(zip(a, b, strict=True)) if len(set(pair)) > 1]
