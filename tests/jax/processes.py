"""Python in a process of its own, in which a device of Trivium's is JAX's platform."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: str, python: str = sys.executable, **environment: str) -> subprocess.CompletedProcess:
    """Runs `python` with the arguments, and with what `environment` has instead of this process's variables."""
    variables = {**os.environ, "JAX_PLATFORMS": "trivium", "TRIVIUM_NUM_DEVICES": "", **environment}
    return subprocess.run([python, *arguments], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=570)


def failures(*names: str, python: str = sys.executable, **environment: str) -> dict[str, str]:
    """Runs the checks of `device_checks.py`, or those named, and returns the failure of each, or "" for none."""
    return told(run("-m", "tests.jax.device_checks", *names, python=python, **environment))


def told(done: subprocess.CompletedProcess) -> dict[str, str]:
    """Returns the failures that a process with checks has printed."""
    assert done.returncode == 0, done.stderr
    checks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {check["name"]: check["failure"] for check in checks}
