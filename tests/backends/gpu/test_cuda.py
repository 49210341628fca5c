"""The CUDA backend with a fake driver: results, memory, graphs, and every call failing once."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import pytest

import trivium
from tests.backends.dense_layer import TEXT, WEIGHTS, X
from tests.backends.gpu import simulator
from tests.backends.harness import elementwise
from trivium import backends
from trivium.backends import platforms
from trivium.backends.gpu import cuda, nvptx
from trivium.backends.gpu import plan as plans
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda, CudaKernel
from trivium.backends.gpu.cuda_memory import CudaMemory
from trivium.backends.gpu.driver import Queue, Recordings
from trivium.compiler import memory
from trivium.compiler.artifact import Artifact
from trivium.compiler.program import Arena, Array, Input, Launch, Output, Program
from trivium.ir.errors import CompileError, Error, ExecutionError

INVALID_VALUE, OUT_OF_MEMORY, ILLEGAL_ADDRESS = 1, 2, 700

pytestmark = pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")


def two_launches() -> Program:
    """Returns the program that negates its argument twice."""
    x, y = Array("x", "f32", (300,), Input(0)), Array("y", "f32", (300,), Output(0))
    between = Array("between", "f32", (300,), Arena(0))
    kernel = elementwise("negate", ["f32"], "f32", 300)
    return Program("twice", [x], [y], [Launch(kernel, (x, between)), Launch(kernel, (between, y))], arena_size=1200)


def calls() -> list[str]:
    return simulator.fake().fake_log().decode().split()


def test_through_the_front_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    monkeypatch.setattr(platforms, "_CLIENTS", {})
    simulator.fake().fake_reset(0, 0)
    with simulator.simulated():
        run = trivium.compile(trivium.parse(TEXT), device="cuda:0")
        for _ in range(3):
            np.testing.assert_allclose(run(X)[0], np.tanh(X @ WEIGHTS), rtol=1e-5, atol=1e-6)
        found, _ = backends.discovered()
        names = [f"{device.client.platform_name}:{device.id} {device.kind}" for device in found]
        assert "cuda:1 Fake, sm_80, 4 units, 1.0 GB, 128 GB/s" in names
        del run, found
        for number in (0, 1):
            opened = backends.client(f"cuda:{number}")
            assert isinstance(opened, GpuClient)
            assert isinstance(opened.driver, Cuda)
            opened.driver.close()


@pytest.mark.parametrize("elements", [1 << 27, (1 << 28) + 1])
def test_a_program_needs_memory_of_the_device(
    elements: int, simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which this one has 1 GB, not that of the host."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    monkeypatch.setattr(memory, "memory_limit", lambda: 1 << 20)
    client, kind = GpuClient(simulated_device, 0), f"tensor<{elements}xf32>"
    module = trivium.parse(f"""func.func @main(%x: tensor<f32>) -> {kind} {{
      %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> {kind}
      return %0 : {kind}
    }}""")
    if elements <= 1 << 28:
        client.compile(module)
        return
    with pytest.raises(CompileError, match=r"1073741828 bytes .*expected at most 1073741824 bytes"):
        client.compile(module)


def test_a_device_that_is_not_there() -> None:
    with simulator.simulated(), pytest.raises(Error, match="there is no device cuda:7, expected one of cuda:0, cuda:1"):
        Cuda(7)


def test_repeated_launches_become_a_graph(simulated_device: Cuda) -> None:
    executable = GpuClient(simulated_device, 0).load_program(two_launches())
    a = np.arange(300, dtype=np.float32)
    for turn in range(4):
        np.testing.assert_array_equal(executable.execute(a + turn)[0], a + turn)
    assert calls().count("cuLaunchKernel") == 4  # twice by themselves, twice into the graph
    assert calls().count("cuGraphInstantiateWithFlags") == 1
    assert calls().count("cuGraphLaunch") == 3


def test_a_graph_is_for_the_memory_that_it_was_recorded_with(
    simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "RECORDINGS", 2)
    client = GpuClient(simulated_device, 0)
    executable = client.load_program(two_launches())
    a = np.arange(300, dtype=np.float32)
    buffers = [client.buffer_from_host(a + number) for number in range(4)]
    kept = []
    for _ in range(3):
        for number, buffer in enumerate(buffers):
            kept.append(executable.execute_buffers([buffer])[0])
            np.testing.assert_array_equal(kept[-1].to_numpy(), a + number)
    assert calls().count("cuGraphLaunch") == 0
    assert len(executable._recordings) == 2


def test_code_is_unloaded_while_a_graph_is_recorded(simulated_device: Cuda) -> None:
    """The garbage collector may run at any time, and the driver forbids what it gives back inside of most captures."""
    client = GpuClient(simulated_device, 0)
    executable, others = client.load_program(two_launches()), [client.load_program(two_launches())]
    source, target = client.buffer_from_host(np.arange(300, dtype=np.float32)), simulated_device.allocate(1200)
    memories: list[CudaMemory] = [source.bytes, target]  # type: ignore[list-item]
    kept: Recordings = {}
    queues = []

    def tell(queue: Queue[CudaMemory, CudaKernel]) -> None:
        queues.append(queue)
        if len(queues) == 2:
            others.clear()
        queue.copy(target, source.bytes, 1200)

    for _ in range(3):
        simulated_device.repeat(kept, memories, tell)
    made = calls()
    begin, end = made.index("cuStreamBeginCapture_v2"), made.index("cuStreamEndCapture")
    assert "cuModuleUnload" in made[begin:end]
    assert made.count("cuGraphLaunch") == 2
    np.testing.assert_array_equal(executable.execute(source.to_numpy())[0], np.arange(300))


def test_threads_share_a_device(simulated_device: Cuda) -> None:
    executable = GpuClient(simulated_device, 0).load_program(two_launches())
    wrong = []

    def work(start: int) -> None:
        for turn in range(10):
            a = np.arange(300, dtype=np.float32) * start + turn
            if not np.array_equal(executable.execute(a)[0], a):
                wrong.append((start, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_events(simulated_device: Cuda) -> None:
    memory = simulated_device.allocate(16)
    simulated_device.upload(memory, np.zeros(16, np.uint8))
    event = simulated_device.event()
    assert not event.is_ready()
    event.wait()
    assert event.is_ready()


def test_a_failed_launch_says_where_it_comes_from(simulated_device: Cuda) -> None:
    client = GpuClient(simulated_device, 0)
    executable = client.compile(trivium.parse(TEXT))
    simulator.fake().fake_fail(b"cuLaunchKernel", INVALID_VALUE)
    text = r"CUDA failed, launching k0_\w+, 1 blocks of 32 threads: cuLaunchKernel returned CUDA_ERROR_INVALID_VALUE"
    with pytest.raises(ExecutionError, match=text) as caught:
        executable.execute(X)
    assert "while: running k0_" in str(caught.value)
    assert ", from <text>:" in str(caught.value)


def test_the_drivers_compiler_says_what_is_wrong(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_device, "_assembler", None)
    with pytest.raises(ExecutionError, match=r"loading code for sm_80: cuModuleLoadDataEx .*: line 1: this is no pro"):
        simulated_device.load(b".version 8.0", {"k0": 0}, {})


def test_code_without_the_kernel(simulated_device: Cuda, artifact: Artifact) -> None:
    _, binary = plans.from_bytes(artifact.code)
    with pytest.raises(ExecutionError, match="loading code for sm_80: cuModuleGetFunction returned"):
        simulated_device.load(binary, {"k7": 0}, {})


# Failures


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """A program with a constant, two launches, and the arena."""
    from trivium.backends.gpu.assembly import assemble_program

    with simulator.simulated():
        return assemble_program(two_launches(), nvptx.Nvptx(), nvptx.target("sm_80"))


Opened = Callable[[], AbstractContextManager[Cuda]]
"""Opens a simulated device."""


def scenario(artifact: Artifact, opened: Opened) -> None:
    """Opens a device, runs a program until it is a graph, asks for events and statistics, and closes the device."""
    with opened() as device:
        client = GpuClient(device, 0)
        executable = client.load(artifact)
        a = np.arange(300, dtype=np.float32)
        for _ in range(3):
            np.testing.assert_array_equal(executable.execute(a)[0], a)
        (buffer,) = executable.execute_buffers([client.buffer_from_host(a)])
        buffer.ready.is_ready()  # type: ignore[attr-defined]
        buffer.ready.wait()  # type: ignore[attr-defined]
        device.copy(buffer.bytes, buffer.bytes, 16)  # type: ignore[attr-defined]
        device.memory()
        del executable, buffer


def failure(artifact: Artifact, opened: Opened) -> str:
    """Returns what the scenario fails with."""
    try:
        scenario(artifact, opened)
    except Error as error:
        return str(error)
    return ""


def test_every_call_may_fail(artifact: Artifact) -> None:
    quiet = {"cuMemFreeAsync", "cuModuleUnload", "cuEventDestroy_v2", "cuGraphExecDestroy", "cuCtxPopCurrent_v2"}
    fail_every_call(artifact, simulator.fake(), simulator.opened, ("cuCtxPushCurrent_v2",), quiet)


def fail_every_call(
    artifact: Artifact, fake: ctypes.CDLL, opened: Opened, entering: tuple[str, ...], quiet: set[str]
) -> None:
    """Lets each call of the scenario fail once. A failure is an error, unless it is one of a finalizer's calls, `quiet`
    ones, which cannot raise any; and nothing is left. `entering`: the calls that make the device the thread's."""
    fake.fake_reset(0, 0)
    scenario(artifact, opened)
    names = fake.fake_log().decode().split()
    # If closing cannot enter the context, nothing can be given back but that.
    last = len(names) - names[::-1].index(entering[0])
    for number, name in enumerate(names, 1):
        if number in range(last, last + len(entering)):
            continue
        for code in (INVALID_VALUE, OUT_OF_MEMORY) if "FromPoolAsync" in name else (ILLEGAL_ADDRESS,):
            fake.fake_reset(number, code)
            message = failure(artifact, opened)
            is_quiet = name in quiet or name in entering
            # What is free is given back, and then there is memory.
            is_quiet |= code == OUT_OF_MEMORY
            assert name in message or is_quiet, f"call {number}, {name}, failed, and the message is {message!r}"
            assert " failed, " in message or not message
            assert fake.fake_live() == 0, f"something is left after call {number}, {name}, failed"
