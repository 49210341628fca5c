"""PJRT's C ABI for Python: ctypes' structures of everything that `backends/native/pjrt/abi` declares, read from these
files, so that the ABI is stated once."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "native/pjrt/abi"
RECORDS, TABLE = ("values.h", "calls.h", "extensions.h"), "table.h"

TYPES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "bfloat16": 13, "complex64": 14, "complex128": 15, "float8_e5m2": 16,
    "float8_e4m3fn": 17, "float8_e4m3b11fnuz": 18, "float8_e5m2fnuz": 19, "float8_e4m3fnuz": 20, "int4": 21,
    "uint4": 22, "token": 23, "int2": 24, "uint2": 25, "float8_e4m3": 26, "float8_e3m4": 27, "float8_e8m0fnu": 28,
    "float4_e2m1fn": 29,
}  # fmt: skip
"""The numbers of PJRT's element types (`Buffer_Type`), by NumPy's names."""

_SCALARS: dict[str, Any] = {
    "bool": ctypes.c_bool, "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t, "intptr_t": ctypes.c_ssize_t,
    "uintptr_t": ctypes.c_size_t, "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip

_DECLARATION = re.compile(
    r"enum (?P<enum>\w+) : int32_t \{(?P<constants>[^}]*)\};"
    r"|using (?P<alias>\w+) = [^;]*;"
    r"|struct (?P<structure>\w+)(?: : (?P<base>Record))? \{(?P<fields>(?:[^{}]|union \{[^{}]*\};)*)\};"
)


@dataclass(frozen=True)
class Abi:
    """`structures` and `constants` by their names in C without the prefix, `functions` in the order of the table.
    `extensions` are the places of functions outside the table: the structure of an extension, and the field."""

    structures: Mapping[str, type[ctypes.Structure]]
    constants: Mapping[str, int]
    functions: tuple[str, ...]
    extensions: Mapping[str, tuple[str, str]]
    version: tuple[int, int]

    def slot(self, function: str) -> int:
        """Returns the offset of a function in the table."""
        table = self.structures["Table"]
        return ctypes.sizeof(table) + self.functions.index(function) * ctypes.sizeof(ctypes.c_void_p)


@functools.cache
def abi() -> Abi:
    """Reads the declarations."""
    code = re.sub(r"//.*", "", "\n".join((FOLDER / name).read_text() for name in RECORDS))
    reader = _Reader()
    for match in _DECLARATION.finditer(code):
        reader.add(match)
    # The table is written with a macro: its beginning, then one pointer for each function.
    reader.structure("Table", "Api_Version pjrt_api_version", is_record=True)
    functions = re.findall(r"\bX\((\w+)\)", (FOLDER / TABLE).read_text())
    major, minor = (int(found) for found in re.findall(r"k(?:Major|Minor)Version = (\d+)", code))
    extensions = {
        function: (structure, field)
        for structure, body in re.findall(r"struct (\w+_Extension) \{([^{}]*)\};", code)
        for field, function in re.findall(r"\(\*(\w+)\)\((\w+)_Args\*", body)
    }
    return Abi(reader.structures, reader.constants, tuple(functions), extensions, (major, minor))


class _Reader:
    def __init__(self) -> None:
        self.types: dict[str, Any] = dict(_SCALARS)
        self.structures: dict[str, type[ctypes.Structure]] = {}
        self.constants: dict[str, int] = {}

    def add(self, match: re.Match[str]) -> None:
        if match["enum"]:
            self.types[match["enum"]] = ctypes.c_int32
            names = [name.strip() for name in match["constants"].split(",") if name.strip()]
            self.constants |= {name: number for number, name in enumerate(names)}
        elif match["alias"]:
            self.types[match["alias"]] = ctypes.c_void_p
        else:
            self.structure(match["structure"], match["fields"], is_record=match["base"] is not None)

    def structure(self, name: str, body: str, *, is_record: bool) -> None:
        fields = list(self._fields(body))
        if is_record:
            fields = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), *fields]
        anonymous = tuple(field for field, kind in fields if issubclass(kind, ctypes.Union))
        made = type(name, (ctypes.Structure,), {"_anonymous_": anonymous, "_fields_": fields})
        self.types[name] = self.structures[name] = made

    def _fields(self, body: str) -> Iterator[tuple[str, Any]]:
        for union, field in re.findall(r"union \{([^{}]*)\};|([^;{}]+);", body + ";"):
            if union:
                members = list(self._fields(union))
                yield "union", type("Union", (ctypes.Union,), {"_fields_": members})
            elif field.strip():
                yield self._field(field.strip())

    def _field(self, text: str) -> tuple[str, Any]:
        if function := re.search(r"\(\*(\w+)\)", text):
            return function[1], ctypes.c_void_p
        kind, name = re.fullmatch(r"(.*?)(\w+)", text, re.S).groups()  # type: ignore[union-attr]
        return name, ctypes.c_void_p if "*" in kind else self.types[kind.replace("const", "").strip()]
