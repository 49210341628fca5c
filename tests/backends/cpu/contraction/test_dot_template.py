"""Products of bytes and of bf16 by instructions that add several of them in each lane, compared with NumPy's where this
processor has them; elsewhere, LLVM assembles them for one that does."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import (
    LAYOUTS,
    ONE,
    Case,
    Window,
    assert_close,
    convolution,
    matmul,
    normal,
    reference,
)
from tests.backends.cpu.contraction.tiles import BF16, BYTES, PLAIN, TURNED, assembly, bytes_of
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.target import AVX_VNNI, PAIRS, VNNI, CpuTarget, emulated, host, level

SIGNS = list(product(BYTES, repeat=2))
WIDE = replace(host(), matrix_instructions=(VNNI,))
"""This processor with instructions for four bytes in vectors of AVX-512 only, which are packed during the run, too."""


def assert_exact(case: Case, wanted: np.ndarray, constants: set[str], target: CpuTarget, threads: int = 1) -> None:
    assert Lowering(case.kernel, target, frozenset(constants)).tiling.matrix is target.matrix_instructions[0]
    np.testing.assert_array_equal(case.run(constants, threads, target), wanted.astype(np.int32))


@pytest.fixture(params=["avx512vnni", "avxvnni"])
def dots(request: pytest.FixtureRequest) -> CpuTarget:
    """This processor with instructions for four bytes only, in vectors of AVX-512 or of AVX."""
    if f"+{request.param}" not in host().features.split(","):
        pytest.skip("this processor does not add products of bytes in lanes")
    if request.param == "avxvnni":
        return replace(emulated("x86-64-v3"), matrix_instructions=(AVX_VNNI,))
    return WIDE


has_wide_dots = pytest.mark.skipif(
    VNNI not in host().matrix_instructions, reason="this processor does not add products of bytes in AVX-512's lanes"
)


@pytest.fixture(params=["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def widening(request: pytest.FixtureRequest) -> CpuTarget:
    """A processor with instructions for pairs of 16 bits only."""
    found = emulated(request.param)
    if not found.matrix_instructions:
        pytest.skip("this processor has shorter vectors, or other instructions")
    return found


@pytest.mark.parametrize(("one", "other"), SIGNS)
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_bytes_with_and_without_sign(dots: CpuTarget, one: str, other: str, rows: int) -> None:
    """With one tile or several, and one block or two."""
    for terms in (128, 4228):
        lhs, rhs = bytes_of(one, 1, rows, terms), bytes_of(other, 1, terms, 50)
        wanted = lhs.astype(np.int32) @ rhs.astype(np.int32)
        assert_exact(matmul(lhs, rhs), wanted, {"rhs"}, dots)


@has_wide_dots
@pytest.mark.parametrize(("one", "other"), SIGNS)
def test_bytes_that_are_packed_during_the_run(one: str, other: str) -> None:
    """Terms that are not whole groups."""
    lhs, rhs = bytes_of(one, 1, 40, 129), bytes_of(other, 1, 129, 50)
    wanted = lhs.astype(np.int32) @ rhs.astype(np.int32)
    assert_exact(matmul(lhs, rhs), wanted, set(), WIDE, threads=2)
    assert_exact(matmul(lhs, rhs, (TURNED, TURNED, TURNED)), wanted, set(), WIDE)


@pytest.mark.parametrize(("one", "other"), [(-128, -128), (-128, 127), (255, 255), (255, -128)])
def test_sums_of_extreme_bytes(dots: CpuTarget, one: int, other: int) -> None:
    """Neither pairs of products nor sums saturate; those of 33 thousand products of bytes without sign wrap."""
    lhs, rhs = extreme_bytes(one, other)
    assert_exact(matmul(lhs, rhs), lhs.astype(np.int32) @ rhs.astype(np.int32), {"rhs"}, dots)


@has_wide_dots
@pytest.mark.parametrize(("one", "other"), [(-128, -128), (-128, 127), (255, 255), (255, -128)])
def test_sums_of_extreme_bytes_that_are_packed_during_the_run(one: int, other: int) -> None:
    lhs, rhs = extreme_bytes(one, other)
    assert_exact(matmul(lhs, rhs), lhs.astype(np.int32) @ rhs.astype(np.int32), set(), WIDE)


def extreme_bytes(one: int, other: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns factors of 33 thousand terms, each filled with a number."""
    shapes = (1, 20, 33100), (1, 33100, 20)
    kinds = (np.uint8 if number > 127 else np.int8 for number in (one, other))
    lhs, rhs = (np.full(*filled) for filled in zip(shapes, (one, other), kinds, strict=True))
    return lhs, rhs


CONVOLUTIONS = {
    "padded": ((1, 64, 7, 9), (20, 64, 3, 3), Window((2, 1), ONE)),
    "a few features": ((2, 3, 12, 12), (20, 3, 5, 5), Window(padding=ONE)),
    "grouped": ((1, 32, 9, 9), (24, 16, 3, 3), Window(groups=2)),
}


@pytest.mark.parametrize(("one", "other"), SIGNS)
@pytest.mark.parametrize("name", ["padded", "grouped"])
def test_convolutions(dots: CpuTarget, name: str, one: str, other: str) -> None:
    """Padding is zero, also where sign bits are flipped."""
    assert_convolves(name, one, other, {"rhs"}, dots)


@has_wide_dots
@pytest.mark.parametrize(("one", "other"), SIGNS)
def test_convolutions_of_a_few_features(one: str, other: str) -> None:
    assert_convolves("a few features", one, other, set(), WIDE)


def assert_convolves(name: str, one: str, other: str, constants: set[str], target: CpuTarget) -> None:
    image, kernel, window = CONVOLUTIONS[name]
    lhs, rhs = bytes_of(one, *image), bytes_of(other, *kernel)
    wanted = reference(lhs.astype(np.int32), rhs.astype(np.int32), window)
    assert_exact(convolution(lhs, rhs, window, LAYOUTS["channels last"]), wanted, constants, target)


@pytest.mark.parametrize(("one", "other"), SIGNS)
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_bytes_that_are_extended(widening: CpuTarget, one: str, other: str, rows: int) -> None:
    """One tile or several, rows along and across memory, one block or two; terms that are no whole vectors."""
    for terms, threads in ((130, 1), (8212, 2)):
        lhs, rhs = bytes_of(one, 1, rows, terms), bytes_of(other, 1, terms, 50)
        wanted = lhs.astype(np.int32) @ rhs.astype(np.int32)
        for order in (PLAIN, TURNED):
            assert_exact(matmul(lhs, rhs, (order, PLAIN, PLAIN)), wanted, {"rhs"}, widening, threads)


@pytest.mark.parametrize(("one", "other"), [(-128, -128), (255, 255), (255, -128)])
def test_sums_of_extreme_bytes_that_are_extended(widening: CpuTarget, one: int, other: int) -> None:
    """Neither pairs of products nor sums saturate; those of 33 thousand products of bytes without sign wrap."""
    lhs, rhs = extreme_bytes(one, other)
    wanted = lhs.astype(np.int32) @ rhs.astype(np.int32)
    assert_exact(matmul(lhs, rhs), wanted, {"rhs"}, widening)


@pytest.mark.parametrize(("one", "other"), SIGNS)
@pytest.mark.parametrize("name", ["padded", "grouped"])
def test_convolutions_of_bytes_that_are_extended(widening: CpuTarget, name: str, one: str, other: str) -> None:
    assert_convolves(name, one, other, {"rhs"}, widening)


@pytest.mark.parametrize(
    ("name", "feature", "instruction", "registers", "constants"),
    [("x86-64-v4", "avx512vnni", VNNI, "%zmm", set()), ("x86-64-v3", "avxvnni", AVX_VNNI, "%ymm", {"rhs"})],
)
@pytest.mark.parametrize(("one", "other"), SIGNS)
def test_the_instruction_is_emitted(one, other, name, feature, instruction, registers, constants) -> None:
    """Not those that saturate."""
    plain = level(name)
    target = replace(plain, features=f"{plain.features},+{feature}", matrix_instructions=(instruction,))
    case = matmul(bytes_of(one, 1, 64, 128), bytes_of(other, 1, 128, 64), (PLAIN,) * 3)
    listing = assembly(case, target, frozenset(constants))
    assert any("vpdpbusd\t" in line and registers in line for line in listing.splitlines())
    assert "vpdpbusds" not in listing
    assert "vpmaddubsw" not in listing


@pytest.mark.parametrize(("name", "registers"), [("x86-64-v2", "%xmm"), ("x86-64-v3", "%ymm"), ("x86-64-v4", "%zmm")])
def test_the_instruction_of_extended_bytes_is_emitted(name: str, registers: str) -> None:
    case = matmul(bytes_of("i8", 1, 64, 128), bytes_of("ui8", 1, 128, 64), (PLAIN,) * 3)
    lines = assembly(case, level(name), frozenset({"rhs"})).splitlines()
    assert any("pmaddwd" in line and registers in line for line in lines)


@pytest.mark.skipif(PAIRS not in host().matrix_instructions, reason="this processor does not add pairs of bf16")
@pytest.mark.parametrize("constants", [set(), {"rhs"}], ids=("input", "constant"))
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_pairs_of_bf16(rows: int, constants: set[str]) -> None:
    """With terms that are no whole pairs, infinities, and NaN, whose products with zero are NaN."""
    target = replace(host(), matrix_instructions=(PAIRS,))
    lhs, rhs = normal(1, rows, 131).astype(BF16), normal(1, 131, 50).astype(BF16)
    wanted = lhs.astype(np.float32) @ rhs.astype(np.float32)
    assert_close(matmul(lhs, rhs).run(constants, target=target), wanted)
    lhs[0, 0, 3], rhs[0, 4, 7], rhs[0, 3, 9] = np.inf, np.nan, 0
    with np.errstate(invalid="ignore"):
        special = lhs.astype(np.float32) @ rhs.astype(np.float32)
    found = matmul(lhs, rhs).run(constants, target=target)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(special))
    np.testing.assert_array_equal(np.isposinf(found), np.isposinf(special))
    np.testing.assert_array_equal(np.isneginf(found), np.isneginf(special))


@pytest.mark.skipif(PAIRS not in host().matrix_instructions, reason="this processor does not add pairs of bf16")
@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("scale", [1.0, 2.0**-70])
def test_convolutions_of_bf16(name: str, scale: float) -> None:
    """Padding is zero, which no product is too small for."""
    target = replace(host(), matrix_instructions=(PAIRS,))
    image, kernel, window = CONVOLUTIONS[name]
    lhs, rhs = ((normal(*shape) * scale).astype(BF16) for shape in (image, kernel))
    wanted = reference(lhs.astype(np.float64), rhs.astype(np.float64), window)
    case = convolution(lhs, rhs, window, LAYOUTS["channels last"])
    for constants in (set(), {"rhs"}):
        assert Lowering(case.kernel, target, frozenset(constants)).tiling.matrix is PAIRS
        assert_close(case.run(constants, 2, target).astype(np.float64), wanted, 1e-5 if scale == 1 else 1e-2)


def test_the_instruction_of_pairs_is_emitted() -> None:
    """Beside vectors of f32, for small factors."""
    plain = level("x86-64-v4")
    target = replace(plain, features=f"{plain.features},+avx512bf16", matrix_instructions=(PAIRS,))
    lhs, rhs = normal(1, 64, 128).astype(BF16), normal(1, 128, 64).astype(BF16)
    listing = assembly(matmul(lhs, rhs, (PLAIN,) * 3), target)
    assert "vdpbf16ps" in listing
    assert "vfmadd" in listing
