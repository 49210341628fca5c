"""Convolutions of images with holes and few features are split into phases, with the same result."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.compiler.passes.test_strided_gradients import on_processor
from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.phases import Phase, SplitPhases
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

UNEVEN = "pad = [[0, -1], [3, 5]]"
VECTOR = 32  # bytes: eight numbers of f32


def transposed(
    features: int = 2, step: int = 2, line: int = 24, inputs: int = 16, window: str = "", dtype: str = "f32"
) -> Module:
    """Returns a convolution of 4 x 4 taps, features last, whose result has 2 x line positions for each phase."""
    result = f"1x{2 * step}x{line * step}x{features}"
    pad = f"pad = [[2, {step - 1 + 1}], [2, {step - 1 + 1}]]"
    numbers = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
    settings = f"{pad}, lhs_dilate = [{step}, {step}]{window}"
    return on_processor(f"1x2x{line}x{inputs}", f"4x4x{inputs}x{features}", result, settings, numbers, 1, dtype)


@pytest.mark.parametrize(
    ("phases", "module"),
    [
        pytest.param(4, transposed(), id="every second place"),
        pytest.param(4, transposed(1, inputs=8), id="one feature"),
        pytest.param(4, transposed(dtype="f64"), id="f64"),
        pytest.param(4, transposed(window=", reverse = [true, false]"), id="a kernel that is turned"),
        pytest.param(2, on_processor("2x20x40", "5x40x2", "2x41x2", "pad = [[2, 4]], lhs_dilate = [2]",
                                     "[b, 0, f]x[0, i, o]->[b, 0, f]"), id="a line, of uneven phases"),
        pytest.param(6, on_processor("24x30x3x2", "2x24x2x5", "2x2x3x92", "lhs_dilate = [2, 3], " + UNEVEN,
                                     "[f, 1, 0, b]x[o, i, 0, 1]->[f, b, 0, 1]"), id="other layouts"),
        pytest.param(1, transposed(5), id="features that fill half a vector"),
        pytest.param(1, transposed(4, inputs=4), id="few terms"),
        pytest.param(1, transposed(step=3), id="many phases"),
        pytest.param(1, transposed(line=9), id="lines that fill half of their vectors"),
        pytest.param(1, transposed(step=1), id="no holes"),
        pytest.param(1, transposed(window=", rhs_dilate = [1, 1], stride = [1, 1]", dtype="i32"), id="integers"),
        pytest.param(1, on_processor("1x24x9", "1x9x2", "1x47x2", "lhs_dilate = [2]", "[b, 0, f]x[0, i, o]->[b, 0, f]"),
                     id="positions without a tap"),
    ],
)  # fmt: skip
def test_which_convolutions_are_split(phases: int, module: Module) -> None:
    after = run_passes(module.clone(), (SplitPhases(VECTOR),), verify=True)
    found = [op for op in after.walk() if isinstance(op, ops.Convolution)]
    assert len(found) == phases
    assert phases == 1 or all(not op.lhs_dilation for op in found)
    generator = np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
    np.testing.assert_array_equal(evaluate(after, *given)[0], evaluate(module, *given)[0])
    np.testing.assert_array_equal(trivium.compile(module)(*given)[0], evaluate(module, *given)[0])


@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("low", [-3, -1, 0, 1, 2, 5])
def test_phases_have_every_tap_once(step: int, low: int) -> None:
    """A result uses the taps that meet elements of the image, which are those of its phase, from its padding on."""
    taps, extent, results = 5, 7, 6
    phases = [Phase(first, step, taps, low) for first in range(step)]
    assert sorted(one.tap + step * j for one in phases for j in range(one.count)) == list(range(taps))
    for one in phases:
        before, after = one.padding(results, extent)
        assert results == before + extent + after - one.count + 1
        for place in range(results):
            for j in range(one.count):
                position = one.first + step * place + one.tap + step * j - low
                assert divmod(position, step) == (place + j - before, 0)


def test_an_infinity_is_in_no_other_sum() -> None:
    """No tap is added to a phase that has fewer of them."""
    module, x, y = transposed(1), np.ones((1, 2, 24, 16), np.float32), np.ones((4, 4, 16, 1), np.float32)
    x[0, 1, 5] = np.inf
    (found,) = trivium.compile(module)(x, y)
    assert np.isinf(found).sum() == 3 * 4  # for its taps, the last row of which is outside of the result
    assert not np.isnan(found).any()
