"""Locations in text: `loc("model.py":41:8)`, and names, fusions and call sites around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from trivium.ir.attributes import Attribute
from trivium.ir.location import (
    UNKNOWN,
    CallSiteLocation,
    FileLocation,
    FusedLocation,
    Location,
    NameLocation,
)
from trivium.ir.text.elements import ElementsReader
from trivium.ir.text.lexer import ALIAS, BLANKS, quote, token

# Most locations match one of these as a whole.
_REFERENCE = token(r"loc\((#[A-Za-z_][\w$.-]*)\)")
_POINT = token(rf'"([^"\\\n]*)":(\d{{1,9}}):(\d{{1,9}})(?!\d|{BLANKS}to\b)')


def shared_locations(places: Iterable[Location]) -> dict[Location, str]:
    """Assigns aliases, `#loc1`, to the locations that occur more than once in `places`, and to those that contain one.
    MLIR requires this: only a whole location may refer to an alias that is defined later."""
    counts: Counter[Location] = Counter()
    order: list[Location] = []

    def count(place: Location) -> None:
        counts[place] += 1
        if counts[place] == 1:
            for child in place.children:
                count(child)
            order.append(place)

    for place in places:
        count(place)
    aliases: dict[Location, str] = {}
    for place in order:
        if place != UNKNOWN and (counts[place] > 1 or any(child in aliases for child in place.children)):
            aliases[place] = f"#loc{len(aliases) + 1}"
    return aliases


def location_text(
    location: Location, attribute_text: Callable[[Attribute], str], aliases: Mapping[Location, str] | None = None
) -> str:
    """Returns the text inside `loc(...)`, in which parts that have an alias are written as the alias."""
    aliases = aliases or {}

    def text(place: Location) -> str:
        return aliases.get(place) or spelled(place)

    def spelled(place: Location) -> str:
        match place:
            case FileLocation(file, line, column, end_line, end_column):
                end = "" if end_column is None else f" to {'' if end_line == line else end_line}:{end_column}"
                return f"{quote(file)}:{line}:{column}{end}"
            case NameLocation(name, child):
                return quote(name) if child == UNKNOWN else f"{quote(name)}({text(child)})"
            case CallSiteLocation(callee, caller):
                return f"callsite({text(callee)} at {text(caller)})"
            case FusedLocation(locations, metadata):
                about = "" if metadata is None else f"<{attribute_text(metadata)}>"
                return f"fused{about}[{', '.join(map(text, locations))}]"
        return "unknown"

    return spelled(location)


class LocationReader(ElementsReader):
    """Reads locations."""

    def alias_location(self, name: str, pos: int) -> Location:
        raise NotImplementedError

    def optional_location(self) -> Location | None:
        """Reads `loc(...)` if it is next."""
        return self.location() if self.text.startswith("loc", self.pos) and self.at_word("loc") else None

    def location(self) -> Location:
        """`loc(...)`"""
        if (reference := _REFERENCE.match(self.text, self.pos)) is not None:
            self.pos = reference.end()
            return self.alias_location(reference[2], reference.start(2))
        self.expect_word("loc")
        self.expect("(")
        place = self._place()
        self.expect(")")
        return place

    def _place(self) -> Location:
        if self.at("#"):
            pos = self.pos
            return self.alias_location(self.take(ALIAS, "a location"), pos)
        with self.nested():
            if (point := _POINT.match(self.text, self.pos)) is not None:
                self.pos = point.end()
                return FileLocation(point[2], int(point[3]), int(point[4]))
            if self.at('"'):
                return self._file_or_name()
            if self.accept_word("unknown"):
                return UNKNOWN
            if self.accept_word("callsite"):
                return self._call_site()
            if self.accept_word("fused"):
                return self._fused()
        raise self.unexpected('a location, as in loc("file.py":1:2) or loc(unknown)')

    def _file_or_name(self) -> Location:
        text = self.string()
        if self.accept(":"):
            line = self._line_or_column()
            self.expect(":")
            column = self._line_or_column()
            if not self.accept_word("to"):
                return FileLocation(text, line, column)
            end_line = line if self.at(":") else self._line_or_column()
            self.expect(":")
            return FileLocation(text, line, column, end_line, self._line_or_column())
        if not self.accept("("):
            return NameLocation(text)
        child = self._place()
        self.expect(")")
        return NameLocation(text, child)

    def _line_or_column(self) -> int:
        pos = self.pos
        number = self.integer()
        if not 0 <= number < 1 << 32:
            raise self.error(f"has {number} for a line or a column, expected at least 0 and less than {1 << 32}", pos)
        return number

    def _call_site(self) -> Location:
        self.expect("(")
        callee = self._place()
        self.expect_word("at")
        caller = self._place()
        self.expect(")")
        return CallSiteLocation(callee, caller)

    def _fused(self) -> Location:
        metadata = None
        if self.accept("<"):
            metadata = self.attribute()
            self.expect(">")
        return FusedLocation(tuple(self.listed(self._place, "[", "]")), metadata)
