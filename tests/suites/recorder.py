"""A plugin of pytest that runs a part of a framework's own tests and writes what becomes of each, line by line, so that
nothing is lost when the process dies. `TRIVIUM_SUITE` is the path of a JSON file with its settings."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import TypedDict

import pytest


class Settings(TypedDict):
    """`log`: the file to write. `share`: of the tests, drawn by `seed` from their names. `tests`: if any, only these.
    `left_out`: what a process before this one has begun."""

    log: str
    share: float
    seed: int
    tests: list[str] | None
    left_out: list[str]


LONGEST_REASON = 300


def drawn(test: str, share: float, seed: int) -> bool:
    """Whether a test is in the sample: the same on each platform, and in each process."""
    return zlib.crc32(f"{seed} {test}".encode()) < share * 2**32


class Recorder:
    def __init__(self, settings: Settings):
        self._settings = settings
        self._log = Path(settings["log"])
        self._outcome, self._reason, self._seconds = "passed", "", 0.0

    def _write(self, **line: object) -> None:
        with self._log.open("a") as log:
            log.write(json.dumps(line) + "\n")

    def _chosen(self, tests: set[str]) -> set[str]:
        if self._settings["tests"] is not None:
            return tests & set(self._settings["tests"])
        return {test for test in tests if drawn(test, self._settings["share"], self._settings["seed"])}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = self._chosen({item.nodeid for item in items})
        self._write(collected=len(items), chosen=len(chosen))
        left = chosen - set(self._settings["left_out"])
        items[:] = [item for item in items if item.nodeid in left]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._outcome, self._reason, self._seconds = "passed", "", 0.0
        self._write(started=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        if report.outcome != "passed" and self._outcome != "failed":
            self._outcome, self._reason = report.outcome, reason(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write(test=nodeid, outcome=self._outcome, reason=self._reason, seconds=round(self._seconds, 3))


def reason(report: pytest.TestReport) -> str:
    """The first line of what a test was skipped or failed for."""
    if isinstance(report.longrepr, tuple):
        text = report.longrepr[2].removeprefix("Skipped: ")
    else:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash is not None else str(report.longrepr)
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    first = " ".join(lines[:2]) if lines and lines[0].endswith(":") else "".join(lines[:1])
    return first[:LONGEST_REASON]


def pytest_configure(config: pytest.Config) -> None:
    settings: Settings = json.loads(Path(os.environ["TRIVIUM_SUITE"]).read_text())
    config.pluginmanager.register(Recorder(settings))
