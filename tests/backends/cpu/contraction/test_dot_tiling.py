"""Which products add four bytes in each lane, and how their operands are read."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np

from tests.backends.cpu.contraction.cases import LAYOUTS, ONE, Order, Window, convolution, matmul
from tests.backends.cpu.contraction.tiles import PLAIN, TURNED, bytes_of, with_tiles
from trivium.backends.cpu.contraction.dot_tiling import has_registers_for_row
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.contraction.tiling import MOST_ROWS, Rhs, Tiling
from trivium.backends.cpu.target import AMX, AVX_VNNI, PAIRS, VNNI, CpuTarget, level

TARGET = replace(level("x86-64-v4"), matrix_instructions=(VNNI,))


def tiling(
    m: int, n: int, k: int, known: bool, kind: str = "i8", order: Order = PLAIN, target: CpuTarget = TARGET
) -> Tiling:
    lhs, rhs = bytes_of(kind, 1, m, k), bytes_of("i8", 1, k, n)
    constants = frozenset({"rhs"} if known else ())
    return Lowering(matmul(lhs, rhs, (PLAIN, order, PLAIN)).kernel, target, constants).tiling


def test_plans() -> None:
    """Operands of the same kind have lhs packed, with flipped sign bits; of others, rows of whole groups are read in
    place. A constant whose groups are not whole is packed during the run."""
    alike, mixed = tiling(64, 64, 128, True), tiling(64, 64, 128, True, "ui8")
    assert (alike.rhs, alike.pack_lhs, alike.matrix) == (Rhs.CONSTANT, True, VNNI)
    assert (mixed.rhs, mixed.pack_lhs) == (Rhs.CONSTANT, False)
    assert tiling(64, 64, 126, True, "ui8").pack_lhs
    assert tiling(64, 64, 126, True).rhs is Rhs.PACKED
    assert "products of 1x16x4 i8" in str(alike)


def test_few_rows() -> None:
    """Packing rhs during the run is worthwhile for fewer rows if its groups lie together in memory."""
    assert tiling(1, 64, 128, True).matrix is VNNI
    assert tiling(5, 64, 128, False).matrix is None
    assert tiling(6, 64, 128, False).matrix is VNNI
    assert tiling(2, 64, 128, False, order=TURNED).matrix is VNNI
    assert tiling(64, 2, 9, False).matrix is None


def test_short_vectors() -> None:
    """Those of AVX multiply constants, which are packed in advance."""
    target = replace(level("x86-64-v3"), matrix_instructions=(AVX_VNNI,))
    assert tiling(1, 64, 128, True, target=target).matrix is AVX_VNNI
    assert tiling(64, 64, 128, False, target=target).matrix is None


def test_a_row_for_sign_bits() -> None:
    """Panels leave registers for one more row, as long as there is a single tile."""
    for rows in range(1, MOST_ROWS):
        found = tiling(rows, 640, 128, True)
        assert found.tiles.count == 1
        assert has_registers_for_row(rows, found.panels.size, TARGET.vector_registers)
    assert not has_registers_for_row(MOST_ROWS, tiling(MOST_ROWS, 640, 128, True).panels.size, TARGET.vector_registers)


def test_images_in_place() -> None:
    """Also with padding."""
    window = Window(padding=ONE)
    case = convolution(bytes_of("ui8", 1, 64, 9, 9), bytes_of("i8", 40, 64, 3, 3), window, LAYOUTS["channels last"])
    found = Lowering(case.kernel, TARGET, frozenset({"rhs"})).tiling
    assert (found.matrix, found.pack_lhs) == (VNNI, False)


def test_tiles_come_first() -> None:
    """Where the processor has both, and there are enough rows for them."""
    both = replace(with_tiles(), matrix_instructions=(*AMX.values(), VNNI))
    assert tiling(1, 64, 128, True, target=both).matrix is VNNI
    assert tiling(64, 64, 128, True, target=both).matrix is AMX["amx-int8"]
    assert tiling(8, 64, 128, False, target=both).matrix is VNNI


def test_bytes_that_are_extended() -> None:
    """Constants only: extending them during the run would take the time. Rows are packed, whatever their sign."""
    target = level("x86-64-v3")
    (words,) = target.matrix_instructions
    for kind in ("i8", "ui8"):
        found = tiling(64, 64, 128, True, kind, target=target)
        assert (found.matrix, found.rhs, found.pack_lhs) == (words, Rhs.CONSTANT, True)
    assert tiling(64, 64, 128, False, target=target).matrix is None
    assert tiling(64, 64, 127, True, target=target).matrix is None


def test_pairs_of_bf16() -> None:
    """Rows are packed, and searched for small numbers."""
    target = replace(level("x86-64-v4"), matrix_instructions=(PAIRS,))
    lhs, rhs = (np.ones(shape, ml_dtypes.bfloat16) for shape in ((1, 64, 128), (1, 128, 64)))
    for constants, where in ((set(), Rhs.PACKED), ({"rhs"}, Rhs.CONSTANT)):
        found = Lowering(matmul(lhs, rhs).kernel, target, frozenset(constants)).tiling
        assert (found.matrix, found.rhs, found.pack_lhs) == (PAIRS, where, True)
    assert Lowering(matmul(lhs[:, :5], rhs).kernel, target).tiling.matrix is None
