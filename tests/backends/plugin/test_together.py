"""Programs that two simulated GPUs run together: parts of arrays are joined and cut, and values are exchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.backends.gpu.simulator import needs_simulator
from trivium.backends.gpu.client import GpuClient, GpuLoadedExecutable
from trivium.backends.plugin.compiler import Kept, _require_own_memory, _shared
from trivium.backends.plugin.division import divide
from trivium.backends.plugin.layouts import Layouts
from trivium.backends.plugin.together import DividedProgram
from trivium.ir.errors import CompileError
from trivium.ir.text import parse

pytestmark = needs_simulator
pytest_plugins = ["tests.backends.gpu.conftest"]

X = np.arange(8, dtype=np.float32).reshape(2, 4)

SHARDED = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %y: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
        tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.add %x, %y : tensor<2x4xf32>
  %1 = stablehlo.negate %0 : tensor<2x4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}"""

REPLICATED = """func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<ui32>) {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^body(%p: tensor<f32>, %q: tensor<f32>):
      %2 = stablehlo.multiply %p, %q : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = stablehlo.replica_id : tensor<ui32>
  return %0, %1 : tensor<3xf32>, tensor<ui32>
}"""


def program(clients: list[GpuClient], text: str, replicas: int, partitions: int) -> DividedProgram:
    found = divide(parse(text), replicas, partitions)
    assert found is not None
    first = clients[0].compile(found.program.module)
    assert isinstance(first, GpuLoadedExecutable)
    second = clients[1].load(first.artifact, first.stages)
    assert isinstance(second, GpuLoadedExecutable)
    return DividedProgram([first, second], found.division)


def run(found: DividedProgram, *given: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """Runs on the arguments of each device, and returns its results."""
    drivers = [executable.device.client.driver for executable in found.executables]
    memories = [one.uploaded(array) for one, arrays in zip(found.executables, given, strict=True) for array in arrays]
    kinds = [slot.dtype for slot in found.executables[0].outputs]
    shapes = [held.part.shape for held in found.division.results]
    results = [[np.empty(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)] for _ in drivers]
    made = [[driver.allocate(a.nbytes) for a in row] for driver, row in zip(drivers, results, strict=True)]
    found.run_on([*memories, *made[0], *made[1]])
    for driver, row, places in zip(drivers, results, made, strict=True):
        for array, memory in zip(row, places, strict=True):
            driver.download(array, memory)
    return results


def test_one_device_computes_what_both_hold(clients: list[GpuClient]) -> None:
    found = program(clients, SHARDED, 1, 2)
    assert found.division.is_shared
    for device, (columns, whole) in enumerate(run(found, (X[:1], 10 * X), (X[1:], 10 * X))):
        np.testing.assert_array_equal(columns, 11 * X[:, 2 * device : 2 * device + 2])
        np.testing.assert_array_equal(whole, -11 * X)


def test_devices_exchange_values_and_know_their_numbers(clients: list[GpuClient]) -> None:
    found = program(clients, REPLICATED, 2, 1)
    assert found.division.has_device
    one, other = np.asarray([1, 2, 3], np.float32), np.asarray([4, 5, 6], np.float32)
    for device, (product, number) in enumerate(run(found, (one,), (other,))):
        np.testing.assert_array_equal(product, one * other)
        assert number == device


def test_a_program_needs_as_many_gpus_as_it_was_compiled_for(clients: list[GpuClient]) -> None:
    found = program(clients, REPLICATED, 2, 1)
    kept = Kept(found.executables[0], found.division, Layouts((), ()), "", ())
    with pytest.raises(CompileError, match="main is for 2 replicas of 1 partitions, and was given 1 GPUs"):
        _shared(kept, clients[:1], 0)


def test_results_are_in_the_memory_of_the_device() -> None:
    text = """func.func @main(%x: tensor<f32>) -> (tensor<f32> {mhlo.memory_kind = "pinned_host"}) {
      return %x : tensor<f32>
    }"""
    with pytest.raises(CompileError, match="result 0 of main is to be in memory 'pinned_host', expected 'device'"):
        _require_own_memory(parse(text).main)
    _require_own_memory(parse(text.replace("pinned_host", "device")).main)
