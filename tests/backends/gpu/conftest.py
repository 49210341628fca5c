"""The device on which the GPU backend is tested: Intel's OpenCL runtime for processors, or whatever else takes
SPIR-V."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.backends.gpu import simulator
from trivium.backends import client
from trivium.backends.gpu import opencl
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda


@pytest.fixture(scope="session")
def device() -> GpuClient:
    """The client of the first OpenCL device."""
    if not opencl.is_installed() or not opencl.devices():
        pytest.skip("no driver of OpenCL here takes SPIR-V: pip install 'trivium[gpu-test]'")
    found = client("opencl:0")
    assert isinstance(found, GpuClient)
    return found


@pytest.fixture
def simulated_device() -> Iterator[Cuda]:
    """A simulated GPU of NVIDIA's, of which nothing is left at the end."""
    simulator.fake().fake_reset(0, 0)
    with simulator.opened() as opened:
        yield opened
        gc.collect()
    assert simulator.fake().fake_live() == 0
