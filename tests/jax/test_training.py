"""Unchanged training scripts of JAX's libraries have the same losses as on JAX's CPU platform."""

import importlib.util
import json

import numpy as np
import pytest

pytestmark = pytest.mark.jax

jax = pytest.importorskip("jax")

from tests.jax.test_plugin import run
from tests.jax.training import SCRIPTS

TOLERANCE = 1e-3
"""Relative to each loss: sums are added in another order, and twelve steps amplify the difference at most a
hundredfold."""


def missing(name: str) -> list[str]:
    return [package for package in SCRIPTS[name][1] if importlib.util.find_spec(package) is None]


@pytest.fixture(scope="module")
def curves() -> dict[str, tuple[list[float], list[float]]]:
    names = [name for name in SCRIPTS if not missing(name)]
    done = run("-m", "tests.jax.training", *names, JAX_PLATFORMS="trivium,cpu")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {curve["name"]: (curve["trivium"], curve["cpu"]) for curve in found}


@pytest.mark.parametrize("name", SCRIPTS)
def test_losses(name: str, curves: dict[str, tuple[list[float], list[float]]]) -> None:
    if lacking := missing(name):
        pytest.skip(f"needs {', '.join(lacking)}")
    ours, expected = curves[name]
    assert ours[-1] < ours[0] / 2
    np.testing.assert_allclose(ours, expected, rtol=TOLERANCE)
