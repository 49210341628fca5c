"""The relocations that LLVM emits in position-independent code, and how they are resolved: the kinds of relocation of
each machine, from the psABI of x86-64 and the ELF ABI of AArch64 (whose names are used)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trivium.backends.llvm import elf
from trivium.ir.errors import CompileError

Field = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
"""Puts values into an image, at offsets."""


@dataclass(frozen=True)
class Kind:
    """The value that is written: the address of a symbol (or of its slot in the table of addresses, or, if the symbol
    is in another file, of a stub that jumps there) plus an addend, minus the position of the write or the page of that
    position."""

    field: Field
    base: Literal["", "place", "page"] = "place"
    via: Literal["symbol", "stub", "slot"] = "symbol"


ABSOLUTE = Kind(lambda image, offsets, values: None, base="")
"""An address of 64 bits, which the dynamic linker writes."""


@dataclass(frozen=True)
class Machine:
    """The kinds of relocation by number; those that are left to the dynamic linker (an address in this file, a symbol's
    address in a slot, and a symbol's address in data); the maximal size of a page; and a stub: its instructions, and
    the references to its slot in them (offset, kind, addend)."""

    kinds: dict[int, Kind]
    relative: int
    slot: int
    absolute: int
    page: int
    stub: bytes
    stub_relocations: tuple[tuple[int, int, int], ...]


def _gather(image: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return image[offsets[:, None] + np.arange(4)].view("<u4")[:, 0]


def _scatter(image: np.ndarray, offsets: np.ndarray, words: np.ndarray) -> None:
    width = words.dtype.itemsize
    image[offsets[:, None] + np.arange(width)] = words[:, None].view(np.uint8)


def _require(holds: np.ndarray, what: str) -> None:
    if not holds.all():
        raise CompileError(f"machine code has {what}, and cannot be linked")


def _word64(image: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> None:
    _scatter(image, offsets, values.astype("<i8"))


def _word32(image: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> None:
    _require(np.abs(values) < 1 << 31, "distances of 2 GiB and more")
    _scatter(image, offsets, values.astype("<i4"))


def _bits(image: np.ndarray, offsets: np.ndarray, mask: int, bits: np.ndarray) -> None:
    """Replaces the bits of instructions that are in `mask`."""
    words = _gather(image, offsets) & np.uint32(~mask & 0xFFFFFFFF) | bits.astype("<u4") & np.uint32(mask)
    _scatter(image, offsets, words)


def _adr(shift: int) -> Field:
    """Returns the writer of the distance in an `adr` or `adrp`: 21 bits, the lowest two of which are separate."""

    def write(image: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> None:
        _require(np.abs(values) < 1 << (20 + shift), "addresses too far from their use")
        immediate = values >> shift
        _bits(image, offsets, 0x60FFFFE0, (immediate & 3) << 29 | (immediate >> 2 & 0x7FFFF) << 5)

    return write


def _low12(scale: int) -> Field:
    """Returns the writer of the low 12 bits of an address in an `add` (scale 0), or in a load or store of 1 << scale
    bytes."""

    def write(image: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> None:
        _require(values % (1 << scale) == 0, "data that is not aligned to its size")
        _bits(image, offsets, 0xFFF << 10, (values & 0xFFF) >> scale << 10)

    return write


def _branch(bits: int, position: int) -> Field:
    """Returns the writer of the distance of a jump, in instructions."""

    def write(image: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> None:
        _require((np.abs(values) < 1 << (bits + 1)) & (values % 4 == 0), "jumps that are too long")
        _bits(image, offsets, ((1 << bits) - 1) << position, (values >> 2 & ((1 << bits) - 1)) << position)

    return write


X86_64 = Machine(
    kinds={
        1: ABSOLUTE,  # R_X86_64_64
        2: Kind(_word32),  # R_X86_64_PC32
        4: Kind(_word32, via="stub"),  # R_X86_64_PLT32
        9: Kind(_word32, via="slot"),  # R_X86_64_GOTPCREL
        24: Kind(_word64),  # R_X86_64_PC64
        41: Kind(_word32, via="slot"),  # R_X86_64_GOTPCRELX
        42: Kind(_word32, via="slot"),  # R_X86_64_REX_GOTPCRELX
    },
    relative=8,
    slot=6,
    absolute=1,
    page=0x1000,
    stub=bytes.fromhex("ff25 00000000 cccc"),  # jmp *slot(%rip)
    stub_relocations=((2, 9, -4),),
)

AARCH64 = Machine(
    kinds={
        257: ABSOLUTE,  # R_AARCH64_ABS64
        260: Kind(_word64),  # R_AARCH64_PREL64
        261: Kind(_word32),  # R_AARCH64_PREL32
        274: Kind(_adr(0)),  # R_AARCH64_ADR_PREL_LO21
        275: Kind(_adr(12), base="page"),  # R_AARCH64_ADR_PREL_PG_HI21
        277: Kind(_low12(0), base=""),  # R_AARCH64_ADD_ABS_LO12_NC
        278: Kind(_low12(0), base=""),  # R_AARCH64_LDST8_ABS_LO12_NC
        280: Kind(_branch(19, 5)),  # R_AARCH64_CONDBR19
        282: Kind(_branch(26, 0), via="stub"),  # R_AARCH64_JUMP26
        283: Kind(_branch(26, 0), via="stub"),  # R_AARCH64_CALL26
        284: Kind(_low12(1), base=""),  # R_AARCH64_LDST16_ABS_LO12_NC
        285: Kind(_low12(2), base=""),  # R_AARCH64_LDST32_ABS_LO12_NC
        286: Kind(_low12(3), base=""),  # R_AARCH64_LDST64_ABS_LO12_NC
        299: Kind(_low12(4), base=""),  # R_AARCH64_LDST128_ABS_LO12_NC
        311: Kind(_adr(12), base="page", via="slot"),  # R_AARCH64_ADR_GOT_PAGE
        312: Kind(_low12(3), base="", via="slot"),  # R_AARCH64_LD64_GOT_LO12_NC
    },
    relative=1027,
    slot=1025,
    absolute=257,
    page=0x10000,
    stub=bytes.fromhex("10000090 110240f9 20021fd6 1f2003d5"),  # adrp x16, slot; ldr x17, [x16, slot]; br x17; nop
    stub_relocations=((0, 311, 0), (4, 312, 0)),
)

MACHINES = {elf.EM_X86_64: X86_64, elf.EM_AARCH64: AARCH64}
