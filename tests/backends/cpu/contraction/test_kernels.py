"""The bridge from kernels: what epilogues compute, which plans are chosen, and what is left to plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf

from tests.backends.cpu.contraction.cases import (
    CONSTANTS,
    LAYOUTS,
    ONE,
    Case,
    Window,
    assert_close,
    buffer,
    convolution,
    matmul,
    normal,
    reference,
)
from trivium.backends.cpu.contraction.kernels import Lowering, supports
from trivium.backends.cpu.contraction.tiling import Rhs
from trivium.backends.cpu.target import host
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.structure import Value as Scalar


def gelu(b: KernelBuilder, x: Scalar) -> Scalar:
    return b.multiply(b.multiply(x, 0.5), b.add(b.apply("erf", b.multiply(x, 0.70710678)), 1.0))


@pytest.mark.parametrize("constants", CONSTANTS[:2], ids=("input", "constant"))
@pytest.mark.parametrize(("m", "n"), [(33, 70), (1, 50), (50, 1)])
def test_matmul_with_bias_and_relu(m: int, n: int, constants: set[str]) -> None:
    lhs, rhs, bias = normal(1, m, 20), normal(1, 20, n), normal(n)
    b_buffer = buffer("bias", bias, (0,))

    def epilogue(b: KernelBuilder, total: Scalar, indices: tuple[Scalar | Index, ...]) -> Scalar:
        return b.apply("maximum", b.add(total, b.load(b_buffer, indices[2])), 0.0)

    case = matmul(lhs, rhs, extra={b_buffer: bias}, epilogue=epilogue)
    assert_close(case.run(constants), np.maximum(lhs @ rhs + bias, 0))


@pytest.mark.parametrize("layout", ["channels last", "channels first", "odd"])
def test_convolution_with_bias_gelu_and_residual(layout: str) -> None:
    lhs, rhs, bias, residual = normal(2, 20, 9, 11), normal(18, 20, 3, 3), normal(18), normal(2, 18, 9, 11)
    orders, window = LAYOUTS[layout], Window(padding=ONE)
    b_buffer, r_buffer = buffer("bias", bias, (0,)), buffer("residual", residual, orders[2])

    def epilogue(b: KernelBuilder, total: Scalar, indices: tuple[Scalar | Index, ...]) -> Scalar:
        activated = gelu(b, b.add(total, b.load(b_buffer, indices[1])))
        return b.add(activated, b.load(r_buffer, *(indices[d] for d in orders[2])))

    extra = {b_buffer: bias, r_buffer: np.ascontiguousarray(residual.transpose(orders[2]))}
    total = reference(lhs, rhs, window) + bias[:, None, None]
    want = 0.5 * total * (1 + erf(total / np.sqrt(2))) + residual
    assert_close(convolution(lhs, rhs, window, orders, extra, epilogue).run({"rhs"}), want)


def test_epilogue_that_computes_with_indices() -> None:
    """Columns of two axes cannot be seen as one where an index is used as a number."""
    lhs, rhs = normal(1, 4, 7, 5), normal(6, 4, 3, 3)
    window = Window(padding=ONE)

    def epilogue(b: KernelBuilder, total: Scalar, indices: tuple[Scalar | Index, ...]) -> Scalar:
        return b.add(total, b.apply("convert", indices[3], dtype="f32"))

    want = reference(lhs, rhs, window) + np.arange(5, dtype=np.float32)
    assert_close(convolution(lhs, rhs, window, epilogue=epilogue).run(), want)


def test_plans() -> None:
    def chosen(case: Case, constants: frozenset[str] = frozenset()) -> Lowering:
        return Lowering(case.kernel, host(), constants=constants)

    assert chosen(matmul(normal(1, 100, 64), normal(1, 64, 64))).tiling.rhs is Rhs.IN_PLACE
    wide = chosen(matmul(normal(1, 100, 64), normal(1, 64, 100)))
    assert wide.plan.tiling.rhs is Rhs.PACKED
    assert chosen(matmul(normal(1, 2, 64), normal(1, 64, 100))).plan.tiling.rhs is Rhs.DIRECT
    dilated = convolution(normal(1, 4, 5, 5), normal(4, 4, 3, 3), Window(padding=ONE, lhs_dilation=(2, 3)))
    assert len(chosen(dilated).shares) == 6
    first = chosen(convolution(normal(1, 8, 9, 9), normal(8, 8, 3, 3), Window(padding=ONE)), frozenset({"rhs"}))
    assert first.plan.oriented.swapped
    assert first.plan.packed_operand is None
    last = convolution(normal(1, 8, 9, 9), normal(8, 8, 3, 3), Window(padding=ONE), LAYOUTS["channels last"])
    assert chosen(last, frozenset({"rhs"})).plan.packed_operand == "rhs"


def test_the_template_leaves_what_it_cannot_do() -> None:
    case = matmul(normal(1, 4, 0), normal(1, 0, 4))
    assert not supports(case.kernel)
    np.testing.assert_array_equal(case.run(), np.zeros((1, 4, 4), np.float32))
