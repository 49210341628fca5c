"""Checks a PJRT plugin, ours or any other, through its table of C functions: `python -m trivium.pjrt.check plugin.so`,
or the name of a plugin that `trivium devices` lists. A child process runs the checks; if the plugin ends it, the check
that was running has failed, and another child runs those that are left. The exit code is the number of failed checks,
at most 100.

With `--programs FOLDER`, every program (`.mlir`, `.mlirbc`) in the folder is also compiled by the plugin, run on random
arguments, and compared with Trivium's interpreter."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trivium.ir.errors import Error

PASSED, FAILED, ABSENT = "passed", "failed", "not implemented"
SUITES = ("records", "objects", "arrays", "executions", "transfers", "promises", "topologies", "extensions")
"""The modules that declare checks, in the order in which these are run."""

PATIENCE = 600
"""Seconds that all checks of one process may take."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check."""

    subject: str
    name: str
    kind: str
    reason: str = ""


@click.command()
@click.argument("plugin")
@click.option("--programs", type=click.Path(path_type=Path, exists=True, file_okay=False), help="A folder of programs.")
@click.option("--child", type=int, help="For this command's own use: run the checks from a number on, in this process.")
@click.option("--verbose", is_flag=True, help="Also list the checks that pass.")
def main(plugin: str, programs: Path | None, child: int | None, verbose: bool) -> None:
    """Checks a PJRT plugin: the path of its shared library, or the name under which `trivium devices` lists it."""
    if child is not None:
        _run(plugin, programs, child)
        return
    try:
        outcomes = list(check_plugin(plugin, programs))
    except Error as error:
        raise click.ClickException(str(error)) from None
    _print(outcomes, verbose)
    sys.exit(min(100, sum(outcome.kind == FAILED for outcome in outcomes)))


def check_plugin(plugin: str, programs: Path | None = None) -> Iterator[Outcome]:
    """Yields the outcomes of all checks. Raises an `Error` if the plugin cannot be loaded."""
    done = 0
    while True:
        command = [sys.executable, "-m", "trivium.pjrt.check", plugin, "--child", str(done)]
        command += ["--programs", str(programs)] if programs is not None else []
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            code, output, words = process.returncode, process.stdout, process.stderr
        except subprocess.TimeoutExpired as late:
            code, output, words = 1, (late.stdout or b"").decode(), f"it did not end in {PATIENCE} s"
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        if any("error" in line for line in lines):
            raise Error(lines[-1]["error"])
        found = [Outcome(**line) for line in lines if "kind" in line]
        yield from found
        done += len(found)
        if code == 0:
            return
        running = next((line for line in reversed(lines) if "kind" not in line), None)
        reason = signal.Signals(-code).name if code < 0 else (words.strip().splitlines() or [f"exit code {code}"])[-1]
        if running is None:
            raise Error(f"{plugin} aborted the process that loads it: {reason}")
        yield Outcome(running["subject"], running["name"], FAILED, f"the process ended: {reason}")
        done += 1


def _run(plugin: str, programs: Path | None, first: int) -> None:
    """Runs the checks from number `first` on, and prints lines of JSON: each check before it begins, and its
    outcome."""
    from trivium.backends.table.discovery import load_plugin
    from trivium.pjrt.kit import CHECKS, Check, Kit, NotImplementedByPlugin
    from trivium.pjrt.running import program_checks

    for suite in SUITES:
        importlib.import_module(f"trivium.pjrt.{suite}")
    try:
        kit = Kit(load_plugin(plugin))
    except Error as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    checks: Sequence[Check] = [*CHECKS, *(program_checks(programs) if programs is not None else ())]
    for check in checks[first:]:
        head = {"subject": check.subject, "name": check.name}
        print(json.dumps(head), flush=True)
        kind, reason = PASSED, ""
        try:
            check.run(kit)
        except NotImplementedByPlugin as absent:
            kind, reason = ABSENT, f"PJRT_{absent}"
        except Exception as failure:
            kind, reason = FAILED, str(failure) or repr(failure)
        print(json.dumps({**head, "kind": kind, "reason": reason}), flush=True)


def _print(outcomes: Sequence[Outcome], verbose: bool) -> None:
    table = Table("object", "check", "outcome", "reason")
    for outcome in outcomes:
        if verbose or outcome.kind != PASSED or outcome.subject != "program":
            table.add_row(outcome.subject, outcome.name, outcome.kind, escape(outcome.reason))
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table)
    counts = [f"{sum(outcome.kind == kind for outcome in outcomes)} {kind}" for kind in (PASSED, FAILED, ABSENT)]
    console.print(", ".join(counts))


if __name__ == "__main__":
    main()
