"""How devices hold an array, in XLA's notation, as text and as `OpSharding` of its `xla_data.proto`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trivium.backends.plugin.hlo.wire import number, numbers
from trivium.ir.sharding import Part
from trivium.ir.types import TensorType, Type

SHARDINGS = "shardings"
"""The name of an artifact's text with them."""

_TILED, _UNREDUCED, _REPLICATED = 3, 6, 0
_NAMES = {_REPLICATED: "replicated", _UNREDUCED: "unreduced"}


@dataclass(frozen=True)
class Tiles:
    """The number of parts of each dimension, and the devices, part by part. Devices that hold the same part follow each
    other: `last` has their number, with what they are to each other."""

    counts: tuple[int, ...] = ()
    last: tuple[tuple[int, int], ...] = ()
    devices: tuple[int, ...] = ()
    kind: int = _TILED

    def text(self) -> str:
        """Returns XLA's notation."""
        if self.kind != _TILED:
            return f"{{{_NAMES[self.kind]}}}"
        tiles = ",".join(map(str, (*self.counts, *(count for count, _ in self.last))))
        names = [_NAMES[kind] for _, kind in self.last]
        note = " last_tile_dim_replicate" if names else ""
        if len(names) > 1:
            note = f" last_tile_dims={{{','.join(names)}}}"
        return f"{{devices=[{tiles}]{','.join(map(str, self.devices))}{note}}}"

    def proto(self) -> bytes:
        """Returns the message."""
        copies = [count for count, _ in self.last]
        tiles = numbers(3, (*self.counts, *copies)) + numbers(4, self.devices)
        if len(self.last) == 1:
            tiles += number(6, True)
        elif self.last:
            tiles += numbers(8, (kind for _, kind in self.last))
        return number(1, self.kind) + tiles


def tiles_of(kind: Type, part: Part) -> Tiles:
    """Returns how devices hold a value of this type."""
    if not isinstance(kind, TensorType) or (part.shape == kind.static_shape and not part.terms):
        return Tiles(kind=_REPLICATED)
    counts = tuple(whole // own if own else 1 for whole, own in zip(kind.static_shape, part.shape, strict=True))
    order = sorted(range(len(part.begins)), key=lambda device: (part.begins[device], device))
    copies = len(order) // math.prod(counts)
    if not part.terms:
        return Tiles(counts, ((copies, _REPLICATED),) if copies > 1 else (), tuple(order))
    terms = len(part.terms[0])
    if terms == len(order):
        return Tiles(kind=_UNREDUCED)
    # Devices with terms of one part follow each other, after those of each other copy of it.
    groups = {group[0]: group for group in part.terms}
    order = [device for first in order if first in groups for device in groups[first]]
    return Tiles(counts, ((copies // terms, _REPLICATED), (terms, _UNREDUCED)), tuple(order))


def shardings_text(shardings: Sequence[bytes]) -> str:
    """Returns messages in the form of an artifact's text, which the native runtime reads, too (`pjrt/program.cc`)."""
    return " ".join(sharding.hex() or "-" for sharding in shardings)


def read_shardings(text: str) -> list[bytes]:
    """Returns the messages in a text."""
    return [b"" if word == "-" else bytes.fromhex(word) for word in text.split()]
