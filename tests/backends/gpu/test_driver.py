"""The words of a driver: each of the drivers says all of them, with the same operands."""

from __future__ import annotations

import inspect

import pytest

from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.driver import Driver
from trivium.backends.gpu.hip import Hip
from trivium.backends.gpu.opencl import OpenCl


@pytest.mark.parametrize("kind", [Cuda, Hip, OpenCl])
@pytest.mark.parametrize(
    "word", ["allocate", "load", "launch", "upload", "download", "copy", "repeat", "event", "guest"]
)
def test_drivers_take_the_same_operands(kind: type, word: str) -> None:
    expected, has = (inspect.signature(getattr(owner, word)).parameters for owner in (Driver, kind))
    assert list(has) == list(expected)
    assert kind.platform in ("cuda", "hip", "opencl")  # type: ignore[attr-defined]
