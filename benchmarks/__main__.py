"""Measures Trivium against its peers; see README.md in this folder.

python -m benchmarks [--threads 1 --threads 2] [--family kernels] [--seconds 3] [--json out/rows.json] [name ...]
python -m benchmarks --quick        # two minutes: fails on a loss of over 10 % against the ratios that are kept"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from benchmarks.report import keep, kept, losses, machine, path_of, table
from benchmarks.row import FAMILIES
from benchmarks.turns import Measured, measure

MARK = "measured: "
"""The prefix of the lines of a family's process that the parent reads."""


def idle_processors(count: int) -> set[int]:
    """Returns the processors with the lowest load at the moment: each process is bound to as many as it has threads."""

    def idle() -> dict[int, int]:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines() if line[:3] == "cpu"]
        return {int(line[0][3:]): int(line[4]) for line in lines if line[0] != "cpu"}

    before = idle()
    time.sleep(0.3)
    after = idle()
    allowed = os.sched_getaffinity(0)
    return set(sorted(allowed, key=lambda processor: before[processor] - after[processor])[:count])


def in_process(family: str, threads: int, options: list[str], names: tuple[str, ...]) -> Iterator[Measured]:
    """Yields the rows of a family as a new process measures them, each as soon as it is measured."""
    environment = os.environ | {"TRIVIUM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "1"}
    command = [sys.executable, "-m", "benchmarks", "--inside", "--family", family, "--threads", str(threads), *options]
    with subprocess.Popen([*command, *names], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(MARK):
                yield Measured(**json.loads(line[len(MARK) :]))
    if process.returncode:
        raise click.ClickException(f"the process of {family!r} ended with {process.returncode}")


def inside(family: str, threads: int, seconds: float, quick: bool, names: tuple[str, ...]) -> None:
    """Measures a family's rows in this process."""
    os.sched_setaffinity(0, idle_processors(threads))
    for row in importlib.import_module(FAMILIES[family]).ROWS:
        if (row.quick or not quick) and (not names or any(name in row.name for name in names)):
            print(MARK + json.dumps(measure(family, row, threads, seconds).data()), flush=True)


@click.command()
@click.option("--family", "families", multiple=True, type=click.Choice(list(FAMILIES)), help="Only these.")
@click.option("--threads", multiple=True, type=int, default=(1,), show_default=True, help="Of each contender.")
@click.option("--seconds", type=float, help="For each row; 3, or 1 with --quick.")
@click.option("--quick", is_flag=True, help="Only a few rows, compared with the ratios that are kept.")
@click.option("--keep", "keeping", is_flag=True, help="Keep what is measured as what --quick compares with.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write all figures to this file.")
@click.option("--inside", "here", is_flag=True, hidden=True, help="Measure in this process, and print the figures.")
@click.argument("names", nargs=-1)
def main(
    families: tuple[str, ...],
    threads: tuple[int, ...],
    seconds: float | None,
    quick: bool,
    keeping: bool,
    path: Path | None,
    here: bool,
    names: tuple[str, ...],
) -> None:
    """Measures the rows whose name contains one of NAMES, or all."""
    seconds = seconds or (1.0 if quick else 3.0)
    if here:
        inside(families[0], threads[0], seconds, quick, names)
        return
    before = path_of(machine()["processor"])
    if quick and not before.exists():
        raise click.ClickException(f"{before} does not exist: `python -m benchmarks --keep` measures this processor")
    options = ["--seconds", str(seconds), *(["--quick"] if quick else [])]
    found = []
    for count in threads:
        for family in families or FAMILIES:
            for row in in_process(family, count, options, names):
                print(f"{row.threads} {row.family}: {row.name}: {row.ratio:.2f} ({row.best})", file=sys.stderr)
                found.append(row)
                if keeping:
                    keep([row])
    Console(width=150).print(table(found))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([row.data() for row in found], indent=2))
    if quick and (lost := losses(found, kept(before))):
        raise click.ClickException(f"slower than in {before.name}, by over 10 %: " + "; ".join(lost))


if __name__ == "__main__":
    main()
