"""Constant kernels of convolutions are transposed when a program is compiled, on devices that do not pack them."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from trivium.compiler.passes.kernels import TurnedKernels
from trivium.compiler.passes.manager import run_passes
from trivium.ir import ops
from trivium.ir.interpreter import evaluate


@pytest.mark.parametrize(("known", "turned"), [(True, True), (False, False)])
@pytest.mark.parametrize("before", ["", "%t = stablehlo.transpose %k, dims = [1, 0, 2, 3] : "])
def test_constants(known: bool, turned: bool, before: str) -> None:
    """Also those that are transposed already, with one transpose in place of both."""
    kernel = "tensor<2x2x3x3xf32>"
    numbers = np.random.default_rng(0).integers(-3, 4, (2, 2, 3, 3)).astype(float).tolist()
    module = trivium.parse(f"""func.func @main(%x: tensor<1x5x5x2xf32>) -> tensor<1x3x3x2xf32> {{
      %k = stablehlo.constant dense<{numbers}> : {kernel}
      {f"{before}({kernel}) -> {kernel}" if before else ""}
      %0 = stablehlo.convolution(%x, {"%t" if before else "%k"}) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f],
        window = {{}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<1x5x5x2xf32>, {kernel}) -> tensor<1x3x3x2xf32>
      return %0 : tensor<1x3x3x2xf32>
    }}""")
    after = run_passes(module.clone(), (TurnedKernels(known=known),), verify=True)
    (convolution,) = [op for op in after.main.walk() if isinstance(op, ops.Convolution)]
    assert (convolution.rhs.type.static_shape == (3, 3, 2, 2)) is turned
    assert isinstance(convolution.rhs.defining_op, ops.Constant) is (turned or not before)
    image = np.random.default_rng(1).integers(-3, 4, (1, 5, 5, 2)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(after, image)[0], evaluate(module, image)[0])
