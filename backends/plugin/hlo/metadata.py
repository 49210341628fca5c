"""Where an instruction came from, as XLA's `OpMetadata`: the name that the framework gave the op, and a source line."""

from __future__ import annotations

import functools

from trivium.backends.plugin.hlo.wire import message, number, text
from trivium.ir.location import FileLocation, Location, NameLocation


@functools.lru_cache(maxsize=1 << 12)
def metadata(location: Location) -> bytes:
    """Returns the field of an instruction, if anything is known."""
    name, place = _name(location), _place(location)
    about = text(2, name)
    if place is not None:
        about += text(3, place.file) + number(4, place.line)
    return message(7, about) if about else b""


def _name(location: Location) -> str:
    """Returns the outermost name, which is the op's; those inside are of functions that were called."""
    if isinstance(location, NameLocation):
        return location.name
    return next(filter(None, map(_name, location.children)), "")


def _place(location: Location) -> FileLocation | None:
    if isinstance(location, FileLocation):
        return location
    return next((place for child in location.children if (place := _place(child)) is not None), None)
