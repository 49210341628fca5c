"""Convolutions by transformed tiles, under fast math: which ones, with which results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import trivium
from tests.random_programs.runner import CONFIGURATIONS, Configuration, run_guarded
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import host
from trivium.compiler.lower import lower
from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.winograd import TILINGS, Tiling, Winograd, fastest
from trivium.compiler.pipeline import optimize
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

TARGET = replace(host(), vector_bytes=64, threads=1)
IMAGE, WINDOW = "1x56x56x64", "3x3x64x64"
HIGHEST = "#stablehlo<precision HIGHEST>"
KERNEL = "[0, 1, i, o]"


def convolution(
    image: str, kernel: str, result: str, window: str = "pad = [[1, 1], [1, 1]]", *, known: bool = False,
    order: str = KERNEL, element: str = "f32", more: str = "",
) -> Module:  # fmt: skip
    """Returns a convolution with features last. A `known` kernel is a constant."""
    x, y, z = (f"tensor<{shape}x{element}>" for shape in (image, kernel, result))
    given = f"%x: {x}" if known else f"%x: {x}, %y: {y}"
    module = trivium.parse(f"""func.func @main({given}) -> {z} {{
      {f"%y = stablehlo.constant dense<0.0> : {y}" if known else ""}
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x{order}->[b, 0, 1, f], window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64{more}}} : ({x}, {y}) -> {z}
      return %0 : {z}
    }}""")
    if known:
        constant = next(op for op in module.walk() if isinstance(op, ops.Constant))
        with_numbers = ops.Constant(numbers(constant.result.type.static_shape, 1))
        constant.attributes["value"] = with_numbers.value
    return module


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def arguments_of(module: Module) -> list[np.ndarray]:
    return [numbers(argument.type.static_shape, seed) for seed, argument in enumerate(module.main.body.arguments)]  # type: ignore[union-attr]


def size_of(tiling: Tiling | None) -> int:
    return 0 if tiling is None else tiling.size


@pytest.mark.parametrize(
    ("size", "module"),
    [
        pytest.param(4, convolution(IMAGE, WINDOW, IMAGE, known=True), id="large images"),
        pytest.param(4, convolution(IMAGE, WINDOW, IMAGE), id="with any kernel"),
        pytest.param(2, convolution("1x7x7x512", "3x3x512x512", "1x7x7x512", known=True), id="many features"),
        pytest.param(0, convolution("1x7x7x512", "3x3x512x512", "1x7x7x512"), id="a kernel that is large"),
        pytest.param(0, convolution("1x56x56x3", "3x3x3x64", IMAGE, known=True), id="few features"),
        pytest.param(0, convolution(IMAGE, WINDOW, "1x28x28x64", "stride = [2, 2], pad = [[1, 0], [1, 0]]"),
                     id="strides"),
        pytest.param(0, convolution(IMAGE, WINDOW, IMAGE, "pad = [[2, 2], [2, 2]], rhs_dilate = [2, 2]"),
                     id="holes in windows"),
        pytest.param(0, convolution("1x28x28x64", WINDOW, "1x55x55x64", "pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]"),
                     id="holes in images"),
        pytest.param(0, convolution(IMAGE, "1x1x64x64", IMAGE, ""), id="single elements"),
        pytest.param(0, convolution(IMAGE, WINDOW, IMAGE, element="f64"), id="f64"),
        pytest.param(0, convolution("0x56x56x64", WINDOW, "0x56x56x64"), id="no images"),
        pytest.param(0, convolution("1x56x56x0", "3x3x0x64", IMAGE), id="no features"),
        pytest.param(0, convolution(IMAGE, WINDOW, IMAGE, more=f", precision_config = [{HIGHEST}, {HIGHEST}]"),
                     id="a precision that the caller demands"),
    ],
)  # fmt: skip
def test_which_convolutions_are_computed_by_tiles(size: int, module: Module) -> None:
    (op,) = (op for op in module.walk() if isinstance(op, ops.Convolution))
    assert size_of(fastest(op, TARGET)) == size
    run_passes(module, (Winograd(TARGET),), verify=True)
    assert any(isinstance(op, ops.Convolution) for op in module.walk()) == (size == 0)


def test_threads_share_the_memory_that_kernels_are_read_from() -> None:
    module = convolution("1x14x14x256", "3x3x256x256", "1x14x14x256", known=True)
    (op,) = (op for op in module.walk() if isinstance(op, ops.Convolution))
    assert [size_of(fastest(op, TARGET.with_threads(threads))) for threads in (1, 2)] == [4, 2]


@pytest.mark.parametrize("tiling", TILINGS, ids=lambda tiling: f"tiles of {tiling.size}")
@pytest.mark.parametrize("known", [True, False], ids=["known kernel", "any kernel"])
@pytest.mark.parametrize(
    ("shapes", "window", "order"),
    [
        (("2x9x13x5", "3x3x5x7", "2x9x13x7"), "pad = [[1, 1], [1, 1]]", KERNEL),
        (("1x8x8x4", "3x3x4x6", "1x6x6x6"), "", KERNEL),
        (("1x3x1x4", "3x3x4x6", "1x3x4x6"), "pad = [[0, 2], [2, 3]]", KERNEL),
        (("2x5x6x3", "4x3x3x3", "2x5x6x4"), "pad = [[1, 1], [1, 1]]", "[o, i, 0, 1]"),
        (("1x5x6x3", "3x3x3x2", "1x5x6x2"), "pad = [[1, 1], [1, 1]], reverse = [true, false]", "[1, 0, i, o]"),
    ],
    ids=["padding", "no padding", "more padding than image", "output features first", "reversed windows"],
)
def test_results(
    tiling: Tiling, known: bool, shapes: tuple[str, str, str], window: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = convolution(*shapes, window, known=known, order=order)
    monkeypatch.setattr("trivium.compiler.passes.winograd.fastest", lambda op, target: tiling)
    given = arguments_of(module)
    after = run_passes(module.clone(), (Winograd(TARGET),), verify=True)
    assert not any(isinstance(op, ops.Convolution) for op in after.walk())
    (expected,) = evaluate(module, *given)
    expect_near(evaluate(after, *given)[0], expected, tiling)
    expect_near(trivium.compile(module, fast_math=True)(*given)[0], expected, tiling)


@pytest.mark.parametrize("tiling", TILINGS, ids=lambda tiling: f"tiles of {tiling.size}")
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_on_each_kind_of_device(configuration: Configuration, tiling: Tiling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivium.compiler.passes.winograd.fastest", lambda op, target: tiling)
    module, target = convolution("2x17x11x21", "3x3x21x35", "2x17x11x35"), configuration.target
    given = arguments_of(module)
    expected = evaluate(module, *given)
    program = lower(optimize(module, target, fast_math=True), target)
    executable = CpuExecutable(assemble_program(program, target))
    (found,) = run_guarded(executable, given, expected, str(configuration), {})
    expect_near(found, expected[0], tiling)


def test_not_without_fast_math() -> None:
    module = convolution(IMAGE, WINDOW, IMAGE)
    assert any(isinstance(op, ops.Convolution) for op in optimize(module, TARGET).walk())
    assert not any(isinstance(op, ops.Convolution) for op in optimize(module, TARGET, fast_math=True).walk())


def expect_near(found: np.ndarray, expected: np.ndarray, tiling: Tiling) -> None:
    tolerance = 2e-6 * tiling.size**2 * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
