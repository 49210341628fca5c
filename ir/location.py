"""Where an op came from: MLIR's location tree. Framework, op, file and line are a view of it (`describe`). Locations
are ignored by equality, common subexpression elimination and digests."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)

SHOWN_CALLERS = 4
"""The places of a stack of callers that a description has."""


def hashed_once(cls: Kind) -> Kind:
    """Makes the objects of a class cache their hash, because call stacks are deep and occur in many places."""
    compute: Any = cls.__hash__  # of an object, not of the class

    def remembered(self: Any) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = compute(self)
        return found

    cls.__hash__ = remembered  # type: ignore[method-assign]
    return cls


@dataclass(frozen=True)
class Location:
    """An unknown place, and the root of the others."""

    def __reduce__(self):
        # Without the cached hash, which differs in another process.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def children(self) -> tuple[Location, ...]:
        """The places that it is made of."""
        return ()

    def describe(self) -> str:
        """For people: `model.py:41 in forward, aten.cat.default`; empty when nothing is known."""
        return ""


@dataclass(frozen=True)
class FileLocation(Location):
    """A place, or a range, in a file; lines and columns count from 1 (0: unknown)."""

    file: str
    line: int = 0
    column: int = 0
    end_line: int | None = None
    end_column: int | None = None

    def describe(self) -> str:
        numbers = (self.line, self.column) if self.column else (self.line,) if self.line else ()
        return ":".join(map(str, (self.file, *numbers)))


@hashed_once
@dataclass(frozen=True)
class NameLocation(Location):
    """A name (of a framework's op, layer or function) given to an inner place."""

    name: str
    child: Location = Location()

    @property
    def children(self) -> tuple[Location, ...]:
        return (self.child,)

    def describe(self) -> str:
        inner = self.child.describe()
        return f"{inner}, {self.name}" if inner else self.name


@hashed_once
@dataclass(frozen=True)
class CallSiteLocation(Location):
    """Inside `callee`, called at `caller`."""

    callee: Location
    caller: Location

    @property
    def children(self) -> tuple[Location, ...]:
        return self.callee, self.caller

    def describe(self) -> str:
        places: list[str] = []
        rest: Location = self
        while isinstance(rest, CallSiteLocation) and len(places) < SHOWN_CALLERS:
            places.append(rest.callee.describe())
            rest = rest.caller
        # Further callers are in the framework, or started the program.
        places.append("others" if isinstance(rest, CallSiteLocation) else rest.describe())
        return " called from ".join(filter(None, places))


@hashed_once
@dataclass(frozen=True)
class FusedLocation(Location):
    """Several places that became one op; `metadata` is any attribute."""

    locations: tuple[Location, ...]
    metadata: Any = None

    @property
    def children(self) -> tuple[Location, ...]:
        return self.locations

    def describe(self) -> str:
        return " + ".join(text for text in (place.describe() for place in self.locations) if text)


UNKNOWN = Location()


def file_locations(location: Location, most: int = 4) -> list[FileLocation]:
    """Returns the positions in files that a location consists of, the innermost call first."""
    found: dict[FileLocation, None] = {}
    waiting = [location]
    while waiting and len(found) < most:
        place = waiting.pop()
        if isinstance(place, FileLocation):
            found[place] = None
        waiting.extend(reversed(place.children))
    return list(found)
