"""The figures of `peak_memory.py` as a table, and as the page `docs/memory.md`, from those that are kept for each
processor (the folder `kept/memory`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from rich.table import Table

from benchmarks.report import KEPT, line, machine, machine_of, path_of

MEMORY = KEPT / "memory"
COLUMNS = "program", "planned, MB", "XLA's", "ratio", "resident, MB", "XLA's"

Figures = Mapping[str, Mapping[str, int]]
"""Bytes by their kind (planned, resident), for each contender (trivium, xla)."""


def cells(name: str, figures: Figures) -> tuple[str, ...]:
    """Returns a program's figures for COLUMNS."""
    mine, other = figures["trivium"], figures["xla"]
    ratio = mine["planned"] / other["planned"] if other["planned"] else math.inf if mine["planned"] else 1.0
    planned, grown = ([_megabytes(of[kind]) for of in (mine, other)] for kind in ("planned", "resident"))
    return name, *planned, f"{ratio:.2f}", *grown


def _megabytes(nbytes: int) -> str:
    return f"{max(0, nbytes) / 1e6:.2f}"


def table(rows: Mapping[str, Figures]) -> Table:
    made = Table(*COLUMNS)
    for name, figures in rows.items():
        made.add_row(*cells(name, figures))
    return made


def keep(rows: Mapping[str, Figures]) -> None:
    """Replaces the kept figures of these programs on this processor. Those of others stay, if the contenders' versions
    are the same."""
    here = machine()
    path = MEMORY / path_of(here["processor"]).name
    before = json.loads(path.read_text())["rows"] if path.exists() and machine_of(path) == here else {}
    MEMORY.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": here, "rows": {**before, **rows}}, indent=1) + "\n")


def memory_page() -> str:
    """Returns `docs/memory.md`, from the kept figures."""
    lines = [
        "# Memory",
        "",
        "This page is generated from `benchmarks/kept/memory` by `python -m docs.generate`. `python -m "
        "benchmarks.peak_memory --keep` measures the figures again.",
        "",
        "It compares the memory that programs need beyond their arguments, results and constants with XLA's on its "
        "CPU platform, for the same StableHLO. Planned bytes are those of `memory_analysis()`: the temporaries of a "
        "run, with the workspaces of its kernels. XLA's plan has neither the workspaces of its kernels nor what its "
        "libraries allocate. Resident bytes are measured: by how much the process grows at most during a run, less "
        "the results. Some temporaries are in the memory of results that are not computed yet.",
    ]
    for path in sorted(MEMORY.glob("*.json")):
        rows = json.loads(path.read_text())["rows"]
        lines += ["", f"## {machine_of(path)['processor']}", "", _summary(rows), ""]
        lines += [line(COLUMNS), line(["---"] * len(COLUMNS)), *(line(cells(*row)) for row in rows.items())]
    return "\n".join(lines) + "\n"


def _summary(rows: Mapping[str, Figures]) -> str:
    above = [name for name, of in rows.items() if of["trivium"]["planned"] > of["xla"]["planned"]]
    verb = "needs" if len(above) == 1 else "need"
    return f"Of {len(rows)} programs, {len(above)} {verb} more than XLA plans{': ' if above else ''}{', '.join(above)}."
