"""Whole programs, as XLA reads them: arguments and results in the layouts of hosts, donated memory, and the parts that
devices hold."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.jax

pytest.importorskip("jaxlib")

from tests.backends.plugin.hlo.reading import module_of, run, shown, written
from tests.backends.plugin.hlo.test_instructions import LOST
from tests.backends.plugin.test_division import CASES, divided
from tests.ir.ops.test_records import widest
from tests.random_programs.arrays import values
from tests.random_programs.generator import SEED
from tests.random_programs.programs import random_program
from trivium.backends.plugin.division import divide
from trivium.backends.plugin.hlo import Port
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

ADD = """func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = stablehlo.add %x, %y : tensor<4x6xf32>
  return %0, %y : tensor<4x6xf32>, tensor<4x6xf32>
}"""


def test_memory_that_results_may_take() -> None:
    text = shown(written(ADD, results_in=[1, -1], donated=[True, True]))
    assert "input_output_alias={ {1}: (0, {}, may-alias) }" in text
    assert "buffer_donor={ (1, {}) }" in text


def test_a_single_result_is_no_tuple() -> None:
    program = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    text = shown(written(program, results_in=[0], donated=[True]))
    assert "->f32[4]{0}}" in text
    assert "{ {}: (0, {}, may-alias) }" in text


def test_no_result_is_an_empty_tuple() -> None:
    assert "->()}" in shown(written("func.func @main(%x: tensor<4xf32>) { return }"))


def test_layouts_of_hosts() -> None:
    """The program takes an array with its dimensions in the order of memory."""
    turned, usual = Port(order=(0, 1)), Port()
    text = shown(written(ADD, arguments=[usual, turned], results=[turned, usual]))
    layout = "entry_computation_layout={(f32[4,6]{1,0}, f32[6,4]{0,1})->(f32[6,4]{0,1}, f32[4,6]{1,0})}"
    assert layout in text
    assert text.count(" bitcast(") == 2


def test_layouts_are_the_identity_in_memory() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    found = run(ADD, (x, x.reshape(6, 4)), arguments=[Port(), Port(order=(0, 1))])
    assert [each.shape for each in found] == [(4, 6), (4, 6)]


SHARDED = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%x: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = stablehlo.sine %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""


def test_parts_of_devices() -> None:
    """Parts are gathered before the program, which computes with wholes, and each device takes its part."""
    found = divide(parse(SHARDED), 1, 4)
    assert found is not None
    division = found.division
    text = shown(
        written(
            found.program.module,
            partitions=4,
            arguments=[Port(held=held) for held in division.arguments],
            results=[Port(held=held) for held in division.results],
            shardings=division.shardings,
        )
    )
    assert "f32[2,8]{1,0} all-gather(%Arg_0" in text
    assert "replica_groups={{0,1},{2,3}}, dimensions={1}, use_global_device_ids=true" in text
    assert "replica_groups={{0,2},{1,3}}, dimensions={0}, use_global_device_ids=true" in text
    assert "s32[4]{0} constant({0, 2, 0, 2})" in text
    assert "dynamic_slice_sizes={2,8}" in text
    assert " partition-id()" in text


@pytest.mark.parametrize("name", CASES)
def test_shardings(name: str) -> None:
    from jaxlib import _hlo

    mesh, sharding, wanted = CASES[name]
    found = divided(mesh, sharding)
    program = written(found.program.module, partitions=found.division.count, shardings=found.division.shardings)
    module = _hlo.HloModule.from_serialized_hlo_module_proto(module_of(program))
    read = [module.spmd_output_sharding, module.spmd_parameters_shardings[0]]
    # XLA orders the devices with terms before those with copies.
    expected = wanted.replace("0,1,2,3 last_tile_dims={replicated,un", "0,2,1,3 last_tile_dims={unreduced, ").replace(
        "unreduced, reduced}", "unreduced, replicated}"
    )
    assert [str(_hlo.HloSharding.from_proto(each)) for each in read] == [expected, expected]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    """XLA accepts them and, as far as StableHLO has words for what it read, they compute the same."""
    module = random_program(seed)
    if any(word in shown(written(module)) for word in LOST):
        return
    arguments = enumerate(module.main.arguments)
    arrays = [values(module.main.argument_attributes(index)[SEED].value, each.type) for index, each in arguments]
    for found, wanted in zip(run(module, arrays), evaluate(module, *arrays), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(widest(found), widest(wanted), rtol=1e-3, atol=1e-5)
