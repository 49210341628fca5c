"""Numbers on the ops of a program, which passes and lowering carry along. Many ops share a location (one line of the
user's becomes several ops, and runs in every layer), so locations alone cannot show what each op became. A tag is a
separate location for each op, around the op's location; it exists in memory only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trivium.ir.core import Operation
from trivium.ir.func import Function, Module
from trivium.ir.location import Location


@dataclass(frozen=True)
class Tag(Location):
    """The op with a number in the program; `place` is its own location."""

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


def every_op(module: Module) -> list[Operation]:
    """Returns the ops of all functions of a module."""
    return ops_of(function for function in module.functions.values() if not function.is_declaration)


def numbers_of(module: Module) -> dict[Operation, int]:
    """Returns the positions of all ops of a module, as which a page numbers them."""
    return {op: number for number, op in enumerate(every_op(module))}


def tagged(module: Module) -> Module:
    """Returns a copy of a module whose ops have their numbers as tags."""
    copy = module.clone()
    for number, op in enumerate(every_op(copy)):
        op.location = Tag(number, op.location)
    return copy


def tags_of(location: Location) -> list[int]:
    """Returns the numbers that a location has, without repetitions, in order."""
    found: dict[int, None] = {}
    waiting = [location]
    while waiting:
        place = waiting.pop()
        if isinstance(place, Tag):
            found[place.number] = None  # the op's own location has no tags
        else:
            waiting.extend(place.children)
    return sorted(found)
