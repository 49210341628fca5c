"""Programs in the reference for ops that make no sense alone: tokens, tuples, communication between processes,
calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """The text of a program, the arguments of each replica that runs its `main`, and the values in the infeed."""

    text: str
    arguments: Sequence[Sequence[Any]] = ((),)
    infeed: Sequence[Sequence[Any]] = ()


_TOKENS = Program("""
func.func @main() -> tensor<i32> {
  %0 = stablehlo.create_token : !stablehlo.token
  %1 = stablehlo.after_all %0, %0 : !stablehlo.token
  %2 = stablehlo.constant dense<1> : tensor<i32>
  return %2 : tensor<i32>
}""")

_FEEDS = Program(
    """
func.func @main() -> tensor<2xi32> {
  %0 = stablehlo.create_token : !stablehlo.token
  %1:2 = "stablehlo.infeed"(%0) : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  %2 = "stablehlo.outfeed"(%1#0, %1#1) : (tensor<2xi32>, !stablehlo.token) -> !stablehlo.token
  return %1#0 : tensor<2xi32>
}""",
    infeed=[(np.array([3, 4], np.int32),)],
)

_CHANNEL = Program(
    """
func.func @main(%0: tensor<2xi32>) -> tensor<2xi32> {
  %1 = stablehlo.create_token : !stablehlo.token
  %2 = "stablehlo.send"(%0, %1) {channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>,
    source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}
    : (tensor<2xi32>, !stablehlo.token) -> !stablehlo.token
  %3:2 = "stablehlo.recv"(%2) {channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>,
    source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}
    : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  return %3#0 : tensor<2xi32>
}""",
    arguments=[([1, 2],), ([3, 4],)],
)

_ASYNCHRONOUS = Program(
    """
func.func @main(%0: tensor<2xi32>) -> tensor<2xi32> {
  %1 = "stablehlo.async_start"(%0) ({
  ^bb0(%2: tensor<2xi32>):
    %3 = "stablehlo.collective_broadcast"(%2) {replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}
      : (tensor<2xi32>) -> tensor<2xi32>
    stablehlo.return %3 : tensor<2xi32>
  }) : (tensor<2xi32>) -> !stablehlo.future<tensor<2xi32>>
  %4 = "stablehlo.async_done"(%1) : (!stablehlo.future<tensor<2xi32>>) -> tensor<2xi32>
  return %4 : tensor<2xi32>
}""",
    arguments=[([1, 2],), ([3, 4],)],
)

_TUPLE = Program("""
func.func @main() -> tensor<f32> {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.constant dense<0.5> : tensor<f32>
  %2 = stablehlo.tuple %0, %1 : tuple<tensor<2xi32>, tensor<f32>>
  %3 = stablehlo.get_tuple_element %2[1] : (tuple<tensor<2xi32>, tensor<f32>>) -> tensor<f32>
  return %3 : tensor<f32>
}""")

_REGION = Program(
    """
func.func @main(%0: tensor<i1>) -> tensor<i32> {
  %1 = "stablehlo.if"(%0) ({
    %2 = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }, {
    %2 = stablehlo.constant dense<2> : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  return %1 : tensor<i32>
}""",
    arguments=[(False,)],
)

_COMPOSITE = Program(
    """
func.func @main(%0: tensor<2xi32>) -> tensor<2xi32> {
  %1 = stablehlo.composite "my.twice" %0 {decomposition = @twice} : (tensor<2xi32>) -> tensor<2xi32>
  return %1 : tensor<2xi32>
}
func.func private @twice(%0: tensor<2xi32>) -> tensor<2xi32> {
  %1 = stablehlo.add %0, %0 : tensor<2xi32>
  return %1 : tensor<2xi32>
}""",
    arguments=[([1, 2],)],
)

_SHARDED = Program(
    """
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @main(%0: tensor<4xi32>) -> tensor<4xi32> {
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<4xi32>
    %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<4xi32>
    sdy.sharding_group %2 group_id=0 : tensor<4xi32>
    return %2 : tensor<4xi32>
  }
}""",
    arguments=[([1, 2, 3, 4],)],
)

_MANUAL = Program(
    """
module {
  sdy.mesh @mesh = <["x"=1]>
  func.func @main(%0: tensor<2xi32>) -> tensor<2xi32> {
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"}
      (%2: tensor<2xi32>) {
      %3 = stablehlo.add %2, %2 : tensor<2xi32>
      sdy.return %3 : tensor<2xi32>
    } : (tensor<2xi32>) -> tensor<2xi32>
    return %1 : tensor<2xi32>
  }
}""",
    arguments=[([1, 2],)],
)

PROGRAMS = {
    **dict.fromkeys(("stablehlo.after_all", "stablehlo.create_token"), _TOKENS),
    **dict.fromkeys(("stablehlo.infeed", "stablehlo.outfeed"), _FEEDS),
    **dict.fromkeys(("stablehlo.recv", "stablehlo.send"), _CHANNEL),
    **dict.fromkeys(("stablehlo.async_done", "stablehlo.async_start"), _ASYNCHRONOUS),
    **dict.fromkeys(("stablehlo.get_tuple_element", "stablehlo.tuple"), _TUPLE),
    **dict.fromkeys(("sdy.mesh", "sdy.reshard", "sdy.sharding_constraint", "sdy.sharding_group"), _SHARDED),
    **dict.fromkeys(("sdy.manual_computation", "sdy.return"), _MANUAL),
    "stablehlo.composite": _COMPOSITE,
    "stablehlo.return": _REGION,
}
"""The programs, by the name of the op that they show."""
