"""Links the object files that LLVM emits to a shared object: the work of a linker, for position-independent code, so
that users need none. `dlopen` accepts the result, debuggers and profilers can read it, and it can be unloaded.

Functions of the runtime and of the C library stay undefined symbols, called by stubs through a table of addresses that
the dynamic linker fills in. It finds them in the libraries that the file names as needed, as for any library: the
runtime is one that the process has already loaded, known by its name wherever its file is, and it brings in the C
library's. A table of pointers filled in by our own loader would also work, but then no other program could load the
file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from trivium.backends.llvm import elf, merging
from trivium.backends.llvm.relocations import ABSOLUTE, MACHINES, Kind, Machine
from trivium.ir.errors import CompileError

SLOT = 8
WRITE, ALLOC, EXECUTE = elf.SHF_WRITE, elf.SHF_ALLOC, elf.SHF_EXECINSTR
PROGBITS, NOBITS = elf.SHT_PROGBITS, elf.SHT_NOBITS


def link(object_files: Sequence[bytes], needed: Sequence[str] = ()) -> bytes:
    """Returns the shared object. It exports the files' global symbols that are not hidden; undefined ones are looked up
    in the libraries `needed`, by their names."""
    source = merging.merge([elf.read_object(each) for each in object_files])
    if source.machine not in MACHINES:
        raise CompileError(f"there is no way to link code of ELF machine {source.machine}, expected x86-64 or AArch64")
    return _Link(source, MACHINES[source.machine], needed).result()


@dataclass(eq=False)
class _Part:
    """A section of the result."""

    name: str
    type: int
    flags: int
    data: bytes = b""
    size: int = 0
    alignment: int = 8
    entry_size: int = 0
    link: _Part | None = None
    info: int = 0
    inputs: list[tuple[elf.Section, int]] = field(default_factory=list)  # with their offsets in the part
    offset: int = 0
    address: int = 0

    def hold(self, data: bytes, entry_size: int = 0) -> None:
        self.data, self.size, self.entry_size = data, len(data), entry_size

    def add(self, section: elf.Section) -> None:
        """Appends a section of the source."""
        self.alignment = max(self.alignment, section.alignment)
        start = self.size + -self.size % max(1, section.alignment)
        self.inputs.append((section, start))
        if self.type != NOBITS:
            self.data += bytes(start - self.size) + section.data
        self.size = start + section.size


class _Link:
    """One run of the linker; methods are in the order of `result`."""

    def __init__(self, source: elf.Object, machine: Machine, needed: Sequence[str]):
        self.source = source
        self.machine = machine
        self.needed = needed
        self.hash = _Part(".hash", elf.SHT_HASH, ALLOC)
        self.dynsym = _Part(".dynsym", elf.SHT_DYNSYM, ALLOC)
        self.dynstr = _Part(".dynstr", elf.SHT_STRTAB, ALLOC, alignment=1)
        self.rela = _Part(".rela.dyn", elf.SHT_RELA, ALLOC)
        self.rodata = _Part(".rodata", PROGBITS, ALLOC)
        self.text = _Part(".text", PROGBITS, ALLOC | EXECUTE, alignment=16)
        self.plt = _Part(".plt", PROGBITS, ALLOC | EXECUTE, alignment=16)
        self.dynamic = _Part(".dynamic", elf.SHT_DYNAMIC, ALLOC | WRITE)
        self.got = _Part(".got", PROGBITS, ALLOC | WRITE)
        self.data = _Part(".data", PROGBITS, ALLOC | WRITE)
        self.bss = _Part(".bss", NOBITS, ALLOC | WRITE)
        self.hash.link = self.rela.link = self.dynsym
        self.dynsym.link = self.dynamic.link = self.dynstr
        # Each of these lists is a segment. The dynamic linker writes to the third, which is read-only afterwards.
        self.segments = [
            (elf.PF_R, [self.hash, self.dynsym, self.dynstr, self.rela, self.rodata]),
            (elf.PF_R | elf.PF_X, [self.text, self.plt]),
            (elf.PF_R | elf.PF_W, [self.dynamic, self.got]),
            (elf.PF_R | elf.PF_W, [self.data, self.bss]),
        ]

    def result(self) -> bytes:
        self._take_sections()
        self._collect()
        self._size_tables()
        end = self._lay_out()
        self._fill_tables()
        image = np.zeros(end, np.uint8)
        for part in self._parts():
            image[part.offset : part.offset + len(part.data)] = np.frombuffer(part.data, np.uint8)
        self._relocate(image)
        return self._finish(image.tobytes())

    def _parts(self) -> list[_Part]:
        return [part for _, parts in self.segments for part in parts if part.size]

    # Contents

    def _take_sections(self) -> None:
        for section in self.source.sections:
            # Unwinding data: no exception passes through emitted code, and debuggers work without it.
            if not section.flags & ALLOC or section.size == 0 or section.name == ".eh_frame":
                continue
            known = section.name.startswith((".text", ".rodata", ".data", ".bss"))
            if not known or section.flags & elf.SHF_TLS or section.type not in (PROGBITS, NOBITS):
                raise CompileError(f"machine code has the section {section.name}, which cannot be linked")
            if section.alignment > self.machine.page:
                raise CompileError(f"section {section.name} is aligned to {section.alignment} bytes, more than a page")
            self._part_for(section).add(section)
        self.homes = {section.index: (part, at) for part in self._parts() for section, at in part.inputs}

    def _part_for(self, section: elf.Section) -> _Part:
        if section.flags & EXECUTE:
            return self.text
        if section.flags & WRITE:
            return self.bss if section.type == NOBITS else self.data
        return self.rodata

    def _collect(self) -> None:
        """Determines which symbols have a slot or a stub, and which are exposed to the dynamic linker."""
        symbols = self.source.symbols
        numbers = {number for index in self.homes for number in self._relocations(index)["kind"].tolist()}
        self.kinds = {number: self._kind(number) for number in numbers}
        slots, stubs, absolute = set[int](), set[int](), 0
        for index, (part, _) in self.homes.items():
            for _, number, symbol, _ in self._relocations(index).tolist():
                if symbol >= len(symbols):
                    raise CompileError(f"a relocation is for symbol {symbol} of {len(symbols)}")
                kind, outside = self.kinds[number], symbols[symbol].section == elf.SHN_UNDEF
                if kind.via == "stub" and outside:
                    stubs.add(symbol)
                elif kind.via == "slot":
                    slots.add(symbol)
                elif kind is ABSOLUTE:
                    if not part.flags & WRITE:
                        raise CompileError(f"machine code has an address in {part.name}, expected none outside of data")
                    absolute += 1
                elif outside:
                    raise CompileError(f"the address of {symbols[symbol].name} is used, which only calls may name")
        self.stubs = sorted(stubs)
        self.slots = sorted(slots | stubs)
        self.absolute = absolute
        used = {symbol for index in self.homes for symbol in self._relocations(index)["symbol"].tolist()}
        undefined = {s for s in used if symbols[s].section == elf.SHN_UNDEF and symbols[s].name}
        exported = (i for i, s in enumerate(symbols) if s.binding != elf.STB_LOCAL and s.section != elf.SHN_UNDEF)
        self.public = [*sorted(undefined), *exported]
        self.public_index = {symbol: index for index, symbol in enumerate(self.public, 1)}

    def _relocations(self, section: int) -> np.ndarray:
        return self.source.relocations.get(section, np.empty(0, elf.RELOCATION))

    def _kind(self, number: int) -> Kind:
        if number not in self.machine.kinds:
            raise CompileError(f"machine code has relocations of kind {number}, which cannot be linked")
        return self.machine.kinds[number]

    # Layout

    def _size_tables(self) -> None:
        """Makes the tables that do not depend on addresses, and reserves space for those that do."""
        names = [self.source.symbols[symbol].name for symbol in self.public]
        self.strings = _Strings([*names, *self.needed])
        self.dynstr.hold(self.strings.data)
        self.hash.hold(_hash_table(names), 4)
        self.dynsym.hold(bytes((len(names) + 1) * elf.SYMBOL.itemsize), elf.SYMBOL.itemsize)
        self.dynsym.info = 1  # the first symbol that is not local
        self.rela.hold(bytes((len(self.slots) + self.absolute) * elf.RELOCATION.itemsize), elf.RELOCATION.itemsize)
        self.plt.hold(self.machine.stub * len(self.stubs), len(self.machine.stub))
        self.got.hold(bytes(SLOT * len(self.slots)), SLOT)
        self.dynamic.hold(self._dynamic(), elf.DYNAMIC.itemsize)

    def _lay_out(self) -> int:
        """Assigns every part its offset in the file and its address, equal modulo the size of a page; each segment has
        its own pages. Returns the end of the file."""
        self.segments = [(flags, [part for part in parts if part.size]) for flags, parts in self.segments]
        self.segments = [(flags, parts) for flags, parts in self.segments if parts]
        self.headers = len(self.segments) + 3
        offset = address = elf.HEADER.itemsize + self.headers * elf.SEGMENT.itemsize
        for number, (_, parts) in enumerate(self.segments):
            if number:
                address += -address % self.machine.page + offset % self.machine.page
            for part in parts:
                padding = -address % part.alignment
                part.offset, part.address = offset + padding, address + padding
                address = part.address + part.size
                offset = part.offset if part.type == NOBITS else part.offset + part.size
        return offset

    def _address(self, symbol: elf.Symbol) -> int:
        """Returns the address of a symbol; 0 if it is in another file."""
        if symbol.section not in self.homes:
            return 0
        part, start = self.homes[symbol.section]
        return part.address + start + symbol.value

    # Parts that depend on addresses

    def _fill_tables(self) -> None:
        self.addresses = np.array([self._address(symbol) for symbol in self.source.symbols], np.int64)
        self.dynamic.hold(self._dynamic(), self.dynamic.entry_size)
        rows = [self._row(self.source.symbols[symbol], self.strings, _numbers(self._parts())) for symbol in self.public]
        self.dynsym.data = _rows([(0,) * 6, *rows], elf.SYMBOL)
        self.slot_addresses = np.zeros_like(self.addresses)
        self.slot_addresses[self.slots] = self.got.address + SLOT * np.arange(len(self.slots))
        self.stub_addresses = self.addresses.copy()
        self.stub_addresses[self.stubs] = self.plt.address + len(self.machine.stub) * np.arange(len(self.stubs))
        places = [(int(self.slot_addresses[s]), self.machine.slot, s, 0) for s in self.slots]
        for index, (part, start) in self.homes.items():
            for offset, number, symbol, addend in self._relocations(index).tolist():
                if self.kinds[number] is ABSOLUTE:
                    places.append((part.address + start + offset, self.machine.absolute, symbol, addend))
        self.rela.data = _rows([self._dynamic_relocation(*place) for place in places], elf.RELOCATION)

    def _dynamic_relocation(self, place: int, kind: int, symbol: int, addend: int) -> tuple[int, int, int, int]:
        """Makes the dynamic relocation for the address of a symbol, by its name if it is in another file."""
        if self.source.symbols[symbol].section == elf.SHN_UNDEF:
            return place, kind, self.public_index[symbol], addend
        return place, self.machine.relative, 0, int(self.addresses[symbol]) + addend

    def _row(self, symbol: elf.Symbol, strings: _Strings, numbers: dict[_Part, int]) -> tuple[int, ...]:
        """Makes a symbol in a table of the result."""
        home = self.homes.get(symbol.section)
        section = numbers[home[0]] if home else elf.SHN_UNDEF
        info = symbol.binding << 4 | symbol.type
        return strings[symbol.name], info, 0, section, self._address(symbol), symbol.size

    def _dynamic(self) -> bytes:
        """Makes the table that the dynamic linker reads first."""
        entries = [(elf.DT_NEEDED, self.strings[name]) for name in self.needed]
        entries += [(elf.DT_HASH, self.hash.address)]
        entries += [(elf.DT_SYMTAB, self.dynsym.address), (elf.DT_SYMENT, elf.SYMBOL.itemsize)]
        entries += [(elf.DT_STRTAB, self.dynstr.address), (elf.DT_STRSZ, self.dynstr.size)]
        if self.rela.size:
            entries += [(elf.DT_RELA, self.rela.address), (elf.DT_RELASZ, self.rela.size)]
            entries += [(elf.DT_RELAENT, elf.RELOCATION.itemsize)]
        entries += [(elf.DT_FLAGS, elf.DF_BIND_NOW), (elf.DT_FLAGS_1, elf.DF_1_NOW), (elf.DT_NULL, 0)]
        return _rows(entries, elf.DYNAMIC)

    def _relocate(self, image: np.ndarray) -> None:
        """Resolves the relocations of the code, and fills in the stubs."""
        for index, (part, start) in self.homes.items():
            self._apply(image, part, start, self._relocations(index))
        stub, count = len(self.machine.stub), len(self.stubs)
        for at, kind, addend in self.machine.stub_relocations:
            rows = np.zeros(count, elf.RELOCATION)
            rows["offset"], rows["kind"], rows["addend"] = at + stub * np.arange(count), kind, addend
            rows["symbol"] = self.stubs
            self._apply(image, self.plt, 0, rows)

    def _apply(self, image: np.ndarray, part: _Part, start: int, rows: np.ndarray) -> None:
        for number in set(rows["kind"].tolist()):
            kind, chosen = self._kind(number), rows[rows["kind"] == number]
            offsets = chosen["offset"].astype(np.int64) + start
            if offsets.size and not (offsets.min() >= 0 and offsets.max() + 4 <= part.size):
                raise CompileError(f"a relocation of {part.name} lies outside of it")
            to = {"symbol": self.addresses, "stub": self.stub_addresses, "slot": self.slot_addresses}[kind.via]
            values = to[chosen["symbol"]] + chosen["addend"]
            places = part.address + offsets
            if kind.base == "place":
                values = values - places
            elif kind.base == "page":
                values = (values & ~0xFFF) - (places & ~0xFFF)
            kind.field(image, part.offset + offsets, values)

    # The file

    def _finish(self, image: bytes) -> bytes:
        """Appends what is not loaded: all symbols, for debuggers and profilers, and the table of sections."""
        symtab, strtab = _Part(".symtab", elf.SHT_SYMTAB, 0), _Part(".strtab", elf.SHT_STRTAB, 0, alignment=1)
        names = _Part(".shstrtab", elf.SHT_STRTAB, 0, alignment=1)
        parts = [*self._parts(), symtab, strtab, names]
        named = [s for s in self.source.symbols if s.name and s.section in self.homes and s.type != elf.STT_SECTION]
        named.sort(key=lambda symbol: symbol.binding != elf.STB_LOCAL)
        strings, section_names = _Strings([s.name for s in named]), _Strings([part.name for part in parts])
        numbers = _numbers(parts)
        symtab.hold(_rows([(0,) * 6, *(self._row(s, strings, numbers) for s in named)], elf.SYMBOL), 24)
        symtab.link, symtab.info = strtab, 1 + sum(s.binding == elf.STB_LOCAL for s in named)
        strtab.hold(strings.data)
        names.hold(section_names.data)
        data = bytearray(image)
        for part in (symtab, strtab, names):
            data += bytes(-len(data) % part.alignment)
            part.offset = len(data)
            data += part.data
        data += bytes(-len(data) % 8)
        rows = [
            (section_names[p.name], p.type, p.flags, p.address, p.offset, p.size,
             numbers[p.link] if p.link else 0, p.info, p.alignment, p.entry_size)
            for p in parts
        ]  # fmt: skip
        table = _rows([(0,) * 10, *rows], elf.SECTION)
        segments = self._segment_rows()
        header = (
            elf.IDENT, elf.ET_DYN, self.source.machine, 1, 0, elf.HEADER.itemsize, len(data), 0, elf.HEADER.itemsize,
            elf.SEGMENT.itemsize, len(segments), elf.SECTION.itemsize, len(rows) + 1, numbers[names],
        )  # fmt: skip
        start = _rows([header], elf.HEADER) + _rows(segments, elf.SEGMENT)
        data[: len(start)] = start
        return bytes(data + table)

    def _segment_rows(self) -> list[tuple[int, ...]]:
        """Makes the program headers: what is mapped, with which rights, and where the dynamic linker finds its
        table."""
        page, rows, table = self.machine.page, [], self.dynamic
        written = table.size + self.got.size  # protected afterwards, in whole pages
        written += -(table.address + written) % page
        for number, (flags, parts) in enumerate(self.segments):
            first, last = parts[0], parts[-1]
            offset, address = (first.offset, first.address) if number else (0, 0)
            end = last.offset if last.type == NOBITS else last.offset + last.size
            # What is protected must be mapped, even where pages are smaller than the largest ones of the machine.
            size = written if first is table else last.address + last.size - address
            rows.append((elf.PT_LOAD, flags, offset, address, address, end - offset, size, page))
        where = (table.offset, table.address, table.address)
        rows.append((elf.PT_DYNAMIC, elf.PF_R | elf.PF_W, *where, table.size, table.size, 8))
        rows.append((elf.PT_GNU_RELRO, elf.PF_R, *where, table.size + self.got.size, written, 1))
        rows.append((elf.PT_GNU_STACK, elf.PF_R | elf.PF_W, 0, 0, 0, 0, 0, 16))
        return rows


class _Strings:
    """A table of strings, each once; the first is empty."""

    def __init__(self, strings: Sequence[str]):
        self.offsets = {"": 0}
        data = bytearray(1)
        for string in strings:
            if string not in self.offsets:
                self.offsets[string] = len(data)
                data += string.encode() + b"\0"
        self.data = bytes(data)

    def __getitem__(self, string: str) -> int:
        return self.offsets[string]


def _numbers(parts: list[_Part]) -> dict[_Part, int]:
    """Returns the index of each section; the first index belongs to none."""
    return {part: number for number, part in enumerate(parts, 1)}


def _rows(rows: Sequence[tuple], kind: np.dtype) -> bytes:
    return np.array(list(rows), kind).tobytes()


def _hash_table(names: Sequence[str]) -> bytes:
    """Makes the System V hash table of symbols 1, 2, ... with these names: buckets, each with a chain."""
    buckets = np.zeros(max(1, len(names)), "<u4")
    chains = np.zeros(len(names) + 1, "<u4")
    for index, name in enumerate(names, 1):
        bucket = _hash(name) % len(buckets)
        chains[index], buckets[bucket] = buckets[bucket], index
    return np.array([len(buckets), len(chains)], "<u4").tobytes() + buckets.tobytes() + chains.tobytes()


def _hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value
