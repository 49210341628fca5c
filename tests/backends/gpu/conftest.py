"""The device on which the GPU backend is tested: Intel's OpenCL runtime for processors, or whatever else takes
SPIR-V."""

from __future__ import annotations

import pytest

from trivium.backends import client
from trivium.backends.gpu import opencl
from trivium.backends.gpu.client import GpuClient


@pytest.fixture(scope="session")
def device() -> GpuClient:
    """The client of the first OpenCL device."""
    if not opencl.is_installed() or not opencl.devices():
        pytest.skip("no driver of OpenCL here takes SPIR-V: pip install 'trivium[gpu-test]'")
    found = client("opencl:0")
    assert isinstance(found, GpuClient)
    return found
