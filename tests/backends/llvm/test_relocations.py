"""The fields of instructions contain what the processors' manuals specify, nothing else changes, and values that do not
fit are refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from trivium.backends.llvm import elf
from trivium.backends.llvm.relocations import AARCH64, ABSOLUTE, MACHINES, X86_64, Machine
from trivium.ir.errors import CompileError

PC32, PC64, PREL64, PREL32 = 2, 24, 260, 261
ADR, ADRP, ADD, CONDITIONAL, JUMP, CALL = 274, 275, 277, 280, 282, 283
LOADS = {278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
"""Loads and stores of 1 << scale bytes."""


def filled(machine: Machine, kind: int, before: bytes, *values: int) -> list[bytes]:
    """Writes each value to the same field, and checks that the bytes around it do not change."""
    room = 16
    image = np.full(room * (len(values) + 1), 0xA5, np.uint8)
    offsets = np.arange(len(values)) * room + 6
    places = offsets[:, None] + np.arange(len(before))
    image[places] = np.frombuffer(before, np.uint8)
    outside = np.ones(len(image), bool)
    outside[places] = False
    machine.kinds[kind].field(image, offsets, np.array(values, np.int64))
    assert (image[outside] == 0xA5).all()
    return [image[place].tobytes() for place in places]


def words(kind: int, before: int, *values: int) -> list[int]:
    """Instructions of AArch64."""
    return [struct.unpack("<I", word)[0] for word in filled(AARCH64, kind, struct.pack("<I", before), *values)]


def signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) else number


@pytest.mark.parametrize(("machine", "kind"), [(X86_64, PC32), (AARCH64, PREL32)])
def test_distances_of_32_bits(machine: Machine, kind: int) -> None:
    values = [0, 1, -1, 2**31 - 1, 1 - 2**31, 0x12345678]
    assert [struct.unpack("<i", found)[0] for found in filled(machine, kind, b"\xff" * 4, *values)] == values
    for value in (2**31, -(2**31) - 1, 2**40):
        with pytest.raises(CompileError, match="distances of 2 GiB and more, and cannot be linked"):
            filled(machine, kind, bytes(4), 0, value)


@pytest.mark.parametrize(("machine", "kind"), [(X86_64, PC64), (AARCH64, PREL64)])
def test_distances_of_64_bits(machine: Machine, kind: int) -> None:
    values = [0, -1, 2**62, -(2**62), 0x123456789ABCDEF]
    assert [struct.unpack("<q", found)[0] for found in filled(machine, kind, b"\xff" * 8, *values)] == values


@pytest.mark.parametrize(
    ("kind", "before", "value", "after"),
    [
        (JUMP, 0x14000000, 8, 0x14000002),  # b .+8
        (CALL, 0x94000000, -4, 0x97FFFFFF),  # bl .-4
        (CONDITIONAL, 0x54000000, 16, 0x54000080),  # b.eq .+16
        (CONDITIONAL, 0x54000001, -16, 0x54FFFF81),  # b.ne .-16
        (ADR, 0x10000000, 5, 0x30000020),  # adr x0, .+5
        (ADR, 0x1000001E, -1, 0x70FFFFFE),  # adr x30, .-1
        (ADRP, 0x90000000, 0x3000, 0xF0000000),  # adrp x0, 3 pages on
        (ADRP, 0x90000010, -0x1000, 0xF0FFFFF0),  # adrp x16, the page before
        (ADD, 0x91000000, 0x12ABC, 0x912AF000),  # add x0, x0, #0xabc
        (278, 0x39400000, 0xFFF, 0x397FFC00),  # ldrb w0, [x0, #0xfff]
        (286, 0xF9400000, 0x7F8, 0xF943FC00),  # ldr x0, [x0, #0x7f8]
        (299, 0x3DC00000, 0x1FF0, 0x3DC3FC00),  # ldr q0, [x0, #0xff0]
    ],
)
def test_instructions_of_the_manual(kind: int, before: int, value: int, after: int) -> None:
    (word,) = words(kind, before, value)
    assert word == after, hex(word)


@pytest.mark.parametrize(
    ("kind", "before", "bits", "position"), [(CONDITIONAL, 0x54000003, 19, 5), (JUMP, 0x14000000, 26, 0)]
)
def test_jumps_reach_as_far_as_their_bits(kind: int, before: int, bits: int, position: int) -> None:
    mask, limit = ((1 << bits) - 1) << position, 1 << (bits + 1)
    values = [0, 4, -4, limit - 4, 4 - limit, 0x5554]
    found = words(kind, before, *values)
    assert [signed((word & mask) >> position, bits) * 4 for word in found] == values
    assert {word & ~mask for word in found} == {before}
    for value in (limit, -limit - 4, 2, 1):
        with pytest.raises(CompileError, match="jumps that are too long"):
            words(kind, before, 0, value)


@pytest.mark.parametrize(("kind", "before", "shift"), [(ADR, 0x1000001F, 0), (ADRP, 0x9000001F, 12)])
def test_addresses_by_distance(kind: int, before: int, shift: int) -> None:
    """21 bits, counted in bytes or in pages; the lowest two are in another part of the instruction."""
    limit = 1 << 20
    values = [number << shift for number in (0, 1, 2, 3, 4, -1, -2, -5, limit - 1, 1 - limit, 0x55555)]
    found = words(kind, before, *values)
    immediates = [(word >> 29 & 3) | (word >> 5 & 0x7FFFF) << 2 for word in found]
    assert [signed(immediate, 21) << shift for immediate in immediates] == values
    assert {word & ~0x60FFFFE0 for word in found} == {before}
    for value in (limit << shift, -(limit << shift) - (1 << shift)):
        with pytest.raises(CompileError, match="addresses too far from their use"):
            words(kind, before, value)


@pytest.mark.parametrize("kind", LOADS)
def test_low_bits_of_addresses_count_in_elements(kind: int) -> None:
    scale = LOADS[kind]
    values = [0, 1 << scale, 0x1000 - (1 << scale), 0x7654300, 0x10FF0]
    found = words(kind, 0xFFC003FF, *values)  # the previous content of the field is replaced
    assert [(word >> 10 & 0xFFF) << scale for word in found] == [value & 0xFFF for value in values]
    assert {word & ~(0xFFF << 10) for word in found} == {0xFFC003FF & ~(0xFFF << 10)}
    if scale:
        with pytest.raises(CompileError, match="data that is not aligned to its size"):
            words(kind, 0, 0, 1 << (scale - 1))


def test_whole_addresses_are_left_to_the_dynamic_linker() -> None:
    for machine in MACHINES.values():
        assert machine.kinds[machine.absolute] is ABSOLUTE
        assert filled(machine, machine.absolute, b"\x11" * 8, 1234) == [b"\x11" * 8]


@pytest.mark.parametrize("number", MACHINES)
def test_stubs_name_their_slots_in_ways_that_the_machine_has(number: int) -> None:
    machine = MACHINES[number]
    assert machine.page & (machine.page - 1) == 0
    assert len(machine.stub) % 8 == 0
    for offset, kind, _ in machine.stub_relocations:
        assert machine.kinds[kind].via == "slot"
        assert offset + 4 <= len(machine.stub)


def test_machines_have_their_numbers() -> None:
    assert MACHINES == {elf.EM_X86_64: X86_64, elf.EM_AARCH64: AARCH64}
