"""A GPU as a PJRT client: its devices, its buffers, what it loads and refuses, and the stages of a compilation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trivium
from tests.backends.dense_layer import TEXT, WEIGHTS, X
from trivium.backends import client, devices
from trivium.backends.gpu.client import GpuBuffer, GpuClient, GpuLoadedExecutable
from trivium.backends.pjrt import STAGES, Client, LoadedExecutable
from trivium.backends.specializing import SpecializingExecutable
from trivium.ir.errors import Error, ExecutionError

EXPECTED = np.tanh(X @ WEIGHTS)


@pytest.fixture(scope="module")
def loaded(device: GpuClient) -> GpuLoadedExecutable:
    executable = device.compile(trivium.parse(TEXT))
    assert isinstance(executable, GpuLoadedExecutable)
    return executable


def test_the_device(device: GpuClient) -> None:
    (only,) = device.devices
    assert isinstance(device, Client)
    assert (device.platform_name, only.id, only.default_memory.kind) == ("opencl", 0, "device")
    assert "GB" in only.kind
    assert device.platform_version.startswith("pyopencl ")
    assert only in devices()
    assert client("opencl") is client("opencl:0") is device


def test_from_the_front_door(device: GpuClient, tmp_path: Path) -> None:
    run = trivium.compile(trivium.parse(TEXT), device="opencl:0")
    np.testing.assert_allclose(run(X)[0], EXPECTED, rtol=1e-5, atol=1e-6)
    run.save(tmp_path / "program.so")
    again = trivium.load_executable(tmp_path / "program.so", device="opencl:0")
    np.testing.assert_array_equal(again(X)[0], run(X)[0])
    with pytest.raises(Error, match="was compiled for"):
        trivium.load_executable(tmp_path / "program.so", device="cpu")


def test_unknown_devices() -> None:
    with pytest.raises(Error, match="unknown device 'gpu'; expected one of cpu, opencl:0"):
        trivium.compile(trivium.parse(TEXT), device="gpu")
    with pytest.raises(Error, match="unknown device 'opencl:x', expected a number, as in opencl:0"):
        trivium.compile(trivium.parse(TEXT), device="opencl:x")
    with pytest.raises(Error, match="there is no device cpu:1"):
        trivium.compile(trivium.parse(TEXT), device="cpu:1")


def test_a_device_that_is_not_there(device: GpuClient) -> None:
    with pytest.raises(Error, match=r"there is no device opencl:99, expected one of opencl:0"):
        client("opencl:99")


def test_buffers(device: GpuClient, loaded: GpuLoadedExecutable) -> None:
    given = device.buffer_from_host(X)
    (result,) = loaded.execute_buffers([given])
    assert isinstance(result, GpuBuffer)
    result.ready.wait()
    assert result.ready.is_ready()
    assert (result.dtype, result.shape) == (np.float32, (5, 6))
    np.testing.assert_allclose(result.to_numpy(), EXPECTED, rtol=1e-5, atol=1e-6)
    result.delete()
    with pytest.raises(ExecutionError, match="has been deleted"):
        result.to_numpy()


def test_buffers_of_the_host_are_copied(loaded: GpuLoadedExecutable) -> None:
    (result,) = loaded.execute_buffers([client("cpu").buffer_from_host(X)])
    np.testing.assert_allclose(result.to_numpy(), EXPECTED, rtol=1e-5, atol=1e-6)


def test_wrong_buffers(device: GpuClient, loaded: GpuLoadedExecutable) -> None:
    with pytest.raises(ExecutionError, match="was given 0 buffers, expected 1"):
        loaded.execute_buffers([])
    with pytest.raises(ExecutionError, match="argument 0 of main has float64"):
        loaded.execute_buffers([device.buffer_from_host(X.astype(np.float64))])


def test_stages(loaded: GpuLoadedExecutable) -> None:
    assert isinstance(loaded, LoadedExecutable)
    texts = {stage: loaded.stage(stage) for stage in STAGES}
    assert "stablehlo.tanh" in texts["graph"]
    assert "launch @" in texts["kernels"]
    assert "define spir_kernel" in texts["llvm"]
    assert "OpEntryPoint" in texts["asm"]


def test_analyses(loaded: GpuLoadedExecutable) -> None:
    assert loaded.cost_analysis()["flops"] >= 2 * 5 * 6 * 8
    assert loaded.memory_analysis().constant_size_in_bytes == WEIGHTS.nbytes


def test_dynamic_shapes(device: GpuClient) -> None:
    text = """func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.negate %x : tensor<?x3xf32>
      %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<?x3xf32>, tensor<f32>) -> tensor<3xf32>
      return %0, %1 : tensor<?x3xf32>, tensor<3xf32>
    }"""
    run = device.compile(trivium.parse(text))
    assert isinstance(run, SpecializingExecutable)
    for rows in (1, 4, 5, 8, 2, 7):
        a = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        negative, sums = run.execute(a)
        np.testing.assert_array_equal(negative, -a)
        np.testing.assert_array_equal(sums, -a.sum(0))
    assert run.compiled_ranges() == ["sizes from 2 to 8"]
