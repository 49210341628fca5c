"""The checks of `device_checks.py` with an older JAX, which `TRIVIUM_OLDER_JAX` names by the Python of its environment:
`make older-jax` makes one and runs this."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.jax


def test_checks_with_an_older_jax() -> None:
    python = os.environ.get("TRIVIUM_OLDER_JAX")
    if python is None:
        pytest.skip("TRIVIUM_OLDER_JAX does not name a Python with an older JAX")
    variables = {**os.environ, "JAX_PLATFORMS": "trivium", "TRIVIUM_NUM_DEVICES": "2"}
    # Not resolved: a link to Python tells it the environment by its own place.
    command = [Path(python).absolute(), "-m", "tests.jax.device_checks"]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=570)
    checks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(checks) > 30, done.stderr
    failures = [f"{check['name']}: {check['failure']}" for check in checks if check["failure"]]
    assert not failures, "\n".join(failures)
