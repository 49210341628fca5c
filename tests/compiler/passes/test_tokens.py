"""Exchanges with the host, which only a host can run: the forms in which they are lowered."""

import pytest

from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.tokens import EraseTokens
from trivium.ir.errors import UnsupportedOpError
from trivium.ir.text import parse

HOST = "channel_handle = #stablehlo.channel_handle<handle = {}, type = {}>, is_host_transfer = true"
EXCHANGE = f"""func.func @main(%x: tensor<i32>) -> tensor<i32> {{
  %0 = stablehlo.create_token : !stablehlo.token
  %1 = "stablehlo.send"(%x, %0) <{{{HOST.format(4, 2)}}}> : (tensor<i32>, !stablehlo.token) -> !stablehlo.token
  %2:2 = "stablehlo.recv"(%1) <{{{HOST.format(5, 3)}}}> : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
  return %2#0 : tensor<i32>
}}"""


def test_exchanges_become_calls():
    after = str(run_passes(parse(EXCHANGE), (EraseTokens(),), verify=True))
    assert [line.strip() for line in after.splitlines()][2:-2] == [
        "%c = stablehlo.constant dense<> : tensor<0xi1>",
        '%0 = stablehlo.custom_call @trivium.send(%x, %c) {backend_config = "4", has_side_effect = true} : '
        "(tensor<i32>, tensor<0xi1>) -> tensor<0xi1>",
        '%1:2 = stablehlo.custom_call @trivium.recv(%0) {backend_config = "5", has_side_effect = true} : '
        "(tensor<0xi1>) -> (tensor<i32>, tensor<0xi1>)",
        "return %1#0 : tensor<i32>",
    ]


def test_queues_are_refused():
    text = EXCHANGE.replace("return", '%3 = "stablehlo.outfeed"(%x, %1) : (tensor<i32>, !stablehlo.token) '
                            "-> !stablehlo.token\n  return", 1)  # fmt: skip
    with pytest.raises(UnsupportedOpError, match="other ways than on channels") as raised:
        run_passes(parse(text), (EraseTokens(),))
    assert [op.name for op in raised.value.ops] == ["stablehlo.outfeed"]
