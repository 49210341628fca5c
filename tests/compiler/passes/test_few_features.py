"""Convolutions with few output features have those of several taps side by side, with the same result."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from trivium.compiler.passes.few_features import FewFeatures
from trivium.compiler.passes.manager import run_passes
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate


def convolution(
    image: str, kernel: str, result: str, window: str = "", kernels: str = "", dtype: str = "f32"
) -> Module:
    """Returns a convolution of an image with its features last; a kernel's are last, too, unless `kernels` says
    otherwise."""
    x, y, z = (f"{shape}x{dtype}" for shape in (image, kernel, result))
    rank = image.count("x") + 1
    spatial = ", ".join(map(str, range(rank - 2)))
    numbers = f"[b, {spatial}, f]x[{kernels or spatial + ', i, o'}]->[b, {spatial}, f]"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = {numbers}, window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")


def window_after(module: Module) -> tuple[int, ...]:
    """Returns the window, and the features, after the pass, which must have the same result as before."""
    after = run_passes(module.clone(), (FewFeatures(64),), verify=True)
    generator = np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
    given[1].flat[given[1].size // 2] = np.inf  # times the zeros around the image
    with np.errstate(invalid="ignore"):
        found, expected = (evaluate(one, *given)[0].astype(np.float64) for one in (after, module))
    np.testing.assert_array_equal(found, expected)
    (op,) = [op for op in after.main.walk() if isinstance(op, ops.Convolution)]
    numbers = op.dimension_numbers
    dimensions = *numbers.kernel_spatial_dimensions, numbers.kernel_output_feature_dimension
    return tuple(op.rhs.type.static_shape[d] for d in dimensions)


@pytest.mark.parametrize(
    ("module", "window"),
    [
        (convolution("2x9x8x64", "3x3x64x1", "2x9x8x1", "pad = [[1, 1], [1, 1]]"), (1, 1, 9)),
        (convolution("2x9x8x64", "3x3x64x3", "2x7x6x3"), (1, 3, 9)),
        # Rows that a stride leaves out stay in the window.
        (convolution("1x9x9x64", "3x3x64x3", "1x4x7x3", "stride = [2, 1]"), (3, 1, 9)),
        (convolution("1x9x12x64", "3x3x64x2", "1x9x6x2", "pad = [[2, 2], [-1, -1]], rhs_dilate = [2, 2]"), (1, 3, 6)),
        (convolution("1x9x9x32", "2x32x9x9", "1x9x9x2", "pad = [[4, 4], [3, 5]]", "o, i, 0, 1"), (1, 9, 18)),
        (convolution("2x40x64", "15x64x1", "2x40x1", "pad = [[7, 7]]"), (1, 15)),
        (convolution("1x5x6x7x32", "3x3x3x32x2", "1x5x6x7x2", "pad = [[1, 1], [1, 1], [1, 1]]"), (1, 1, 3, 18)),
        (convolution("2x9x8x64", "3x3x64x2", "2x7x6x2", dtype="f64"), (1, 3, 6)),
    ],
    ids=str,
)
def test_taps_are_side_by_side(module: Module, window: tuple[int, ...]) -> None:
    assert window_after(module) == window


@pytest.mark.parametrize(
    ("module", "window"),
    [
        (convolution("2x9x8x64", "3x3x64x16", "2x7x6x16"), (3, 3, 16)),  # the features fill a vector
        (convolution("2x9x8x4", "3x3x4x2", "2x7x6x2"), (3, 3, 2)),  # moving images would take longer
        (convolution("2x9x8x64", "1x1x64x2", "2x9x8x2"), (1, 1, 2)),
        (convolution("1x9x9x64", "3x3x64x1", "1x4x4x1", "stride = [2, 2]"), (3, 3, 1)),
        (convolution("1x9x9x64", "3x3x64x1", "1x15x15x1", "lhs_dilate = [2, 2]"), (3, 3, 1)),
        (convolution("2x9x8x64", "3x3x64x1", "2x7x6x1", dtype="bf16"), (3, 3, 1)),  # sums would be rounded
    ],
    ids=str,
)
def test_others_stay(module: Module, window: tuple[int, ...]) -> None:
    assert window_after(module) == window
