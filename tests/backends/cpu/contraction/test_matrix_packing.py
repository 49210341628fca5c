"""Operands of every layout are packed as tiles: products are equal to NumPy's."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import LAYOUTS, WINDOWS, Order, convolution, matmul, normal, reference
from tests.backends.cpu.contraction.tiles import (
    BF16,
    PLAIN,
    SIZES,
    TURNED,
    assert_exact,
    bytes_of,
    multiplies_bf16,
    multiplies_bytes,
)


@multiplies_bytes
@pytest.mark.parametrize("constants", [set(), {"rhs"}, {"lhs"}], ids=lambda names: "".join(names) or "none")
@pytest.mark.parametrize("orders", list(product((PLAIN, TURNED), repeat=3)), ids=str)
def test_products_of_bytes(orders: tuple[Order, Order, Order], constants: set[str]) -> None:
    for batch, m, n, k in SIZES:
        lhs, rhs = bytes_of("i8", batch, m, k), bytes_of("i8", batch, k, n)
        assert_exact(matmul(lhs, rhs, orders), lhs, rhs, constants, 1 + (m > 30))


@multiplies_bytes
@pytest.mark.parametrize(
    ("layout", "constants"), [("channels last", {"rhs"}), ("odd", set()), ("channels first", set())]
)
@pytest.mark.parametrize("name", WINDOWS)
def test_convolutions(name: str, layout: str, constants: set[str]) -> None:
    shape, kernel, window = WINDOWS[name]
    lhs, rhs = bytes_of("ui8", *shape), bytes_of("i8", *kernel)
    wanted = reference(lhs.astype(np.float64), rhs.astype(np.float64), window)
    found = convolution(lhs, rhs, window, LAYOUTS[layout]).run(constants, 1 + (layout == "odd"))
    np.testing.assert_array_equal(found, wanted.astype(np.int32))


@multiplies_bf16
@pytest.mark.parametrize("constants", [set(), {"rhs"}], ids=("input", "constant"))
def test_infinities_and_nan(constants: set[str]) -> None:
    """They stay in their row and column, also where tiles are filled up."""
    for terms in (64, 70):
        lhs, rhs = normal(1, 37, terms).astype(BF16), normal(1, terms, 37).astype(BF16)
        lhs[0, 1, -1], lhs[0, 36, 0], rhs[0, -1, 35], rhs[0, 2, 36] = np.inf, np.nan, -np.inf, np.nan
        with np.errstate(invalid="ignore"):
            wanted = lhs.astype(np.float32) @ rhs.astype(np.float32)
        np.testing.assert_allclose(matmul(lhs, rhs).run(constants), wanted, 1e-3, 1e-4)
