"""Products by instructions that multiply tiles: all sizes and layouts, in blocks and on threads, compared with NumPy's
where this processor has the instructions; elsewhere, LLVM assembles them for one that does."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product

import llvmlite.ir as ll
import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.backends.cpu.contraction.cases import (
    LAYOUTS,
    WINDOWS,
    Case,
    Order,
    assert_close,
    buffer,
    convolution,
    matmul,
    normal,
    reference,
    whole,
)
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.contraction.matrix_template import configuration
from trivium.backends.cpu.contraction.tiling import Rhs
from trivium.backends.cpu.jit import parsed
from trivium.backends.cpu.target import AMX, CpuTarget, host, level
from trivium.backends.llvm.workspace import WorkspaceSize
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.structure import Register

PLAIN, TURNED = (0, 1, 2), (0, 2, 1)
BYTES = {"i8": (-128, 127, np.int8), "ui8": (0, 255, np.uint8)}
SIZES = ((1, 128, 96, 192), (2, 40, 50, 70), (3, 17, 33, 300), (1, 20, 18, 20000))
"""Batch, rows, columns and terms: whole tiles, ragged ones, and several blocks."""

has = {operands: any(one.operands == operands for one in host().matrix_instructions) for operands in ("i8", "bf16")}
multiplies_bytes = pytest.mark.skipif(not has["i8"], reason="this processor does not multiply tiles of bytes")


def with_tiles() -> CpuTarget:
    """A processor that multiplies tiles, which LLVM generates code for anywhere."""
    plain = level("x86-64-v4")
    features = f"{plain.features},+amx-tile,{','.join('+' + name for name in AMX)}"
    return replace(plain, features=features, matrix_instructions=tuple(AMX.values()))


def bytes_of(kind: str, *shape: int) -> np.ndarray:
    low, high, dtype = BYTES[kind]
    return whole(low, high, *shape, dtype=dtype)


def assert_exact(case: Case, lhs: np.ndarray, rhs: np.ndarray, constants: set[str], threads: int = 1) -> None:
    assert Lowering(case.kernel, host(), frozenset(constants)).tiling.matrix is not None
    wanted = lhs.astype(np.int32) @ rhs.astype(np.int32)
    np.testing.assert_array_equal(case.run(constants, threads), wanted)


@multiplies_bytes
@pytest.mark.parametrize("constants", [set(), {"rhs"}, {"lhs"}], ids=lambda names: "".join(names) or "none")
@pytest.mark.parametrize("orders", list(product((PLAIN, TURNED), repeat=3)), ids=str)
def test_products_of_bytes(orders: tuple[Order, Order, Order], constants: set[str]) -> None:
    for batch, m, n, k in SIZES:
        lhs, rhs = bytes_of("i8", batch, m, k), bytes_of("i8", batch, k, n)
        assert_exact(matmul(lhs, rhs, orders), lhs, rhs, constants, 1 + (m > 30))


@multiplies_bytes
@pytest.mark.parametrize(("one", "other"), list(product(BYTES, repeat=2)))
def test_bytes_with_and_without_sign(one: str, other: str) -> None:
    for orders, constants in (((PLAIN, PLAIN, PLAIN), set()), ((PLAIN, TURNED, TURNED), {"rhs"})):
        for k in (64, 129):
            lhs, rhs = bytes_of(one, 1, 40, k), bytes_of(other, 1, k, 50)
            assert_exact(matmul(lhs, rhs, orders), lhs, rhs, constants)


@multiplies_bytes
@pytest.mark.parametrize("rows", range(16, 66, 7))
def test_every_height(rows: int) -> None:
    lhs, rhs = bytes_of("i8", 1, rows, 64), bytes_of("ui8", 1, 64, 48)
    assert_exact(matmul(lhs, rhs), lhs, rhs, {"rhs"})


@multiplies_bytes
@pytest.mark.parametrize("extreme", ["least", "greatest"])
def test_sums_of_the_greatest_bytes(extreme: str) -> None:
    """They leave 16 and 24 bits, and those of 33 thousand products of bytes without sign wrap in 32."""
    pair = (np.int8(-128), np.int8(-128)) if extreme == "least" else (np.uint8(255), np.uint8(255))
    lhs, rhs = np.full((1, 20, 33100), pair[0]), np.full((1, 33100, 20), pair[1])
    assert_exact(matmul(lhs, rhs), lhs, rhs, set())


@multiplies_bytes
@pytest.mark.parametrize("rows", [20, 100])
@pytest.mark.parametrize("terms", [64, 70, 9000])
def test_epilogues(rows: int, terms: int) -> None:
    """Numbers are scaled, and added to others."""
    lhs, rhs = bytes_of("i8", 1, rows, terms), bytes_of("i8", 1, terms, 50)

    def epilogue(builder: KernelBuilder, total: Register, indices: tuple[Register | Index, ...]) -> Register:
        doubled = builder.apply("add", total, total)
        return builder.apply("maximum", doubled, total)

    wanted = lhs.astype(np.int32) @ rhs.astype(np.int32)
    for constants in (set(), {"rhs"}):
        found = matmul(lhs, rhs, epilogue=epilogue).run(constants)
        np.testing.assert_array_equal(found, np.maximum(2 * wanted, wanted))


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


def test_plans() -> None:
    """Whole rows are read in place, and constants packed in advance, if no tile of theirs must be filled up."""

    def tiling(m: int, n: int, k: int, known: bool, order: Order = PLAIN):
        lhs, rhs = bytes_of("i8", 1, m, k), bytes_of("i8", 1, k, n)
        constants = frozenset({"rhs"} if known else ())
        return Lowering(matmul(lhs, rhs, (order, PLAIN, PLAIN)).kernel, with_tiles(), constants).tiling

    even, ragged = tiling(64, 64, 128, True), tiling(64, 64, 130, True)
    assert (even.rhs, even.pack_lhs, even.tiles.size) == (Rhs.CONSTANT, False, 32)
    assert (ragged.rhs, ragged.pack_lhs) == (Rhs.PACKED, True)
    assert tiling(64, 64, 128, False, TURNED).pack_lhs
    assert tiling(1, 64, 128, True).matrix is None
    assert tiling(8, 64, 128, True).matrix is AMX["amx-int8"]
    assert tiling(8, 64, 128, False).matrix is None
    assert tiling(64, 2, 9, False).matrix is None
    assert "products of 16x16x64 i8" in str(even)


def test_a_channels_last_convolution_has_its_kernel_packed() -> None:
    shape, kernel, window = WINDOWS["one by one"]
    case = convolution(bytes_of("i8", *shape), bytes_of("i8", 40, 64, 1, 1), window, LAYOUTS["channels last"])
    del shape, kernel
    tiling = Lowering(case.kernel, with_tiles(), frozenset({"rhs"})).tiling
    assert (tiling.rhs, tiling.matrix) == (Rhs.CONSTANT, AMX["amx-int8"])


@pytest.mark.parametrize(("one", "other"), list(product(BYTES, repeat=2)))
def test_the_instruction_is_emitted(one: str, other: str) -> None:
    case = matmul(bytes_of(one, 1, 64, 128), bytes_of(other, 1, 128, 64))
    signs = "".join("u" if kind == "ui8" else "s" for kind in (one, other))
    listing = assembly(case)
    assert f"tdpb{signs}d" in listing
    assert listing.count("tilerelease") == 1


def assembly(case: Case) -> str:
    target = with_tiles()
    module = ll.Module()
    module.triple = target.triple
    Lowering(case.kernel, target).emit(module, "product", WorkspaceSize()).linkage = ""
    return target.machine().emit_assembly(parsed(str(module)))


def test_configurations() -> None:
    """Two accumulators for each row of tiles of lhs, which is less high at the end, and none beyond it."""
    bytes_ = configuration([16, 9])
    assert len(bytes_) == 64
    assert list(bytes_[16:32]) == [64, 0] * 8
    assert list(bytes_[48:56]) == [16, 16, 9, 9, 16, 9, 16, 16]
    assert list(configuration([7])[48:56]) == [7, 7, 7, 7, 7, 16, 16, 16]


PROGRAM = """func.func @main(%x: tensor<40x128xi8>, %w: tensor<128x70xi8>) -> tensor<40x70xi32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<40x128xi8>, tensor<128x70xi8>) -> tensor<40x70xi32>
  return %0 : tensor<40x70xi32>
}"""  # noqa: E501

LOADED = """
import sys, numpy as np, trivium
run = trivium.load_executable(sys.argv[1])
lhs, rhs = (np.load(name) for name in sys.argv[2:])
assert (np.asarray(run(lhs, rhs)) == lhs.astype(np.int32) @ rhs.astype(np.int32)).all()
"""


@multiplies_bytes
def test_another_process_may_use_tiles(tmp_path) -> None:
    """Linux permits them for each process that asks."""
    lhs, rhs = bytes_of("i8", 40, 128), bytes_of("i8", 128, 70)
    trivium.compile(trivium.parse(PROGRAM)).save(tmp_path / "product")
    np.save(tmp_path / "lhs.npy", lhs)
    np.save(tmp_path / "rhs.npy", rhs)
    names = [str(tmp_path / name) for name in ("product", "lhs.npy", "rhs.npy")]
    subprocess.run([sys.executable, "-c", LOADED, *names], check=True, timeout=120)


# bf16

BF16 = ml_dtypes.bfloat16
multiplies_bf16 = pytest.mark.skipif(not has["bf16"], reason="this processor does not multiply tiles of bf16")


@multiplies_bf16
@pytest.mark.parametrize("constants", [set(), {"rhs"}, {"lhs"}], ids=lambda names: "".join(names) or "none")
@pytest.mark.parametrize("orders", list(product((PLAIN, TURNED), repeat=3)), ids=str)
@pytest.mark.parametrize("scale", [1, 2.0**-70])
def test_products_of_bf16(orders: tuple[Order, Order, Order], constants: set[str], scale: float) -> None:
    """Small factors are multiplied by vectors: their products are subnormal."""
    for batch, m, n, k in (*SIZES[:3], (1, 20, 18, 9000)):
        lhs, rhs = ((normal(*shape) * scale).astype(BF16) for shape in ((batch, m, k), (batch, k, n)))
        case = matmul(lhs, rhs, orders)
        assert Lowering(case.kernel, host(), frozenset(constants)).tiling.matrix is not None
        wanted = lhs.astype(np.float64) @ rhs.astype(np.float64)
        assert_close(case.run(constants, 1 + (m > 30)).astype(np.float64), wanted, 1e-5 if scale == 1 else 1e-2)


@multiplies_bf16
@pytest.mark.parametrize("constants", [set(), {"rhs"}], ids=("input", "constant"))
@pytest.mark.parametrize("small", ["lhs", "rhs"])
@pytest.mark.parametrize("terms", [64, 70, 9000])
def test_subnormal_factors(small: str, constants: set[str], terms: int) -> None:
    """2^-130 * 2^120, in one place of each operand, and in the last one."""
    lhs, rhs = (np.zeros(shape, np.float64) for shape in ((1, 40, terms), (1, terms, 40)))
    for step, row in ((3, 2), (terms - 1, 39)):
        lhs[0, row, step], rhs[0, step, row] = (2.0**-130, 2.0**120)[:: 1 if small == "lhs" else -1]
    lhs, rhs = lhs.astype(BF16), rhs.astype(BF16)
    wanted = (lhs.astype(np.float64) @ rhs.astype(np.float64)).astype(np.float32)
    assert wanted.max() == 2.0**-10
    np.testing.assert_array_equal(matmul(lhs, rhs).run(constants), wanted)


@multiplies_bf16
@pytest.mark.parametrize("constants", [set(), {"rhs"}], ids=("input", "constant"))
@pytest.mark.parametrize("later", [0.0, 2.0**-63])
def test_small_sums_of_an_earlier_block(later: float, constants: set[str]) -> None:
    """They are subnormal, or become so when the products of a later block are added, whose own factors are large."""
    lhs, rhs = np.zeros((1, 40, 9024)), np.zeros((1, 9024, 40))
    lhs[0, 2, 3], rhs[0, 3, 2] = 2.0**-70, 2.0**-70
    lhs[0, 2, 4], rhs[0, 4, 2] = -later, later
    lhs[0, 2, -1], rhs[0, -1, 2] = later, later
    lhs, rhs = lhs.astype(BF16), rhs.astype(BF16)
    case = matmul(lhs, rhs)
    assert Lowering(case.kernel, host(), frozenset(constants)).tiling.reduction.blocks > 1
    found = case.run(constants)
    assert found[0, 2, 2] == 2.0**-140
    assert np.count_nonzero(found) == 1


@multiplies_bf16
@pytest.mark.parametrize("constants", [set(), {"rhs"}], ids=("input", "constant"))
@pytest.mark.parametrize("terms", [64, 70, 9024])
@pytest.mark.parametrize("least", [1, 2.0**-140], ids=("tiles", "vectors"))
def test_epilogues_of_bf16(least: float, terms: int, constants: set[str]) -> None:
    """A bias, an activation and a conversion, of sums that f32 represents exactly."""
    lhs, rhs = (whole(-8, 8, *shape, dtype=BF16) for shape in ((1, 40, terms), (1, terms, 50)))
    lhs[0, 0], lhs[0, 0, 0] = 0, least
    bias = whole(-100, 100, 50, dtype=np.float32)
    added = buffer("bias", bias, (0,))

    def epilogue(builder: KernelBuilder, total: Register, indices: tuple[Register | Index, ...]) -> Register:
        positive = builder.apply("maximum", builder.add(total, builder.load(added, indices[2])), 0.0)
        return builder.convert(builder.convert(positive, "bf16"), "f32")

    sums = (lhs.astype(np.float64) @ rhs.astype(np.float64)).astype(np.float32)
    wanted = np.maximum(sums + bias, 0).astype(BF16).astype(np.float32)
    case = matmul(lhs, rhs, extra={added: bias}, epilogue=epilogue)
    assert Lowering(case.kernel, host(), frozenset(constants)).tiling.matrix is not None
    np.testing.assert_array_equal(case.run(constants), wanted)


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


def test_the_instruction_for_bf16_is_emitted() -> None:
    case = matmul(normal(1, 64, 128).astype(BF16), normal(1, 128, 64).astype(BF16))
    assert "tdpbf16ps" in assembly(case)
