"""Weight gradients: sums of any shape, and with their image's features last after all passes and in their kernel."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from trivium.backends.cpu.target import host
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import F32, F64, Type, tensor

GRADIENT = ops.ConvDimensionNumbers(1, 0, (2, 3), 0, 1, (2, 3), 1, 0, (2, 3))
"""An image whose features are the batch, and the gradient of a result; both have features before positions."""


def gradient(element: Type = F32, inputs: int = 16, window: tuple[int, int] = (16, 20), step: int = 1) -> Module:
    """That of a 3 x 3 kernel with 16 output features, for two images, padded by one."""
    space = [(extent - 1) * step + 1 for extent in window]
    image, result = tensor(2, inputs, *space, of=element), tensor(2, 16, *window, of=element)
    options = {"dimension_numbers": GRADIENT, "feature_group_count": 1, "batch_group_count": 1}

    def body(b: Builder, x, g):
        return b.add(ops.Convolution(x, g, padding=[[1, 1], [1, 1]], rhs_dilation=[step, step], **options))

    return Module.build(functions=[Function.build("main", [image, result], body)])


def given(module: Module) -> list[np.ndarray]:
    """Small whole numbers, whose sums are exact."""
    rng = np.random.default_rng(0)
    kinds = (argument.type for argument in module.main.arguments)
    return [rng.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", [{}, {"element": F64}, {"inputs": 3}, {"inputs": 17, "step": 2}])
def test_sums(options: dict, threads: int) -> None:
    module = gradient(**options)
    arrays = given(module)
    (expected,) = evaluate(module, *arrays)
    (found,) = trivium.compile(module, threads=threads)(*arrays)
    np.testing.assert_array_equal(found, expected)


def convolved(module: Module) -> list[tuple[int, ...]]:
    """The shapes of what the kernel of the convolution reads and writes."""
    [kernel] = [kernel for kernel in lower(optimize(module, host()), host()).kernels() if kernel.contraction]
    return [param.shape for param in kernel.params]


def test_features_come_last_in_the_kernel() -> None:
    assert convolved(gradient()) == [(2, 18, 22, 16), (2, 16, 16, 20), (3, 3, 16, 16)]


def test_short_sums_stay() -> None:
    assert convolved(gradient(window=(8, 8))) == [(2, 16, 8, 8), (2, 16, 8, 8), (16, 16, 3, 3)]


def test_small_images_stay() -> None:
    """Their convolutions have windows larger than their results, but more features than a window has positions."""
    forward = ops.ConvDimensionNumbers(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
    kernel = np.random.default_rng(1).integers(-3, 4, (16, 64, 3, 3)).astype(np.float32)
    options = {"feature_group_count": 1, "batch_group_count": 1, "window_strides": [2, 2]}

    def body(b: Builder, x):
        weights = b.add(ops.Constant(kernel))
        return b.add(ops.Convolution(x, weights, dimension_numbers=forward, padding=[[1, 1], [1, 1]], **options))

    module = Module.build(functions=[Function.build("main", [tensor(2, 64, 3, 3, of=F32)], body)])
    assert convolved(module) == [(2, 3, 3, 64), (16, 64, 3, 3), (2, 2, 2, 16)]
    (image,) = given(module)
    (expected,) = evaluate(module, image)
    (found,) = trivium.compile(module, threads=1)(image)
    np.testing.assert_array_equal(found, expected)
