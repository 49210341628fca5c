"""Trivium as a device of JAX: the checks of `device_checks.py`, and what concerns whole processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.jax

jax = pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("optax")

from tests.jax.device_checks import CHECKS

ROOT = Path(__file__).parents[2]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Python in a process in which Trivium is the platform."""
    variables = {**os.environ, "JAX_PLATFORMS": "trivium", "TRIVIUM_NUM_DEVICES": "", **environment}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=570)


@pytest.fixture(scope="module")
def failures() -> dict[str, str]:
    done = run("-m", "tests.jax.device_checks", TRIVIUM_NUM_DEVICES="2")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {check["name"]: check["failure"] for check in found}


@pytest.mark.parametrize("name", [check.__name__ for check in CHECKS])
def test_check(name: str, failures: dict[str, str]) -> None:
    assert not failures[name], failures[name]


def test_the_default_platform_stays_what_it_was() -> None:
    done = run("-c", "import jax; print(jax.default_backend(), len(jax.devices('trivium')))", JAX_PLATFORMS="")
    assert done.stdout.split() == ["cpu", "1"], done.stderr
    assert "experimental" not in done.stderr


def test_devices_are_listed_without_the_compiler() -> None:
    script = "import jax, sys; jax.devices(); print('trivium.compiler' in sys.modules, 'llvmlite' in sys.modules)"
    assert run("-c", script).stdout.split() == ["False", "False"]


def test_a_wrong_number_of_devices_is_an_error() -> None:
    done = run("-c", "import jax; jax.devices()", TRIVIUM_NUM_DEVICES="many")
    assert done.returncode != 0
    assert "TRIVIUM_NUM_DEVICES" in done.stderr


def test_an_interpreter_that_exits_with_arrays_ends_well() -> None:
    script = "import jax, jax.numpy as jnp; x = jax.jit(lambda x: x + 1)(jnp.ones(3)); jax.keep = x; print(x.sum())"
    done = run("-c", script)
    assert (done.returncode, done.stdout.strip()) == (0, "6.0"), done.stderr
