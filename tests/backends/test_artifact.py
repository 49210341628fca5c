"""Artifacts as bytes: what is written is read back, the layout is that of `native/artifact.h`, and bytes that no writer
made raise an Error, whatever is wrong with them."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from trivium.backends import artifact as layout
from trivium.backends.artifact import from_bytes, to_bytes
from trivium.compiler.artifact import (
    Artifact,
    Axis,
    ConstantData,
    Embedded,
    Machine,
    ModuleConstant,
    NativeFunction,
    Packing,
    PythonFunction,
    Slot,
)
from trivium.ir.errors import Error

HEADER = Path(__file__).parents[2] / "backends/native/artifact.h"
MACHINE = Machine("x86_64-unknown-linux-gnu", "znver3", "+avx2,-avx512f,+fma")
PACKING = Packing(4, 1, (Axis(2, 6),), (Axis(3, 1),), (Axis(2, 3),), (2, 2))
WHOLE = Artifact(
    name="main",
    machine=MACHINE,
    runtime=4,
    threads=2,
    producer="trivium 1, llvmlite 2",
    code=bytes(range(256)) * 3,
    inputs=(Slot(np.dtype(np.float32), (2, 3)), Slot(np.dtype(np.complex64), ())),
    outputs=(Slot(np.dtype(ml_dtypes.bfloat16), (0, 5)), Slot(np.dtype(ml_dtypes.int4), (3,))),
    arena_size=4096,
    arena_alignment=64,
    host_functions=(NativeFunction("trivium_cholesky_d", "dpotrf"), PythonFunction("my.call", "module {ü}")),
    constants=(
        ConstantData(Embedded(np.arange(12, dtype=np.uint8))),
        ConstantData(Embedded(np.arange(52, dtype=np.uint8)), PACKING),
        ConstantData(ModuleConstant(7, 16, 52), PACKING),
        ConstantData(ModuleConstant(0, 0, 0)),
    ),
    texts={"signature": "() -> ()", "empty": ""},
)
SMALL = replace(WHOLE, inputs=(), outputs=(), host_functions=(), constants=(), texts={})


def listed(artifact: Artifact) -> list[Any]:
    """Returns an artifact's fields, with constants by their bytes."""
    constants = [
        (c.source.data.tobytes() if isinstance(c.source, Embedded) else c.source, c.packing) for c in artifact.constants
    ]
    return [replace(artifact, constants=()), constants]


@pytest.mark.parametrize("artifact", [WHOLE, SMALL], ids=["whole", "small"])
def test_what_is_written_is_read(artifact: Artifact) -> None:
    assert listed(from_bytes(to_bytes(artifact))) == listed(artifact)


def test_the_layout_is_that_of_the_header() -> None:
    """Every struct of the C++ header has the same fields as ours, in order and of the same types."""
    text = re.sub(r"//.*", "", HEADER.read_text())
    enums = r"ElementType|HostCallKind|ConstantSource"
    found = {}
    for name, body in re.findall(r"struct (\w+) \{([^}]*)\}", text):
        body = re.sub(enums, "uint32_t", body)
        found[name] = [(field, kind) for kind, field in re.findall(r"(\w+) (\w+)(?:\[8\])?;", body)]
    kinds = {
        "c_uint": "uint32_t",
        "c_ulong": "uint64_t",
        "c_long": "int64_t",
        "c_char_Array_8": "char",
        "_Span": "Span",
    }
    for name, fields in found.items():
        record = getattr(layout, f"_{name}")
        assert [(field, kinds[kind.__name__]) for field, kind in record._fields_] == fields, name
    assert set(found) == {"Span", "Slot", "HostCall", "Axis", "Packing", "Constant", "Text", "Header"}


def test_the_numbers_of_element_types_are_those_of_the_header() -> None:
    names = {int(number): name for name, number in re.findall(r"  k(\w+) = (\d+),", HEADER.read_text())}
    for number, kind in layout.ELEMENT_TYPES.items():
        dtype = np.dtype(kind)
        digits = re.sub(r"[^0-9]", "", dtype.name.partition("_")[0]) if dtype.kind != "b" else ""
        assert digits in names[number], (names[number], dtype)
    assert f"kFormat = {layout.FORMAT};" in HEADER.read_text()


def test_constants_are_embedded_at_cache_lines_of_pages() -> None:
    data = to_bytes(WHOLE)
    header = layout._Header.from_buffer_copy(data)
    assert header.data.offset % 4096 == 0
    assert header.code.offset % 64 == 0
    constants = layout._Reader(data)._records(layout._Constant, header.constants)
    assert [c.offset % 64 for c in constants[:2]] == [0, 0]


def sealed(data: bytearray) -> bytes:
    """Returns the bytes with the correct checksum and size."""
    data[16:24] = len(data).to_bytes(8, "little")
    data[12:16] = zlib.crc32(memoryview(data)[16:]).to_bytes(4, "little")
    return bytes(data)


def test_every_flipped_byte_is_found() -> None:
    data = to_bytes(SMALL)
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        with pytest.raises(Error, match="not a compiled program of this version"):
            from_bytes(bytes(damaged))


@pytest.mark.parametrize("length", [0, 1, 8, 47, 300, -1])
def test_cut_off(length: int) -> None:
    with pytest.raises(Error, match="not a compiled program"):
        from_bytes(to_bytes(WHOLE)[:length])


def mutations(count: int) -> list[bytes]:
    """Returns artifacts with a few numbers of their description changed, and a correct checksum."""
    original, draws = to_bytes(WHOLE), random.Random(7)
    description = len(original) - len(original) % 8
    made = []
    for _ in range(count):
        data = bytearray(original)
        for _ in range(draws.randint(1, 3)):
            place = draws.randrange(24, description - 8)
            kind = draws.randrange(4)
            if kind == 0:
                data[place] = draws.randrange(256)
            elif kind == 1:
                number = draws.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(data), draws.getrandbits(64)])
                data[place & ~7 : (place & ~7) + 8] = number.to_bytes(8, "little")
            elif kind == 2:
                other = draws.randrange(24, description - 8)
                data[place & ~7 : (place & ~7) + 8] = original[other & ~7 : (other & ~7) + 8]
            else:
                del data[place : place + draws.choice([1, 8, 100])]
                data += bytes(0)
                description = min(description, len(data))
        made.append(sealed(data))
    return made


def test_mutated_descriptions_are_refused_or_sound() -> None:
    """No crash, no foreign exception; accepted bytes can be written again."""
    refused = 0
    for data in mutations(600):
        try:
            artifact = from_bytes(data)
        except Error:
            refused += 1
            continue
        assert listed(from_bytes(to_bytes(artifact))) == listed(artifact)
        for constant in artifact.constants:
            assert constant.nbytes >= 0
    assert 150 < refused < 600


def broken(change: Callable[[Any], None]) -> bytes:
    data = bytearray(to_bytes(WHOLE))
    header = layout._Header.from_buffer_copy(data)
    change(header)
    data[: len(bytes(header))] = bytes(header)
    return sealed(data)


BREAKS: dict[str, tuple[Callable[[Any], None], str]] = {
    "format": (lambda h: setattr(h, "format", 9), "it has format 9, expected 1"),
    "arena": (lambda h: setattr(h, "arena_bytes", 1 << 60), "its arena has"),
    "alignment": (lambda h: setattr(h, "arena_alignment", 48), "its arena is aligned to 48"),
    "beyond": (lambda h: setattr(h.inputs, "count", 1 << 50), "after its end at"),
    "unaligned": (lambda h: setattr(h.inputs, "offset", h.inputs.offset + 1), "not a multiple of 8"),
    "text": (lambda h: setattr(h.name, "count", 2), "does not end with a zero byte"),
    "utf-8": (lambda h: (setattr(h.name, "offset", h.code.offset + 128), setattr(h.name, "count", 128)), "not UTF-8"),
    "payload": (lambda h: setattr(h.data, "count", 3), "a constant of it ends at 12, beyond 3"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_errors_are_reported(name: str) -> None:
    change, complaint = BREAKS[name]
    with pytest.raises(Error, match=complaint):
        from_bytes(broken(change))
