"""From kernels to the template: what epilogues compute, which plans are chosen, and which kernels are left to plain
loops."""

from __future__ import annotations

from dataclasses import replace

import llvmlite.ir as ll
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
from trivium.backends.cpu.jit import parsed
from trivium.backends.cpu.target import host
from trivium.backends.cpu.threads import PARALLEL_FOR
from trivium.backends.llvm.workspace import WorkspaceSize
from trivium.compiler.kernel import Buffer, Kernel
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.structure import Register


def gelu(b: KernelBuilder, x: Register) -> Register:
    return b.multiply(b.multiply(x, 0.5), b.add(b.apply("erf", b.multiply(x, 0.70710678)), 1.0))


@pytest.mark.parametrize("constants", CONSTANTS[:2], ids=("input", "constant"))
@pytest.mark.parametrize(("m", "n"), [(33, 70), (1, 50), (50, 1)])
def test_matmul_with_bias_and_relu(m: int, n: int, constants: set[str]) -> None:
    lhs, rhs, bias = normal(1, m, 20), normal(1, 20, n), normal(n)
    b_buffer = buffer("bias", bias, (0,))

    def epilogue(b: KernelBuilder, total: Register, indices: tuple[Register | Index, ...]) -> Register:
        return b.apply("maximum", b.add(total, b.load(b_buffer, indices[2])), 0.0)

    case = matmul(lhs, rhs, extra={b_buffer: bias}, epilogue=epilogue)
    assert_close(case.run(constants), np.maximum(lhs @ rhs + bias, 0))


@pytest.mark.parametrize("layout", ["channels last", "channels first", "odd"])
def test_convolution_with_bias_gelu_and_residual(layout: str) -> None:
    lhs, rhs, bias, residual = normal(2, 20, 9, 11), normal(18, 20, 3, 3), normal(18), normal(2, 18, 9, 11)
    orders, window = LAYOUTS[layout], Window(padding=ONE)
    b_buffer, r_buffer = buffer("bias", bias, (0,)), buffer("residual", residual, orders[2])

    def epilogue(b: KernelBuilder, total: Register, indices: tuple[Register | Index, ...]) -> Register:
        activated = gelu(b, b.add(total, b.load(b_buffer, indices[1])))
        return b.add(activated, b.load(r_buffer, *(indices[d] for d in orders[2])))

    extra = {b_buffer: bias, r_buffer: np.ascontiguousarray(residual.transpose(orders[2]))}
    total = reference(lhs, rhs, window) + bias[:, None, None]
    want = 0.5 * total * (1 + erf(total / np.sqrt(2))) + residual
    assert_close(convolution(lhs, rhs, window, orders, extra, epilogue).run({"rhs"}), want)


def test_epilogue_that_computes_with_indices() -> None:
    """Columns of two axes cannot be merged if an index is used as a number."""
    lhs, rhs = normal(1, 4, 7, 5), normal(6, 4, 3, 3)
    window = Window(padding=ONE)

    def epilogue(b: KernelBuilder, total: Register, indices: tuple[Register | Index, ...]) -> Register:
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


PADDED = {
    "one around": Window(padding=ONE),
    "wider than the window": Window(padding=((4, 5), (3, 4))),
    "strided and dilated": Window((2, 1), ((2, 3), (1, 2)), rhs_dilation=(2, 1)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PADDED)
def test_taps_in_the_padding_are_left_out_unless_they_matter(name: str, threads: int) -> None:
    """Zero times a finite weight adds nothing; times an infinite one, it is NaN."""
    lhs, rhs, window = normal(2, 20, 9, 11), normal(18, 20, 3, 3), PADDED[name]
    case = convolution(lhs, rhs, window, LAYOUTS["channels last"])
    known = case.run({"rhs"}, threads)
    np.testing.assert_array_equal(known, case.run(threads=threads))
    assert_close(known, reference(lhs, rhs, window))
    rhs[0, 0, 0, 0] = np.inf
    infinite = convolution(lhs, rhs, window, LAYOUTS["channels last"])
    known = infinite.run({"rhs"}, threads)
    np.testing.assert_array_equal(known, infinite.run(threads=threads))
    assert np.isnan(known[:, 0, 0, 0]).all()
    assert np.isfinite(known[:, 1:]).all()


def test_which_taps_can_be_left_out() -> None:
    def skips(case: Case, finite: bool) -> bool:
        return Lowering(case.kernel, host(), frozenset({"rhs"}), finite).tiling.skips_padding

    images, weights = normal(1, 32, 9, 9), normal(8, 32, 3, 3)
    padded = convolution(images, weights, Window(padding=ONE), LAYOUTS["channels last"])
    assert skips(padded, finite=True)
    assert not skips(padded, finite=False)
    assert not skips(convolution(images, weights, Window(), LAYOUTS["channels last"]), finite=True)
    assert not Lowering(padded.kernel, host(), finite=True).tiling.skips_padding


def test_phases_make_up_the_whole_result() -> None:
    """The rows, columns and batches of all shares together are the elements of the result. If there are several shares,
    nothing is packed beforehand."""
    dilated = convolution(normal(2, 4, 5, 5), normal(6, 4, 3, 3), Window(padding=ONE, lhs_dilation=(2, 3)))
    lowering = Lowering(dilated.kernel, host(), constants=frozenset({"lhs", "rhs"}))
    problems = [share.plan.problem for share in lowering.shares]
    results = sum(p.batch.extent * p.rows.extent * p.columns.extent for p in problems)
    assert results == dilated.result.size
    assert lowering.units == sum(share.plan.units for share in lowering.shares)
    assert {share.plan.packed_operand for share in lowering.shares} == {None}


def test_functions_take_a_pointer_for_each_param_and_the_workspace() -> None:
    case = matmul(normal(1, 200, 3000), normal(1, 3000, 70))
    module, size = ll.Module("test"), WorkspaceSize()
    module.triple = host().triple
    function = Lowering(case.kernel, host()).emit(module, "product", size)
    assert len(function.args) == len(case.kernel.params) + 1
    assert (function.name, function.linkage) == ("product", "internal")
    assert size.nbytes > 0
    assert "product" in {f.name for f in parsed(str(module)).functions}


def test_small_products_do_not_wake_threads() -> None:
    def limits(m: int) -> list[str]:
        module = ll.Module("test")
        case = matmul(normal(1, m, 256), normal(1, 256, 256))
        Lowering(case.kernel, host().with_threads(4)).emit(module, "product", WorkspaceSize())
        calls = [line for line in str(module).splitlines() if f'call void @"{PARALLEL_FOR}"' in line]
        return [call.rpartition("i32 ")[2].rstrip(")") for call in calls]

    assert limits(1) == []
    assert limits(8) == ["-4"]
    assert limits(4000) == ["4"]


def test_the_template_leaves_what_it_cannot_do() -> None:
    case = matmul(normal(1, 4, 0), normal(1, 0, 4))
    assert not supports(case.kernel)
    np.testing.assert_array_equal(case.run(), np.zeros((1, 4, 4), np.float32))


def marked(**changes: object) -> Kernel:
    """A product whose contraction differs from the mark."""
    kernel = matmul(normal(1, 4, 8), normal(1, 8, 4)).kernel
    assert kernel.contraction is not None
    return replace(kernel, contraction=replace(kernel.contraction, **changes))


def with_buffer(side: str, dtype: str, shape: tuple[int, ...]) -> Kernel:
    kernel = marked()
    access = getattr(kernel.contraction, side)
    return marked(**{side: replace(access, buffer=Buffer(side, dtype, shape, "in"))})


def test_what_is_supported() -> None:
    plain = marked()
    assert supports(plain)
    assert not supports(replace(plain, contraction=None))
    assert not supports(marked(accumulate="i32"))
    assert supports(marked(accumulate="f64"))
    assert supports(with_buffer("rhs", "bf16", (1, 8, 4)))
    assert not supports(with_buffer("rhs", "f64", (1, 8, 4)))  # f32 has not all of its numbers
    assert not supports(with_buffer("rhs", "f8E8M0FNU", (1, 8, 4)))  # which has no zero, for padding
    assert not supports(with_buffer("rhs", "i8", (1, 8, 4)))
    assert not supports(with_buffer("lhs", "f32", (1, 1 << 16, 1 << 15)))  # exceeds offsets of 32 bits
    assert supports(with_buffer("lhs", "f32", (1, 1 << 15, 1 << 15)))
