"""The results as a table, as the page `docs/performance.md`, and as the ratios with which later runs are compared
(`kept.json`)."""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.table import Table

from benchmarks.turns import Measured

KEPT = Path(__file__).parent / "kept.json"
TOLERATED = 0.9
"""A row is a loss if its ratio is below this part of the kept one."""
PACKAGES = "jaxlib", "torch", "tensorflow_cpu", "onnxruntime", "numpy", "scipy", "llvmlite"
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
    """Replaces the kept figures of these rows. Those of other rows stay, if they were measured on this machine."""
    old = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    found = {key(row): row for row in (kept() if old.get("machine") == machine() else ())}
    found |= {key(row): row for row in rows}
    KEPT.write_text(json.dumps({"machine": machine(), "rows": [row.data() for row in found.values()]}, indent=1) + "\n")


def kept() -> list[Measured]:
    return [Measured(**row) for row in json.loads(KEPT.read_text())["rows"]]


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
    return {"processor": model, **{name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def performance_page() -> str:
    """Returns `docs/performance.md`, from the kept figures."""
    rows, where = kept(), json.loads(KEPT.read_text())["machine"]
    contenders = ", ".join(f"{name} {text}" for name, text in where.items() if name != "processor")
    lines = [
        "# Performance",
        "",
        "Generated from `benchmarks/kept.json` by `python -m docs.generate`; `python -m benchmarks --keep` measures it "
        "again, and [its README](../benchmarks/README.md) tells how.",
        "",
        f"Processor: {where['processor']}. {contenders}.",
        "",
        "A ratio is a peer's time over Trivium's, the median of neighbours that took turns: above 1, Trivium is "
        f"faster. Over the best peers: {summary(rows)}.",
    ]
    for family in dict.fromkeys(row.family for row in rows):
        lines += ["", f"## {family.capitalize()}", "", _line(COLUMNS), _line(["---"] * len(COLUMNS))]
        lines += [_line(cells(row)) for row in rows if row.family == family]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
