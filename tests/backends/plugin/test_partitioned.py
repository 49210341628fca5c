"""Programs with partitions on two simulated GPUs, called with whole arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trivium
from tests.backends.gpu.simulator import fake, needs_simulator
from tests.backends.plugin.test_together import SHARDED, X
from trivium.backends import platforms
from trivium.backends.gpu.client import GpuClient
from trivium.ir.errors import CompileError, Error, ExecutionError

pytestmark = needs_simulator
pytest_plugins = ["tests.backends.gpu.conftest"]

PRODUCT = """module @product attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4x6xf32>, %w: tensor<6x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<4x5xf32>, tensor<6x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0:2 = sdy.manual_computation(%x, %w)
      in_shardings=[<@mesh, [{}, {"x"}]>, <@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"x"}, {}]>]
      manual_axes={"x"} (%a: tensor<4x3xf32>, %b: tensor<3x5xf32>) {
        %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
        %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
            channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
          ^bb0(%p: tensor<f32>, %q: tensor<f32>):
            %s = stablehlo.add %p, %q : tensor<f32>
            stablehlo.return %s : tensor<f32>
          }) : (tensor<4x5xf32>) -> tensor<4x5xf32>
        %3 = stablehlo.negate %b : tensor<3x5xf32>
        sdy.return %2, %3 : tensor<4x5xf32>, tensor<3x5xf32>
      } : (tensor<4x6xf32>, tensor<6x5xf32>) -> (tensor<4x5xf32>, tensor<6x5xf32>)
    return %0#0, %0#1 : tensor<4x5xf32>, tensor<6x5xf32>
  }
}"""

BOTH = "cuda:0", "cuda:1"


@pytest.fixture(autouse=True)
def registered(clients: list[GpuClient], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two simulated GPUs are those of the front door."""
    monkeypatch.setattr(platforms, "_CLIENTS", {("cuda", number): client for number, client in enumerate(clients)})


def test_each_device_computes_on_parts() -> None:
    run = trivium.compile(trivium.parse(PRODUCT), device=BOTH)
    assert str(run.signature) == "(tensor<4x6xf32>, tensor<6x5xf32>) -> (tensor<4x5xf32>, tensor<6x5xf32>)"
    assert "tensor<3x5xf32>" in run.stage("graph")
    generator = np.random.default_rng(0)
    for _ in range(3):
        x, w = (generator.integers(-9, 9, shape).astype(np.float32) for shape in ((4, 6), (6, 5)))
        fake().fake_reset(0, 0)
        product, negative = run(x, w)
        np.testing.assert_array_equal(product, x @ w)
        np.testing.assert_array_equal(negative, -w)
    assert fake().fake_log().decode().count("cuLaunchKernel") >= 2


def test_one_device_computes_what_needs_no_exchange() -> None:
    run = trivium.compile(trivium.parse(SHARDED), device=BOTH)
    total, negative = run(X, 10 * X)
    np.testing.assert_array_equal(total, 11 * X)
    np.testing.assert_array_equal(negative, -11 * X)


def test_a_saved_program_runs_on_as_many_devices(tmp_path: Path) -> None:
    x, w = (np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32) for shape in ((4, 6), (6, 5)))
    run = trivium.compile(trivium.parse(PRODUCT), device=BOTH)
    run.save(tmp_path / "program")
    loaded = trivium.load_executable(tmp_path / "program", device=BOTH)
    np.testing.assert_array_equal(loaded(x, w)[0], x @ w)
    assert str(loaded.signature) == str(run.signature)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "program").read_bytes()
    with pytest.raises(Error, match="main was compiled for 2 devices, and is loaded for 1"):
        trivium.load_executable(tmp_path / "program", device="cuda:1")
    trivium.compile(trivium.parse(SHARDED), device="cuda:0").save(tmp_path / "one")
    with pytest.raises(Error, match="main was compiled for 1 devices, and is loaded for 2"):
        trivium.load_executable(tmp_path / "one", device=BOTH)


def test_wrong_arguments() -> None:
    run = trivium.compile(trivium.parse(PRODUCT), device=BOTH)
    with pytest.raises(ExecutionError, match="main was given 1 arguments, expected 2"):
        run(np.zeros((4, 6), np.float32))
    with pytest.raises(ExecutionError, match="argument 1 of main has"):
        run(np.zeros((4, 6), np.float32), np.zeros((6, 4), np.float32))


@pytest.mark.parametrize(
    ("text", "devices", "reason"),
    [
        (PRODUCT, (), "there are no devices, expected the name of one, or of several GPUs"),
        (PRODUCT, ("cuda:0", "cuda:0"), "the devices are cuda:0, cuda:0, expected different GPUs"),
        (PRODUCT, ("cuda:0", "cpu"), "the devices are cuda:0, cpu:0, expected different GPUs"),
        (
            f"module attributes {{mhlo.num_partitions = 4 : i32}} {{{SHARDED}}}",
            BOTH,
            "1 replicas of 4 partitions, expec",
        ),
        (
            f"module attributes {{mhlo.num_replicas = 2 : i32}} {{{SHARDED}}}",
            BOTH,
            "2 replicas of 1 partitions, expected",
        ),
        (SHARDED.replace("2x4x", "?x4x"), BOTH, "main has dynamic shapes, expected static ones for several devices"),
        (SHARDED.replace('"x"=2', '"x"=4'), BOTH, "mesh"),
    ],
)
def test_what_is_refused(text: str, devices: tuple[str, ...], reason: str) -> None:
    with pytest.raises((CompileError, Error), match=reason):
        trivium.compile(trivium.parse(text), device=devices)


def test_a_list_of_one_device() -> None:
    run = trivium.compile(trivium.parse(SHARDED), device=["cuda:1"])
    np.testing.assert_array_equal(run(X, X)[0], 2 * X)
