"""The page of memory: what a row and its summary say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import memory_report
from benchmarks.memory_report import cells, keep, memory_page


def figures(planned: int, xla: int) -> dict[str, dict[str, int]]:
    return {"trivium": {"planned": planned, "resident": 3_000_000}, "xla": {"planned": xla, "resident": -1}}


def test_rows() -> None:
    assert cells("step", figures(1_500_000, 3_000_000)) == ("step", "1.50", "3.00", "0.50", "3.00", "0.00")
    assert cells("none", figures(0, 0))[3] == "1.00"
    assert cells("some", figures(1, 0))[3] == "inf"


def test_kept_figures_are_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_report, "MEMORY", tmp_path)
    keep({"one": figures(1, 2), "two": figures(1, 2)})
    keep({"two": figures(4, 2)})
    (path,) = tmp_path.iterdir()
    assert list(json.loads(path.read_text())["rows"]) == ["one", "two"]
    assert "Of 2 programs, 1 needs more than XLA plans: two." in memory_page()
