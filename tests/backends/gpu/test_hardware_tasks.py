"""What is tried on a GPU, tried on a simulated Hopper in small: so that it is right before there is a GPU."""

from __future__ import annotations

import pytest

from tests.backends.gpu import hardware
from tests.backends.gpu.simulator import needs_simulator
from tests.backends.gpu.workers import outcomes

pytestmark = needs_simulator

ITEMS = [
    ("matrix_instructions", ((65, 33, 17), "bf16", (1, 0), 64, ")=128")),
    ("matrix_instructions", ((65, 64, 72), "f32", (1, 0), 64, ")=128")),
    ("matrix_instructions", ((65, 64, 72), "f32", (1, 0), 256, "producer(0, 1)=128")),
    ("scatters", ("f32", True, 300)),
    ("scatters", ("f32", False, 300)),
    ("running_sums", 3000),
    ("sorts", 1500),
    ("attention", ("bf16", "causal", 64, 20, 33)),
    ("fences", (4096, 2)),
    ("graphs", 5),
]


def test_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_TEST_DEVICE", "hopper")
    found = dict(outcomes(hardware.one, ITEMS))
    assert found == dict.fromkeys(ITEMS, "")


def test_a_product_without_matrix_instructions_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_TEST_DEVICE", "simulator")
    item = "matrix_instructions", ((65, 33, 17), "bf16", (1, 0), 64, ")=128")
    assert "without its matrix instructions" in dict(outcomes(hardware.one, [item]))[item]
