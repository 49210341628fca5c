"""Constants of a program in memory: packed by the native runtime, on all threads, where contractions require it; and
snapshots of all others."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from weakref import WeakValueDictionary, finalize

import numpy as np

from trivium.backends import native
from trivium.backends.constants import source_of
from trivium.backends.cpu.constant_memory import aligned, frozen, kept
from trivium.compiler.artifact import Artifact, Axis, ConstantData, Packing
from trivium.ir.arrays import is_unchanging
from trivium.ir.errors import ExecutionError


class _Axis(ctypes.Structure):
    _fields_ = (("extent", ctypes.c_int64), ("stride", ctypes.c_int64))


class _Group(ctypes.Structure):
    _fields_ = (("axes", ctypes.POINTER(_Axis)), ("count", ctypes.c_size_t))


class _Packing(ctypes.Structure):
    """`trivium::Packing` of native/packing.h."""

    _fields_ = (
        ("element_bytes", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("batch", _Group),
        ("columns", _Group),
        ("reduction", _Group),
        ("widths", ctypes.POINTER(ctypes.c_int64)),
        ("panels", ctypes.c_size_t),
    )


def constants_of(artifact: Artifact, module: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the artifact's constants as its program reads them, as flat bytes that nobody else writes to. `module`
    contains the constants of the module that it was made from, in order."""
    return [_constant(constant, module, artifact.name) for constant in artifact.constants]


def _constant(constant: ConstantData, module: Sequence[np.ndarray], name: str) -> np.ndarray:
    source = source_of(constant, module, name)
    return kept(source) if constant.packing is None else packed(source, constant.packing)


_shared: WeakValueDictionary[tuple[int, int, Packing], np.ndarray] = WeakValueDictionary()
"""What has been packed from memory that nobody can write to, by its address and size. It keeps that memory."""


def packed(source: np.ndarray, packing: Packing) -> np.ndarray:
    """Returns the bytes `source` in panels, in memory that is not written to again. Programs share it if nobody can
    write to the source either, such as those of one module for different sizes."""
    if not is_unchanging(source):
        return _newly_packed(source, packing)
    key = source.ctypes.data, source.nbytes, packing
    found = _shared.get(key)
    if found is None:
        found = _shared[key] = _newly_packed(source, packing)
        # As long as there is an entry for its address, the source must not go.
        finalize(found, lambda _: None, source).atexit = False
    return found


def _newly_packed(source: np.ndarray, packing: Packing) -> np.ndarray:
    inside = packing.reach.start >= 0 and packing.reach.stop * packing.itemsize <= source.nbytes
    assert inside, "a packing reads beyond its constant"
    target = aligned(packing.nbytes, np.dtype(np.uint8))
    structure = _structure(packing)
    status = native.load().trivium_pack(
        ctypes.byref(structure), ctypes.c_void_p(source.ctypes.data), ctypes.c_void_p(target.ctypes.data)
    )
    if status:
        raise ExecutionError(f"elements of {packing.itemsize} bytes cannot be packed, or memory is insufficient")
    return frozen(target)


def _structure(packing: Packing) -> _Packing:
    widths = (ctypes.c_int64 * len(packing.widths))(*packing.widths)
    groups = map(_group, (packing.batch, packing.columns, packing.reduction))
    return _Packing(packing.itemsize, packing.offset, *groups, widths, len(packing.widths))


def _group(axes: Sequence[Axis]) -> _Group:
    return _Group((_Axis * len(axes))(*(_Axis(axis.extent, axis.stride) for axis in axes)), len(axes))
