"""One PJRT plugin: a shared library, its table of C functions, and calls of these with their arguments as records."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

from trivium.backends.table.abi import abi
from trivium.ir.errors import Error, ExecutionError

OLDEST = (0, 29)
"""The oldest version of the interface that JAX, too, accepts. Records grow at their end only; from here on, a plugin
and its caller may know different lengths of them."""

_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Refusal(ExecutionError):
    """An error that a plugin returned. `code` is the name of its code."""

    def __init__(self, message: str, code: str):
        super().__init__(message)
        self.code = code


class Plugin:
    """The table at an address, which stays valid until the process ends: plugins are never unloaded."""

    def __init__(self, address: int, name: str):
        self.name, self.address = name, address
        self._abi = abi()
        self._sizes = {kind: ctypes.sizeof(each) for kind, each in self._abi.structures.items()}
        head = self._abi.structures["Table"].from_address(address)
        self.size: int = head.struct_size
        version = head.pjrt_api_version
        self.version: tuple[int, int] = (version.major_version, version.minor_version)
        if self.version[0] != OLDEST[0] or self.version < OLDEST:
            found, oldest = (".".join(map(str, each)) for each in (self.version, OLDEST))
            raise Error(f"{name} has version {found} of PJRT's interface, expected {oldest} or a later one of 0")
        self.call("Plugin_Initialize")

    @classmethod
    def load(cls, path: str | Path, name: str) -> Plugin:
        """Loads a plugin from its shared library."""
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise Error(f"{path} cannot be loaded: {error}") from None
        try:
            get = library.GetPjrtApi
        except AttributeError:
            raise Error(f"{path} is not a PJRT plugin: it has no function GetPjrtApi") from None
        get.restype = ctypes.c_void_p
        address = get()
        if not address:
            raise Error(f"{path} is not a PJRT plugin: GetPjrtApi returns no table")
        return cls(address, name)

    @functools.cached_property
    def attributes(self) -> dict[str, Any]:
        """The properties that the plugin states, such as the versions of StableHLO that it reads."""
        found = self.call("Plugin_Attributes")
        return self.named_values(found.attributes, found.num_attributes)

    def record(self, name: str, **fields: Any) -> Any:
        """Returns a structure with its size filled in."""
        made = self._abi.structures[name](**fields)
        made.struct_size = self._sizes[name]
        return made

    def call(self, function: str, **fields: Any) -> Any:
        """Calls a function, and returns its record of arguments and results. Raises a `Refusal`."""
        arguments = self.record(f"{function}_Args", **fields)
        self.call_with(function, arguments)
        return arguments

    def call_with(self, function: str, arguments: Any) -> None:
        """Calls a function on a record that the caller made."""
        error = self.slot(function)(ctypes.addressof(arguments))
        if error:
            raise self._refusal(function, error)

    def slot(self, function: str) -> Any:
        """Returns a function of the table or of an extension."""
        found = self._functions.get(function)
        if found is None:
            address = self._address_of(function)
            if address is None:
                version = ".".join(map(str, self.version))
                raise Refusal(f"{self.name} (PJRT {version}) has no PJRT_{function}", "UNIMPLEMENTED")
            found = self._functions[function] = _Function(address)
        return found

    def _address_of(self, function: str) -> int | None:
        """Returns nothing for a function that this plugin does not have."""
        base, size = self.address, self.size
        if function in self._abi.extensions:
            name, field = self._abi.extensions[function]
            base = self.extension(name.removesuffix("_Extension"))
            if base is None:
                return None
            offset = getattr(self._abi.structures[name], field).offset
            size = self._abi.structures["Extension_Base"].from_address(base).struct_size
        else:
            offset = self._abi.slot(function)
        if offset + ctypes.sizeof(ctypes.c_void_p) > size:
            return None
        return ctypes.c_void_p.from_address(base + offset).value

    def extension(self, name: str) -> int | None:
        """Returns the address of an extension, by the name of its type."""
        kind = self._abi.structures["Extension_Base"]
        address = self._abi.structures["Table"].from_address(self.address).extension_start
        while address:
            head = kind.from_address(address)
            if head.type == self._abi.constants[f"Extension_Type_{name}"]:
                return address
            address = head.next
        return None

    @functools.cached_property
    def _functions(self) -> dict[str, Any]:
        return {}

    def _refusal(self, function: str, error: int) -> Refusal:
        message = self.record("Error_Message_Args", error=error)
        self.slot("Error_Message")(ctypes.addressof(message))
        text = string(message.message, message.message_size)
        code = self.record("Error_GetCode_Args", error=error)
        self.slot("Error_GetCode")(ctypes.addressof(code))
        self.slot("Error_Destroy")(ctypes.addressof(self.record("Error_Destroy_Args", error=error)))
        names = {self._abi.constants[name]: name[11:] for name in self._abi.constants if name.startswith("Error_Code_")}
        return Refusal(f"{self.name}, PJRT_{function}: {text}", names.get(code.code, str(code.code)))

    def named_values(self, address: int | None, count: int) -> dict[str, Any]:
        """Reads an array of `NamedValue`."""
        if not count:
            return {}
        values = (self._abi.structures["NamedValue"] * count).from_address(address or 0)
        return {string(value.name, value.name_size): _value(value) for value in values}


_KINDS = ("string_value", "int64_value", "int64_array_value", "float_value", "bool_value")
"""The fields of `NamedValue` for its types, in their order."""


def _value(value: Any) -> Any:
    field = _KINDS[value.type]
    if field == "string_value":
        return string(value.string_value, value.value_size)
    if field == "int64_array_value":
        return tuple((ctypes.c_int64 * value.value_size).from_address(value.int64_array_value))
    return getattr(value, field)


def address_of(data: bytes) -> int:
    """Returns the address of bytes, which the caller keeps alive."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def string(address: int | None, size: int) -> str:
    """Reads text that C gives by address and size."""
    return ctypes.string_at(address, size).decode(errors="replace") if address and size else ""


def pointers(address: int | None, count: int) -> list[int]:
    """Reads an array of addresses."""
    return [found or 0 for found in (ctypes.c_void_p * count).from_address(address)] if address and count else []
