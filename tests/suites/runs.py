"""Runs a file of a framework's own tests in processes of their own. A test that ends its process, or that gives no
sign for too long, is named and counted, and the others go on in a new process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

FINISHED = (0, 1, 5)
"""Pytest's exit codes of a process that ran what it had: all passed, some failed, there was none."""

STEP = 0.5
"""Seconds between two looks at a process."""

START = 900
"""Seconds until the tests of a file are collected, at least: on a busy machine, imports take minutes."""

OUT_OF_TIME, NO_SIGN = "out of time", "no sign"


class Outcome(NamedTuple):
    """`kind`: passed, failed, skipped, crashed, or hung."""

    kind: str
    reason: str
    seconds: float


@dataclass(frozen=True)
class Limits:
    """In seconds of wall time: for one test, and for a file. Tests of a file that are not reached have no outcome."""

    test: float
    file: float


@dataclass
class Record:
    """What is known of a file. `collected`: tests in it; `chosen`: of these, those that were to run."""

    collected: int = 0
    chosen: int = 0
    outcomes: dict[str, Outcome] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """Which tests of a file are run: a share of them, drawn by a seed from their names, or those that are named."""

    share: float = 1.0
    seed: int = 0
    tests: Sequence[str] | None = None


@dataclass(frozen=True)
class File:
    """A file of the tests in a checkout, and the environment that it is run in."""

    checkout: Path
    name: str
    environment: Mapping[str, str]


def run(file: File, choice: Choice, limits: Limits) -> Record:
    """The outcomes of the chosen tests of a file."""
    record = Record()
    end = time.monotonic() + limits.file
    with TemporaryDirectory() as folder:
        while time.monotonic() < end:
            ended = _process(file, _settings(choice, record, Path(folder)), limits.test, end)
            running = _read(Path(folder, "log"), record)
            if not ended or ended == OUT_OF_TIME:
                break
            if running is None and 0 < record.chosen <= len(record.outcomes):
                break  # it hung while it ended
            if running is None:
                raise RuntimeError(f"{file.name}: no test began: {ended}")
            record.outcomes[running] = Outcome("hung" if ended.startswith(NO_SIGN) else "crashed", ended, 0.0)
    return record


def _settings(choice: Choice, record: Record, folder: Path) -> Path:
    """The settings of the recorder, for what is left of a file."""
    log, settings = folder / "log", folder / "settings"
    log.write_text("")
    tests = None if choice.tests is None else list(choice.tests)
    content = {"share": choice.share, "seed": choice.seed, "tests": tests, "left_out": list(record.outcomes)}
    settings.write_text(json.dumps({"log": str(log), **content}))
    return settings


def _process(file: File, settings: Path, patience: float, end: float) -> str:
    """Runs what is left of a file. Gives why the process ended before its time, or nothing."""
    variables = {**os.environ, **file.environment, "TRIVIUM_SUITE": str(settings), "PYTHONPATH": str(ROOT)}
    options = ["-p", "tests.suites.recorder", "-p", "no:cacheprovider", "-q", "--tb=short"]
    command = [sys.executable, "-X", "faulthandler", "-m", "pytest", *options, file.name]
    written = settings.with_name("output")
    with written.open("w") as output:
        process = subprocess.Popen(
            command, cwd=file.checkout, env=variables, stdout=output, stderr=output, start_new_session=True
        )
        stopped = _wait(process, settings.with_name("log"), patience, end)
    if stopped or process.returncode in FINISHED:
        return stopped
    return f"ended with {_ending(process.returncode)}: {_last_words(written.read_text(errors='replace'))}"


def _wait(process: subprocess.Popen, log: Path, patience: float, end: float) -> str:
    size, seen = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(STEP)
        now = time.monotonic()
        if log.stat().st_size != size:
            size, seen = log.stat().st_size, now
        limit = patience if size else max(patience, START)
        stopped = OUT_OF_TIME if now > end else f"{NO_SIGN} in {limit:.0f} s" if now - seen > limit else ""
        if stopped:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return stopped
    return ""


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _last_words(output: str) -> str:
    """The line of a process's output that tells best why it died."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = [line for line in lines if "Fatal" in line or "Check failed" in line or "terminate called" in line]
    return (told or lines or ["no output"])[-1]


def _read(log: Path, record: Record) -> str | None:
    """Adds what the log has; gives the test that was begun and not ended."""
    running = None
    for text in log.read_text().splitlines():
        line = json.loads(text)
        if "collected" in line:
            record.collected, record.chosen = line["collected"], line["chosen"]
        elif "started" in line:
            running = line["started"]
        else:
            running = None
            record.outcomes[line["test"]] = Outcome(line["outcome"], line["reason"], line["seconds"])
    return running
