"""The CPU as a PJRT client: its devices, its buffers, what it refuses to load, and the stages of a compilation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import trivium
from tests.backends.dense_layer import TEXT, WEIGHTS, X
from tests.backends.harness import CLIENT, elementwise, program_of
from trivium.backends import native
from trivium.backends.cpu.client import CpuBuffer, CpuClient, CpuLoadedExecutable
from trivium.backends.cpu.target import host
from trivium.backends.pjrt import STAGES
from trivium.compiler.driver import CompileOptions
from trivium.ir.errors import CompileError, Error, ExecutionError
from trivium.ir.interpreter import evaluate


@pytest.fixture(scope="module")
def loaded() -> CpuLoadedExecutable:
    executable = CLIENT.compile(trivium.parse(TEXT))
    assert isinstance(executable, CpuLoadedExecutable)
    return executable


# Devices and buffers


def test_the_device() -> None:
    client = CpuClient()
    (device,) = client.devices
    assert client.platform_name == "cpu"
    assert client.platform_version.startswith("llvmlite ")
    assert device.client is client
    assert device.kind == f"{host().cpu}, {native.num_threads()} threads, {8 * host().vector_bytes}-bit vectors"
    assert (device.default_memory.device, device.default_memory.kind) == (device, "unpinned_host")


@pytest.mark.parametrize("array", [X, X.T, np.float64(3), [1, 2, 3], np.zeros((0, 4)), np.broadcast_to(X, (2, 5, 8))])
def test_buffers_hold_copies(array: object) -> None:
    buffer = CLIENT.buffer_from_host(array)
    wanted = np.array(array)
    assert (buffer.dtype, buffer.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(buffer.to_numpy(), wanted)
    assert not np.shares_memory(buffer.to_numpy(), np.asarray(array))
    assert buffer.ready.is_ready()
    assert buffer.ready.wait() is None
    assert buffer.memory == CLIENT.devices[0].default_memory


def test_deleted_buffers_are_errors() -> None:
    buffer = CLIENT.buffer_from_host(X)
    buffer.delete()
    buffer.delete()
    for use in (buffer.to_numpy, lambda: buffer.shape, lambda: buffer.dtype):
        with pytest.raises(ExecutionError, match="the buffer has been deleted"):
            use()


def test_other_objects_than_arrays_are_refused() -> None:
    with pytest.raises(ExecutionError, match="masked array"):
        CLIENT.buffer_from_host(np.ma.masked_array(X))


def test_running_on_buffers(loaded: CpuLoadedExecutable) -> None:
    (result,) = loaded.execute_buffers([CLIENT.buffer_from_host(X)])
    assert isinstance(result, CpuBuffer)
    np.testing.assert_array_equal(result.to_numpy(), loaded.execute(X)[0])
    gone = CLIENT.buffer_from_host(X)
    gone.delete()
    with pytest.raises(ExecutionError, match="deleted"):
        loaded.execute_buffers([gone])
    with pytest.raises(ExecutionError, match=r"has shape \(8, 5\)"):
        loaded.execute_buffers([CLIENT.buffer_from_host(X.T)])


# Compiling and loading


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (0, 1), (-5, 1), (10_000, None), (None, None)])
def test_threads(asked: int | None, given: int | None) -> None:
    """At most as many as the runtime has, and at least one."""
    target = CLIENT.target(CompileOptions(threads=asked))
    assert target.threads == (given or native.num_threads())
    assert replace(target, threads=1) == host()


def test_a_program_without_a_body() -> None:
    with pytest.raises(CompileError, match="@main has no body, only a declaration"):
        CLIENT.compile(trivium.parse("func.func private @main(tensor<4xf32>) -> tensor<4xf32>"))


def test_artifacts_of_others_are_refused(loaded: CpuLoadedExecutable) -> None:
    whole = loaded.whole()
    np.testing.assert_array_equal(CLIENT.load(whole).execute(X)[0], loaded.execute(X)[0])
    older = replace(whole, runtime=native.VERSION - 1)
    with pytest.raises(Error, match=f"main was compiled for version {native.VERSION - 1} of the native runtime, and"):
        CLIENT.load(older)
    for change, reason in (
        ({"triple": "riscv64-unknown-linux-gnu"}, "riscv64-unknown-linux-gnu is not"),
        ({"features": "+no-such-feature"}, "has no no-such-feature"),
    ):
        with pytest.raises(Error, match=f"main was compiled for .*{reason}"):
            CLIENT.load(replace(whole, machine=replace(whole.machine, **change)))
    with pytest.raises(Error, match="main needs the module that it was compiled from: it does not embed its constants"):
        CLIENT.load(loaded.artifact)


# What an executable reports


def test_stages(loaded: CpuLoadedExecutable) -> None:
    np.testing.assert_allclose(evaluate(trivium.parse(loaded.stage("graph")), X)[0], np.tanh(X @ WEIGHTS), atol=1e-6)
    kernels = loaded.stage("kernels")
    assert str(loaded.program) in kernels
    assert all(str(kernel) in kernels for kernel in loaded.program.kernels())
    assert f'target triple = "{host().triple}"' in loaded.stage("llvm")
    assert "trivium_entry:" in loaded.stage("asm")
    with pytest.raises(Error, match="no stage 'ptx', expected one of graph, kernels, llvm, asm"):
        loaded.stage("ptx")


def test_the_signature(loaded: CpuLoadedExecutable) -> None:
    """The signature is that of the program as it was given."""
    assert str(loaded.signature.function_type) == str(trivium.parse(TEXT).main.function_type)
    assert str(loaded.signature.argument_attributes(0)["trivium.name"]).strip('"') == "x"
    assert loaded.signature is loaded.signature


def test_what_was_loaded_without_its_module_has_no_stages(loaded: CpuLoadedExecutable) -> None:
    alone = CLIENT.load(loaded.whole())
    for stage in STAGES:
        with pytest.raises(Error, match="main was loaded without the module that it was compiled from"):
            alone.stage(stage)
    with pytest.raises(Error, match="it has no stages"):
        _ = alone.program
    assert str(alone.signature.function_type) == str(loaded.signature.function_type)
    assert alone.cost_analysis() == loaded.cost_analysis()


def test_what_was_made_of_kernels_has_no_signature() -> None:
    executable = CLIENT.load_program(program_of(elementwise("cosine", ["f32"], "f32", 4)))
    with pytest.raises(Error, match="cosine was made of kernels, and has no signature"):
        _ = executable.signature


def test_costs_and_memory(loaded: CpuLoadedExecutable) -> None:
    cost, memory = loaded.cost_analysis(), loaded.memory_analysis()
    assert 2 * 5 * 8 * 6 <= cost["flops"] <= 2 * 5 * 8 * 6 + 200
    assert cost["transcendentals"] == 30
    assert cost["bytes accessed"] >= X.nbytes + WEIGHTS.nbytes + 120
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (X.nbytes, 120)
    assert memory.constant_size_in_bytes >= WEIGHTS.nbytes
    assert memory.generated_code_size_in_bytes == len(loaded.artifact.code)
    assert memory.alias_size_in_bytes == 0


def test_static_programs_are_their_own_specializations(loaded: CpuLoadedExecutable) -> None:
    assert loaded.specialize(X) is loaded


def test_a_program_for_another_processor_has_no_more_threads_than_a_pool() -> None:
    assert CLIENT.target(CompileOptions(1 << 40, target="x86-64-v3")).threads == native.MAX_THREADS
