"""Meshes: grids of devices with named axes, and the groups of devices along some of the axes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import (
    Attribute,
    DenseElements,
    Dictionary,
    Integer,
    OpaqueAttribute,
    Struct,
    SymbolRef,
    integer_array,
)
from trivium.ir.errors import fail, shortened
from trivium.ir.types import I64

_MAX_DEVICES = 1 << 20

# `#sdy.mesh<["x"=2, "y"=4], device_ids=[1, 0, ...]>`
_SHARDY = re.compile(r"#sdy\.mesh<\s*\[([^\[\]]*)\]\s*(?:,\s*device_ids\s*=\s*\[([^\[\]]*)\]\s*)?>", re.ASCII)
_SHARDY_AXIS = re.compile(r'\s*"([^",]*)"\s*=\s*(\d{1,18})\s*', re.ASCII)
_SHARDY_DEVICE = re.compile(r"\s*\d{1,18}\s*", re.ASCII)


@dataclass(frozen=True)
class MeshAxis(Struct, mnemonic="stablehlo.mesh_axis"):
    """One dimension of a mesh."""

    name: str
    size: int


@dataclass(frozen=True)
class Mesh(Struct, mnemonic="stablehlo.mesh"):
    """A grid of devices, numbered with the last axis fastest, unless `device_ids` states their numbers."""

    axes: tuple[MeshAxis, ...]
    device_ids: DenseElements | None = None


@dataclass(frozen=True)
class SubAxis(Struct, mnemonic="stablehlo.sub_axis_info"):
    """A part of an axis that was split: `pre_size` is the product of the sizes of the parts before it."""

    pre_size: int
    size: int


@dataclass(frozen=True)
class AxisRef(Struct, mnemonic="stablehlo.axis_ref"):
    """An axis of a mesh, or a part of one."""

    name: str
    sub_axis_info: SubAxis | None = None


@dataclass(frozen=True)
class ReplicaGroupMeshAxes(Struct, mnemonic="stablehlo.replica_group_mesh_axes"):
    """Groups along `axes` of a mesh. `mesh` is the mesh itself, or the symbol of the op that declares it."""

    mesh: Attribute
    axes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.mesh, Mesh) and not (isinstance(self.mesh, SymbolRef) and not self.mesh.nested):
            fail("", "mesh is neither a mesh nor the symbol of one")
        if isinstance(self.mesh, Mesh):
            _check_axes(self.mesh, self.axes)


def mesh_of(attributes: Mapping[str, Attribute]) -> Mesh | None:
    """Returns the mesh among an op's attributes, in any of the forms that programs use for it."""
    for value in (attributes.get("stablehlo.mesh"), attributes.get("mesh")):
        if isinstance(value, Mesh):
            return value
        if isinstance(value, Dictionary):
            return _of_dictionary(value)
        if isinstance(value, OpaqueAttribute) and (match := _SHARDY.fullmatch(value.text)):
            return _of_shardy(match[1], match[2])
    return None


def _of_shardy(axes: str, devices: str | None) -> Mesh | None:
    """`"x"=2, "y"=4` and `1, 0`"""
    found = [_SHARDY_AXIS.fullmatch(axis) for axis in axes.split(",") if axes.strip()]
    numbers = [_SHARDY_DEVICE.fullmatch(number) for number in (devices or "").split(",") if devices]
    if None in found or None in numbers:
        return None
    ids = integer_array(tuple(int(number[0]) for number in numbers), I64) if numbers else None  # type: ignore[index]
    return Mesh(tuple(MeshAxis(axis[1], int(axis[2])) for axis in found), ids)  # type: ignore[index]


def _of_dictionary(value: Dictionary) -> Mesh | None:
    """`{axes = [{name = "x", size = 2 : i64}], device_ids = dense<...>}`"""
    axes, devices = value.get("axes"), value.get("device_ids")
    if not isinstance(axes, tuple) or not isinstance(devices, DenseElements | None):
        return None
    found = []
    for axis in axes:
        match axis:
            case {"name": str() as name, "size": Integer(value=size)}:
                found.append(MeshAxis(name, size))
            case _:
                return None
    return Mesh(tuple(found), devices)


def groups(mesh: Mesh, axes: Sequence[Attribute]) -> tuple[tuple[int, ...], ...]:
    """Returns the groups of devices that differ only along `axes`. Within a group the first of `axes` varies slowest.
    Raises `VerificationError` if mesh and axes do not fit."""
    refs = _check_axes(mesh, axes)
    if len({axis.name for axis in mesh.axes}) != len(mesh.axes):
        fail("", f"a mesh has axes {[axis.name for axis in mesh.axes]}, expected each name once")
    parts = [part for axis in mesh.axes for part in _parts(axis, refs)]
    named = [(ref.name, ref.sub_axis_info.pre_size if ref.sub_axis_info else 1) for ref in refs]
    places = {(name, start): index for index, (name, start, _) in enumerate(parts)}
    if len(set(named)) != len(named):
        fail("", f"the groups lie along axes {[name for name, _ in named]}, expected each part of an axis once")
    inside = [places[key] for key in named]
    outside = [index for index in range(len(parts)) if index not in inside]
    sizes = [size for _, _, size in parts]
    grid = _devices(mesh).reshape(sizes).transpose(outside + inside)
    rows = grid.reshape(-1, math.prod(sizes[index] for index in inside))
    return tuple(tuple(row) for row in rows.tolist())


def coordinates(mesh: Mesh) -> np.ndarray:
    """Returns the position of each device in the mesh, by device and axis."""
    devices = _devices(mesh)
    places = np.stack(np.unravel_index(np.arange(len(devices)), [axis.size for axis in mesh.axes] or [1]), axis=-1)
    found = np.empty_like(places)
    found[devices] = places
    return found[:, : len(mesh.axes)]


def _check_axes(mesh: Mesh, axes: Sequence[Attribute]) -> list[AxisRef]:
    """Returns the axes after checking that each refers to an axis of the mesh."""
    refs = []
    for axis in axes:
        if not isinstance(axis, AxisRef):
            fail("", f"the axes of the groups have {shortened(repr(axis))}, expected references to axes")
        if all(axis.name != known.name for known in mesh.axes):
            fail("", f"axis '{axis.name}' is not an axis of the mesh, which has {[known.name for known in mesh.axes]}")
        refs.append(axis)
    return refs


def _devices(mesh: Mesh) -> np.ndarray:
    count = math.prod(axis.size for axis in mesh.axes)
    if count > _MAX_DEVICES:
        fail("", f"a mesh has {count} devices, expected at most {_MAX_DEVICES}")
    if mesh.device_ids is None or not mesh.device_ids.array.size:
        return np.arange(count)
    if mesh.device_ids.array.dtype.kind not in "iu":
        fail("", f"device_ids has type {mesh.device_ids.type}, expected integers")
    if mesh.device_ids.array.size != count:
        fail("", f"a mesh of {count} devices has {mesh.device_ids.array.size} device_ids")
    return mesh.device_ids.array.reshape(-1)


def _parts(axis: MeshAxis, axes: Sequence[AxisRef]) -> Iterator[tuple[str, int, int]]:
    """Yields the parts into which `axes` split an axis: its name, the product of the sizes before the part, its
    size."""
    if axis.size < 1:
        fail("", f"axis '{axis.name}' has size {axis.size}, expected a positive number")
    whole = SubAxis(1, axis.size)
    start = 1
    for part in sorted((ref.sub_axis_info or whole for ref in axes if ref.name == axis.name), key=_pre_size):
        end = part.pre_size * part.size
        if part.size < 1 or part.pre_size < start or part.pre_size % start or axis.size % end:
            found = f"({part.pre_size}){part.size}"
            fail("", f"{found} overlaps, or is not a part of axis '{axis.name}' of size {axis.size}")
        if part.pre_size > start:
            yield axis.name, start, part.pre_size // start
        yield axis.name, part.pre_size, part.size
        start = end
    if start < axis.size:
        yield axis.name, start, axis.size // start


def _pre_size(part: SubAxis) -> int:
    return part.pre_size
