"""Operands that are converted when they are read: narrow floats, f32 in sums of f64, and integers of at most 8 bits,
whose sums are exact, also where f32 alone could not represent them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import (
    CONSTANTS,
    LAYOUTS,
    WINDOWS,
    Order,
    assert_close,
    convolution,
    matmul,
    normal,
    reference,
    whole,
)
from trivium.backends.cpu.contraction.kernels import EXACT_INTEGERS, Lowering, supports
from trivium.backends.cpu.contraction.tiling import Rhs
from trivium.backends.cpu.target import emulated, host

FLOATS = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
BYTES = {"i8": np.int8, "ui8": np.uint8}
RANGES = {"i8": (-128, 127), "ui8": (0, 255)}
SIZES = {
    (1, 1, 40, 300): (0, 2, 1),
    (2, 3, 33, 70): (0, 1, 2),
    (1, 70, 100, 33): (0, 2, 1),
    (1, 5, 16, 1): (0, 1, 2),
    (1, 100, 1, 20): (0, 1, 2),
    (1, 30, 70, 2100): (0, 1, 2),
    (1, 1, 20, 5000): (0, 2, 1),
}
"""Batch, rows, columns and terms: a row, a tile, several, and several blocks. Each with an order of rhs in memory."""

PLAIN = (0, 1, 2)

CHOICES = [(set(), "x86-64-v3"), ({"rhs"}, "x86-64-v3"), ({"lhs"}, "x86-64-v4"), ({"rhs"}, "x86-64-v4")]
"""What is known when the code is loaded, and the processor."""


@pytest.mark.parametrize(("constants", "level"), CHOICES)
@pytest.mark.parametrize("kind", FLOATS)
def test_products_of_narrow_floats(kind: str, constants: set[str], level: str) -> None:
    for (batch, m, n, k), order in SIZES.items():
        lhs, rhs = (normal(*shape).astype(FLOATS[kind]) for shape in ((batch, m, k), (batch, k, n)))
        case = matmul(lhs, rhs, (PLAIN, order, PLAIN))
        assert supports(case.kernel)
        wanted = lhs.astype(np.float64) @ rhs.astype(np.float64)
        assert_close(case.run(constants, target=emulated(level)), wanted.astype(np.float32))


@pytest.mark.parametrize("side", ["lhs", "rhs"])
@pytest.mark.parametrize(("narrow", "wide"), [("bf16", np.float32), ("f16", np.float32), ("bf16", np.float64)])
def test_one_operand_is_converted(narrow: str, wide: type, side: str) -> None:
    for rows, order in ((1, (0, 2, 1)), (3, PLAIN), (40, (0, 2, 1))):
        operands = {"lhs": normal(2, rows, 70, dtype=wide), "rhs": normal(2, 70, 50, dtype=wide)}
        operands[side] = operands[side].astype(FLOATS[narrow])
        case = matmul(operands["lhs"], operands["rhs"], (PLAIN, order, (0, 2, 1)))
        wanted = operands["lhs"].astype(np.float64) @ operands["rhs"].astype(np.float64)
        assert_close(case.run({side}), wanted.astype(wide), 1e-5 if wide == np.float32 else 1e-14)


def test_sums_in_f64_of_f32() -> None:
    lhs, rhs = normal(1, 40, 70, dtype=np.float64), normal(1, 70, 50)
    case = matmul(lhs, rhs)
    assert supports(case.kernel)
    assert_close(case.run(), lhs @ rhs.astype(np.float64), 1e-14)


@pytest.mark.parametrize(("constants", "level"), CHOICES)
@pytest.mark.parametrize(("one", "other"), list(product(BYTES, repeat=2)))
def test_sums_of_bytes_are_exact(one: str, other: str, constants: set[str], level: str) -> None:
    for (batch, m, n, k), order in SIZES.items():
        lhs = whole(*RANGES[one], batch, m, k, dtype=BYTES[one])
        rhs = whole(*RANGES[other], batch, k, n, dtype=BYTES[other])
        case = matmul(lhs, rhs, (PLAIN, order, PLAIN))
        assert supports(case.kernel)
        found = case.run(constants, 1 + (m > 5), emulated(level))
        np.testing.assert_array_equal(found, lhs.astype(np.int32) @ rhs.astype(np.int32))


@pytest.mark.parametrize("rows", [1, 4, 40])
@pytest.mark.parametrize("constants", CONSTANTS[:2], ids=("input", "constant"))
def test_sums_of_the_greatest_bytes(rows: int, constants: set[str]) -> None:
    """f32 has no odd integers above 2^24: each block's sum is at most that."""
    lhs, rhs = np.full((1, rows, 5001), 255, np.uint8), np.full((1, 5001, 24), 255, np.uint8)
    lhs[..., -1] = rhs[:, -1] = 1
    case = matmul(lhs, rhs, (PLAIN, (0, 2, 1), PLAIN))
    wanted = 255 * 255 * 5000 + 1
    assert wanted > EXACT_INTEGERS
    np.testing.assert_array_equal(case.run(constants), np.full((1, rows, 24), wanted, np.int32))


@pytest.mark.parametrize(
    ("kind", "layout", "constants"),
    [("bf16", "channels last", {"rhs"}), ("i8", "channels last", set()), ("i8", "odd", {"rhs"}), ("f16", "odd", set())],
)
@pytest.mark.parametrize("name", WINDOWS)
def test_convolutions(name: str, kind: str, layout: str, constants: set[str]) -> None:
    shape, kernel, window = WINDOWS[name]
    if kind == "i8":
        lhs, rhs = (whole(-128, 127, *each, dtype=np.int8) for each in (shape, kernel))
    else:
        lhs, rhs = (normal(*each).astype(FLOATS[kind]) for each in (shape, kernel))
    wanted = reference(lhs.astype(np.float64), rhs.astype(np.float64), window)
    found = convolution(lhs, rhs, window, LAYOUTS[layout]).run(constants)
    if kind == "i8":
        np.testing.assert_array_equal(found, wanted.astype(np.int32))
    else:
        assert_close(found, wanted.astype(np.float32))


def test_plans() -> None:
    """What is read several times is converted once; an rhs that is read once is not copied."""

    def tiling(m: int, order: Order = PLAIN, known: bool = False, kind: str = "bf16"):
        lhs, rhs = (normal(*shape).astype(FLOATS[kind]) for shape in ((1, m, 256), (1, 256, 256)))
        constants = frozenset({"rhs"} if known else ())
        target = replace(emulated("x86-64-v3"), half=True)
        return Lowering(matmul(lhs, rhs, (PLAIN, order, PLAIN)).kernel, target, constants).tiling

    many, few = tiling(100), tiling(2)
    assert (many.rhs, many.pack_lhs) == (Rhs.PACKED, True)
    assert (few.rhs, few.pack_lhs) == (Rhs.IN_PLACE, True)
    assert tiling(2, (0, 2, 1)).rhs is Rhs.FOLDED
    constant, small = tiling(100, known=True), tiling(2, known=True)
    assert (constant.rhs, constant.converts_panels) == (Rhs.CONSTANT, True)
    assert (small.rhs, small.converts_panels) == (Rhs.CONSTANT, False)
    assert tiling(100, known=True, kind="f8E4M3FN").rhs is Rhs.PACKED


def test_packed_constants_keep_their_type() -> None:
    lhs, rhs = (normal(*shape).astype(ml_dtypes.bfloat16) for shape in ((1, 40, 64), (1, 64, 64)))
    lowering = Lowering(matmul(lhs, rhs).kernel, host(), frozenset({"rhs"}))
    assert lowering.plan.packing(2).nbytes == rhs.nbytes
