"""Bytes that are not an artifact: each raises an error that states the position, and never another exception."""

import random
from contextlib import suppress
from pathlib import Path

import pytest

import trivium
from tests.fuzz.container import DIALECT, Container, Entry, varint
from trivium.ir.bytecode import deserialize, load, serialize
from trivium.ir.bytecode.encoding import bytes_of
from trivium.ir.equality import difference
from trivium.ir.text import parse

FIXTURES = Path(__file__).parent / "fixtures"
PROGRAM = (FIXTURES / "program.mlir").read_text()


def data_of(version: str = "1.17.0") -> bytes:
    return serialize(parse(PROGRAM), version)


def section(data: bytes, kind: int) -> int:
    """Returns the position where the content of a top-level section begins."""
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
        (b"ML\xefR\x0dx\0\x04\x03\x00\x04\x03\x00", "section 4 occurs twice"),
        (b"ML\xefR\x0dx\0\x0c\x03\x00", "section 12 is unknown"),
        (b"ML\xefR\x0dx\0\x84\x03\x07\xcb", "expected a power of two"),
    ],
)
def test_wrong_beginnings(data, message):
    with pytest.raises(trivium.ParseError) as caught:
        deserialize(data)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, 8])
def test_wrong_numbers(kind):
    """A number before a section announces more than the file contains."""
    data = bytearray(data_of())
    place = section(bytes(data), kind)
    data[place] = 0xFF
    with pytest.raises(trivium.ParseError, match="at byte"):
        deserialize(bytes(data))


DOUBLING = {
    "attributes": ("[1 : i64]", "attributes", b"\x01", lambda before: b"\x01\x05" + before * 2),
    "locations": ('loc("a")', "attributes", b"\x1d", lambda before: b"\x15" + before * 2),
    "types": ("tuple<f32>", "types", b"tuple", lambda before: b"\x1f\x05" + before * 2),
}
"""For each kind: an attribute of a module, the table that contains its entry, the first bytes of the entry, and a
function that returns an entry which contains another one twice."""


def doubling(name: str, count: int) -> bytes:
    """Returns a file whose attribute is replaced by the last entry of a chain, in which each entry contains the
    previous one twice."""
    text, table, start, form = DOUBLING[name]
    file = Container.of(serialize(parse(f"module attributes {{a = {text}}} {{}}")))
    entries: list[Entry] = getattr(file, table)
    here = next(number for number, entry in enumerate(entries) if entry.content.startswith(start))
    first = len(entries)
    for number in range(count):
        entries.append(Entry(entries[here].dialect, form(varint(first + number - 1 if number else here))))
    if count:
        entries[here], entries[-1] = entries[-1], entries[here]
        entries[first] = Entry(entries[first].dialect, form(varint(len(entries) - 1)))
    return file.getvalue()


@pytest.mark.parametrize("name", DOUBLING)
def test_entries_that_double(name):
    """A kilobyte can expand to more than a machine's memory."""
    deserialize(doubling(name, 8))
    with pytest.raises(trivium.ParseError, match=r"at byte \d+: has \d+ bytes with all that it refers to"):
        deserialize(doubling(name, 60))
    with pytest.raises(trivium.ParseError, match=r"at byte \d+: entries are nested more than"):
        deserialize(doubling(name, 300))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has the end of the text, expected an attribute"),
        ("1 2", "is more than one attribute"),
        ("[" * 5000, "levels deep"),
        ("#stablehlo.gather<a>", "expected one of offset_dims"),
        ("dense<1.0> : tensor<2xf32> loc(", "is more than one attribute"),
        ("#a.b<\udcff>", "has '\\udcff', which is half of a character"),
    ],
)
def test_text_in_an_entry(text, message):
    """If a dialect stores an attribute as text, its errors state the offset in the file."""
    file = Container.of(serialize(parse("module attributes {a = [1 : i64]} {}")))
    for entry in file.attributes:
        if entry.content[:1] == b"\x01":
            entry.content, entry.encoded = bytes_of(text) + b"\0", False
    with pytest.raises(trivium.ParseError, match=r"^at byte \d+: ") as caught:
        deserialize(file.getvalue())
    assert message in str(caught.value)


def test_another_dialect_in_an_encoding_of_its_own():
    """An encoded attribute of an unknown dialect is refused with the name of the dialect."""
    file = Container.of(serialize(parse("module @other attributes {a = [1 : i64]} {}")))
    for place, (kind, content) in enumerate(file.sections):
        if kind == DIALECT:  # a second dialect, `a`: the third string
            file.sections[place] = kind, varint(2) + content[1:2] + varint(2 << 1) + content[2:]
    entry = next(entry for entry in file.attributes if entry.content[:1] == b"\x01")
    entry.dialect = 1
    with pytest.raises(trivium.Error, match=r"at byte .* attributes of dialect a in an unknown encoding"):
        deserialize(file.getvalue())


def test_unknown_ops_are_reported_with_their_positions():
    data = data_of().replace(b"return_v1\0", b"retire_v1\0").replace(b"func_v1\0", b"funk_v1\0")
    with pytest.raises(trivium.UnsupportedOpError) as caught:
        deserialize(data)
    assert sorted(op.name for op in caught.value.ops) == ["vhlo.funk_v1", "vhlo.retire_v1"]
    assert all(section(data, 1) < int(op.first.removeprefix("byte ")) < len(data) for op in caught.value.ops)


def test_a_file_is_named(tmp_path):
    (tmp_path / "broken.mlirbc").write_bytes(data_of()[:100])
    (tmp_path / "empty.mlirbc").write_bytes(b"")
    for name in ("broken", "empty"):
        with pytest.raises(trivium.ParseError, match=f"{name}.mlirbc: at byte"):
            load(tmp_path / f"{name}.mlirbc")


def test_every_end():
    """A file that ends early, at any byte, is refused."""
    data = data_of()
    for end in range(0, len(data), 7):
        with pytest.raises(trivium.ParseError):
            deserialize(data[:end])


def mutated(original: bytes, rng: random.Random) -> bytes:
    data = bytearray(original)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(len(data))
        change = rng.randrange(4)
        if change == 0:
            data[place] = rng.choice((0, 1, 0x80, 0xFF, rng.randrange(256)))
        elif change == 1:
            data[place] = (data[place] + rng.choice((-4, -2, 2, 4))) % 256  # another number of the same width
        elif change == 2:
            del data[place : place + rng.randrange(1, 4)]
        else:
            data[place:place] = rng.randbytes(rng.randrange(1, 9))
    return bytes(data)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.mlirbc")), ids=lambda path: path.stem)
def test_mutations(path):
    """Each mutated file becomes a program, which can be printed and verified, or raises a Trivium error."""
    rng, original = random.Random(path.stem), path.read_bytes()
    for _ in range(200):
        with suppress(trivium.ParseError, trivium.UnsupportedOpError):
            module = deserialize(mutated(original, rng))
            assert str(module)
            with suppress(trivium.Error):
                module.verify()


@pytest.mark.parametrize("kind", ["i2", "ui4", "f4E2M1FN", "f6E2M3FN"])
def test_bits_that_elements_do_not_have(kind):
    """Elements smaller than a byte take one byte each; the other bits of the byte are ignored."""
    constant = f'%0 = stablehlo.constant dense<"0x010002"> : tensor<3x{kind}>'
    plain = parse(f"func.func @main() -> tensor<3x{kind}> {{ {constant} return %0 : tensor<3x{kind}> }}")
    data = serialize(plain)
    assert data.count(b"\1\0\2") == 1
    dirty = deserialize(data.replace(b"\1\0\2", b"\xc1\x80\xc2"))
    assert difference(dirty, plain) == ""
    assert serialize(dirty) == data
