"""The loop nest around the micro-kernel, compared with NumPy: matrix products in all layouts and uneven sizes, in
blocks, on threads, and planned for other processors."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import llvmlite.ir as ll
import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.backends.cpu.contraction.cases import (
    CONSTANTS,
    LAYOUTS,
    ONE,
    Window,
    assert_close,
    convolution,
    matmul,
    normal,
    reference,
)
from tests.backends.cpu.test_prefetching import at_the_end
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.contraction.template import Template
from trivium.backends.cpu.contraction.tiling import STREAMS, Rhs, columns_at_once
from trivium.backends.cpu.target import LEVELS, emulated
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I64, POINTER
from trivium.backends.llvm.vectors import Vectors


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("level", list(LEVELS)[1:])
@pytest.mark.parametrize(("batch", "m", "n", "k"), [(1, 2, 16, 64), (2, 3, 33, 77), (1, 13, 50, 100), (3, 24, 17, 65)])
def test_few_rows_and_sums_along_memory(level: str, dtype: type, batch: int, m: int, n: int, k: int) -> None:
    """Both operands are read as they lie; lengths and columns fill no vector, or all."""
    lhs, rhs = normal(batch, m, k, dtype=dtype), normal(batch, k, n, dtype=dtype)
    case, target = matmul(lhs, rhs, ((0, 1, 2), (0, 2, 1), (0, 1, 2))), emulated(level)
    assert Lowering(case.kernel, target).tiling.rhs is Rhs.FOLDED
    for threads in (1, 2):
        assert_close(
            case.run(target=replace(target, threads=threads)), lhs @ rhs, 1e-5 if dtype == np.float32 else 1e-14
        )


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_constant_weights_of_few_rows_are_packed(rows: int) -> None:
    """Without constants, the same products read them as they lie."""
    lhs, rhs = normal(1, rows, 200), normal(1, 200, 37)
    case = matmul(lhs, rhs, ((0, 1, 2), (0, 2, 1), (0, 1, 2)))
    for constants, where, packed in ((frozenset[str](), Rhs.FOLDED, None), (frozenset({"rhs"}), Rhs.CONSTANT, "rhs")):
        chosen = Lowering(case.kernel, emulated("x86-64-v4"), constants)
        assert (chosen.tiling.rhs, chosen.plan.packed_operand) == (where, packed)
        assert_close(case.run(set(constants)), lhs @ rhs)


def test_matmul_in_f64() -> None:
    lhs, rhs = normal(2, 13, 37, dtype=np.float64), normal(2, 37, 70, dtype=np.float64)
    assert_close(matmul(lhs, rhs).run({"rhs"}), lhs @ rhs, 1e-14)


@pytest.mark.parametrize("constants", CONSTANTS[:2], ids=("input", "constant"))
def test_matmul_on_threads(constants: set[str]) -> None:
    lhs, rhs = normal(2, 200, 300), normal(2, 300, 170)
    assert_close(matmul(lhs, rhs).run(constants, threads=2), lhs @ rhs)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("batch", "m", "n", "k"), [(1, 300, 170, 33), (2, 257, 64, 20), (1, 1000, 129, 7)])
def test_many_rows_are_written_one_after_the_other(batch: int, m: int, n: int, k: int, threads: int) -> None:
    lhs, rhs = normal(batch, m, k), normal(batch, k, n)
    case, target = matmul(lhs, rhs), emulated("x86-64-v3")
    assert Lowering(case.kernel, target, frozenset({"rhs"})).tiling.by_rows
    assert_close(case.run({"rhs"}, target=replace(target, threads=threads)), lhs @ rhs)


@pytest.mark.parametrize("constants", CONSTANTS[:2], ids=("input", "constant"))
@pytest.mark.parametrize("level", LEVELS)
def test_matmul_planned_for_another_processor(level: str, constants: set[str]) -> None:
    lhs, rhs = normal(2, 33, 50), normal(2, 50, 70)
    assert_close(matmul(lhs, rhs).run(constants, target=emulated(level)), lhs @ rhs)


@pytest.mark.parametrize("layout", ["channels last", "channels first"])
def test_convolution_in_blocks_and_threads(layout: str) -> None:
    lhs, rhs = normal(2, 300, 12, 12), normal(40, 300, 3, 3)
    window = Window(padding=ONE)
    assert_close(convolution(lhs, rhs, window, LAYOUTS[layout]).run(threads=2), reference(lhs, rhs, window))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_two_axes_that_are_packed(threads: int) -> None:
    """A part of the rows begins anywhere, also where a vector would extend past the end of the faster axis of rows."""
    lhs, rhs = normal(3, 333, 2, 16), normal(2, 3, 40)
    module = trivium.parse("""
      func.func @main(%lhs: tensor<3x333x2x16xf32>, %rhs: tensor<2x3x40xf32>) -> tensor<333x16x40xf32> {
        %0 = stablehlo.dot_general %lhs, %rhs, contracting_dims = [0, 2] x [1, 0]
          : (tensor<3x333x2x16xf32>, tensor<2x3x40xf32>) -> tensor<333x16x40xf32>
        return %0 : tensor<333x16x40xf32>
      }""")
    (found,) = trivium.compile(module, threads=threads)(lhs, rhs)
    assert_close(found, np.einsum("kalb,lkn->abn", lhs, rhs))


@pytest.mark.parametrize("threads", [1, 2])
def test_converted_sums_of_two_axes(threads: int) -> None:
    """A block of a sum begins anywhere within its faster axis, too."""
    lhs, rhs = normal(20, 3, 4104).astype(ml_dtypes.bfloat16), normal(4104, 3, 40).astype(ml_dtypes.bfloat16)
    module = trivium.parse("""
      func.func @main(%lhs: tensor<20x3x4104xbf16>, %rhs: tensor<4104x3x40xbf16>) -> tensor<20x40xf32> {
        %0 = stablehlo.dot_general %lhs, %rhs, contracting_dims = [1, 2] x [1, 0]
          : (tensor<20x3x4104xbf16>, tensor<4104x3x40xbf16>) -> tensor<20x40xf32>
        return %0 : tensor<20x40xf32>
      }""")
    (found,) = trivium.compile(module, threads=threads)(lhs, rhs)
    wide = (x.astype(np.float64) for x in (lhs, rhs))
    assert_close(found, np.einsum("akl,lkn->an", *wide, optimize=True).astype(np.float32))


SMALL = (4 << 10, 8 << 10)
"""Caches of a processor on which a product of a few kilobytes is large."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rows", "terms", "columns"),
    [
        (1, 64, 256),
        (1, 37, 301),
        (2, 29, 1000),
        (1, 8, 3072),
        (3, 30, 515),
        (8, 21, 1000),
        (13, 25, 300),
        (24, 17, 520),
    ],
)
def test_several_long_rows_are_read_at_once(
    rows: int, terms: int, columns: int, dtype: Any, level: str, threads: int
) -> None:
    """Sums are added in the same order as in registers."""
    lhs, rhs = normal(1, rows, terms).astype(dtype), normal(1, terms, columns).astype(dtype)
    case, target = matmul(lhs, rhs), replace(emulated(level), cache_bytes=SMALL)
    tiling = Lowering(case.kernel, target).tiling
    assert (tiling.rhs, tiling.reduction.blocks > 1 or terms == STREAMS) == (Rhs.IN_PLACE, True)
    assert tiling.reduction.most_steps <= 2 * STREAMS
    found = case.run(target=target.with_threads(threads))
    assert_close(found, lhs.astype(found.dtype) @ rhs.astype(found.dtype), 1e-5 if found.itemsize == 4 else 1e-14)
    np.testing.assert_array_equal(found, case.run(target=emulated(level)))


class Journal:
    """The addresses that emitted code passes to it, in order, each with a word for what happens there."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int]] = []
        self._functions: list[object] = []

    def emit(self, e: Vectors, word: str, pointer: ll.Value) -> None:
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda address: self.entries.append((word, address)))
        self._functions.append(function)
        place = ctypes.cast(function, ctypes.c_void_p).value
        kind = ll.FunctionType(ll.VoidType(), [POINTER])
        e.builder.call(e.builder.inttoptr(I64(place), kind.as_pointer()), [pointer])


def reads_and_requests(monkeypatch: pytest.MonkeyPatch) -> Journal:
    """Returns a journal of the panels that are read, and of what is requested."""
    journal, panel_data = Journal(), Template._panel_data

    def read(self: Template, *places: Any) -> ll.Value | None:
        data = panel_data(self, *places)
        assert data is not None, "a panel is in memory"
        journal.emit(self.e, "read", data)
        return data

    monkeypatch.setattr(Template, "_panel_data", read)
    monkeypatch.setattr(memory, "prefetch", lambda e, pointer, **_: journal.emit(e, "request", pointer))
    return journal


@pytest.mark.parametrize(("rows", "columns"), [(4, 768), (8, 512), (24, 512)])
def test_streams_request_the_next_rows(rows: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a block of rows of rhs is read, all of the next block is requested, line by line."""
    journal = reads_and_requests(monkeypatch)
    lhs, rhs = normal(1, rows, 4 * STREAMS), normal(1, 4 * STREAMS, columns)
    case, target = matmul(lhs, rhs), replace(emulated("x86-64-v4"), cache_bytes=(128 << 10, 8 << 10))
    tiling = Lowering(case.kernel, target).tiling
    assert (tiling.prefetch, tiling.groups.count, tiling.reduction.blocks) == (True, 1, 4)
    assert_close(case.run(target=target), lhs @ rhs)
    first = min(address for word, address in journal.entries if word == "read")
    requested = {address - first for word, address in journal.entries if word == "request"}
    assert requested.issuperset(range(STREAMS * columns * 4, 4 * STREAMS * columns * 4, 64))


@pytest.mark.parametrize("rows", [4, 8])
def test_sums_in_lanes_request_the_next_columns(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal()
    monkeypatch.setattr(memory, "prefetch", lambda e, pointer, **_: journal.emit(e, "request", pointer))
    lhs, rhs = normal(1, rows, 160), normal(1, 160, 48)
    case = matmul(lhs, rhs, ((0, 1, 2), (0, 2, 1), (0, 1, 2)))
    target = replace(emulated("x86-64-v4"), cache_bytes=(64 << 10, 8 << 10))
    tiling = Lowering(case.kernel, target).tiling
    assert (tiling.rhs, tiling.prefetch) == (Rhs.FOLDED, True)
    assert_close(case.run(target=target), lhs @ rhs)
    lines = sorted({address for _, address in journal.entries})
    ahead = columns_at_once(rows, tiling.lanes, target.vector_registers)
    assert len(lines) == (48 - ahead) * 10
    assert lines[-1] - lines[0] == (48 - ahead - 1) * 640 + 9 * 64


def test_nothing_behind_the_rows_is_read() -> None:
    """The last vector of a row extends past its end, and that of the last row past the end of memory."""
    run = trivium.compile(
        trivium.parse("""
      func.func @main(%x: tensor<1x272xf32>, %w: tensor<272x1001xf32>) -> tensor<1x1001xf32> {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<1x272xf32>, tensor<272x1001xf32>) -> tensor<1x1001xf32>
        return %0 : tensor<1x1001xf32>
      }"""),
        threads=1,
    )
    x, w, result = normal(1, 272), normal(272, 1001), np.empty((1, 1001), np.float32)
    memory, address = at_the_end(w)
    run.loaded.execute_at([x.ctypes.data, address, result.ctypes.data])
    assert_close(result, x @ w)
    del memory


@pytest.mark.parametrize(("rows", "panels"), [(60, 1), (24, 2), (20, 3)])
def test_tiles_request_the_panel_that_is_read_next(rows: int, panels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a block of a panel is read, all of the next block is requested, and nothing else, whether that belongs to
    this panel or to the next one."""
    journal = reads_and_requests(monkeypatch)
    lhs, rhs = normal(1, rows, 192), normal(1, 192, 384)
    case, v4 = matmul(lhs, rhs), emulated("x86-64-v4")
    target = replace(v4, cache_bytes=(v4.cache_bytes[0], 64 << 10, *v4.cache_bytes[2:]))
    tiling = Lowering(case.kernel, target, frozenset({"rhs"})).tiling
    assert tiling.prefetch
    assert tiling.tiles.count >= tiling.panels.size
    assert (tiling.reduction.blocks, tiling.panels.count, tiling.groups.size) == (3, 6, panels)
    assert_close(case.run({"rhs"}, target=target), lhs @ rhs)

    reads = [place for place, (word, _) in enumerate(journal.entries) if word == "read"]
    assert len(reads) == 3 * 6
    block = 64 * tiling.panels.size * tiling.lanes * 4
    for number, (begin, end) in enumerate(pairwise(reads), 1):
        requested = {address for _, address in journal.entries[begin + 1 : end]}
        _, following = journal.entries[end]
        if panels == 1 or number % panels:
            assert requested == set(range(following, following + block, 64))
