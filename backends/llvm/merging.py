"""Joins several object files to one, as a linker does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from trivium.backends.llvm import elf
from trivium.ir.errors import CompileError


def merge(objects: Sequence[elf.Object]) -> elf.Object:
    """Returns one object file with the sections of all. A name that one of them uses and another one defines refers to
    that definition; those that are hidden cannot be referred to afterwards."""
    if len({each.machine for each in objects}) != 1:
        raise CompileError(f"object files for {len({each.machine for each in objects})} machines cannot be linked")
    first_sections, first_symbols = (
        list(np.cumsum([0, *map(len, parts)])[:-1].tolist())
        for parts in ([each.sections for each in objects], [each.symbols for each in objects])
    )
    sections = [
        replace(section, index=base + section.index)
        for base, each in zip(first_sections, objects, strict=True)
        for section in each.sections
    ]
    symbols = [
        replace(symbol, section=base + symbol.section) if 0 < symbol.section < elf.SHN_LORESERVE else symbol
        for base, each in zip(first_sections, objects, strict=True)
        for symbol in each.symbols
    ]
    meant = np.array(list(_meant(symbols)), np.uint32)
    relocations = {}
    for section_base, symbol_base, each in zip(first_sections, first_symbols, objects, strict=True):
        for section, rows in each.relocations.items():
            if rows.size and int(rows["symbol"].max()) >= len(each.symbols):
                raise CompileError(f"a relocation is for symbol {rows['symbol'].max()} of {len(each.symbols)}")
            relocations[section_base + section] = rows = rows.copy()
            rows["symbol"] = meant[rows["symbol"] + symbol_base]
    local = [replace(s, binding=elf.STB_LOCAL) if s.hidden and s.section != elf.SHN_UNDEF else s for s in symbols]
    return elf.Object(objects[0].machine, sections, local, relocations)


def _meant(symbols: Sequence[elf.Symbol]) -> Iterator[int]:
    """Returns, for every symbol, the number of the one that it refers to: if it is undefined, the definition of its
    name, or else the first use of it."""
    known: dict[str, int] = {}
    for number, symbol in enumerate(symbols):
        if symbol.binding != elf.STB_LOCAL and symbol.section != elf.SHN_UNDEF:
            if symbol.name in known:
                raise CompileError(f"{symbol.name} is defined in two object files")
            known[symbol.name] = number
    for number, symbol in enumerate(symbols):
        is_use = symbol.section == elf.SHN_UNDEF and symbol.name
        yield known.setdefault(symbol.name, number) if is_use else number
