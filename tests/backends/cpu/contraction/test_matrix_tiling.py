"""Which products use instructions that multiply tiles, and how their operands are read."""

from __future__ import annotations

from tests.backends.cpu.contraction.cases import LAYOUTS, WINDOWS, Order, convolution, matmul
from tests.backends.cpu.contraction.tiles import PLAIN, TURNED, bytes_of, with_tiles
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.contraction.matrix_tiling import interleaved
from trivium.backends.cpu.contraction.tiling import Rhs
from trivium.backends.cpu.target import AMX, level, words
from trivium.compiler.artifact import Axis, Packing


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
    assert [tiling(rows, 64, 128, True).prefetch for rows in (32, 33)] == [False, True]


def test_rows_in_place_stay_in_the_second_level_cache() -> None:
    """They are read once for each panel."""
    for terms, known, units in ((1024, True, (2, 2)), (4096, True, (8, 2)), (4096, False, (4, 2)), (64, True, (1, 34))):
        case = matmul(bytes_of("i8", 1, 1024, terms), bytes_of("i8", 1, terms, 1088), (PLAIN, PLAIN, PLAIN))
        tiling = Lowering(case.kernel, with_tiles(), frozenset({"rhs"} if known else ())).tiling
        assert not tiling.pack_lhs
        assert (tiling.chunks.count, tiling.groups.count) == units, (terms, known)


def test_a_channels_last_convolution_has_its_kernel_packed() -> None:
    shape, _, window = WINDOWS["one by one"]
    case = convolution(bytes_of("i8", *shape), bytes_of("i8", 40, 64, 1, 1), window, LAYOUTS["channels last"])
    tiling = Lowering(case.kernel, with_tiles(), frozenset({"rhs"})).tiling
    assert (tiling.rhs, tiling.matrix) == (Rhs.CONSTANT, AMX["amx-int8"])


def test_operands_of_an_instruction() -> None:
    target = with_tiles()
    for one in ("i8", "ui8"):
        assert target.matrix_instruction(one, "i8", "i32") is AMX["amx-int8"]
    assert target.matrix_instruction("bf16", "bf16", "f32") is AMX["amx-bf16"]
    assert target.matrix_instruction("bf16", "f32", "f32") is None
    assert target.matrix_instruction("i8", "i8", "f32") is None
    assert level("x86-64-v4").matrix_instruction("bf16", "bf16", "f32") is None
    assert level("x86-64-v4").matrix_instruction("i8", "i8", "i32") == words(64)
    assert level("aarch64").matrix_instruction("i8", "i8", "i32") is None


def test_neighbours_of_the_reduction_lie_together() -> None:
    """Rows of 64 steps and 16 columns: four steps of a column, or one element of four bytes if memory has them so."""
    across = Packing(1, 0, (), (Axis(16, 1),), (Axis(64, 16),), (16,))
    along = Packing(1, 0, (), (Axis(16, 64),), (Axis(64, 1),), (16,))
    apart, one = interleaved(across, 4), interleaved(along, 4)
    assert apart == Packing(1, 0, (), (Axis(16, 1), Axis(4, 16)), (Axis(16, 64),), (64,))
    assert one == Packing(4, 0, (), (Axis(16, 16),), (Axis(16, 1),), (16,))
    assert apart.nbytes == one.nbytes == across.nbytes
