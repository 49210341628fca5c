"""Sharding hints are removed by a separate pass, and by no other."""

from __future__ import annotations

import pytest

from trivium.compiler.passes.decompose import Decompose
from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.sharding import CALLS, DropSharding
from trivium.compiler.pipeline import optimize
from trivium.ir.custom_calls import CUSTOM_CALLS
from trivium.ir.func import Module
from trivium.ir.text import parse


def call(target: str, result: str = "tensor<4xf32>") -> Module:
    return parse(f"""func.func @main(%x: tensor<4xf32>) -> {result} {{
      %0 = stablehlo.custom_call @{target}(%x) : (tensor<4xf32>) -> {result}
      return %0 : {result}
    }}""")


@pytest.mark.parametrize("target", CALLS)
def test_a_hint_is_its_operand(target: str) -> None:
    assert target in CUSTOM_CALLS
    main = optimize(call(target), verify=True).main
    assert main.returned == tuple(main.arguments)


def test_decompositions_leave_hints_to_a_partitioner() -> None:
    assert "@Sharding" in str(run_passes(call("Sharding"), (Decompose(),)))
    assert "@Sharding" not in str(run_passes(call("Sharding"), (DropSharding(),)))


def test_a_call_that_changes_the_type_is_not_a_hint() -> None:
    """Only a partitioner knows the shards of a value."""
    module = call("SPMDFullToShardShape", "tensor<2xf32>")
    assert not DropSharding().run(module)
    assert "@SPMDFullToShardShape" in str(module)


def test_other_calls_stay() -> None:
    assert not DropSharding().run(call("cu_threefry2x32"))
