"""OpenCL: which devices are found, what is missing, and the driver's errors."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from trivium import backends
from trivium.backends.gpu import opencl
from trivium.backends.gpu.client import GpuClient
from trivium.ir.errors import Error, ExecutionError


def test_without_pyopencl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "find_spec", lambda name: None)
    opencl.library.cache_clear()
    opencl.devices.cache_clear()
    try:
        with pytest.raises(Error, match=r"pyopencl is not installed, expected: pip install 'trivium\[opencl\]'"):
            opencl.OpenCl(0)
        assert all(device.client.platform_name == "cpu" for device in backends.devices())
    finally:
        opencl.library.cache_clear()
        opencl.devices.cache_clear()


def test_the_environment_stays_as_it_was(device: GpuClient) -> None:
    assert "trivium-" not in os.environ.get("OCL_ICD_VENDORS", "")


def test_an_incomplete_runtime_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libintelocl.so").touch()
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    with opencl._vendors():
        assert "OCL_ICD_VENDORS" not in os.environ


def test_copies(device: GpuClient) -> None:
    driver = device.driver
    a = np.arange(64, dtype=np.float32)
    source, target = driver.allocate(a.nbytes), driver.allocate(a.nbytes)
    driver.upload(source, a)
    driver.copy(target, source, 128)
    driver.copy(target.part(128, 128), source, 128)
    result = np.empty_like(a)
    driver.download(result, target)
    np.testing.assert_array_equal(result, np.tile(a[:32], 2))


def test_events(device: GpuClient) -> None:
    event = device.driver.event()
    event.wait()
    assert event.is_ready()


def test_empty_arrays(device: GpuClient) -> None:
    memory = device.driver.allocate(0)
    device.driver.upload(memory, np.empty(0))
    device.driver.download(np.empty(0), memory)
    assert memory.nbytes == 0


def test_errors_name_the_failed_operation(device: GpuClient) -> None:
    with pytest.raises(ExecutionError, match=r"OpenCL failed, allocating \d+ bytes of \d+: "):
        device.driver.allocate(1 << 60)
    with pytest.raises(ExecutionError, match="OpenCL failed, building the program"):
        device.driver.load(b"\x03\x02\x23\x07 this is no program", {"k0": 0}, {})
