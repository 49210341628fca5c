"""The part of a model that an op belongs to, as its framework names it: `encoder.layer.0.attention`, or `model/dense`.
It is metadata of an op's location, so that it survives in text and artifacts, and in what passes make of the op."""

from __future__ import annotations

from trivium.ir.attributes import Dictionary
from trivium.ir.location import FusedLocation, Location

KEY = "trivium.path"


def in_module(location: Location, path: str) -> Location:
    """Returns the location of an op in the part of the model at `path`; an empty path is the whole model."""
    return FusedLocation((location,), Dictionary({KEY: path})) if path else location


def module_path(location: Location) -> str:
    """Returns the path that a location has, the outermost of several; empty if it has none."""
    waiting = [location]
    while waiting:
        place = waiting.pop()
        metadata = place.metadata if isinstance(place, FusedLocation) else None
        if isinstance(metadata, Dictionary) and isinstance(path := metadata.get(KEY), str):
            return path
        waiting.extend(reversed(place.children))
    return ""
