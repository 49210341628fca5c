"""CUDA tensors in `torch.compile`, without a GPU: the fake driver works on host memory, so that CPU tensors can replace
CUDA tensors."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Iterator, Sequence

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch._C._dynamo.guards import _empty_strided_cpu
from torch._dynamo.exc import BackendCompilerFailed
from torch._subclasses import FakeTensorMode

import trivium.torch
from tests.backends.gpu import simulator
from tests.backends.gpu.simulator import needs_simulator
from trivium import backends
from trivium.backends import platforms
from trivium.backends.gpu.client import GpuClient, GpuLoadedExecutable
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.cuda_library import library
from trivium.importers.pytorch.types import to_array
from trivium.ir.errors import Error, ExecutionError
from trivium.torch import cuda

pytestmark = pytest.mark.torch

DEVICE = torch.device("cuda:0")


class StandIn:
    """PyTorch's interface to CUDA: everything is on the device, in the order of one stream."""

    def __init__(self, driver: Cuda):
        self.driver = driver
        self.asked = 0
        with driver.current():
            self.stream = library().value("cuStreamCreate", ctypes.c_void_p, 0)

    def stream_of(self, device: object) -> int:
        assert device == DEVICE
        self.asked += 1
        return self.stream

    def wait(self) -> None:
        with self.driver.current():
            library().cuStreamSynchronize(self.stream)

    def close(self) -> None:
        with self.driver.current():
            library().cuStreamDestroy_v2(self.stream)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    torch._dynamo.reset()
    monkeypatch.setattr(platforms, "_CLIENTS", {})
    simulator.fake().fake_reset(0, 0)
    simulator.fake().fake_elsewhere(True)
    with simulator.simulated():
        client = backends.client("cuda:0")
        assert isinstance(client, GpuClient)
        assert isinstance(client.driver, Cuda)
        found = StandIn(client.driver)
        monkeypatch.setattr(cuda, "place_of", lambda _: DEVICE)
        monkeypatch.setattr(cuda, "stream_of", found.stream_of)
        monkeypatch.setattr(cuda, "empty", lambda results, _: [_empty_strided_cpu(*result) for result in results])
        monkeypatch.setattr(cuda, "moved", lambda tensor, _: tensor)
        yield found
        torch._dynamo.reset()
        found.wait()
        found.close()
        client.driver.close()
    simulator.fake().fake_elsewhere(False)


@pytest.fixture
def at_once(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Waits for each run: PyTorch's own ops on tensors of the CPU, and its allocator, know nothing of streams."""
    run = GpuLoadedExecutable.execute_in

    def waiting(self: GpuLoadedExecutable, stream: int, pointers: Sequence[int]) -> None:
        run(self, stream, pointers)
        stand_in.wait()

    monkeypatch.setattr(GpuLoadedExecutable, "execute_in", waiting)
    return stand_in


def compiled(function: Callable, **options: object) -> Callable:
    return torch.compile(function, backend=trivium.torch.backend, fullgraph=True, options=options)


@needs_simulator
def test_results_come_in_the_order_of_the_stream(stand_in: StandIn) -> None:
    x = torch.arange(300.0)
    result = compiled(lambda x: x.sin() + 1)(x)
    before = result.clone()
    stand_in.wait()
    assert stand_in.asked == 1
    torch.testing.assert_close(result, x.sin() + 1)
    assert not torch.equal(result, before)


@needs_simulator
def test_a_training_step(at_once: StandIn) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 5))
    twin, x = copy.deepcopy(model), torch.randn(7, 20)
    fast = compiled(model)
    for _ in range(3):
        for each in (fast, twin):
            each(x).square().sum().backward()
    assert at_once.asked == 6
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-4)


@needs_simulator
def test_in_place_changes_views_and_draws(at_once: StandIn) -> None:
    def function(x):
        x.add_(1)
        return x.T, x.expand(2, *x.shape) * 2, torch.rand(1000)

    given = torch.ones(3, 4)
    turned, twice, drawn = compiled(function)(given)
    assert given.tolist() == [[2.0] * 4] * 3
    assert turned.shape == (4, 3)
    torch.testing.assert_close(twice, torch.full((2, 3, 4), 4.0))
    assert 0.4 < drawn.mean() < 0.6


@needs_simulator
def test_sizes_that_follow_from_elements(at_once: StandIn) -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        result = compiled(lambda x: x.nonzero())(torch.tensor([0, 3, 0, 5]))
    assert result.tolist() == [[1], [3]]


@needs_simulator
def test_frozen_parameters(at_once: StandIn) -> None:
    model = nn.Linear(6, 3)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model, freeze=True)(torch.ones(2, 6)), model(torch.ones(2, 6)))


@needs_simulator
def test_views_at_odd_addresses_are_copied(at_once: StandIn) -> None:
    x = torch.arange(41.0)
    torch.testing.assert_close(compiled(lambda x: x * 2)(x[1:]), x[1:] * 2)


@needs_simulator
def test_scalars_on_the_cpu_are_moved(at_once: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = []
    monkeypatch.setattr(cuda, "place_of", lambda tensor: DEVICE if tensor.ndim else cuda.CPU)
    monkeypatch.setattr(cuda, "moved", lambda tensor, device: moved.append((tensor.item(), device)) or tensor)
    result = compiled(lambda x, y: x * y)(torch.ones(5), torch.tensor(3.0))
    assert result.tolist() == [3.0] * 5
    assert moved == [(3.0, DEVICE)]


@needs_simulator
def test_the_device_is_that_of_the_tensors(stand_in: StandIn) -> None:
    with pytest.raises(BackendCompilerFailed, match="the option device has 'opencl:0', expected 'cuda:0', where the"):
        compiled(lambda x: x + 1, device="opencl:0")(torch.ones(2))


def tensors(*places: tuple[int, str]) -> list[tuple[str, object]]:
    with FakeTensorMode():
        return [(f"x{i}", torch.empty((2,) * rank, device=place)) for i, (rank, place) in enumerate(places)]


def test_devices_of_graphs() -> None:
    assert cuda.device_of("g", [("n", 3)]) == cuda.CPU
    assert cuda.device_of("g", tensors((1, "cpu"), (0, "cpu"))) == cuda.CPU
    assert cuda.device_of("g", tensors((0, "cpu"), (2, "cuda:1"))) == torch.device("cuda:1")
    assert cuda.device_of("g", tensors((0, "cuda:0"))) == DEVICE
    assert cuda.device_of("g", [], tensors((3, "cuda:0"))) == DEVICE
    assert cuda.device_of("g", tensors((1, "meta"), (1, "cuda:0"))) == DEVICE


@pytest.mark.parametrize(
    ("inputs", "results", "told"),
    [
        (((1, "cpu"), (1, "cuda:0")), (), "g has x0 on cpu, x1 on cuda:0, expected all on one device, except for sca"),
        (((1, "cuda:1"), (0, "cuda:0")), (), "g has x0 on cuda:1, x1 on cuda:0, expected all on one device"),
        (((1, "cuda:0"),), ((0, "cpu"),), "g has x0 on cuda:0, x0 on cpu, expected all on one device"),
        (((1, "mps:0"),), (), "g has x0 on mps:0, expected cpu or cuda"),
    ],
)
def test_graphs_on_several_devices_are_refused(inputs: tuple, results: tuple, told: str) -> None:
    with pytest.raises(Error, match=told):
        cuda.device_of("g", tensors(*inputs), tensors(*results))


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cuda.options_for(cuda.CPU, {"threads": 2}) == {"threads": 2}
    assert cuda.options_for(torch.device("cuda:1"), {"threads": 2}) == {"tf32": False, "threads": 2, "device": "cuda:1"}
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    assert cuda.options_for(DEVICE, {})["tf32"]
    assert not cuda.options_for(DEVICE, {"tf32": False})["tf32"]
    monkeypatch.setattr(torch.version, "hip", "6.3.42131")
    assert cuda.options_for(DEVICE, {})["device"] == "hip:0"


def test_a_graph_that_pytorch_records_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(ExecutionError, match="PyTorch is capturing a CUDA graph, which cannot contain"):
        cuda.stream_of(DEVICE)


def test_the_current_stream_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: asked.append(index) or 77, raising=False)
    assert cuda.stream_of(DEVICE) == 77
    assert asked == [DEVICE.index]


def test_constants_elsewhere_are_refused() -> None:
    with pytest.raises(Error, match="a tensor is on the device meta, expected cpu or cuda"):
        to_array(torch.empty(2, device="meta"))
