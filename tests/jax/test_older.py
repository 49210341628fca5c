"""The checks of `device_checks.py` with an older JAX, which `TRIVIUM_OLDER_JAX` names by the Python of its environment:
`make older-jax` makes one and runs this."""

import os
from pathlib import Path

import pytest

from tests.jax import processes

pytestmark = pytest.mark.jax


def test_checks_with_an_older_jax() -> None:
    python = os.environ.get("TRIVIUM_OLDER_JAX")
    if python is None:
        pytest.skip("TRIVIUM_OLDER_JAX does not name a Python with an older JAX")
    # Not resolved: a link to Python tells it the environment by its own place.
    failures = processes.failures(python=str(Path(python).absolute()), TRIVIUM_NUM_DEVICES="2")
    assert len(failures) > 30
    assert not any(failures.values()), "\n".join(f"{name}: {failure}" for name, failure in failures.items() if failure)
