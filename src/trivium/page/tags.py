"""Numbers on the ops of a program, which passes and lowering carry along. Many ops share a location (one line of the
user's becomes several ops, and runs in every layer), so locations alone cannot show what became of which op. A tag is a
separate location for each op, around the op's location; it exists in memory only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trivium.ir.core import Operation
from trivium.ir.func import Function
from trivium.ir.location import Location


@dataclass(frozen=True)
class Tag(Location):
    """The op with a number in the stage of that name; `place` is its own location."""

    stage: str
    number: int
    place: Location

    @property
    def children(self) -> tuple[Location, ...]:
        return (self.place,)

    def describe(self) -> str:
        return self.place.describe()


def ops_of(functions: Iterable[Function]) -> list[Operation]:
    """Returns the ops of functions in the order of their text, those of regions after the op that has them."""
    return [op for function in functions for op in function.body.walk()]


def tag(ops: Iterable[Operation], stage: str) -> None:
    """Numbers ops in the order given."""
    for number, op in enumerate(ops):
        op.location = Tag(stage, number, op.location)


def tags_of(location: Location, stage: str) -> list[int]:
    """Returns the numbers that a location has for a stage, without repetitions, in order."""
    found: dict[int, None] = {}
    waiting = [location]
    while waiting:
        place = waiting.pop()
        if isinstance(place, Tag) and place.stage == stage:
            found[place.number] = None
        waiting.extend(place.children)
    return sorted(found)
