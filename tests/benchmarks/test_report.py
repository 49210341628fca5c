"""Figures are kept for each processor, and for one set of versions of the contenders."""

from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.turns import Measured


def row(name: str, ratio: float) -> Measured:
    return Measured("tests", name, 1, {"trivium": 1.0, "peer": ratio}, {"peer": ratio})


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """The machine on which rows seem to be measured."""
    found = {"processor": "One, family 1", "torch": "1"}
    monkeypatch.setattr(report, "KEPT", tmp_path)
    monkeypatch.setattr(report, "machine", lambda: dict(found))
    return found


def test_rows_of_other_runs_stay(here: dict[str, str]) -> None:
    report.keep([row("a", 1.0), row("b", 1.0)])
    report.keep([row("b", 2.0)])
    assert [(each.name, each.ratio) for each in report.kept(report.path_of(here["processor"]))] == [("a", 1), ("b", 2)]


def test_rows_of_other_versions_go(here: dict[str, str]) -> None:
    report.keep([row("a", 1.0)])
    here["torch"] = "2"
    report.keep([row("b", 1.0)])
    assert [each.name for each in report.kept(report.path_of(here["processor"]))] == ["b"]


def test_each_processor_has_a_part_of_the_page(here: dict[str, str]) -> None:
    report.keep([row("a", 1.0)])
    here["processor"] = "Two, family 2"
    report.keep([row("b", 4.0)])
    page = report.performance_page()
    first, second = page.index("## One, family 1"), page.index("## Two, family 2")
    assert first < page.index("| a |") < second < page.index("| b |")
    assert "geometric mean 4.00 over 1 rows" in page[second:]
