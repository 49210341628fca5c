"""Tiles of products and convolutions that a program for several sizes does not need."""

from __future__ import annotations

import pytest

from tests.backends.cpu.ended import require


@pytest.mark.parametrize("extents", [(5, 33), (2, 33), (5, 9), (1, 1), (0, 33)], ids=str)
@pytest.mark.parametrize("width", [1, 3, 16, 70])
def test_tiles_of_products_behind_the_ends_are_skipped(width: int, extents: tuple[int, int]) -> None:
    """The rows of a batch, flattened."""
    body = f"""
      %f = stablehlo.reshape %x0 : (tensor<5x33x20xf32>) -> tensor<165x20xf32>
      %p = stablehlo.dot_general %f, %x1, contracting_dims = [1] x [0]
        : (tensor<165x20xf32>, tensor<20x{width}xf32>) -> tensor<165x{width}xf32>
      %r = stablehlo.reshape %p : (tensor<165x{width}xf32>) -> tensor<5x33x{width}xf32>"""
    shape = (5, 33, width)
    share = require(body, ["5x33x20xf32", f"20x{width}xf32"], shape, [0, 1, -1], list(extents))
    if max(extents) < 33 and width > 3:
        assert share > 0.5


@pytest.mark.parametrize("extents", [(3, 4, 50, 60), (2, 4, 11, 60), (3, 1, 50, 9), (1, 2, 13, 31)], ids=str)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2), (2, 0, 3, 1)], ids=str)
def test_batches_rows_and_columns_may_end(order: tuple[int, ...], extents: tuple[int, ...]) -> None:
    """With any layout of the result, which decides what are rows and what are columns."""
    shape = tuple((3, 4, 50, 60)[d] for d in order)
    body = f"""
      %p = stablehlo.dot_general %x0, %x1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
        : (tensor<3x4x50x24xf32>, tensor<3x4x60x24xf32>) -> tensor<3x4x50x60xf32>
      %r = stablehlo.transpose %p, dims = [{", ".join(map(str, order))}]
        : (tensor<3x4x50x60xf32>) -> tensor<{"x".join(map(str, shape))}xf32>"""
    require(body, ["3x4x50x24xf32", "3x4x60x24xf32"], shape, list(order), list(extents))


@pytest.mark.parametrize("images", [3, 1, 0])
def test_images_of_a_batch_may_end(images: int) -> None:
    body = """
      %r = stablehlo.convolution(%x0, %x1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<4x9x9x8xf32>, tensor<3x3x8x16xf32>) -> tensor<4x9x9x16xf32>"""
    share = require(body, ["4x9x9x8xf32", "3x3x8x16xf32"], (4, 9, 9, 16), [0, -1, -1, -1], [images])
    assert share > 0.8
