"""Handlers of foreign functions that are written in Python, by the C interface that XLA's clients share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_RECORD = (("struct_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p))
_FUNCTIONS = (
    "Error_Create", "Error_GetMessage", "Error_Destroy", "Handler_Register", "Stream_Get", "Type_Register",
    "ExecutionContext_Get", "State_Set", "State_Get",
)  # fmt: skip
INSTANTIATE, EXECUTE = 0, 3
"""Stages of a handler."""


class _Version(ctypes.Structure):
    _fields_ = (*_RECORD, ("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Api(ctypes.Structure):
    _fields_ = (
        *_RECORD,
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
    )


class _Metadata(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32))


class _Extension(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int32),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    )


class _Frame(ctypes.Structure):
    _fields_ = (
        *_RECORD,
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int32),
    )


class _Data(ctypes.Structure):
    """The arguments of ExecutionContext_Get."""

    _fields_ = (*_RECORD, ("context", ctypes.c_void_p), ("type", ctypes.c_void_p), ("data", ctypes.c_void_p))


class _State(ctypes.Structure):
    """The arguments of State_Set and of State_Get."""

    _fields_ = (
        *_RECORD,
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int32),
        ("type", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
    )


_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))


class Call:
    """What a handler may do while it is called."""

    def __init__(self, frame: _Frame):
        self._frame = frame

    def user_data(self, type: int) -> int | None:
        """Returns the data of this type that the host has passed with the run, if there is any."""
        arguments = self._send("ExecutionContext_Get", _Data(), type)
        return arguments.data

    def set_state(self, type: int, state: int) -> None:
        """Sets the state of all calls of a program, while it is compiled."""
        self._send("State_Set", _State(stage=INSTANTIATE, state=state), type)

    def state(self, type: int) -> int | None:
        """Returns that state."""
        return self._send("State_Get", _State(stage=INSTANTIATE), type).state

    def _send(self, function: str, arguments: _Data | _State, type: int) -> _Data | _State:
        api = self._frame.api.contents
        number = ctypes.c_int64(type)
        arguments.struct_size, arguments.context = ctypes.sizeof(arguments), self._frame.context
        arguments.type = ctypes.addressof(number)
        if error := _HANDLER(getattr(api, function))(ctypes.cast(ctypes.byref(arguments), ctypes.POINTER(_Frame))):
            freed = (ctypes.c_size_t * 3)(24, 0, error)
            _HANDLER(api.Error_Destroy)(ctypes.cast(freed, ctypes.POINTER(_Frame)))
        return arguments


def handler(function: Callable[[Call], None]) -> ctypes._CFunctionPointer:  # type: ignore[name-defined]
    """Returns a C function that calls `function`, and must be kept alive. Hosts also call it to learn its version."""

    def handle(frame: ctypes._Pointer[_Frame]) -> None:
        found = frame.contents
        if not found.extensions:
            return function(Call(found))
        metadata = _Extension.from_address(found.extensions).metadata.contents
        metadata.version.major, metadata.version.minor = (
            found.api.contents.version.major,
            found.api.contents.version.minor,
        )
        return None

    return _HANDLER(handle)


def address(function: object) -> int:
    """Returns the address of a C function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
