"""Runs the rows of a benchmark in separate processes: a kernel that hangs, or that leaves the GPU in an error, ends its
own row only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The lines that a process has printed, and why it failed; empty if it did not."""

    lines: list[str]
    failure: str = ""


def apart(arguments: Sequence[str], limit: float) -> Outcome:
    """Runs Python with these arguments, for `limit` seconds at most. Everything that it has started ends with it."""
    command = [sys.executable, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        try:
            printed, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            return Outcome(printed.splitlines(), f"it did not end in {limit:g} s")
    if process.returncode == 0:
        return Outcome(printed.splitlines())
    last = next((line for line in reversed(errors.splitlines()) if line.strip()), "")
    return Outcome(printed.splitlines(), last or f"its process ended with the code {process.returncode}")
