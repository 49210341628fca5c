"""Platforms that are registered by others than Trivium."""

import numpy as np
import pytest

import trivium
from trivium import backends
from trivium.backends import platforms, register_platform
from trivium.backends.cpu.client import CpuClient

TEXT = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }"


@pytest.fixture(autouse=True)
def own_platforms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "_PLATFORMS", dict(platforms._PLATFORMS))
    monkeypatch.setattr(platforms, "_CLIENTS", {})


def test_a_registered_platform_compiles_programs() -> None:
    made: list[int] = []

    def make(number: int) -> CpuClient:
        made.append(number)
        return CpuClient()

    register_platform("mine", make, lambda: 2)
    x = np.ones(3, np.float32)
    for device in ("mine", "mine:1", "mine:1"):
        np.testing.assert_array_equal(trivium.compile(trivium.parse(TEXT), device=device)(x)[0], x)
    assert made == [0, 1]
    assert len(backends.devices()) == len({id(device.client) for device in backends.devices()})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cpu", "cannot register the platform 'cpu': there is such a platform"),
        ("a:b", "cannot register the platform 'a:b': expected an identifier"),
    ],
)
def test_names_are_checked(name: str, reason: str) -> None:
    with pytest.raises(trivium.Error, match=reason):
        register_platform(name, lambda number: CpuClient())
