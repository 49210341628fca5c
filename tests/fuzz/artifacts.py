"""Mutations of programs as bytecode. `mutant(seed, index)` always returns the same file."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fuzz import seeds
from tests.fuzz.bombs import BRACKETS, DEPTHS
from tests.fuzz.container import IR, STRING, Container, Entry, read_varint, varint

NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    63,
    64,
    127,
    128,
    255,
    1 << 14,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    1 << 62,
    (1 << 63) - 1,
)
NUMBERS = (*NUMBERS, 1 << 63, (1 << 64) - 1)
PRODUCERS = (b"", b"StableHLO_v", b"StableHLO_v0.8.0", b"StableHLO_v0.9.0", b"StableHLO_v1.0.0", b"StableHLO_v1.20.0")
PRODUCERS = (*PRODUCERS, b"StableHLO_v9.9.9", b"StableHLO_v" + b"9" * 5000, b"\xff" * 20, b"MLIR18.0.0git")
STRINGS = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"x" * 5000,
    "ß漢".encode(),
    b'"',
    b"main",
    b"func",
    b"stablehlo",
    b"vhlo",
    b"builtin",
)
STRINGS = (
    *STRINGS,
    b"add_v1",
    b"func_v1",
    b"return_v1",
    b"while_v1",
    b"call_v1",
    b"constant_v1",
    b"module",
    b"composite_v2",
)

Mutation = Callable[[Random, Container], None]


def mutant(seed: int, index: int) -> bytes:
    """Returns the file with that number."""
    rng = Random(f"{seed}:artifact:{index}")
    data = rng.choice(seeds.artifacts())
    if rng.random() < 0.25:
        return change_bytes(rng, data)
    file = Container.of(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(_MUTATIONS)(rng, file)
    data = file.getvalue()
    return change_bytes(rng, data) if rng.random() < 0.1 else data


def change_bytes(rng: Random, data: bytes) -> bytes:
    """Replaces, inserts and deletes bytes anywhere; sometimes the file ends early."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        here = rng.randrange(len(changed) + 1)
        new = rng.choice((b"\0", b"\x01", b"\x80", b"\xff", bytes([rng.randrange(256)]), b"", rng.randbytes(9)))
        changed[here : here + rng.choice((1, 1, 1, 0, 3))] = new
    if rng.random() < 0.1:
        del changed[rng.randrange(len(changed) + 1) :]
    return bytes(changed)


def change_number(rng: Random, content: bytes) -> bytes:
    """Returns a replacement for a number: close to it, or very different."""
    if not content:
        return varint(rng.choice(NUMBERS))
    try:
        pos = rng.randrange(len(content)) if rng.random() < 0.5 else 0
        skipped = rng.randrange(12)
        for _ in range(skipped):
            _, following = read_varint(content, pos)
            if following >= len(content):
                break
            pos = following
        value, end = read_varint(content, pos)
    except IndexError:
        return content + varint(rng.choice(NUMBERS))
    near = (value + 1, value - 1, value ^ 1, value << 1, rng.randrange(40))
    return content[:pos] + varint(max(0, rng.choice((*near, *near, *NUMBERS)))) + content[end:]


def change_sections(rng: Random, file: Container) -> None:
    """Changes numbers in a section."""
    place = rng.randrange(len(file.sections))
    kind, content = file.sections[place]
    for _ in range(rng.choice((1, 1, 2))):
        content = change_number(rng, content)
    file.sections[place] = kind, content


def change_program(rng: Random, file: Container) -> None:
    """Changes numbers, or bytes, of the ops."""
    for place, (kind, content) in enumerate(file.sections):
        if kind == IR:
            for _ in range(rng.choice((1, 1, 2, 4))):
                change = change_number if rng.random() < 0.5 else _change_byte
                content = change(rng, content)
            file.sections[place] = kind, content


def _change_byte(rng: Random, content: bytes) -> bytes:
    here = rng.randrange(len(content) + 1)
    return content[:here] + bytes([rng.randrange(256)]) + content[here + rng.randrange(2) :]


def shuffle_sections(rng: Random, file: Container) -> None:
    """Exchanges, duplicates and removes sections, and changes their numbers."""
    sections = file.sections
    here, there = rng.randrange(len(sections)), rng.randrange(len(sections))
    match rng.randrange(4):
        case 0:
            sections[here], sections[there] = sections[there], sections[here]
        case 1:
            sections.insert(here, sections[there])
        case 2 if len(sections) > 1:
            del sections[here]
        case _:
            sections[here] = rng.randrange(16), sections[here][1]


def splice(rng: Random, file: Container) -> None:
    """Takes a section, or the tables, from another file."""
    other = Container.of(rng.choice(seeds.artifacts()))
    if rng.random() < 0.5:
        file.attributes, file.types = other.attributes, other.types
    else:
        place = rng.randrange(len(file.sections))
        file.sections[place] = rng.choice(other.sections)


def change_version(rng: Random, file: Container) -> None:
    if rng.random() < 0.5:
        file.version = rng.choice((*range(9), 1 << 63))
    else:
        file.producer = rng.choice(PRODUCERS)


def change_entries(rng: Random, file: Container) -> None:
    """Changes bytes and numbers of attributes and types, their order, and their dialects."""
    entries = rng.choice((file.attributes, file.types))
    if not entries:
        return
    here, there = rng.randrange(len(entries)), rng.randrange(len(entries))
    entry = entries[here]
    match rng.randrange(6):
        case 0:
            entries[here], entries[there] = entries[there], entries[here]
        case 1:
            entries[here] = Entry(entry.dialect, entries[there].content, entries[there].encoded)
        case 2:
            entries[here] = Entry(rng.choice((0, 1, 2, 3, 1 << 40)), entry.content, entry.encoded)
        case 3:
            entries[here] = Entry(entry.dialect, entry.content, not entry.encoded)
        case _:
            entries[here] = Entry(entry.dialect, change_number(rng, entry.content), entry.encoded)


def share_entries(rng: Random, file: Container) -> None:
    """Adds attributes or types of which each contains the previous one twice, so that the size that the last one
    represents doubles with each."""
    entries, forms = rng.choice(((file.attributes, _ATTRIBUTE_FORMS), (file.types, _TYPE_FORMS)))
    if not entries:
        return
    form = rng.choice(forms)
    here, depth = rng.randrange(len(entries)), rng.choice((*DEPTHS, 25, 60, 90))
    dialect, first = entries[here].dialect, len(entries)
    for number in range(depth):
        before = varint(here if not number else first + number - 1)
        entries.append(Entry(dialect, form(before)))
    # References to the entry now refer to the last of the chain.
    entries[here], entries[-1] = entries[-1], entries[here]
    if rng.random() < 0.7 and depth > 1:
        entries[first] = Entry(dialect, form(varint(len(entries) - 1)))


def _pair(code: int) -> Callable[[bytes], bytes]:
    return lambda before: varint(code) + varint(2) + before * 2


_ATTRIBUTE_FORMS: tuple[Callable[[bytes], bytes], ...] = (
    *(_pair(0), _pair(1), _pair(12), _pair(13), lambda before: varint(10) + before * 2),
    *(lambda before: varint(6) + varint(1) + before * 2, lambda before: varint(0) + varint(1) + before),
    lambda before: varint(14) + before * 2,
)
_TYPE_FORMS: tuple[Callable[[bytes], bytes], ...] = (
    *(_pair(15), _pair(23), lambda before: varint(8) + (varint(2) + before * 2) * 2),
    *(lambda before: varint(2) + (varint(1) + before) * 2, lambda before: varint(20) + varint(1) + varint(4) + before),
)


def nest_text(rng: Random, file: Container) -> None:
    """Adds an entry that is stored as text and deeply nested."""
    entries = rng.choice((file.attributes, file.types))
    if entries:
        opening, closing, middle = rng.choice(BRACKETS)
        depth = rng.choice(DEPTHS)
        text = (opening * depth + middle + closing * depth).encode()
        entry = rng.choice(entries)
        entry.content, entry.encoded = text + b"\0", False


def change_strings(rng: Random, file: Container) -> None:
    """Changes the lengths and bytes of strings."""
    for place, (kind, content) in enumerate(file.sections):
        if kind == STRING:
            file.sections[place] = kind, _changed_strings(rng, content)


def _changed_strings(rng: Random, content: bytes) -> bytes:
    try:
        count, pos = read_varint(content, 0)
        for _ in range(count):
            _, pos = read_varint(content, pos)
    except IndexError:
        return content
    strings = content[pos:].split(b"\0")[:-1]
    if strings:
        here = rng.randrange(len(strings))
        strings[here] = rng.choice((*STRINGS, *strings, strings[here] + b"_v2"))
    sizes = [varint(len(string) + 1) for string in reversed(strings)]
    return varint(len(strings)) + b"".join(sizes) + b"".join(string + b"\0" for string in strings)


_MUTATIONS: tuple[Mutation, ...] = (
    *(change_entries, change_entries, change_entries, change_program, change_program, change_program),
    *(
        change_sections,
        change_sections,
        change_strings,
        splice,
        shuffle_sections,
        change_version,
        share_entries,
        nest_text,
    ),
)
