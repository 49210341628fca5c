"""The results as a table, as the page `docs/performance.md`, and as the ratios with which later runs are compared (the
folder `kept`, with a file for each processor)."""

from __future__ import annotations

import json
import math
import platform
import re
import statistics
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.table import Table

from benchmarks.turns import Measured

KEPT = Path(__file__).parent / "kept"
TOLERATED = 0.9
"""A row is a loss if its ratio is below this part of the kept one."""
PACKAGES = "jaxlib", "torch", "tensorflow_cpu", "onnxruntime", "numpy", "scipy", "llvmlite"
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}
"""The vector instructions that tell machines apart, by their flags in `/proc/cpuinfo`: the widest first."""
COLUMNS = "row", "threads", "ours", "best peer", "ratio", "all ratios", "share of peak"


def cells(row: Measured) -> tuple[str, ...]:
    """Returns a row's figures for COLUMNS."""
    share = f"{row.gflops / row.peak:.0%}" if row.gflops and row.peak else ""
    others = ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in sorted(row.ratios.items(), key=lambda item: item[1]))
    return row.name, str(row.threads), duration(row.seconds["trivium"]), row.best, f"{row.ratio:.2f}", others, share


def duration(seconds: float) -> str:
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def geomean(rows: Iterable[Measured]) -> float:
    """Returns the geometric mean of the ratios to the best peers."""
    return math.exp(statistics.fmean(math.log(row.ratio) for row in rows))


def table(rows: Sequence[Measured]) -> Table:
    made = Table(*COLUMNS, caption=summary(rows))
    for row in rows:
        made.add_row(*cells(row))
    return made


def summary(rows: Sequence[Measured]) -> str:
    if not rows:
        return "no rows"
    behind = sum(row.ratio < 1 for row in rows)
    return f"geometric mean {geomean(rows):.2f} over {len(rows)} rows, {behind} of them below 1"


def keep(rows: Iterable[Measured]) -> None:
    """Replaces the kept figures of these rows on this processor. Those of other rows stay, if the contenders' versions
    are the same."""
    here = machine()
    path = path_of(here["processor"])
    found = {key(row): row for row in (kept(path) if path.exists() and machine_of(path) == here else ())}
    found |= {key(row): row for row in rows}
    path.write_text(json.dumps({"machine": here, "rows": [row.data() for row in found.values()]}, indent=1) + "\n")


def path_of(processor: str) -> Path:
    """Returns the file of a processor's figures, which may not exist."""
    return KEPT / f"{re.sub('[^a-z0-9]+', '-', processor.lower())}.json"


def kept(path: Path) -> list[Measured]:
    return [Measured(**row) for row in json.loads(path.read_text())["rows"]]


def machine_of(path: Path) -> dict[str, str]:
    return json.loads(path.read_text())["machine"]


def key(row: Measured) -> tuple[str, str, int]:
    return row.family, row.name, row.threads


def losses(rows: Iterable[Measured], before: Iterable[Measured]) -> list[str]:
    """Returns the rows whose ratio to the same peer fell by more than is tolerated."""
    old = {key(row): row for row in before}
    found = []
    for row in rows:
        then = old.get(key(row))
        if then and row.ratios[then.best] < TOLERATED * then.ratio:
            found.append(f"{row.name} {row.ratios[then.best]:.2f}, was {then.ratio:.2f} against {then.best}")
    return found


def machine() -> dict[str, str]:
    """Returns what the figures depend on: the processor and the versions of the contenders."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    found = dict(line.replace("\t", "").split(": ", 1) for line in lines if ": " in line)
    model = f"{found.get('model name', platform.machine())}, family {found.get('cpu family')}, model {found['model']}"
    # A virtual machine may hide the wide vectors of a processor.
    vectors = next((name for flag, name in VECTORS.items() if flag in found.get("flags", "").split()), "SSE")
    return {"processor": f"{model}, {vectors}", **{name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def performance_page() -> str:
    """Returns `docs/performance.md`, from the kept figures."""
    lines = [
        "# Performance",
        "",
        "This page is generated from `benchmarks/kept` by `python -m docs.generate`. `python -m benchmarks --keep` "
        "measures the figures again; [its README](../benchmarks/README.md) describes the method.",
        "",
        "A ratio is a peer's time divided by Trivium's, the median over consecutive samples: above 1, Trivium is "
        "faster.",
    ]
    for path in sorted(KEPT.glob("*.json")):
        lines += _on_one_processor(machine_of(path), kept(path))
    return "\n".join(lines) + "\n"


def _on_one_processor(where: dict[str, str], rows: Sequence[Measured]) -> list[str]:
    contenders = ", ".join(f"{name} {text}" for name, text in where.items() if name != "processor")
    lines = ["", f"## {where['processor']}", "", f"{contenders}. Over the best peers: {summary(rows)}."]
    for family in dict.fromkeys(row.family for row in rows):
        lines += ["", f"### {family.capitalize()}", "", line(COLUMNS), line(["---"] * len(COLUMNS))]
        lines += [line(cells(row)) for row in rows if row.family == family]
    return lines


def line(cells: Iterable[str]) -> str:
    """Returns cells as a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"
