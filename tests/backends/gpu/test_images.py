"""Convolutions whose images Hopper itself copies to shared memory, window by window, on the simulator: strides, edges,
dilation, one and three spatial dimensions, several tiles, types; which images can be copied like this; no copy or wait
may be missing; and what the driver refuses."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import trivium
from tests.backends.gpu import products, simulator
from tests.backends.gpu.products import schedules
from tests.backends.gpu.test_bulk import argument, calls, client, compiled, described, expect_all_needed, expect_exact
from trivium.backends.gpu import tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.plan import TensorMap
from trivium.ir.func import Module

__all__ = ["client"]

pytestmark = simulator.needs_simulator


def convolution(
    image: str, kernel: str, result: str, window: str, dtype: str = "bf16", dimensions: str = "0, 1"
) -> Module:
    """Returns a convolution whose kernel has its input features last."""
    x, y, z = f"{image}x{dtype}", f"{kernel}x{dtype}", f"{result}xf32"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y)
        dim_numbers = [b, {dimensions}, f]x[o, {dimensions}, i]->[b, {dimensions}, f], window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      %1 = stablehlo.negate %0 : tensor<{z}>
      return %1 : tensor<{z}>
    }}""")


APART = "rhs_dilate = [2, 2]"

SIMPLE = convolution("2x9x9x64", "24x3x3x64", "2x9x9x24", "pad = [[1, 1], [1, 1]]")


@pytest.mark.parametrize(
    "module",
    [
        SIMPLE,
        convolution("3x9x7x64", "24x3x2x64", "3x4x7x24", "stride = [2, 1], pad = [[0, 1], [1, 0]]"),
        convolution(
            "2x11x12x64", "24x3x3x64", "2x7x6x24", "stride = [1, 2], pad = [[0, 0], [2, 1]], rhs_dilate = [2, 2]"
        ),
        # A stride that leaves columns out, and windows that begin beyond the first element.
        convolution("2x9x8x128", "72x1x1x128", "2x4x4x72", "stride = [2, 2], pad = [[-1, 0], [0, -1]]"),
        convolution("5x40x64", "24x5x64", "5x20x24", "stride = [2], pad = [[2, 1]]", dimensions="0"),
        convolution("2x4x5x6x64", "24x2x3x2x64", "2x3x5x5x24", "pad = [[0, 0], [1, 1], [0, 0]]", dimensions="0, 1, 2"),
        convolution("2x9x9x64", "24x3x3x64", "2x9x9x24", "pad = [[1, 1], [1, 1]]", "f16"),
    ],
)
def test_windows(client: GpuClient, tile: int, module: Module) -> None:
    expect_exact(client, module)


def test_tf32(client: GpuClient, tile: int) -> None:
    expect_exact(client, convolution("2x9x9x32", "24x3x3x32", "2x9x9x24", "pad = [[1, 1], [1, 1]]", "f32"))


@pytest.mark.parametrize("features", [24, 256])
def test_large_and_narrow_tiles(client: GpuClient, features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tiles of a block; half as many columns as rows."""
    monkeypatch.setattr(tiles, "WIDE_LEAST", 1)
    monkeypatch.setattr(tiles, "PROCESSORS", 2)
    shape = f"3x10x10x{features}"
    module = convolution("3x10x10x64", f"{features}x3x3x64", shape, "pad = [[1, 1], [1, 1]]")
    executable = compiled(client, module)
    assert f"grid(3)={64 if features == 24 else 256}" in schedules(executable)
    products.expect_exact(executable, module)


def test_blocks_share_long_sums(client: GpuClient, tile: int) -> None:
    module = convolution("1x5x5x256", "24x3x3x256", "1x5x5x24", "pad = [[1, 1], [1, 1]]")
    executable = compiled(client, module)
    assert "reduction 3x3x256 grid" in schedules(executable)
    products.expect_exact(executable, module)


def test_images_and_kernels_in_another_order(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are transposed, and reversed, before they are copied."""
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((128, 1),))
    x, y, z = "16x64x8x8xbf16", "64x24x3x3xbf16", "16x24x8x8xbf16"
    module = trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1],
        window = {{pad = [[1, 1], [1, 1]], reverse = [true, true]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")
    expect_exact(client, module)


# Descriptions


def test_an_image(client: GpuClient, tile: int) -> None:
    module = convolution(
        "2x9x8x64", "24x3x3x64", "2x5x3x24", "stride = [2, 2], pad = [[1, 2], [0, 0]], rhs_dilate = [1, 1]"
    )
    extents, distances = (64, 8, 9, 2), (128, 1024, 9216)
    # The last windows begin at 2 * 2 of 8 columns, and at 2 * 4 - 1 of 9 rows.
    corners = (0, 4 - 7), (-1, 7 - 8)
    found = described(module)[0]
    assert found == TensorMap(0, 0, "bf16", extents, distances, (64, tile), corners, (2, 2))
    compiled(client, module).execute(*products.integers(module))
    assert calls("cuTensorMapEncodeIm2col") == 1


@pytest.mark.parametrize(
    "module",
    [
        convolution("2x9x9x48", "24x3x3x48", "2x9x9x24", "pad = [[1, 1], [1, 1]]"),  # half a line of features
        convolution("2x9x9x64", "24x3x3x64", "2x17x17x24", "pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]"),
        convolution("1x150x9x64", "24x3x3x64", "1x408x9x24", "pad = [[130, 130], [1, 1]]"),  # far beyond the edge
        convolution("2x90x9x64", "24x3x3x64", "2x10x9x24", "stride = [9, 1], pad = [[1, 1], [1, 1]]"),
    ],
)
def test_images_that_cannot_be_copied(tile: int, module: Module) -> None:
    assert 0 not in described(module)


# What the simulator, and the driver that is not there, tell


PLACES = {"expect": 1, "copy_windows": 1, "copy_box": 1, "wait_for_phase": 2, "arrive": 1, "publish": 1}


@pytest.mark.parametrize("word", PLACES)
def test_every_step_is_needed(word: str, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    monkeypatch.setattr(tiles, "WIDE_LEAST", tiles.LARGEST)
    module = convolution("1x8x8x64", "64x3x3x64", "1x8x8x64", "pad = [[1, 1], [1, 1]]")
    expect_all_needed(word, PLACES[word], client, module, monkeypatch)


LIMITS: list[dict[str, Any]] = [
    {"rank": 2},
    {"low": (-129, 0)},
    {"high": (0, 128)},
    {"low": (8, 0)},
    {"high": (0, -9)},
    {"features": 257},
    {"features": 60},
    {"features": 72},
    {"count": 1025},
    {"count": 0},
    {"steps": (1, 9, 1, 1)},
    {"steps": (1, 0, 1, 1)},
    {"strides": (128, 1032, 8192)},
]


@pytest.mark.parametrize("limit", [{}, *LIMITS])
def test_limits_of_the_driver(client: GpuClient, limit: dict[str, Any]) -> None:
    """The fake driver refuses what the driver's documentation forbids."""
    memory, wide = client.driver.allocate(2 * 8 * 8 * 128), ctypes.c_uint64
    room = (ctypes.c_char * 256)()
    given = {"rank": 4, "strides": (128, 1024, 8192), "low": (-1, -1), "high": (0, 0), "features": 64, "count": 128}
    given |= {"steps": (1, 1, 1, 1), **limit}
    place = -(-ctypes.addressof(room) // 64) * 64
    extents, strides = (wide * 6)(64, 8, 8, 2), (wide * 5)(*given["strides"])
    low, high = (ctypes.c_int * 3)(*given["low"]), (ctypes.c_int * 3)(*given["high"])
    array = place, 9, given["rank"], memory.address, extents, strides
    box = low, high, given["features"], given["count"], (ctypes.c_uint32 * 6)(*given["steps"])
    with client.driver.current():  # type: ignore[attr-defined]
        code = simulator.fake().cuTensorMapEncodeIm2col(*map(argument, (*array, *box, 0, 3, 3, 0)))
    assert (code == 0) == (not limit)
