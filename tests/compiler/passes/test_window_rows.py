"""Convolutions with few input features get images whose features are rows of windows, in lines that a GPU copies by
itself. Results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from trivium.backends.gpu import nvptx
from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.window_rows import WindowRows
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

STEM, STEPS = "stride = [2, 2], pad = [[3, 3], [3, 3]]", "stride = [2, 1], pad = [[1, 1], [0, 0]]"
APART, BOTH_APART = "rhs_dilate = [2, 1]", "rhs_dilate = [2, 2]"

PASS = WindowRows(nvptx.target("sm_90a"))


def convolution(image: str, kernel: str, result: str, window: str, kernels: str = "0, 1, i, o") -> Module:
    """Returns a convolution of bf16."""
    x, y, z = f"{image}xbf16", f"{kernel}xbf16", f"{result}xbf16"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[{kernels}]->[b, 0, 1, f], window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")


def turned(module: Module) -> ops.Convolution:
    """Returns the convolution after the pass, which must have the same result as before."""
    after = run_passes(module.clone(), (PASS,), verify=True)
    generator = np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
    # Infinite numbers are not multiplied with zeros that were not there.
    given[0].flat[5] = given[0].flat[given[0].size // 16] = np.inf  # in the first row, and in the middle
    with np.errstate(invalid="ignore"):
        found, expected = (evaluate(one, *given)[0].astype(np.float32) for one in (after, module))
        np.testing.assert_array_equal(found, expected)
    (convolution,) = [op for op in after.main.walk() if isinstance(op, ops.Convolution)]
    return convolution


@pytest.mark.parametrize(
    ("module", "image"),
    [
        # Two rows, by which the stride moves the window.
        (convolution("8x24x24x3", "6x7x3x8", "8x13x12x8", STEM), (8, 15, 12, 64)),
        (convolution("8x24x24x3", "8x3x6x7", "8x13x12x8", STEM, "o, i, 0, 1"), (8, 15, 12, 64)),
        # One row, if two do not divide the window, or if rows and columns are apart.
        (convolution("8x24x24x3", "7x7x3x8", "8x12x12x8", STEM), (8, 29, 12, 64)),
        (convolution("8x20x24x3", "5x7x3x8", "8x12x12x8", BOTH_APART), (8, 20, 12, 64)),
        (convolution("4x20x24x4", "9x7x4x8", "4x16x18x8", "pad = [[2, 2], [0, 0]]"), (4, 24, 18, 64)),
        # A whole window.
        (convolution("8x20x24x3", "3x3x3x8", "8x10x22x8", STEPS), (8, 10, 22, 64)),
        (convolution("8x20x24x3", "3x3x3x8", "8x16x22x8", APART), (8, 16, 22, 64)),
    ],
)  # fmt: skip
def test_lines(module: Module, image: tuple[int, ...]) -> None:
    assert turned(module).lhs.type.static_shape == image


def test_what_the_image_is_made_from() -> None:
    """Pads and transposes are part of the lines."""
    x, y, z = "8x3x20x18xbf16", "7x7x3x8xbf16", "8x17x15x8xbf16"
    module = trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %zero = stablehlo.constant dense<0.0> : tensor<bf16>
      %a = stablehlo.pad %x, %zero, low = [0, 0, 2, 3], high = [0, 0, 1, 0], interior = [0, 0, 0, 0]
        : (tensor<8x3x20x18xbf16>, tensor<bf16>) -> tensor<8x3x23x21xbf16>
      %b = stablehlo.transpose %a, dims = [0, 2, 3, 1] : (tensor<8x3x23x21xbf16>) -> tensor<8x23x21x3xbf16>
      %0 = stablehlo.convolution(%b, %y) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<8x23x21x3xbf16>, tensor<7x7x3x8xbf16>) -> tensor<8x17x15x8xbf16>
      return %0 : tensor<8x17x15x8xbf16>
    }}""")
    image = turned(module).lhs
    gathers = [op for op in ops_before(image) if isinstance(op, ops.Gather)]
    (flat,) = [op.operand.defining_op.operand for op in gathers]  # type: ignore[union-attr]
    assert flat.defining_op is None


def ops_before(value: object) -> list[object]:
    found, left = [], [value]
    while left:
        op = getattr(left.pop(), "defining_op", None)
        if op is not None:
            found.append(op)
            left += op.operands
    return found


@pytest.mark.parametrize(
    "module",
    [
        convolution("8x24x24x16", "5x5x16x8", "8x20x20x8", ""),  # a row is longer than a line
        convolution("1x24x24x3", "3x3x3x8", "1x22x22x8", ""),  # few results
        convolution("8x24x24x3", "1x1x3x8", "8x24x24x8", ""),  # a plain product
        convolution("8x24x24x3", "3x3x3x8", "8x45x45x8", "lhs_dilate = [2, 2]"),
    ],
)
def test_what_stays(module: Module) -> None:
    assert turned(module).lhs.type == module.main.body.arguments[0].type


def test_other_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    module = convolution("8x20x24x3", "3x3x3x8", "8x18x22x8", "")
    assert not WindowRows(nvptx.target("sm_90")).run(module)
