"""Products by instructions that multiply tiles, compared with NumPy's where this processor has the instructions;
elsewhere, LLVM assembles them for one that does."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

import trivium
from tests.backends.cpu.contraction.cases import (
    LAYOUTS,
    Window,
    buffer,
    convolution,
    matmul,
    normal,
    reference,
    whole,
)
from tests.backends.cpu.contraction.tiles import (
    BF16,
    BYTES,
    PLAIN,
    TURNED,
    assembly,
    assert_exact,
    bytes_of,
    multiplies_bf16,
    multiplies_bytes,
    with_tiles,
)
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.contraction.matrix_template import configuration
from trivium.backends.cpu.target import host
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.structure import Register


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


@pytest.mark.parametrize(
    "dtype", [pytest.param(np.int8, marks=multiplies_bytes), pytest.param(BF16, marks=multiplies_bf16)]
)
def test_rows_in_place_of_several_units(dtype: type) -> None:
    """Some of them have fewer rows than others, and small factors."""
    lhs, rhs = (whole(-8, 7, *shape, dtype=dtype) for shape in ((1, 300, 4096), (1, 4096, 70)))
    if dtype is BF16:
        lhs[0, 290, 5] = 2.0**-130
    wanted = lhs.astype(np.float64) @ rhs.astype(np.float64)
    for constants, threads in ((set[str](), 1), ({"rhs"}, 1), ({"rhs"}, 2)):
        case = matmul(lhs, rhs)
        tiling = Lowering(case.kernel, host(), frozenset(constants)).tiling
        assert (tiling.pack_lhs, tiling.chunks.count) == (False, 3 if constants else 2)
        np.testing.assert_array_equal(case.run(constants, threads), wanted)


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


IN_PLACE = {
    "one by one": ((2, 64, 5, 14), (40, 64, 1, 1), Window()),
    "lines of two tiles": ((1, 64, 6, 58), (24, 64, 3, 3), Window()),
    "strided and dilated": ((2, 128, 9, 33), (33, 128, 3, 2), Window((2, 2), rhs_dilation=(2, 3))),
    "several blocks": ((1, 64, 33, 40), (18, 64, 25, 25), Window()),
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize(
    "kind", [pytest.param("i8", marks=multiplies_bytes), pytest.param("bf16", marks=multiplies_bf16)]
)
def test_images_in_place(name: str, kind: str) -> None:
    """Rows of tiles are neighbours in a line of positions; small factors of bf16 are multiplied by vectors."""
    image, kernel, window = IN_PLACE[name]
    lhs, rhs = (whole(-8, 7, *shape, dtype=np.float32) for shape in (image, kernel))
    wanted, dtype = reference(lhs, rhs, window), BF16 if kind == "bf16" else np.int8
    for least in (1, 2.0**-126) if kind == "bf16" else (1,):
        factors = (lhs * least).astype(dtype), rhs.astype(dtype)
        for constants in (set(), {"rhs"}):
            case = convolution(*factors, window, LAYOUTS["channels last"])
            tiling = Lowering(case.kernel, host(), frozenset(constants)).tiling
            assert tiling.matrix is not None
            assert not tiling.pack_lhs
            found = case.run(constants)
            np.testing.assert_array_equal(found, (wanted * least).astype(found.dtype))


@pytest.mark.parametrize(("one", "other"), list(product(BYTES, repeat=2)))
def test_the_instruction_is_emitted(one: str, other: str) -> None:
    case = matmul(bytes_of(one, 1, 64, 128), bytes_of(other, 1, 128, 64))
    signs = "".join("u" if kind == "ui8" else "s" for kind in (one, other))
    listing = assembly(case, with_tiles())
    assert f"tdpb{signs}d" in listing
    assert listing.count("tilerelease") == 1


def test_the_instruction_for_bf16_is_emitted() -> None:
    case = matmul(normal(1, 64, 128).astype(BF16), normal(1, 128, 64).astype(BF16))
    assert "tdpbf16ps" in assembly(case, with_tiles())


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
