"""The structures with which the native runtime drives devices: those of `backends/native/pjrt/accelerator.h`."""

from __future__ import annotations

import ctypes

_NUMBERS = ctypes.POINTER(ctypes.c_uint64)
"""Memory; addresses, where native code has a pointer for them."""


def _function(*arguments: type) -> type:
    """The type of a function that takes also the place for the reason of a failure, and returns PJRT's code for it."""
    return ctypes.CFUNCTYPE(ctypes.c_int32, *arguments, ctypes.c_void_p)


class AcceleratorEvent(ctypes.Structure):
    """An event of a device, and the driver's functions for it."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("enter", "leave", "wait", "destroy", "context", "event"))


class AcceleratorFunctions(ctypes.Structure):
    """The functions that drive devices whose memory is not the host's."""

    _fields_ = (
        ("open", _function(ctypes.c_char_p, ctypes.c_void_p)),
        ("allocate", _function(ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t), ctypes.c_size_t, _NUMBERS)),
        ("borrow", _function(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, _NUMBERS)),
        ("release", _function(_NUMBERS, ctypes.c_size_t)),
        ("upload", _function(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)),
        ("download", _function(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)),
        ("copy", _function(ctypes.c_uint64, ctypes.c_uint64)),
        ("address", _function(ctypes.c_uint64, _NUMBERS)),
        ("run", _function(ctypes.c_uint64, _NUMBERS, ctypes.c_size_t)),
        ("mark", _function(ctypes.c_char_p, ctypes.POINTER(AcceleratorEvent))),
    )
