"""Which contractions read an image in place, and how their reduction is ordered."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import HWIO, NCHW, NHWC, ONE, Order, Window, convolution, matmul
from tests.backends.cpu.contraction.test_tiling import processor
from trivium.backends.cpu.contraction.image_tiling import MOST_MASKS, MOST_TILES
from trivium.backends.cpu.contraction.plan import Plan, plan
from trivium.backends.cpu.contraction.tiling import Rhs
from trivium.compiler.contraction.marked import Marked


def planned(
    image: tuple[int, ...], kernel: tuple[int, ...], window: Window, order: Order = NCHW, level: str = "x86-64-v4"
) -> Plan:
    """Returns the plan of a convolution whose image and result have their dimensions in `order`."""
    lhs, rhs = np.empty(image, np.float32), np.empty(kernel, np.float32)
    case = convolution(lhs, rhs, window, (order, NCHW if order == NCHW else HWIO, order))
    return plan(Marked(case.kernel.contraction).problem, 4, processor(level))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reads", "chosen"),
    [
        pytest.param(True, planned((1, 16, 28, 28), (16, 4, 3, 3), Window(padding=ONE, groups=4)), id="groups"),
        pytest.param(True, planned((1, 16, 28, 28), (16, 16, 3, 3), Window()), id="no padding"),
        pytest.param(True, planned((1, 16, 9, 14), (8, 16, 3, 3), Window(padding=ONE)), id="most lanes are pixels"),
        pytest.param(False, planned((1, 16, 7, 7), (8, 16, 3, 3), Window(padding=ONE)), id="short lines"),
        pytest.param(False, planned((1, 16, 28, 28), (64, 16, 3, 3), Window(padding=ONE)), id="many features"),
        pytest.param(False, planned((1, 16, 28, 28), (16, 16, 1, 1), Window()), id="one tap"),
        pytest.param(False, planned((1, 16, 28, 84), (16, 16, 3, 3), Window((1, 3), ONE)), id="long strides"),
        pytest.param(False, planned((1, 16, 28, 28), (16, 16, 3, 3), Window(padding=ONE), NHWC), id="features last"),
        pytest.param(False, planned((1, 2, 28, 28), (16, 2, 3, 3), Window(padding=ONE), NHWC), id="two features last"),
        pytest.param(False, planned((1, 4, 9, 28), (4, 4, 3, 3), Window(padding=ONE, lhs_dilation=(1, 2))), id="holes"),
    ],
)  # fmt: skip
def test_which_contractions_read_an_image(reads: bool, chosen: Plan) -> None:
    assert (chosen.tiling.rhs is Rhs.IMAGE) == reads


def test_a_product_of_matrices_is_none() -> None:
    """Nothing overlaps."""
    case = matmul(np.empty((1, 4, 300), np.float32), np.empty((1, 300, 64), np.float32))
    problem = Marked(case.kernel.contraction).problem  # type: ignore[arg-type]
    assert plan(problem, 4, processor("x86-64-v4")).tiling.rhs is not Rhs.IMAGE


@pytest.mark.parametrize("level", ["x86-64-v2", "aarch64"])
def test_processors_without_masks_pack_images(level: str) -> None:
    chosen = planned((1, 16, 28, 28), (4, 16, 3, 3), Window(padding=ONE), level=level)
    assert chosen.tiling.rhs is not Rhs.IMAGE


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("features", [1, 2, 4, 8, 13, 16, 24])
def test_tiles_run_along_features_of_the_image(features: int, stride: int, level: str) -> None:
    """Taps have masks of their own, which stay in registers, and few tiles read a vector again."""
    image, window = (1, 12, 32, 32 * stride), Window((1, stride), ONE)
    chosen = planned(image, (features, 12, 3, 3), window, level=level)
    tiling = chosen.tiling
    assert (tiling.rhs, tiling.reduction.taps, tiling.reduction.run) == (Rhs.IMAGE, 9, 12)
    assert chosen.problem.rhs.stride(chosen.problem.reduction.axes[-1]) == 32 * 32 * stride
    assert tiling.panels.extent == 32 * -(-32 // tiling.lanes)
    assert tiling.panels.size * stride <= MOST_MASKS
    assert tiling.tiles.count <= MOST_TILES


@pytest.mark.parametrize(
    ("inputs", "run"), [(12, 12), (32, 32), (33, 11), (100, 25), (37, 37), (34, 17), (62, 31), (35, 35)]
)
def test_taps_read_the_same_lines_soon(inputs: int, run: int) -> None:
    """Many features of the image are divided into parts of the same length, unless these would be short."""
    chosen = planned((1, inputs, 9, 32), (4, inputs, 3, 3), Window(padding=ONE))
    reduction = chosen.tiling.reduction
    assert (chosen.tiling.rhs, reduction.run, reduction.taps * reduction.run) == (Rhs.IMAGE, run, 9 * inputs)
    assert chosen.problem.reduction.extent == 9 * inputs
