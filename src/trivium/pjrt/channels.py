"""Callbacks for the channels on which a program exchanges values with its host, as Python functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trivium.backends.table.abi import abi
from trivium.backends.table.plugin import Plugin

_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_NEW_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_size_t)
_SEND = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_NEW_ERROR), ctypes.c_size_t, ctypes.c_bool, ctypes.c_void_p
)
_RECV = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

Send = Callable[[bytes, int, bool], object]
"""Receives a chunk of what a program sends, how many bytes it sends at once, and whether this chunk is the last one of
them. What it raises ends the run."""


class Stream:
    """What a program waits for, which the host writes."""

    def __init__(self, plugin: Plugin, handle: int):
        self._plugin, self._handle = plugin, handle

    def add(self, data: bytes) -> None:
        """Writes the next bytes."""
        memory = ctypes.create_string_buffer(data, len(data))
        # The plugin may read the chunk until it calls the deleter.
        deleter = _DELETER(lambda data, argument: _alive.pop(data, None))
        chunk = abi().structures["Chunk"](ctypes.addressof(memory), len(data), ctypes.cast(deleter, ctypes.c_void_p))
        _alive[ctypes.addressof(memory)] = memory, deleter
        fields = {"stream": self._handle, "chunk": ctypes.addressof(chunk)}
        event = self._plugin.call("CopyToDeviceStream_AddChunk", **fields).transfer_complete
        self._plugin.call("Event_Destroy", event=event)

    def sizes(self) -> tuple[int, int]:
        """Returns how many bytes the program waits for, and how many of them were written."""
        return (
            self._plugin.call("CopyToDeviceStream_TotalBytes", stream=self._handle).total_bytes,
            self._plugin.call("CopyToDeviceStream_CurrentBytes", stream=self._handle).current_bytes,
        )

    def close(self) -> None:
        self._plugin.call("CopyToDeviceStream_Destroy", stream=self._handle)


_alive: dict[int | None, Any] = {}
"""The memory of chunks, and the functions that free them, by address."""


def options(plugin: Plugin, sends: Mapping[int, Send], receives: Mapping[int, Callable[[Stream], object]]) -> Any:
    """Returns the options of a run of one device with these callbacks, by channel, and what must live until its end."""
    functions = [_SEND(_sender(send)) for send in sends.values()]
    receivers = [_RECV(_receiver(plugin, receive)) for receive in receives.values()]
    lists = [
        _infos("SendCallbackInfo", sends, functions),
        _infos("RecvCallbackInfo", receives, receivers),
    ]
    addresses = [(ctypes.c_void_p * 1)(ctypes.addressof(each)) for each in lists]
    fields = {
        "send_callbacks": ctypes.addressof(addresses[0]),
        "recv_callbacks": ctypes.addressof(addresses[1]),
        "num_send_ops": len(sends),
        "num_recv_ops": len(receives),
    }
    return fields, (functions, receivers, lists, addresses)


def _infos(name: str, channels: Mapping[int, object], functions: list[Any]) -> Any:
    kind = abi().structures[name]
    pairs = zip(channels, functions, strict=True)
    return (kind * len(functions))(*(kind(number, None, ctypes.cast(each, ctypes.c_void_p)) for number, each in pairs))


def _sender(send: Send) -> Callable[..., int | None]:
    def called(chunk: int, new_error: Any, total: int, is_last: bool, _: object) -> int | None:
        found = abi().structures["Chunk"].from_address(chunk)
        data = ctypes.string_at(found.data, found.size)
        _DELETER(found.deleter)(found.data, found.deleter_arg)
        try:
            send(data, total, is_last)
        except Exception as error:
            text = str(error).encode()
            return new_error[0](abi().constants["Error_Code_DATA_LOSS"], text, len(text))
        return None

    return called


def _receiver(plugin: Plugin, receive: Callable[[Stream], object]) -> Callable[..., None]:
    def called(stream: int, _: object) -> None:
        receive(Stream(plugin, stream))

    return called


def given(*arrays: np.ndarray) -> Callable[[Stream], None]:
    """Returns a callback that writes one of the arrays each time that it is called."""
    left = list(arrays)

    def receive(stream: Stream) -> None:
        stream.add(left.pop(0).tobytes())
        stream.close()

    return receive
