"""Instructions and their numbers, channels and sources."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.jax

pytest.importorskip("jaxlib")

from tests.backends.plugin.hlo.reading import shown, written


def test_each_collective_has_a_channel() -> None:
    gather = (
        '"stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, '
        "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : "
        "(tensor<4xf32>) -> tensor<8xf32>"
    )
    other = gather.replace("[[0, 1]]", "[[1, 0]]")
    program = f"""func.func @main(%x: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {{
      %0 = {gather}
      %1 = {other}
      return %0, %1 : tensor<8xf32>, tensor<8xf32>
    }}"""
    text = shown(written(program, partitions=2))
    assert "channel_id=1, replica_groups={{0,1}}" in text
    assert "channel_id=2, replica_groups={{1,0}}" in text


def test_the_source_of_an_instruction() -> None:
    program = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.sine %x : tensor<4xf32> loc("layer/sin"(callsite("model.py":7:3 at "train.py":1:1)))
      return %0 : tensor<4xf32>
    }"""
    assert 'metadata={op_name="layer/sin" source_file="model.py" source_line=7}' in shown(written(program))
