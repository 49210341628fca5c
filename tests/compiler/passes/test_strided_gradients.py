"""Convolutions of images with holes, as gradients of strided convolutions are, become convolutions of images in memory,
or products of matrices. Results stay the same, of convolutions also those of infinite weights."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from trivium.backends.cpu.target import level
from trivium.backends.gpu import nvptx
from trivium.compiler.passes import strided_gradients
from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.strided_gradients import StridedGradients
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

PASS = StridedGradients(nvptx.target("sm_90a"))


def convolution(image: str, kernel: str, result: str, window: str, features: str = "i, o") -> Module:
    x, y, z = f"{image}xbf16", f"{kernel}xbf16", f"{result}xbf16"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[0, 1, {features}]->[b, 0, 1, f],
        window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")


THREE = convolution("4x8x9x64", "3x3x64x8", "4x16x17x8", "pad = [[1, 2], [1, 1]], lhs_dilate = [2, 2]")


@pytest.mark.parametrize(
    ("module", "image"),
    [
        (THREE, (4, 15, 17, 64)),
        (
            convolution(
                "4x8x9x64",
                "3x2x8x64",
                "4x16x27x8",
                "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 3], reverse = [true, true]",
                "o, i",
            ),
            (4, 15, 25, 64),
        ),
    ],
)
def test_holes(module: Module, image: tuple[int, ...]) -> None:
    after = run_passes(module.clone(), (PASS,), verify=True)
    generator = np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
    given[1].flat[3] = np.inf
    with np.errstate(invalid="ignore"):
        found, expected = (evaluate(one, *given)[0].astype(np.float32) for one in (after, module))
    np.testing.assert_array_equal(found, expected)
    (op,) = [op for op in after.main.walk() if isinstance(op, ops.Convolution)]
    assert op.lhs.type.static_shape == image
    assert set(op.lhs_dilation or ()) <= {1}


@pytest.mark.parametrize(
    "module",
    [
        convolution("4x8x9x48", "3x3x48x8", "4x16x17x8", "pad = [[1, 2], [1, 1]], lhs_dilate = [2, 2]"),
        convolution("4x16x17x64", "3x3x64x8", "4x16x17x8", "pad = [[1, 1], [1, 1]]"),
        convolution("4x8x9x64", "1x1x64x8", "4x16x17x8", "pad = [[0, 1], [0, 0]], lhs_dilate = [2, 2]"),
        convolution("1x8x9x64", "3x3x64x8", "1x16x17x8", "pad = [[1, 2], [1, 1]], lhs_dilate = [2, 2]"),  # few results
    ],
)
def test_what_stays(module: Module) -> None:
    assert not PASS.run(module)


ON_PROCESSORS = StridedGradients(level("x86-64-v3"))


def on_processor(
    image: str, kernel: str, result: str, window: str, numbers: str, groups: int = 1, element: str = "f32"
) -> Module:
    x, y, z = (f"{shape}x{element}" for shape in (image, kernel, result))
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = {numbers}, window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
        : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")


FIRST, LAST = "[b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1]", "[0, b, 1, f]x[0, o, 1, i]->[1, f, b, 0]"
CUT = "pad = [[3, 3], [5, 5]], lhs_dilate = [4, 6]"
DEPTHWISE = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"
FEATURES_LAST = "[b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f]"
LINE, LONG = "[b, f, 0]x[i, o, 0]->[b, f, 0]", "pad = [[19, 19]], lhs_dilate = [20]"
FEW = "pad = [[3, 3], [3, 3]], lhs_dilate = [4, 4]"
OVERLAPPING = "pad = [[5, 5], [5, 5]], lhs_dilate = [5, 5]"
CUT_OFF = "pad = [[3, 2], [5, 5]], lhs_dilate = [4, 6]"


@pytest.mark.parametrize(
    ("module", "left"),
    [
        (on_processor("2x5x3x4", "5x7x4x6", "2x7x12x24", CUT, FIRST), ops.DotGeneral),
        (on_processor("2x5x3x4", "5x7x4x6", "2x7x12x24", f"{CUT}, reverse = [true, false]", FIRST), ops.DotGeneral),
        (on_processor("3x2x4x5", "4x7x6x5", "24x7x2x12", f"{CUT}, reverse = [true, true]", LAST), ops.DotGeneral),
        (
            on_processor("2x5x9", "5x7x20", "2x7x180", LONG, LINE),
            ops.DotGeneral,
        ),
        (
            on_processor("2x5x3x4", "5x1x3x3", "2x5x7x9", "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]", DEPTHWISE, 5),
            ops.Convolution,
        ),
    ],
)  # fmt: skip
def test_on_processors(module: Module, left: type) -> None:
    after = run_passes(module.clone(), (ON_PROCESSORS,), verify=True)
    generator = np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
    np.testing.assert_array_equal(evaluate(after, *given)[0], evaluate(module, *given)[0])
    multiplied = [op for op in after.main.walk() if isinstance(op, ops.Convolution | ops.DotGeneral)]
    assert [type(op) for op in multiplied] == [left]
    assert all(set(op.lhs_dilation or ()) <= {1} for op in multiplied if isinstance(op, ops.Convolution))


@pytest.mark.parametrize(
    "module",
    [
        on_processor("2x5x3x4", "5x7x4x4", "2x7x12x16", FEW, FIRST),
        on_processor("2x5x3x4", "5x7x6x6", "2x7x15x20", OVERLAPPING, FIRST),
        on_processor("2x5x3x4", "5x7x4x6", "2x7x11x24", CUT_OFF, FIRST),
        on_processor("2x5x3x4", "5x1x1x1", "2x5x5x7", "lhs_dilate = [2, 2]", DEPTHWISE, 5),
        on_processor("2x3x4x5", "5x1x3x3", "2x3x5x5", "lhs_dilate = [2, 2]", FEATURES_LAST, 5),
    ],
)  # fmt: skip
def test_what_stays_on_processors(module: Module) -> None:
    assert not ON_PROCESSORS.run(module)


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strided_gradients, "MOST_BYTES", 4 * 16 * 18 * 64 * 2 - 1)
    assert not PASS.run(THREE.clone())


def test_other_devices() -> None:
    assert not StridedGradients(nvptx.target("sm_80")).run(THREE.clone())
