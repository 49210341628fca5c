"""Products of bf16 that are subnormal, or have subnormal factors, are not treated as zero."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import trivium
from tests.backends.cpu.contraction.cases import Order, assert_close, matmul, normal
from tests.backends.cpu.contraction.tiles import BF16, PLAIN, SIZES, TURNED
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.contraction.underflow import CONSTANT_EXPONENT, is_large
from trivium.backends.cpu.target import AMX, PAIRS, CpuTarget, host

HERE = host().matrix_instructions
adds_products = pytest.mark.skipif(
    not any(one.operands == "bf16" for one in HERE), reason="this processor does not add products of bf16"
)


@pytest.fixture(params=[AMX["amx-bf16"], PAIRS], ids=("tiles", "pairs"))
def target(request: pytest.FixtureRequest) -> CpuTarget:
    """This processor, with one of the instructions that treat subnormal numbers as zero."""
    if request.param not in HERE:
        pytest.skip(f"this processor has no instruction for products of {request.param.rows} rows of bf16")
    return replace(host(), matrix_instructions=(request.param,))


@pytest.mark.parametrize("constants", [set(), {"rhs"}, {"lhs"}], ids=lambda names: "".join(names) or "none")
@pytest.mark.parametrize("orders", list(product((PLAIN, TURNED), repeat=3)), ids=str)
@pytest.mark.parametrize("scale", [1, 2.0**-70])
def test_products_of_bf16(
    orders: tuple[Order, Order, Order], constants: set[str], scale: float, target: CpuTarget
) -> None:
    """Small factors are multiplied by vectors: their products are subnormal."""
    for batch, m, n, k in (*SIZES[:3], (1, 20, 18, 9000)):
        lhs, rhs = ((normal(*shape) * scale).astype(BF16) for shape in ((batch, m, k), (batch, k, n)))
        case = matmul(lhs, rhs, orders)
        assert Lowering(case.kernel, target, frozenset(constants)).tiling.matrix in target.matrix_instructions
        wanted = lhs.astype(np.float64) @ rhs.astype(np.float64)
        assert_close(case.run(constants, 1 + (m > 30), target).astype(np.float64), wanted, 1e-5 if scale == 1 else 1e-2)


@pytest.mark.parametrize("constants", [set(), {"rhs"}], ids=("input", "constant"))
@pytest.mark.parametrize("small", ["lhs", "rhs"])
@pytest.mark.parametrize("terms", [64, 70, 9000])
def test_subnormal_factors(small: str, constants: set[str], terms: int, target: CpuTarget) -> None:
    """2^-130 * 2^120, in one place of each operand, and in the last one."""
    lhs, rhs = (np.zeros(shape, np.float64) for shape in ((1, 40, terms), (1, terms, 40)))
    for step, row in ((3, 2), (terms - 1, 39)):
        lhs[0, row, step], rhs[0, step, row] = (2.0**-130, 2.0**120)[:: 1 if small == "lhs" else -1]
    lhs, rhs = lhs.astype(BF16), rhs.astype(BF16)
    wanted = (lhs.astype(np.float64) @ rhs.astype(np.float64)).astype(np.float32)
    assert wanted.max() == 2.0**-10
    np.testing.assert_array_equal(matmul(lhs, rhs).run(constants, target=target), wanted)


LINEAR = """func.func @main(%x: tensor<40x70xbf16>, %w: tensor<40x70xbf16>) -> tensor<40x40xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<40x70xbf16>, tensor<40x70xbf16>) -> tensor<40x40xf32>
  return %0 : tensor<40x40xf32>
}"""  # noqa: E501


@adds_products
def test_subnormal_weights_in_any_place() -> None:
    """Rows of weights are searched while they are packed: in every square, also the last ones, which are not whole."""
    run = trivium.compile(trivium.parse(LINEAR), threads=1)
    for row, step in product((0, 15, 16, 39), (0, 31, 32, 63, 64, 69)):
        x, weights = np.full((40, 70), 2.0**120).astype(BF16), np.zeros((40, 70)).astype(BF16)
        weights[row, step], wanted = 2.0**-130, np.zeros((40, 40), np.float32)
        wanted[:, row] = 2.0**-10
        (found,) = run(x, weights)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("constants", [set(), {"rhs"}], ids=("input", "constant"))
@pytest.mark.parametrize("later", [0.0, 2.0**-63])
def test_small_sums_of_an_earlier_block(later: float, constants: set[str], target: CpuTarget) -> None:
    """They are subnormal, or become so when the products of a later block are added, whose own factors are large."""
    lhs, rhs = np.zeros((1, 40, 9024)), np.zeros((1, 9024, 40))
    lhs[0, 2, 3], rhs[0, 3, 2] = 2.0**-70, 2.0**-70
    lhs[0, 2, 4], rhs[0, 4, 2] = -later, later
    lhs[0, 2, -1], rhs[0, -1, 2] = later, later
    lhs, rhs = lhs.astype(BF16), rhs.astype(BF16)
    case = matmul(lhs, rhs)
    assert Lowering(case.kernel, target, frozenset(constants)).tiling.reduction.blocks > 1
    found = case.run(constants, target=target)
    assert found[0, 2, 2] == 2.0**-140
    assert np.count_nonzero(found) == 1


@pytest.mark.parametrize(("number", "large"), [(0.0, True), (1.0, True), (2.0**-40, True), (2.0**-41, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_constants_that_are_searched_in_advance(number: float, large: bool, sign: int) -> None:
    """Zeros do no harm, and neither do infinities and NaN."""
    constant = np.array([1.0, np.inf, np.nan, 0.0, sign * number]).astype(BF16)
    assert is_large(constant) == large
    assert (constant[-1:].view(np.uint16)[0] >> 7 & 0xFF >= CONSTANT_EXPONENT or number == 0) == large
