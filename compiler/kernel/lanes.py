"""Loop indices in the lanes of a vector: which iterations the lanes run together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.compiler.kernel.structure import Register


@dataclass(frozen=True)
class Place:
    """The values of an index in each lane: one of `numbers`, plus the same multiple of `multiple` in all lanes (nothing
    if that is zero)."""

    numbers: tuple[int, ...]
    multiple: int


Places = Mapping[Register, Place]
"""The loop indices that differ from lane to lane. Without any, there is one lane."""


def lanes_of(places: Places) -> int:
    """Returns the number of lanes."""
    return max((len(place.numbers) for place in places.values()), default=1)


def neighbours(index: Register, lanes: int, multiple: int) -> Places:
    """Returns the places where lanes run neighbouring iterations, the first of which is a multiple of `multiple`."""
    return {index: Place(tuple(range(lanes)), multiple)}


def in_rows(outer: Register, inner: Register, extent: int, lanes: int, number: int) -> Places:
    """Returns the places where lanes run all iterations of `inner`, of which there are `extent`, for one iteration of
    `outer` after the other: those of the vector with this number, of the vectors that `lanes` iterations of `outer`
    are."""
    every = [divmod(number * lanes + lane, extent) for lane in range(lanes)]
    rows, columns = zip(*every, strict=True)
    return {outer: Place(rows, lanes), inner: Place(columns, 0)}
