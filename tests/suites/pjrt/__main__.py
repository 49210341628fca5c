"""Every record of every op, and StableHLO's own test programs, through the table of C functions of a PJRT plugin, ours
or another: `python -m tests.suites.pjrt [plugin] [--vectors FOLDER]`. Results must be those of the interpreter. Prints
what differs, and ends with the number of differences."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import trivium
from tests.compiler.lowering.coverage import COMPILED, expect_equal
from tests.compiler.test_conformance import TRUE_TRANSFORMS, with_arguments
from tests.ir import checks
from tests.ir.test_conformance import WRONG


@click.command()
@click.argument("plugin", default="trivium")
@click.option("--vectors", type=click.Path(path_type=Path), default=os.environ.get("TRIVIUM_CONFORMANCE"))
@click.option("--every", default=1, help="Run only every N-th of them.")
def main(plugin: str, vectors: Path | None, every: int) -> None:
    """Runs all programs."""
    failed, count = [], 0
    for outcomes in (records(plugin, every), programs(plugin, vectors, every) if vectors else ()):
        for name, failure in outcomes:
            count += 1
            if failure:
                failed.append(name)
                print(f"{name}: {failure}", flush=True)
    print(f"{count} programs, {len(failed)} differ")
    sys.exit(min(100, len(failed)))


def records(plugin: str, every: int) -> Iterator[tuple[str, str]]:
    """Yields the name of each record, and what is wrong with its results, if anything."""
    for record in COMPILED[::every]:
        try:
            module = record.module()
            expect_equal(record, module, trivium.compile(module, device=plugin)(*record.arrays))
        except Exception as failure:
            yield str(record), _first_line(failure)
        else:
            yield str(record), ""


def programs(plugin: str, vectors: Path, every: int) -> Iterator[tuple[str, str]]:
    """The same for StableHLO's programs, which check their own results."""
    checks.register()
    for path in sorted((vectors / "stablehlo/testdata").glob("*.mlir"))[::every]:
        if path.stem in WRONG or path.stem in TRUE_TRANSFORMS:
            continue
        failure = ""
        for text in re.split(r"^// -----$", path.read_text(), flags=re.MULTILINE):
            try:
                module, arrays = with_arguments(trivium.parse(text))
                trivium.compile(module, device=plugin)(*arrays)
            except Exception as error:
                failure = _first_line(error)
        yield path.stem, failure


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0]}"


if __name__ == "__main__":
    main()
