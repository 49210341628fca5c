"""Shardy's shardings, which programs keep as text: the axes of a mesh that divide each dimension of a value, and the
start of each device's part that follows from them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import OpaqueAttribute
from trivium.ir.errors import CompileError
from trivium.ir.mesh import AxisRef, Mesh, SubAxis, coordinates, groups, mesh_of

_TOKEN = re.compile(r'\s*("[^"]*"|@"[^"]*"|@[\w.$-]+|[a-z_]+(?==)|mesh|\w+|[\[\]{}<>(),:?=#.])', re.ASCII)

_TILES = re.compile(
    r"\{devices=\[(?P<tiles>[\d,]+)\](?:<=\[(?P<counted>[\d,]+)\](?:T\((?P<axes>[\d,]+)\))?|(?P<listed>[\d,]+))"
    r"(?: last_tile_dim_replicate)?\}",
    re.ASCII,
)


@dataclass(frozen=True)
class Sharding:
    """The axes that divide each dimension, the first slowest. `mesh` is the name of the mesh, or the mesh itself. The
    values of devices along `unreduced` axes are terms, whose sum is the value. Dimensions that are `open` may be
    divided further, but not by `replicated` axes."""

    mesh: str | Mesh
    dimensions: tuple[tuple[AxisRef, ...], ...]
    unreduced: tuple[AxisRef, ...] = ()
    open: frozenset[int] = frozenset()
    replicated: tuple[AxisRef, ...] = ()

    def along(self, names: frozenset[str]) -> Sharding:
        """Returns the same sharding without other axes."""
        dimensions = tuple(tuple(axis for axis in axes if axis.name in names) for axes in self.dimensions)
        return Sharding(self.mesh, dimensions, tuple(axis for axis in self.unreduced if axis.name in names))


Column = tuple[int, tuple[int, ...]]
"""One dimension of a part: its extent, and where it begins on each device."""


@dataclass(frozen=True)
class Part:
    """The part of a value that each device has: its shape, and its start by device. The devices in each entry of
    `terms` have one term each of the same part."""

    shape: tuple[int, ...]
    begins: tuple[tuple[int, ...], ...]
    terms: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def whole(cls, shape: Sequence[int], devices: int) -> Part:
        return cls(tuple(shape), ((0,) * len(shape),) * devices)

    @classmethod
    def of(cls, columns: Sequence[Column], devices: int) -> Part:
        """Returns the part with these dimensions."""
        begins = zip(*(begins for _, begins in columns), strict=True) if columns else [()] * devices
        return cls(tuple(extent for extent, _ in columns), tuple(begins))

    def column(self, dimension: int) -> Column:
        return self.shape[dimension], tuple(begins[dimension] for begins in self.begins)


def refined(part: Part, known: Part, sharding: Sharding, mesh: Mesh) -> Part:
    """Returns `part`, which `sharding` states, with its open dimensions divided as in `known` where that is finer, and
    where no other dimension is divided among the same devices."""
    alike = (*part.terms, *(groups(mesh, sharding.replicated) if sharding.replicated else ()))
    for d in sorted(sharding.open):
        extent, starts = known.shape[d], [begins[d] for begins in known.begins]
        within = all(0 <= at - begins[d] < part.shape[d] for at, begins in zip(starts, part.begins, strict=True))
        begins = tuple((*old[:d], at, *old[d + 1 :]) for at, old in zip(starts, part.begins, strict=True))
        counts = math.prod(len(set(column)) for column in zip(*begins, strict=True))
        is_grid = len(set(begins)) == counts and all(len({starts[device] for device in group}) == 1 for group in alike)
        if extent < part.shape[d] and within and is_grid:
            part = Part((*part.shape[:d], extent, *part.shape[d + 1 :]), begins, part.terms)
    return part


def part_of(sharding: Sharding, mesh: Mesh, shape: Sequence[int], devices: int) -> Part:
    """Returns the parts of a value of this shape. Raises a `CompileError` if they are not of equal size."""
    if not any(sharding.dimensions) and not sharding.unreduced:
        return Part.whole(shape, devices)
    indices = {axis.name: index for index, axis in enumerate(mesh.axes)}
    grid = coordinates(mesh)
    if len(grid) != devices:
        raise CompileError(f"a sharding is for a mesh of {len(grid)} devices, expected {devices}")
    extents, begins = [], np.zeros((devices, len(shape)), np.int64)
    for dimension, (extent, axes) in enumerate(zip(shape, sharding.dimensions, strict=True)):
        index, count = np.zeros(devices, np.int64), 1
        for axis in axes:
            size = mesh.axes[indices[axis.name]].size
            along = grid[:, indices[axis.name]]
            if axis.sub_axis_info is not None:
                below = size // (axis.sub_axis_info.pre_size * axis.sub_axis_info.size)
                size = axis.sub_axis_info.size
                along = along // below % size
            index, count = index * size + along, count * size
        if extent % count:
            raise CompileError(f"dimension {dimension} of {tuple(shape)} is divided into {count} parts of unequal size")
        extents.append(extent // count)
        begins[:, dimension] = index * (extent // count)
    terms = groups(mesh, sharding.unreduced) if sharding.unreduced else ()
    return Part(tuple(extents), tuple(map(tuple, begins.tolist())), terms)


def part_of_tiles(text: str, shape: Sequence[int], devices: int) -> Part:
    """Returns the parts of a value whose sharding has XLA's form, `{devices=[2,1,2]<=[4] last_tile_dim_replicate}`: the
    number of parts of each dimension, and the devices part by part, as a list or as a transposed iota."""
    if text in ("{replicated}", "{manual}"):
        return Part.whole(shape, devices)
    match = _TILES.fullmatch(text)
    if match is None:
        raise CompileError(f"a value has the sharding {text}, which is not supported")
    tiles = [int(number) for number in match["tiles"].split(",")]
    if match["listed"] is not None:
        order = np.array([int(number) for number in match["listed"].split(",")])
    else:
        extents = [int(number) for number in match["counted"].split(",")]
        axes = [int(number) for number in match["axes"].split(",")] if match["axes"] else range(len(extents))
        order = np.arange(np.prod(extents)).reshape(extents).transpose(list(axes)).reshape(-1)
    counts = tiles[: len(shape)]
    fits = len(counts) == len(shape) and np.prod(tiles) == devices == len(set(order.tolist()) & set(range(devices)))
    if not fits or any(extent % count for extent, count in zip(shape, counts, strict=True)):
        raise CompileError(f"{text} does not divide {tuple(shape)} among {devices} devices into parts of equal size")
    part = tuple(extent // count for extent, count in zip(shape, counts, strict=True))
    places = np.stack(np.unravel_index(np.arange(devices), tiles), axis=-1)[:, : len(shape)] * np.array(part, np.int64)
    begins = np.empty_like(places)
    begins[order] = places
    return Part(part, tuple(map(tuple, begins.tolist())))


def read_sharding(attribute: object) -> Sharding:
    """`#sdy.sharding<@mesh, [{"x"}, {}]>`"""
    return next(_Reader(attribute).shardings())


def read_shardings(attribute: object) -> list[Sharding]:
    """`#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, ...]>`"""
    return list(_Reader(attribute).shardings())


def read_axes(attribute: object) -> frozenset[str]:
    """`#sdy<manual_axes{"x", "y"}>`"""
    return frozenset(re.findall(r'"([^"]*)"', _text(attribute)))


def _text(attribute: object) -> str:
    if not isinstance(attribute, OpaqueAttribute):
        raise CompileError(f"a sharding is given as {attribute!r}, expected an attribute of Shardy")
    return attribute.text


class _Reader:
    """Reads the text that Shardy or Trivium prints."""

    def __init__(self, attribute: object):
        self._all = _text(attribute)
        self._tokens = _TOKEN.findall(self._all)
        self._at = 0

    def shardings(self) -> Iterator[Sharding]:
        """Each begins with its mesh: `<@mesh, [`, or `<mesh<["x"=2]>, [`."""
        while self._at < len(self._tokens):
            if self._tokens[self._at].startswith("@"):
                yield self._sharding(self._next()[1:].strip('"'))
            elif self._peek(2) == ["mesh", "<"]:
                yield self._sharding(self._inlined())
            else:
                self._at += 1

    def _peek(self, count: int) -> list[str]:
        return self._tokens[self._at : self._at + count]

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise CompileError(f"{self._all} ends early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if (found := self._next()) != token:
            raise CompileError(f"{self._all} has {found!r}, expected {token!r}")

    def _inlined(self) -> Mesh:
        first = self._at
        depth = 0
        while True:
            token = self._next()
            depth += (token == "<") - (token == ">")
            if token == ">" and depth == 0:
                break
        text = "".join(self._tokens[first : self._at])
        mesh = mesh_of({"mesh": OpaqueAttribute(f"#sdy.{text}")})
        if mesh is None:
            raise CompileError(f"{self._all} has a mesh that cannot be read")
        return mesh

    def _sharding(self, mesh: str | Mesh) -> Sharding:
        self._expect(",")
        self._expect("[")
        dimensions, is_open = [], set()
        while (token := self._next()) != "]":
            if token == "{":
                first = self._at
                dimensions.append(tuple(self._axes()))
                if "?" in self._tokens[first : self._at]:
                    is_open.add(len(dimensions) - 1)
        others: dict[str, tuple[AxisRef, ...]] = {}
        while (token := self._next()) != ">":
            if token in ("unreduced", "replicated"):
                self._expect("=")
                self._expect("{")
                others[token] = tuple(self._axes())
        return Sharding(mesh, tuple(dimensions), open=frozenset(is_open), **others)

    def _axes(self) -> Iterator[AxisRef]:
        """`"x", "y":(2)4, ?`, and optionally a priority after the brace."""
        while (token := self._next()) != "}":
            if not token.startswith('"'):
                continue
            yield AxisRef(token.strip('"'), self._sub_axis() if self._peek(1) == [":"] else None)

    def _sub_axis(self) -> SubAxis:
        """`:(2)4`"""
        self._expect(":")
        self._expect("(")
        before = int(self._next())
        self._expect(")")
        return SubAxis(before, int(self._next()))


def find_mesh(sharding: Sharding, meshes: Mapping[str, Mesh]) -> Mesh:
    """Returns the mesh of a sharding, which the module may declare."""
    if isinstance(sharding.mesh, Mesh):
        return sharding.mesh
    if sharding.mesh not in meshes:
        raise CompileError(f"a sharding is for the mesh @{sharding.mesh}, which the module does not have")
    return meshes[sharding.mesh]
