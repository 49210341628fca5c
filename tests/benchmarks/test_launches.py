"""What counts as a launch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import trivium
from benchmarks.launches import CALL, launches
from tests.compiler.lowering.test_scans import integers, running


def test_ours() -> None:
    total = """func.func @main(%x: tensor<Nxf32>) -> tensor<f32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<Nxf32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    assert launches(trivium.parse(total.replace("N", "1000"))) == 1
    assert launches(trivium.parse(total.replace("N", "1000000"))) == 2
    assert launches(running(integers(5000), 0)) == 1
    assert launches(running(integers(50_000), 0)) == 3


def test_theirs() -> None:
    code = """
    buf0 = empty((3,))
    cpp_fused_add_0(arg0, buf0)
    buf1 = extern_kernels.mm(buf0, arg1)
    buf2 = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(buf1, buf0)
    del buf0
"""
    assert CALL.findall(code) == [
        "cpp_fused_add_0", "extern_kernels.mm", "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default"
    ]  # fmt: skip
