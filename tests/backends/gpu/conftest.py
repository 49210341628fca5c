"""The device on which the GPU backend is tested: Intel's OpenCL runtime for processors, or whatever else takes
SPIR-V."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.backends.gpu import simulated_hip, simulator
from tests.backends.gpu.simulator import LeaveOut, needs_simulator
from tests.garbage import collected
from trivium import backends
from trivium.backends.gpu import opencl, tiles
from trivium.backends.gpu.amdgcn import Amdgcn
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.hip import Hip
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import Code


@pytest.fixture(autouse=True, scope="module")
def threads_round() -> Iterator[None]:
    """Lets matrix instructions multiply all f32 that may be rounded, and not only where that is faster."""
    tiles.THREADS_ROUND = True
    yield
    tiles.THREADS_ROUND = False


@pytest.fixture(scope="session")
def device() -> GpuClient:
    """The client of the first OpenCL device."""
    if not opencl.is_installed() or not opencl.devices():
        pytest.skip("no driver of OpenCL here takes SPIR-V: pip install 'trivium[gpu-test]'")
    found = backends.client("opencl:0")
    assert isinstance(found, GpuClient)
    return found


@pytest.fixture
def simulated_device() -> Iterator[Cuda]:
    """A simulated NVIDIA GPU, which must have nothing allocated at the end."""
    simulator.fake().fake_reset(0, 0)
    with simulator.opened() as opened, collected():
        yield opened
    assert simulator.fake().fake_live() == 0


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[GpuClient]]:
    """Two simulated GPUs of NVIDIA's, of which nothing is left at the end."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    simulator.fake().fake_reset(0, 0)
    with simulator.opened(0) as first, simulator.opened(1) as second, collected():
        yield [GpuClient(first, 0), GpuClient(second, 1)]
    assert simulator.fake().fake_live() == 0


@pytest.fixture
def simulated_waves() -> Iterator[Hip]:
    """A simulated AMD GPU, whose waves have 64 threads, and which must have nothing allocated at the end."""
    simulated_hip.fake().fake_reset(0, 0)
    with simulated_hip.opened() as opened, collected():
        yield opened
    assert simulated_hip.fake().fake_live() == 0


SIMULATED = {"simulator": "simulated_device", "waves": "simulated_waves"}


@pytest.fixture(params=["opencl", *(pytest.param(name, marks=needs_simulator) for name in SIMULATED)])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> GpuClient:
    """The client of the device of OpenCL, and those of the simulated ones."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    if request.param == "opencl":
        return request.getfixturevalue("device")
    return GpuClient(request.getfixturevalue(SIMULATED[request.param]), 0)


@pytest.fixture(params=[64, 128])
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Lets matrix instructions compute every contraction that fits, in square tiles of one size."""
    monkeypatch.setattr(tiles, "WIDE_LEAST", tiles.LARGEST)
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((request.param, 1),))
    return request.param


@pytest.fixture
def leave_out_barrier(monkeypatch: pytest.MonkeyPatch) -> LeaveOut:
    """Returns a function that lets what is emitted from then on lack one barrier, by its place (-1: none), and returns
    the counter of barriers."""
    barriers: dict[type, Callable[..., None]] = {kind: kind.barrier for kind in (Nvptx, Amdgcn)}

    def leave_out(place: int) -> Iterator[int]:
        places = itertools.count()

        def emit(self: Dialect, code: Code) -> None:
            if next(places) != place:
                barriers[type(self)](self, code)

        for kind in barriers:
            monkeypatch.setattr(kind, "barrier", emit)
        return places

    return leave_out
