"""Products by matrix instructions, as tests try them on simulated GPUs that have different ones: programs, arguments
whose results are exact, rounding, and what becomes of a result if a step that orders threads is left out."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import trivium
from tests.backends.gpu import simulator
from tests.backends.gpu.test_contraction import arrays
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import Code
from trivium.backends.pjrt import LoadedExecutable
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

WINDOWS = [
    ("pad = [[1, 1], [0, 2]]", "9x9"),
    ("stride = [2, 1], pad = [[2, 2], [1, 1]], rhs_dilate = [2, 1]", "5x9"),
    ("pad = [[1, 1], [1, 1]], lhs_dilate = [2, 3]", "17x25"),
]
"""Windows of 3 x 3 on images of 9 x 9, and the size of the result."""


def of_integers(rows: int, columns: int, depth: int, layout: tuple[int, int], dtype: str, sums: str) -> Module:
    """Returns a product of integers that are added up in a wider type."""
    lhs, rhs = (rows, depth) if layout[0] else (depth, rows), (columns, depth) if layout[1] else (depth, columns)
    x, y, z = f"{lhs[0]}x{lhs[1]}x{dtype}", f"{rhs[0]}x{rhs[1]}x{dtype}", f"{rows}x{columns}x{sums}"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [{layout[0]}] x [{layout[1]}]
        : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")


def batches(depth: int, dtype: str, before: str = "") -> Module:
    """Returns a batch of products, to whose rows another one is added; `before`: an op on a factor."""
    x, y, z = f"3x40x{depth}x{dtype}", f"3x{depth}x50x{dtype}", "3x40x50xf32"
    changed, lhs = (f"%a = stablehlo.{before} %x : tensor<{x}>", "%a") if before else ("", "%x")
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>, %z: tensor<50xf32>) -> tensor<{z}> {{
      {changed}
      %0 = stablehlo.dot_general {lhs}, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      %1 = stablehlo.broadcast_in_dim %z, dims = [2] : (tensor<50xf32>) -> tensor<{z}>
      %2 = stablehlo.add %0, %1 : tensor<{z}>
      return %2 : tensor<{z}>
    }}""")


def convolution(window: str, size: str, features: int) -> Module:
    """Returns a convolution by one of `WINDOWS`."""
    x, y, z = f"2x9x9x{features}xbf16", f"3x3x{features}x24xbf16", f"2x{size}x24xf32"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")


def schedules(executable: LoadedExecutable) -> str:
    return executable.artifact.texts["schedules"]  # type: ignore[attr-defined]


def integers(module: Module) -> list[np.ndarray]:
    """Returns small numbers, whose products and sums are exact in every type."""
    generator = np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    return [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]


def expect_exact(executable: LoadedExecutable, module: Module) -> None:
    """Compares with the interpreter."""
    given = integers(module)
    for result, expected in zip(executable.execute(*given), evaluate(module, *given), strict=True):
        np.testing.assert_array_equal(result, expected)


def expect_rounded(executable: LoadedExecutable, module: Module, layout: tuple[int, int]) -> None:
    """Compares with NumPy. Factors are multiplied as they are, or rounded to the nearest number of tf32, and added up
    in f32."""
    given = arrays(module)
    lhs, rhs = (to_tf32(a) if a.dtype == np.float32 else a.astype(np.float64) for a in given)
    expected = np.tanh((lhs if layout[0] else lhs.T) @ (rhs.T if layout[1] else rhs))
    np.testing.assert_allclose(executable.execute(*given)[0], expected, atol=2e-6)


def to_tf32(array: np.ndarray) -> np.ndarray:
    """Returns numbers with 10 bits of mantissa; halves are rounded away from zero."""
    bits = array.view(np.uint32) + np.uint32(0x1000) & np.uint32(0xFFFFE000)
    return bits.view(np.float32).astype(np.float64)


def expect_all_needed(
    word: str, count: int, module: Module, compiled: Callable[[], LoadedExecutable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaves out, one at a time, each of the `count` steps that a word of the dialect emits: the result must be right
    with all of them, and wrong without one, in some order of the threads."""
    kept, given = getattr(Nvptx, word), integers(module)
    (expected,) = evaluate(module, *given)

    def correct(left_out: int) -> tuple[bool, int]:
        places = itertools.count()

        def emit(self: Nvptx, code: Code, *operands: object) -> object:
            if next(places) == left_out:
                return operands[0] if operands else None
            return kept(self, code, *operands)

        monkeypatch.setattr(Nvptx, word, emit)
        executable = compiled()
        return all(right_with(executable, seed) for seed in range(4)), next(places)

    def right_with(executable: LoadedExecutable, seed: int) -> bool:
        simulator.fake().fake_seed(seed)
        return np.array_equal(executable.execute(*given)[0], expected)

    assert correct(-1) == (True, count)
    assert not any(correct(number)[0] for number in range(count))
