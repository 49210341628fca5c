"""Constant kernels of convolutions are transposed when a program is compiled, on devices that do not pack them; kernels
get their input features last for devices that copy rows of terms by themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import trivium
from trivium.backends.gpu import nvptx
from trivium.compiler.passes.kernels import KernelsByTerms, TurnedKernels
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


@pytest.mark.parametrize(
    ("image", "kernel", "result", "dtype", "order"),
    [
        ("4x18x18x64", "64x3x3x8", "4x16x16x8", "bf16", "i, 0, 1, o"),
        ("4x18x18x64", "3x3x64x8", "4x16x16x8", "bf16", "0, 1, i, o"),
        ("4x18x18x32", "3x3x32x8", "4x16x16x8", "f32", "0, 1, i, o"),
        ("4x18x18x48", "3x3x48x8", "4x16x16x8", "bf16", None),  # no whole lines
        ("1x18x18x64", "3x3x64x8", "1x16x16x8", "bf16", None),  # few results
        ("4x18x18x64", "1x1x64x8", "4x18x18x8", "bf16", None),
    ],
)
def test_rows_of_terms(image: str, kernel: str, result: str, dtype: str, order: str | None) -> None:
    x, y, z = (f"{shape}x{dtype}" for shape in (image, kernel, result))
    module = trivium.parse(f"""func.func @main(%x: tensor<{x}>, %k: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[{order or "0, 1, i, o"}]->[b, 0, 1, f],
        window = {{}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")
    target = replace(nvptx.target("sm_90a"), tf32=True)
    after = run_passes(module.clone(), (KernelsByTerms(target),), verify=True)
    (convolution,) = [op for op in after.main.walk() if isinstance(op, ops.Convolution)]
    features = int(image.rpartition("x")[2])
    assert (convolution.rhs.type.static_shape == (8, 3, 3, features)) is (order is not None)
    kinds = [argument.type for argument in module.main.body.arguments]
    generator = np.random.default_rng(0)
    given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
    np.testing.assert_array_equal(evaluate(after, *given)[0], evaluate(module, *given)[0])
    assert not KernelsByTerms(nvptx.target("sm_90")).run(module.clone())
