"""Programs for several devices: the program of each device, run in the interpreter of programs, compared with the
results of JAX's devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.compiler.targets import TARGET
from tests.ir.collective_programs import ARRAY, DEVICES, FLAGS, NAMES
from trivium.compiler.interpreter import interpret_devices
from trivium.compiler.lower import lower
from trivium.compiler.passes.partition import Partitioned, partition
from trivium.compiler.pipeline import inline, optimize
from trivium.ir.errors import CompileError
from trivium.ir.text import parse


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[str, np.ndarray]:
    path = tmp_path_factory.mktemp("collectives") / "programs.npz"
    command = [sys.executable, "-m", "tests.ir.collective_programs", str(path)]
    subprocess.run(command, check=True, env={**os.environ, **FLAGS}, cwd=Path(__file__).parents[3], timeout=300)
    with np.load(path) as found:
        return dict(found)


def run(divided: Partitioned, *wholes: np.ndarray) -> list[list[np.ndarray]]:
    """Returns the results of each device. Devices are given wholes or parts, as the program takes them."""
    program = lower(optimize(divided.module), TARGET)
    given = []
    for device in range(len(divided.arguments[0].part.begins)):
        arguments = [
            whole if held.is_whole else whole[tuple(map(slice, begins, np.add(begins, held.part.shape)))]
            for whole, held in zip(wholes, divided.arguments, strict=True)
            for begins in [held.part.begins[device]]
        ]
        given.append([*arguments, np.array(device, np.uint32)] if divided.has_device else arguments)
    return interpret_devices(program, given)


@pytest.mark.jax
@pytest.mark.parametrize("name", NAMES)
def test_collectives_of_jax(name: str, programs: dict[str, np.ndarray]) -> None:
    divided = partition(inline(parse(str(programs[f"{name}.text"]))), 1, DEVICES)
    divided.module.verify()
    assert not divided.is_shared
    assert [held.is_whole for held in divided.results] == [False]
    found = np.concatenate([results[0] for results in run(divided, ARRAY)])
    np.testing.assert_array_equal(found, programs[f"{name}.result"])


MESH = 'sdy.mesh @mesh = <["x"=2]>'
ROWS = '#sdy.sharding<@mesh, [{"x"}, {}]>'


def program(body: str, result: str = "tensor<4x6xf32>", sharding: str = "") -> str:
    return f"""{MESH}
    func.func @main(%x: tensor<4x6xf32> {{sdy.sharding = {ROWS}}}) -> ({result}{sharding}) {{
      {body}
    }}"""


DOUBLED = """%y = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
  manual_axes={"x"} (%part: tensor<2x6xf32>) {
    %twice = stablehlo.add %part, %part : tensor<2x6xf32>
    sdy.return %twice : tensor<2x6xf32>
  } : (tensor<4x6xf32>) -> tensor<4x6xf32>"""


def divided(text: str) -> Partitioned:
    return partition(inline(parse(text)), 1, 2)


def test_parts_stay_parts() -> None:
    found = divided(program(f"{DOUBLED}\n return %y : tensor<4x6xf32>", sharding=f" {{sdy.sharding = {ROWS}}}"))
    assert [held.is_whole for held in (*found.arguments, *found.results)] == [False, False]
    assert not found.has_device
    assert "all_gather" not in str(found.module)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(np.concatenate([result for (result,) in run(found, x)]), 2 * x)


NESTED = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %y = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
    manual_axes={"x"} (%rows: tensor<4x4xf32>) {
      %z = sdy.manual_computation(%rows) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>]
        manual_axes={"y"} (%part: tensor<4x2xf32>) {
          %n = stablehlo.partition_id : tensor<ui32>
          %f = stablehlo.convert %n : (tensor<ui32>) -> tensor<f32>
          %all = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
          %sum = stablehlo.add %part, %all : tensor<4x2xf32>
          sdy.return %sum : tensor<4x2xf32>
        } : (tensor<4x4xf32>) -> tensor<4x4xf32>
      sdy.return %z : tensor<4x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}"""


def test_parts_are_divided_further() -> None:
    found = partition(inline(parse(NESTED)), 1, 4)
    found.module.verify()
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    expected = x + np.kron([[0, 1], [2, 3]], np.ones((4, 2)))
    for device, (result,) in enumerate(run(found, x)):
        first = found.results[0].part.begins[device][0]
        np.testing.assert_array_equal(result, expected[first : first + len(result)])


def test_what_is_outside_is_computed_in_parts_or_on_wholes() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    sum_ = f"{DOUBLED}\n %z = stablehlo.add %x, %y : tensor<4x6xf32>"
    found = divided(program(f"{sum_}\n return %z : tensor<4x6xf32>"))
    assert [held.is_whole for held in (*found.arguments, *found.results)] == [False, False]
    assert not found.exchanges
    assert "all_gather" not in str(found.module)
    np.testing.assert_array_equal(np.concatenate([result for (result,) in run(found, x)]), 3 * x)
    turned = f"{sum_}\n %r = stablehlo.reverse %z, dims = [0] : tensor<4x6xf32>\n return %r : tensor<4x6xf32>"
    found = divided(program(turned))
    assert [held.is_whole for held in (*found.arguments, *found.results)] == [True, True]
    assert found.exchanges
    for (result,) in run(found, x):
        np.testing.assert_array_equal(result, 3 * x[::-1])


def test_computations_that_follow_each_other_keep_their_parts() -> None:
    again = DOUBLED.replace("%y =", "%z =").replace("computation(%x)", "computation(%y)").replace("%twice", "%more")
    found = divided(program(f"{DOUBLED}\n {again}\n return %z : tensor<4x6xf32>"))
    assert not found.exchanges
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(np.concatenate([result for (result,) in run(found, x)]), 4 * x)


REVERSED = "%y = stablehlo.reverse %x, dims = [0] : tensor<4x6xf32>\n return %y : tensor<4x6xf32>"


def test_devices_that_would_have_to_exchange_something_share_a_run() -> None:
    found = divided(program(REVERSED))
    assert found.is_shared
    assert found.arguments[0].is_whole
    assert found.results[0].is_whole
    assert found.arguments[0].part.shape == found.results[0].part.shape == (2, 6)


def test_arguments_that_are_returned_keep_their_parts() -> None:
    found = divided(program("return %x : tensor<4x6xf32>"))
    assert found.results[0].part == found.arguments[0].part


def test_shardings_of_xla() -> None:
    text = program("return %x : tensor<4x6xf32>").replace(
        f"sdy.sharding = {ROWS}", 'mhlo.sharding = "{devices=[1,2]<=[2]}"'
    )
    assert divided(text).arguments[0].part.shape == (4, 3)


def test_replicas_and_partitions_at_once_are_refused() -> None:
    with pytest.raises(CompileError, match="2 replicas of 2 partitions"):
        partition(inline(parse(program("return %x : tensor<4x6xf32>"))), 2, 2)


TERMS = '#sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>'


def test_terms_are_added_up() -> None:
    text = program("%y = stablehlo.multiply %x, %x : tensor<4x6xf32>\n return %y : tensor<4x6xf32>")
    found = divided(text.replace(ROWS, TERMS))
    assert not found.is_shared
    assert found.arguments[0].part.terms == ((0, 1),)
    one, other = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    for (result,) in interpret_devices(lower(optimize(found.module), TARGET), [[one], [other]]):
        np.testing.assert_array_equal(result, (one + other) ** 2)


def test_results_as_terms() -> None:
    text = program("%y = stablehlo.add %x, %x : tensor<4x6xf32>\n return %y : tensor<4x6xf32>")
    found = divided(text.replace("-> (tensor<4x6xf32>)", f"-> (tensor<4x6xf32> {{sdy.sharding = {TERMS}}})"))
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    first, second = (result for (result,) in run(found, x))
    np.testing.assert_array_equal(first + second, 2 * x)
    assert not found.results[0].is_whole
