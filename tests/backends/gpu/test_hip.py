"""The HIP backend with a fake driver: results, errors, graphs, and every call failing once."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import trivium
from tests.backends.dense_layer import TEXT, WEIGHTS, X
from tests.backends.gpu import simulated_hip
from tests.backends.gpu.simulated_hip import NARROW, WIDE
from tests.backends.gpu.simulator import needs_simulator
from tests.backends.gpu.test_cuda import fail_every_call, two_launches
from tests.backends.gpu.test_nvptx import sample
from tests.compiler.lowering.coverage import COMPILED, expect_equal, lowered
from trivium import backends
from trivium.backends import platforms
from trivium.backends.gpu import amdgcn, cuda_memory, hip_library
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.hip import Hip
from trivium.compiler.artifact import Artifact
from trivium.ir.errors import Error, ExecutionError

SIMULATED = 40


def calls() -> list[str]:
    return simulated_hip.fake().fake_log().decode().split()


@needs_simulator
@pytest.mark.parametrize("architecture", [WIDE, NARROW])
def test_records(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules that LLVM assembles compute the interpreter's results, in waves of 64 threads and of 32."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    with simulated_hip.opened(architecture) as device:
        assert device.target.warp == device.dialect.shuffles == amdgcn.WAVES[architecture]
        client = GpuClient(device, 0)
        for record in (COMPILED[number] for number in sample(SIMULATED)):
            results = client.load_program(lowered(record, device.target)).execute(*record.arrays)
            expect_equal(record, record.module(), results)


@needs_simulator
def test_through_the_front_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    monkeypatch.setattr(platforms, "_CLIENTS", {})
    simulated_hip.fake().fake_reset(0, 0)
    with simulated_hip.simulated():
        run = trivium.compile(trivium.parse(TEXT), device="hip:0")
        for _ in range(3):
            np.testing.assert_allclose(run(X)[0], np.tanh(X @ WEIGHTS), rtol=1e-5, atol=1e-6)
        found, reasons = backends.discovered()
        names = [f"{device.client.platform_name}:{device.id} {device.kind}" for device in found]
        assert "hip:0 Fake, gfx90a, 4 units, 1.0 GB, 128 GB/s" in names
        assert reasons["hip:1"].startswith("unknown AMD architecture 'gfx906', expected one of gfx908")
        del run, found
        opened = backends.client("hip:0")
        assert isinstance(opened, GpuClient)
        assert opened.platform_version.startswith("HIP 6.3, code ")
        opened.driver.close()


@needs_simulator
def test_a_device_that_is_not_there() -> None:
    with (
        simulated_hip.simulated(),
        pytest.raises(Error, match="there is no device hip:7, expected one of hip:0, hip:1"),
    ):
        Hip(7)


@needs_simulator
def test_calls_in_order(simulated_waves: Hip, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run by itself, and from the second one on a graph, in the blocks of the first one."""
    monkeypatch.setattr(cuda_memory, "MOST_SPARE", 1 << 20)
    executable = GpuClient(simulated_waves, 0).load_program(two_launches())
    a, made = np.arange(300, dtype=np.float32), []
    for turn in range(3):
        simulated_hip.fake().fake_reset(0, 0)
        np.testing.assert_array_equal(executable.execute(a + turn)[0], a + turn)
        around = {"hipGetDevice", "hipSetDevice", "hipEventSynchronize", "hipEventRecord"}
        made.append([name for name in calls() if name not in around])
    allocated, copied_in, copied_out = "hipMallocFromPoolAsync", "hipMemcpyHtoDAsync", "hipMemcpyDtoHAsync"
    launched = ["hipModuleLaunchKernel"] * 2
    captured = ["hipStreamBeginCapture", *launched, "hipStreamEndCapture", "hipGraphInstantiateWithFlags"]
    result_and_arena = [allocated] * 2
    assert made[0] == [allocated, copied_in, *result_and_arena, *launched, copied_out]
    assert made[1] == [copied_in, *captured, "hipGraphDestroy", "hipGraphLaunch", copied_out]
    assert made[2] == [copied_in, "hipGraphLaunch", copied_out]


@needs_simulator
def test_the_device_that_was_chosen_before_is_chosen_again(simulated_waves: Hip) -> None:
    hip = hip_library.library()
    before = hip.value("hipGetDevice", ctypes.c_int)
    with simulated_waves.current():
        assert hip.value("hipGetDevice", ctypes.c_int) == 0
    assert hip.value("hipGetDevice", ctypes.c_int) == before != 0


@needs_simulator
def test_code_that_is_none(simulated_waves: Hip) -> None:
    text = "HIP failed, loading code for gfx90a: hipModuleLoadData returned hipErrorInvalidImage"
    with pytest.raises(ExecutionError, match=text):
        simulated_waves.load(b"no program", {"k0": 0}, {})


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """A program with two launches, and the arena."""
    from trivium.backends.gpu.assembly import assemble_program

    with simulated_hip.simulated():
        return assemble_program(two_launches(), amdgcn.Amdgcn(64), amdgcn.target("gfx90a"))


@needs_simulator
def test_every_call_may_fail(artifact: Artifact) -> None:
    quiet = {"hipFreeAsync", "hipModuleUnload", "hipEventDestroy", "hipGraphExecDestroy"}
    fail_every_call(artifact, simulated_hip.fake(), simulated_hip.opened, ("hipGetDevice", "hipSetDevice"), quiet)


# Finding the library


def test_without_hip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip_library, "NAMES", ("libno-such-hip.so",))
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    hip_library.library.cache_clear()
    with pytest.raises(Error, match="AMD's HIP is not installed: libno-such-hip"):
        Hip(0)
    _, reasons = backends.discovered()
    assert reasons["hip"].startswith("AMD's HIP is not installed")


def test_a_library_that_lacks_functions_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip_library, "NAMES", ("libc.so.6",))
    hip_library.library.cache_clear()
    with pytest.raises(Error, match=r"AMD's HIP is too old, expected one for HIP 6\.0: .*hipDrvGetErrorName"):
        Hip(0)


@needs_simulator
def test_an_old_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip_library, "OLDEST", 70_100_000)
    with simulated_hip.simulated(), pytest.raises(Error, match=r"is one for HIP 6\.3, expected at least 7\.1"):
        Hip(0)
