"""Several processes of one program: the programs of StableHLO, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.ir.equality import difference
from trivium.ir.errors import ConstraintKind, Error, ExecutionError, VerificationError
from trivium.ir.interpreter import evaluate
from trivium.ir.parallel import run_parallel
from trivium.ir.text import parse, print_module

GATHER = """
func.func @main(%0: tensor<1xi32>) -> tensor<2xi32> {
  %1 = "stablehlo.all_gather"(%0) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
    : (tensor<1xi32>) -> tensor<2xi32>
  return %1 : tensor<2xi32>
}
func.func @alone(%0: tensor<1xi32>) -> tensor<1xi32> {
  return %0 : tensor<1xi32>
}
func.func @fails(%0: tensor<1xi32>) -> tensor<1xi32> {
  %1 = stablehlo.custom_call @unheard.of(%0) : (tensor<1xi32>) -> tensor<1xi32>
  return %1 : tensor<1xi32>
}
"""
INFEED = """
func.func @main() -> tensor<i32> {
  %0 = stablehlo.create_token : !stablehlo.token
  %1:2 = "stablehlo.infeed"(%0) : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
  %2:2 = "stablehlo.infeed"(%1#1) : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
  %3 = "stablehlo.outfeed"(%1#0, %2#1) : (tensor<i32>, !stablehlo.token) -> !stablehlo.token
  %4 = stablehlo.subtract %1#0, %2#0 : tensor<i32>
  return %4 : tensor<i32>
}
"""
ASYNCHRONOUS = """
func.func @main(%0: tensor<1xi32>) -> tensor<1xi32> {
  %1 = "stablehlo.async_start"(%0) ({
  ^bb0(%2: tensor<1xi32>):
    %3 = "stablehlo.collective_broadcast"(%2) {replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}
      : (tensor<1xi32>) -> tensor<1xi32>
    stablehlo.return %3 : tensor<1xi32>
  }) : (tensor<1xi32>) -> !stablehlo.future<tensor<1xi32>>
  %4 = "stablehlo.async_done"(%1) : (!stablehlo.future<tensor<1xi32>>) -> tensor<1xi32>
  return %4 : tensor<1xi32>
}
"""
RING = """
func.func @main(%0: tensor<1xi32>) -> tensor<1xi32> {
  %1 = stablehlo.create_token : !stablehlo.token
  %2 = "stablehlo.send"(%0, %1) {channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>,
    source_target_pairs = dense<[[0, 1], [1, 2], [2, 0]]> : tensor<3x2xi64>}
    : (tensor<1xi32>, !stablehlo.token) -> !stablehlo.token
  %3:2 = "stablehlo.recv"(%2) {channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>,
    source_target_pairs = dense<[[0, 1], [1, 2], [2, 0]]> : tensor<3x2xi64>}
    : (!stablehlo.token) -> (tensor<1xi32>, !stablehlo.token)
  return %3#0 : tensor<1xi32>
}
"""
ONE, TWO = np.int32([1]), np.int32([2])


def test_processes_meet() -> None:
    results = run_parallel(parse(GATHER), [["main"], ["main"]], [[ONE], [TWO]])
    for (result,) in results:
        np.testing.assert_array_equal(result, [1, 2])


def test_a_single_process_reports_the_missing_ones() -> None:
    with pytest.raises(ExecutionError, match=r"all_gather needs process \(1, 0\), but only 1 run"):
        evaluate(parse(GATHER), ONE)


def test_waiting_for_a_process_that_ended_is_an_error() -> None:
    with pytest.raises(ExecutionError, match=r"waits for all_gather .* no process is left to act"):
        run_parallel(parse(GATHER), [["main"], ["alone"]], [[ONE], [TWO]])


def test_the_first_error_ends_all() -> None:
    with pytest.raises(Error, match=r"unheard\.of"):
        run_parallel(parse(GATHER), [["main"], ["fails"]], [[ONE], [TWO]])


def test_values_go_from_sources_to_targets() -> None:
    results = run_parallel(parse(RING), [["main"]] * 3, [[np.int32([number])] for number in range(3)])
    assert [result.tolist() for (result,) in results] == [[2], [0], [1]]
    module = parse(RING.replace("handle = 0", "handle = 1"))
    with pytest.raises(ExecutionError, match=r"no pair whose target is this process, \(0, 3\)"):
        run_parallel(module, [["main"] * 4], [[np.int32([number])] for number in range(4)])


def test_infeed() -> None:
    ((result,),) = run_parallel(parse(INFEED), [["main"]], [[]], [[np.int32(7)], [np.int32(3)]])
    assert result == 4
    with pytest.raises(ExecutionError, match="the infeed has no values left"):
        evaluate(parse(INFEED))


def test_asynchronous_collectives() -> None:
    module = parse(ASYNCHRONOUS)
    module.verify()
    assert difference(parse(print_module(module)), module) == ""
    for (result,) in run_parallel(module, [["main"], ["main"]], [[ONE], [TWO]]):
        np.testing.assert_array_equal(result, TWO)


REDUCE = """
func.func @main(%0: tensor<1xi32>, %root: tensor<1xi32>) -> tensor<1xi32> {
  %1 = "stablehlo.collective_reduce"(%0, %root) <{ATTRIBUTES, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %2 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  return %1 : tensor<1xi32>
}
"""
GLOBAL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, has_dynamic_root, use_global_device_ids"


@pytest.mark.parametrize(
    ("attributes", "grid"),
    [("has_dynamic_root", [["main"]] * 4), (GLOBAL, [["main"] * 2] * 2)],
    ids=["local", "global"],
)
def test_a_reduction_to_a_dynamic_root(attributes: str, grid: list[list[str]]) -> None:
    """The process that the last operand names has the sum; all other processes have zeros."""
    module = parse(REDUCE.replace("ATTRIBUTES", attributes))
    module.verify()
    assert difference(parse(print_module(module)), module) == ""
    results = run_parallel(module, grid, [[np.int32([10**place]), np.int32([2])] for place in range(4)])
    assert [result.tolist() for (result,) in results] == [[0], [0], [111], [0]]


ALL_REDUCE = """
func.func @main(%0: tensor<1xi32>, %1: tensor<2xi32>) -> (tensor<1xi32>, tensor<2xi32>) {
  %2:2 = "stablehlo.all_reduce"(%0, %1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %3 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %3 : tensor<i32>
  }) : (tensor<1xi32>, tensor<2xi32>) -> (tensor<1xi32>, tensor<2xi32>)
  return %2#0, %2#1 : tensor<1xi32>, tensor<2xi32>
}
"""


def test_one_computation_reduces_several_operands() -> None:
    module = parse(ALL_REDUCE)
    module.verify()
    results = run_parallel(module, [["main"]] * 2, [[np.int32([place]), np.int32([10, place])] for place in (1, 2)])
    assert [[array.tolist() for array in arrays] for arrays in results] == [[[3], [20, 3]]] * 2


def test_groups_hold_against_the_processes_that_run() -> None:
    module = parse(GATHER)
    with pytest.raises(
        VerificationError, match=r"all_gather: \[C3\] replica_groups has 2 processes, .* runs as 3"
    ) as caught:
        run_parallel(module, [["main"], ["main"], ["main"]], [[np.int32([1])]] * 3)
    assert caught.value.kind is ConstraintKind.CONFIGURATION
    assert caught.value.source == "<text>:3:8"
