"""Reads artifacts back with MLIR: programs of StableHLO's own tests, each written for every version that JAX's MLIR
reads, must equal what MLIR makes of their text. Where a version cannot express a program, MLIR must refuse to write it
as well.

    TRIVIUM_CONFORMANCE=... python -m tests.ir.bytecode.read_back [EVERY]

reads every `EVERY`th program (by default all) and prints the outcomes; all take a minute."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.ir.bytecode import mlir
from tests.ir.vectors import FOLDERS, texts
from trivium.ir.bytecode import serialize
from trivium.ir.bytecode.portable import legalized
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.text import parse, print_module

VERSIONS = ("0.9.0", "0.14.0", "0.20.0", "1.0.0", "1.5.0", "1.9.0", "1.13.7", "1.17.0")
TEST_DIALECTS = ("check.", "interpreter.")


def programs(conformance: Path, every: int = 1, containing: str | re.Pattern[str] = "") -> Iterator[tuple[str, Module]]:
    """Yields every `every`th program with its name, without the ops of the test dialects, which MLIR does not know.
    Programs that still contain such ops are left out, and those of `FOLDERS` whose text does not contain the
    expression."""
    for folder in (*FOLDERS, "interpret", "interpret/chlo"):
        for name, text in list(texts(conformance, folder))[::every]:
            if folder in FOLDERS and not re.search(containing, text):
                continue
            module = parse(text, name)
            for op in [op for op in module.walk() if op.NAME.startswith("check.")]:
                op.erase()
            if not any(op.NAME.startswith(TEST_DIALECTS) for op in module.walk()):
                yield f"{folder}/{name}", module


def read_back(module: Module, *versions: str) -> dict[str, str]:
    """Returns the outcomes of writing a program for each version: "equal", "refused", or a description of the error."""
    text = print_module(legalized(module))
    expected = str(mlir.parsed(text))
    return {version: _outcome(module, version, text, expected) for version in versions}


def _outcome(module: Module, version: str, text: str, expected: str) -> str:
    try:
        data = serialize(module, version)
    except Error as error:
        return f"refused, MLIR writes it: {error}" if _through_mlir(text, version) else "refused"
    try:
        found = mlir.text_of(data)
    except Exception as error:
        return f"MLIR cannot read it: {error}"
    # Artifacts do not distinguish an attribute with its default value from an absent one.
    return "equal" if found == expected or found == _through_mlir(text, version) else "differs"


def _through_mlir(text: str, version: str) -> str | None:
    """Returns what MLIR reads from the artifact that it writes itself, if it can."""
    from jaxlib.mlir.dialects import stablehlo

    try:
        return mlir.text_of(stablehlo.serialize_portable_artifact(mlir.parsed(text), version))
    except ValueError:
        return None


def main(every: int) -> None:
    outcomes: Counter[tuple[str, str]] = Counter()
    count = 0
    for name, module in programs(Path(os.environ["TRIVIUM_CONFORMANCE"]), every):
        count += 1
        for version, outcome in read_back(module, *VERSIONS).items():
            outcomes[version, outcome.partition(":")[0]] += 1
            if outcome not in ("equal", "refused"):
                print(f"{name} {version}: {outcome}")
    print(f"{count} programs")
    for (version, outcome), number in sorted(outcomes.items()):
        print(f"{version:8} {outcome}: {number}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
