"""Bytes that are no artifact: each ends in an error that tells the place, never in another exception."""

import random
from contextlib import suppress
from pathlib import Path

import pytest

import trivium
from trivium.ir.bytecode import deserialize, load, serialize
from trivium.ir.text import parse

PROGRAM = (Path(__file__).parent / "fixtures" / "program.mlir").read_text()


def data_of(version: str = "1.17.0") -> bytes:
    return serialize(parse(PROGRAM), version)


def section(data: bytes, kind: int) -> int:
    """Where the content of a top-level section begins."""
    from trivium.ir.bytecode.encoding import Cursor

    cursor = Cursor(memoryview(data)[4:], 4)
    cursor.varint()
    cursor.text()
    while True:
        found, content = cursor.section()
        if found == kind:
            return content.base


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "at byte 0: the file does not begin with"),
        (b"module {}", "at byte 0: the file does not begin with"),
        (b"ML\xefR", "at byte 4: the data ends"),
        (b"ML\xefR\x0fStableHLO", "the bytecode has version 7, expected one up to 6"),
        (b"ML\xefR\x0dStableHLO", "1 bytes are announced, 0 are left"),
        (b"ML\xefR\x0dStableHLO_v1.0.0\0", "the file has no section of strings"),
        (b"ML\xefR\x0dx\0\x04\x03\x00\x04\x03\x00", "section 4 is there twice"),
        (b"ML\xefR\x0dx\0\x0c\x03\x00", "section 12 is not known"),
        (b"ML\xefR\x0dx\0\x84\x03\x07\xcb", "expected a power of two"),
    ],
)
def test_wrong_beginnings(data, message):
    with pytest.raises(trivium.ParseError) as caught:
        deserialize(data)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, 8])
def test_wrong_numbers(kind):
    """A number in front of a section that promises more than there is."""
    data = bytearray(data_of())
    place = section(bytes(data), kind)
    data[place] = 0xFF
    with pytest.raises(trivium.ParseError, match="at byte"):
        deserialize(bytes(data))


def test_a_file_is_named(tmp_path):
    (tmp_path / "broken.mlirbc").write_bytes(data_of()[:100])
    (tmp_path / "empty.mlirbc").write_bytes(b"")
    for name in ("broken", "empty"):
        with pytest.raises(trivium.ParseError, match=f"{name}.mlirbc: at byte"):
            load(tmp_path / f"{name}.mlirbc")


def test_every_end():
    """A file may end anywhere."""
    data = data_of()
    for end in range(0, len(data), 7):
        with pytest.raises(trivium.ParseError):
            deserialize(data[:end])


@pytest.mark.parametrize("version", ["0.9.0", "0.14.0", "1.17.0"])
def test_mutations(version):
    """Each ends as a program or as an error of ours."""
    rng, original = random.Random(version), data_of(version)
    for _ in range(400):
        data = bytearray(original)
        for _ in range(rng.choice((1, 1, 2, 8))):
            place = rng.randrange(len(data))
            change = rng.randrange(3)
            if change == 0:
                data[place] = rng.choice((0, 1, 0x80, 0xFF, rng.randrange(256)))
            elif change == 1:
                del data[place : place + rng.randrange(1, 4)]
            else:
                data[place:place] = rng.randbytes(rng.randrange(1, 9))
        with suppress(trivium.ParseError, trivium.UnsupportedOpError):
            deserialize(bytes(data))
