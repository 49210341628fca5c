"""Gradients of convolutions' kernels on Hopper, whose images it copies window by window, on the simulator: the sums are
over all windows. Strides, edges, dilation, one and three spatial dimensions, sums that blocks share, several tiles."""

from __future__ import annotations

import pytest

import trivium
from tests.backends.gpu import products, simulator, tasks
from tests.backends.gpu.products import schedules
from tests.backends.gpu.test_bulk import client, compiled, described, expect_all_needed, expect_exact
from tests.random_programs.programs import program_of_gradients
from trivium.backends.gpu import tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.plan import TensorMap
from trivium.compiler.passes import kernels
from trivium.ir.func import Module

__all__ = ["client"]

pytestmark = simulator.needs_simulator


def gradient(
    image: str, moving: str, result: str, window: str, dtype: str = "bf16", dimensions: str = "0, 1", order: str = ""
) -> Module:
    """Returns the gradient of a kernel: an image and the gradient of the result, both with their features last."""
    x, y, z = f"{image}x{dtype}", f"{moving}x{dtype}", f"{result}xf32"
    order = order or f"f, {dimensions}, b"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y)
        dim_numbers = [f, {dimensions}, b]x[i, {dimensions}, o]->[{order}], window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      %1 = stablehlo.negate %0 : tensor<{z}>
      return %1 : tensor<{z}>
    }}""")


PAD = "pad = [[1, 1], [1, 1]]"

SIMPLE = gradient("2x9x9x64", "2x9x9x24", "24x3x3x64", PAD)


@pytest.mark.parametrize(
    "module",
    [
        SIMPLE,
        # Of strides [2, 1], with a last row and column that no window has.
        gradient("3x9x7x64", "3x4x7x40", "40x3x2x64", "pad = [[0, 0], [1, 0]], rhs_dilate = [2, 1]"),
        # Of taps that are two apart.
        gradient("2x11x12x64", "2x7x6x24", "24x3x3x64", "stride = [2, 2], pad = [[0, 0], [2, 1]], rhs_dilate = [1, 2]"),
        gradient("2x9x8x128", "2x4x4x72", "72x1x1x128", "pad = [[-1, -1], [0, -1]], rhs_dilate = [2, 2]"),
        gradient("5x7x9x192", "5x7x9x24", "24x1x1x192", "pad = [[0, 0], [0, 0]]"),
        gradient("5x40x64", "5x20x24", "24x5x64", "pad = [[2, 1]], rhs_dilate = [2]", dimensions="0"),
        gradient("2x4x5x6x64", "2x3x5x5x24", "24x2x3x2x64", "pad = [[0, 0], [1, 1], [0, 0]]", dimensions="0, 1, 2"),
        gradient("2x9x9x64", "2x9x9x24", "3x3x64x24", PAD, "f16", order="0, 1, b, f"),
    ],
)
def test_gradients(client: GpuClient, tile: int, module: Module) -> None:
    expect_exact(client, module)


@pytest.mark.parametrize("features", [24, 256])
def test_large_and_narrow_tiles(client: GpuClient, features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tiles of a block; half as many columns as rows."""
    monkeypatch.setattr(tiles, "WIDE_LEAST", 1)
    monkeypatch.setattr(tiles, "PROCESSORS", 1)
    module = gradient("2x6x7x64", f"2x6x6x{features}", f"{features}x2x2x64", "pad = [[1, 0], [0, 0]]")
    executable = compiled(client, module)
    assert f"grid(3)={64 if features == 24 else 256}" in schedules(executable)
    products.expect_exact(executable, module)


def test_blocks_share_long_sums(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    module = gradient("7x18x18x64", "7x18x18x24", "24x1x2x64", "pad = [[0, 0], [1, 0]]")
    executable = compiled(client, module)
    assert "reduction 7x18x18 grid" in schedules(executable)
    products.expect_exact(executable, module)


def test_an_image(tile: int) -> None:
    found = described(gradient("2x9x8x64", "2x5x3x24", "24x3x3x64", "pad = [[1, 1], [0, -1]], rhs_dilate = [2, 2]"))[0]
    # The last windows begin at 2 * 2 of 8 columns, and at 2 * 4 - 1 of 9 rows.
    corners = (0, 4 - 7), (-1, 7 - 8)
    assert found == TensorMap(0, 0, "bf16", (64, 8, 9, 2), (128, 1024, 9216), (64, 64), corners, (2, 2))


@pytest.mark.parametrize(
    "module",
    [
        gradient("2x9x9x48", "2x9x9x24", "24x3x3x48", PAD),  # half a line of features
        gradient("2x9x9x64", "2x17x17x24", "24x3x3x64", f"{PAD}, lhs_dilate = [2, 2]"),
    ],
)
def test_images_that_cannot_be_copied(tile: int, module: Module) -> None:
    assert 0 not in described(module)


@pytest.mark.parametrize(("word", "count"), [("copy_windows", 1), ("wait_for_phase", 2)])
def test_every_step_is_needed(word: str, count: int, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    monkeypatch.setattr(tiles, "WIDE_LEAST", tiles.LARGEST)
    module = gradient("5x9x8x64", "5x8x8x64", "64x2x1x64", "pad = [[0, 0], [0, 0]]")
    expect_all_needed(word, count, client, module, monkeypatch)


@pytest.mark.parametrize("seed", range(4))
def test_random_gradients(client: GpuClient, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    monkeypatch.setattr(kernels, "FEWEST_PLACES", 1)
    assert not tasks.judged(client, program_of_gradients(seed), seed)
