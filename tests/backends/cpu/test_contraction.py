"""Generated matrix products and convolutions against NumPy: layouts, ragged sizes, windows, constants, epilogues,
threads, narrow vectors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import erf

from tests.backends.cpu.contraction_kernels import (
    HWIO,
    NCHW,
    NHWC,
    Case,
    Window,
    buffer,
    convolution,
    matmul,
    reference,
)
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.contraction.kernels import Lowering, supports
from trivium.backends.cpu.contraction.tiling import Rhs, split
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import LEVELS, emulated, host
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.structure import Value as Scalar
from trivium.compiler.program import Constant, Input, Launch, Output, Program, Step, Value

CONSTANTS = (set(), {"rhs"}, {"lhs"}, {"lhs", "rhs"})


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def assert_close(got: np.ndarray, want: np.ndarray, tolerance: float = 1e-5) -> None:
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


@pytest.mark.parametrize("constants", CONSTANTS, ids=lambda names: "+".join(sorted(names)) or "none")
@pytest.mark.parametrize("transposed", list(product((False, True), repeat=3)), ids=str)
def test_matmul_layouts(transposed: tuple[bool, bool, bool], constants: set[str]) -> None:
    lhs, rhs = normal(2, 13, 37), normal(2, 37, 70)
    orders = tuple((0, 2, 1) if flag else (0, 1, 2) for flag in transposed)
    assert_close(matmul(lhs, rhs, orders).run(constants), lhs @ rhs)


@pytest.mark.parametrize("constants", CONSTANTS[:2], ids=("input", "constant"))
@pytest.mark.parametrize(
    ("batch", "m", "n", "k"),
    [
        (1, 1, 1, 1),
        (1, 1, 100, 50),
        (3, 5, 16, 1),
        (1, 100, 1, 20),
        (1, 3, 33, 3000),
        (2, 61, 33, 3000),
        (7, 6, 64, 64),
        (1, 600, 20, 9),
    ],
)
def test_matmul_sizes(batch: int, m: int, n: int, k: int, constants: set[str]) -> None:
    lhs, rhs = normal(batch, m, k), normal(batch, k, n)
    assert_close(matmul(lhs, rhs).run(constants), lhs @ rhs)


def test_matmul_in_f64() -> None:
    lhs, rhs = normal(2, 13, 37, dtype=np.float64), normal(2, 37, 70, dtype=np.float64)
    assert_close(matmul(lhs, rhs).run({"rhs"}), lhs @ rhs, 1e-14)


@pytest.mark.parametrize("constants", CONSTANTS[:2], ids=("input", "constant"))
def test_matmul_on_threads(constants: set[str]) -> None:
    lhs, rhs = normal(2, 200, 300), normal(2, 300, 170)
    assert_close(matmul(lhs, rhs).run(constants, threads=2), lhs @ rhs)


@pytest.mark.parametrize("constants", CONSTANTS[:2], ids=("input", "constant"))
@pytest.mark.parametrize("level", LEVELS)
def test_matmul_planned_for_another_processor(level: str, constants: set[str]) -> None:
    lhs, rhs = normal(2, 33, 50), normal(2, 50, 70)
    assert_close(matmul(lhs, rhs).run(constants, target=emulated(level)), lhs @ rhs)


LAYOUTS = {
    "channels last": (NHWC, HWIO, NHWC),
    "channels first": (NCHW, NCHW, NCHW),
    "last to first": (NHWC, HWIO, NCHW),
    "first to last": (NCHW, HWIO, NHWC),
    "batch innermost": ((1, 2, 3, 0),) * 3,
    "odd": ((3, 1, 0, 2), (1, 3, 0, 2), (2, 0, 3, 1)),
}
ONE = ((1, 1), (1, 1))
WINDOWS = {
    "plain": ((2, 5, 9, 11), (7, 5, 3, 3), Window()),
    "padded": ((2, 20, 9, 11), (18, 20, 3, 3), Window(padding=ONE)),
    "strided": ((2, 20, 9, 11), (18, 20, 3, 2), Window((2, 3), ((2, 0), (1, 3)), rhs_dilation=(2, 1))),
    "dilated": (
        (2, 20, 9, 11),
        (18, 20, 3, 2),
        Window((1, 2), ((2, 0), (1, 3)), (2, 3), (1, 2), reversal=(True, False)),
    ),
    "gradient of the input": ((2, 20, 5, 6), (18, 20, 3, 3), Window((1, 1), ((1, 2), (2, 1)), (2, 3))),
    "few taps": ((2, 20, 5, 6), (18, 20, 1, 2), Window((1, 1), ((0, 1), (1, 0)), (2, 3), (1, 2))),
    "grouped": ((2, 6, 9, 11), (12, 2, 3, 3), Window(padding=ONE, groups=3)),
    "depthwise": ((2, 20, 9, 11), (20, 1, 3, 3), Window((1, 2), ONE, groups=20)),
    "one by one": ((1, 32, 14, 14), (40, 32, 1, 1), Window()),
    "stem": ((2, 3, 20, 20), (20, 3, 7, 7), Window((2, 2), ((3, 3), (3, 3)))),
    "cut off": ((3, 4, 20, 20), (40, 4, 3, 3), Window(padding=((-1, 2), (0, -2)))),
    "gradient of the weights": ((8, 4, 14, 14), (6, 4, 12, 12), Window(padding=ONE)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", WINDOWS)
def test_convolution(name: str, layout: str) -> None:
    lhs_shape, rhs_shape, window = WINDOWS[name]
    lhs, rhs = normal(*lhs_shape), normal(*rhs_shape)
    assert_close(convolution(lhs, rhs, window, LAYOUTS[layout]).run(), reference(lhs, rhs, window))


@pytest.mark.parametrize("constants", [{"rhs"}, {"lhs"}, {"lhs", "rhs"}], ids=("weights", "images", "both"))
@pytest.mark.parametrize("layout", ["channels last", "channels first"])
@pytest.mark.parametrize("name", WINDOWS)
def test_convolution_of_constants(name: str, layout: str, constants: set[str]) -> None:
    lhs_shape, rhs_shape, window = WINDOWS[name]
    lhs, rhs = normal(*lhs_shape), normal(*rhs_shape)
    assert_close(convolution(lhs, rhs, window, LAYOUTS[layout]).run(constants), reference(lhs, rhs, window))


@pytest.mark.parametrize("layout", ["channels last", "channels first"])
def test_convolution_in_blocks_and_threads(layout: str) -> None:
    lhs, rhs = normal(2, 300, 12, 12), normal(40, 300, 3, 3)
    window = Window(padding=ONE)
    assert_close(convolution(lhs, rhs, window, LAYOUTS[layout]).run(threads=2), reference(lhs, rhs, window))


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
    """Columns of two axes cannot be merged into one if an index is used as a number."""
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


def test_a_constant_is_packed_once_for_equal_launches() -> None:
    """The program also keeps its own constant, of the shape that the kernel reads."""
    lhs, rhs = normal(1, 100, 64), normal(1, 64, 70)
    case = matmul(lhs, rhs)
    x, y, z = case.kernel.params
    given, weights = Value("x", "f32", x.shape, Input(0)), Value("w", "f32", y.shape, Constant(case.operands[y]))
    results = [Value("z", "f32", z.shape, Output(number)) for number in range(2)]
    launches: list[Step] = [Launch(matmul(lhs, rhs).kernel, (given, weights, result)) for result in results]
    program = Program("twice", [given], results, launches)
    executable = CpuExecutable(assemble_program(program, host()))
    assert len(executable._constants) == 1
    assert executable._constants[0].nbytes > rhs.nbytes
    assert weights in program.values()
    for result in executable.execute(lhs):
        assert_close(result, lhs @ rhs)


def test_the_template_leaves_what_it_cannot_do() -> None:
    case = matmul(normal(1, 4, 0), normal(1, 0, 4))
    assert not supports(case.kernel)
    np.testing.assert_array_equal(case.run(), np.zeros((1, 4, 4), np.float32))


def test_split_is_even_and_whole() -> None:
    for extent, most in product(range(1, 40), range(1, 9)):
        parts = split(extent, most)
        assert sum(parts.sizes) == extent
        assert max(parts.sizes) <= most
        assert max(parts.sizes) - min(parts.sizes) <= 1
        assert [parts.start(i) for i in range(parts.count)] == [sum(parts.sizes[:i]) for i in range(parts.count)]
