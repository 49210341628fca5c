"""What mutations start from: the records of all ops as text and as artifacts of several versions, the kept fixtures,
and, where `TRIVIUM_CONFORMANCE` names them, StableHLO's own small programs and recorded artifacts."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import trivium
from tests.ir.ops.records import collect
from trivium.ir.bytecode import serialize
from trivium.ir.func import Module
from trivium.ir.text import parse, print_module

FIXTURES = Path(__file__).parents[1] / "ir" / "bytecode" / "fixtures"
VERSIONS = (None, "0.9.0", "0.12.0", "0.14.0", "1.9.0", "1.20.0")
LONGEST = 6000
"""Small seeds give more mutations a second, and no fewer kinds of them."""


@cache
def texts() -> list[str]:
    """Programs as text: pretty, generic, and with locations in turn."""
    found = []
    for number, module in enumerate(_records()):
        text = print_module(module, generic=number % 3 == 1)
        found.append(print_module(parse(text), locations=True) if number % 3 == 2 else text)
    return found + [path.read_text() for path in _files(FIXTURES, "*.mlir")] + list(_conformance_texts())


@cache
def artifacts() -> list[bytes]:
    """Programs as bytecode."""
    found = [path.read_bytes() for path in _files(FIXTURES, "*.mlirbc")]
    if folder := _conformance():
        found += [path.read_bytes() for path in _files(folder / "vhlo", "*.bc", 40_000)]
    modules = [*_records(), *filter(None, map(_parsed, _conformance_texts()))]
    for number, module in enumerate(modules):
        try:
            found.append(serialize(module, VERSIONS[number % len(VERSIONS)]))
        except trivium.Error:  # no artifact has it, or none so old
            continue
    return found


@cache
def _records() -> list[Module]:
    return [record.module() for record in collect()]


@cache
def _conformance_texts() -> tuple[str, ...]:
    folder = _conformance()
    if folder is None:
        return ()
    return tuple(
        path.read_text()
        for part, step in (("testdata", 12), ("testdata/quantized", 4), ("testdata/dynamic", 8), ("interpret", 1))
        for path in _files(folder / part, "*.mlir")[::step]
    )


def _parsed(text: str) -> Module | None:
    try:
        return parse(text)
    except trivium.Error:
        return None


def _conformance() -> Path | None:
    folder = os.environ.get("TRIVIUM_CONFORMANCE")
    return Path(folder) / "stablehlo" if folder else None


def _files(folder: Path, pattern: str, longest: int = LONGEST) -> list[Path]:
    return [path for path in sorted(folder.glob(pattern)) if path.stat().st_size <= longest]
