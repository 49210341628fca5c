"""The definitions of a file besides its operations: aliases (`#name = attribute`, `#loc1 = loc(...)`, `!name = type`)
and the resources at its end (`{-# dialect_resources: {builtin: {name: "0x..."}} #-}`). Both may be used before they are
defined, so the file is searched for all of them at the first use of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from trivium.ir.attributes import MAX_DEPTH, MAX_EXPANSION, Attribute
from trivium.ir.location import Location
from trivium.ir.text.attributes import AttributeReader
from trivium.ir.text.elements import ELIDED, hex_bytes
from trivium.ir.text.lexer import ALIAS, BLANKS, STRING
from trivium.ir.types import Type

_DEFINITION = rf"[ \t]*([#!](?:\d+|[A-Za-z_][\w$.-]*)){BLANKS}=(?!=){BLANKS}"
_FIRST_LINE = re.compile(_DEFINITION, re.ASCII)
_LATER_LINE = re.compile(rf"\n{_DEFINITION}", re.ASCII)
_ALIGNMENT_BYTES = 4


@dataclass(frozen=True)
class _Alias:
    """The value of an alias, where its definition ends, its nesting depth, and its length with everything that it
    refers to."""

    value: Attribute
    end: int
    depth: int
    size: int


class DefinitionReader(AttributeReader):
    """Reads aliases and resources."""

    def __init__(self, text: str, file: str = ""):
        super().__init__(text, file)
        self._resolved: dict[str, _Alias] = {}
        self._resolving: set[str] = set()
        self._size = 0
        """The total length that the aliases in the current definition expand to."""

    def definition(self) -> bool:
        """Takes an alias or the resources if they are next. Their values are found when they are needed."""
        if self.at("#") or self.at("!"):
            pos = self.pos
            name = self.take(ALIAS, "an alias")
            self.expect("=")
            if self._alias_places.setdefault(name, self.pos) != self.pos:
                raise self.error(f"the alias {name} is defined twice", pos)
            self._alias(name, pos)
            self.pos = self._resolved[name].end
            return True
        if self.at("{-#"):
            self._read_resources()
            return True
        return False

    # Aliases

    def alias_attribute(self, name: str) -> Attribute:
        return self._alias(name, self.pos)

    def alias_location(self, name: str, pos: int) -> Location:
        location = self._alias(name, pos)
        if not isinstance(location, Location):
            raise self.error(f"{name} is not a location", pos)
        return location

    def alias_type(self, name: str, pos: int) -> Type:
        return self._alias(name, pos)

    def _alias(self, name: str, pos: int) -> Any:
        if not self._resolved and not self._resolving:
            # In file order: MLIR writes what an alias needs before the alias, so this avoids deep recursion.
            for known in self._alias_places:
                self._resolve(known, pos)
        return self._resolve(name, pos)

    def _resolve(self, name: str, pos: int) -> Attribute:
        if name in self._resolved:
            return self._referred(name, pos)
        if name not in self._alias_places or name in self._resolving:
            why = "is defined through itself" if name in self._resolving else "is not defined"
            raise self.error(f"the alias {name} {why}", pos)
        saved = self.pos, self.deepest, self._size
        self.pos, self.deepest, self._size = self._alias_places[name], self.depth, 0
        start = self.pos
        self._resolving.add(name)
        value = self.type() if name.startswith("!") else self.attribute()
        self._resolving.discard(name)
        self._resolved[name] = _Alias(value, self.pos, self.deepest - self.depth, self.pos - start + self._size)
        self.pos, self.deepest, self._size = saved
        return self._referred(name, pos)

    def _referred(self, name: str, pos: int) -> Attribute:
        """Returns the value of an alias, and counts its depth and length as if it were written at this place."""
        alias = self._resolved[name]
        self.deepest = max(self.deepest, self.depth + alias.depth)
        self._size += alias.size
        if self.depth + alias.depth > MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} levels deep", pos)
        if self._resolving and self._size > max(MAX_EXPANSION, len(self.text)):
            raise self.error(f"aliases expand to {self._size} characters, expected at most {MAX_EXPANSION}", pos)
        return alias.value

    @cached_property
    def _alias_places(self) -> dict[str, int]:
        """The positions of the values of all aliases."""
        places: dict[str, int] = {}
        first = _FIRST_LINE.match(self.text)
        for match in chain([first] if first else [], _LATER_LINE.finditer(self.text)):
            places.setdefault(match[1], match.end())
        return places

    # Resources

    def resource(self, name: str, pos: int) -> bytes:
        if name == ELIDED:
            raise self.error("the elements were left out when the text was printed, expected all of them", pos)
        if name not in self._resources:
            raise self.error(f"the resource {name} is not defined, expected it in the dialect_resources", pos)
        try:
            data = hex_bytes(self._resources[name])
        except ValueError as error:
            raise self.error(f"the resource {name} {error}", pos) from None
        return data[_ALIGNMENT_BYTES:]

    @cached_property
    def _resources(self) -> dict[str, str]:
        """The literals of all resources."""
        place = self.text.rfind("{-#")
        if place < 0:
            return {}
        saved, self.pos = self.pos, place
        found = self._read_resources()
        self.pos = saved
        return found

    def _read_resources(self) -> dict[str, str]:
        found: dict[str, str] = {}
        self.expect("{-#")
        while not self.accept("#-}"):
            self._resource_entry(found)
            if not self.accept(","):
                self.expect("#-}")
                break
        return found

    def _resource_entry(self, found: dict[str, str]) -> None:
        name = self.key()
        self.expect(":")
        if self.at("{"):
            with self.nested():
                self.listed(lambda: self._resource_entry(found), "{", "}")
        elif literal := self.try_take(STRING):
            found[name] = literal
        else:
            self.attribute()
