"""Convolutions in groups of few features have them before their lines, with the same result."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.compiler.passes.test_strided_gradients import on_processor
from trivium.compiler.passes.few_channels import FewChannels
from trivium.compiler.passes.manager import run_passes
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

VECTOR = 32  # bytes: eight numbers of f32, of which six and more fill most


def filtered(
    image: str = "2x9x11x3", kernel: str = "3x2x1x3", result: str = "2x7x10x3", window: str = "", dtype: str = "f32"
) -> Module:
    """Returns a convolution with a group for each feature, which come last."""
    spatial = ", ".join(map(str, range(image.count("x") - 1)))
    numbers = f"[b, {spatial}, f]x[{spatial}, i, o]->[b, {spatial}, f]"
    return on_processor(image, kernel, result, window, numbers, int(image.rpartition("x")[2]), dtype)


def grouped(groups: int, inputs: int, features: int, line: int = 24, window: str = "", dtype: str = "f32") -> Module:
    """Returns a convolution of windows of 3 x 3 with `inputs` and `features` in each of `groups`, which come last."""
    step = 2 if "stride = [1, 2]" in window else 1
    image, result = f"1x5x{line * step + 3 - step}x{groups * inputs}", f"1x3x{line}x{groups * features}"
    numbers = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
    return on_processor(image, f"3x3x{inputs}x{groups * features}", result, window, numbers, groups, dtype)


@pytest.mark.parametrize(
    ("moves", "module"),
    [
        pytest.param(True, filtered(), id="a filter of a picture"),
        pytest.param(True, filtered("2x9x11x3", "3x2x1x3", "2x4x6x3", "stride = [2, 2], pad = [[0, 0], [1, 1]]"),
                     id="strides"),
        pytest.param(True, filtered(window="rhs_dilate = [1, 1]", dtype="f64", image="2x9x11x2", kernel="3x2x1x2",
                                    result="2x7x10x2"), id="f64"),
        pytest.param(True, filtered("2x40x1", "5x1x1", "2x36x1"), id="a line"),
        pytest.param(True, filtered("1x5x6x9x4", "2x2x2x1x4", "1x4x5x8x4"), id="a volume"),
        pytest.param(False, filtered("2x9x11x5", "3x2x1x5", "2x7x10x5"), id="features that fill half a vector"),
        pytest.param(False, filtered("2x9x4x3", "3x2x1x3", "2x7x3x3"), id="short lines"),
        pytest.param(False, filtered("2x9x11x3", "1x2x1x3", "2x9x10x3"), id="few taps"),
        pytest.param(False, filtered("2x9x11x3", "3x2x1x6", "2x7x10x6"), id="short lines of several results"),
        pytest.param(False, filtered("2x9x11x3", "3x2x1x3", "2x7x4x3", "stride = [1, 3], pad = [[0, 0], [1, 0]]"),
                     id="long strides"),
        pytest.param(False, filtered(window="lhs_dilate = [1, 2], pad = [[0, 0], [-5, -5]]"), id="holes"),
        pytest.param(False, filtered(dtype="i32"), id="integers"),
        pytest.param(True, grouped(3, 2, 2), id="groups"),
        pytest.param(True, grouped(3, 1, 2), id="several results of a feature"),
        pytest.param(True, grouped(2, 8, 4, window="stride = [1, 2]"), id="groups and strides"),
        pytest.param(True, grouped(2, 8, 2, dtype="f64"), id="groups of f64"),
        pytest.param(True, grouped(1, 16, 8), id="one group"),
        pytest.param(True, grouped(1, 9, 12), id="features that fill one and a half vectors"),
        pytest.param(False, grouped(2, 8, 17), id="groups of features that fill vectors"),
        pytest.param(False, grouped(1, 1, 16), id="few terms"),
        pytest.param(False, grouped(2, 4, 4, line=9), id="lines that fill half of their vectors"),
        pytest.param(False, grouped(2, 4, 4, window="stride = [1, 3], pad = [[0, 0], [23, 23]]"),
                     id="groups and long strides"),
    ],
)  # fmt: skip
def test_which_convolutions_change(moves: bool, module: Module) -> None:
    after = run_passes(module.clone(), (FewChannels(VECTOR),), verify=True)
    (op,) = (op for op in after.walk() if isinstance(op, ops.Convolution))
    assert (op.dimension_numbers.output_feature_dimension == 1) == moves
    generator = np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
    np.testing.assert_array_equal(evaluate(after, *given)[0], evaluate(module, *given)[0])
    np.testing.assert_array_equal(trivium.compile(module)(*given)[0], evaluate(module, *given)[0])


def test_features_stay_where_vectors_have_no_masks() -> None:
    """They are not read along lines there; filters are, whose windows slide."""
    for module, moves in ((grouped(2, 16, 2), False), (filtered("2x9x11x2", "3x2x1x2", "2x7x10x2"), True)):
        after = run_passes(module.clone(), (FewChannels(16),), verify=True)
        (op,) = (op for op in after.walk() if isinstance(op, ops.Convolution))
        assert (op.dimension_numbers.output_feature_dimension == 1) == moves
