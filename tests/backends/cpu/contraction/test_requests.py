"""Requests for what epilogues use of large arrays: which rows, which lines of them, and that the products stay the
same."""

from __future__ import annotations

from dataclasses import replace

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import Case, assert_close, buffer, matmul, normal
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.contraction.requests import Piece, rows_of_epilogue
from trivium.backends.cpu.target import LEVELS, CpuTarget, emulated
from trivium.backends.llvm.code import F32, I8
from trivium.backends.llvm.numbers import Number, i64
from trivium.backends.llvm.vectors import Vectors
from trivium.backends.llvm.workspace import WorkspaceSize
from trivium.compiler.contraction.marked import Marked

PLAIN = (0, 1, 2)


def everything_is_large(level: str) -> CpuTarget:
    return replace(emulated(level), prefetch_bytes=0)


def with_added(batch: int, m: int, n: int, k: int, order: tuple[int, int, int] = PLAIN) -> tuple[Case, np.ndarray]:
    """Returns a product to which an array is added, whose dimensions lie in memory in this order; and that array."""
    lhs, rhs, added = normal(batch, m, k), normal(batch, k, n), normal(batch, m, n)
    other = buffer("added", added, order)
    laid_out = np.ascontiguousarray(added.transpose(order))
    case = matmul(
        lhs,
        rhs,
        extra={other: laid_out},
        epilogue=lambda b, total, at: b.add(total, b.load(other, *(at[d] for d in order))),
    )
    return case, lhs @ rhs + added


def requests(case: Case, target: CpuTarget) -> list[str]:
    """Returns whether what is requested is to be written, for each request in the code."""
    module = ll.Module()
    Lowering(case.kernel, target).emit(module, "f", WorkspaceSize())
    lines = str(module).splitlines()
    return [line.split("i32 ")[1][0] for line in lines if "call void" in line and "llvm.prefetch" in line]


@pytest.mark.parametrize("level", list(LEVELS)[1:])
@pytest.mark.parametrize(
    ("batch", "m", "n", "k"), [(1, 13, 128, 150), (2, 24, 70, 97), (1, 25, 256, 48), (3, 14, 32, 64)]
)
def test_the_result_stays_the_same(batch: int, m: int, n: int, k: int, level: str) -> None:
    """Steps are, or are not, as many as fit between the requests."""
    case, wanted = with_added(batch, m, n, k)
    target = everything_is_large(level)
    assert set(requests(case, target)) == {"0", "1"}
    for threads in (1, 3):
        assert_close(case.run(threads=threads, target=target), wanted)


@pytest.mark.parametrize("level", list(LEVELS)[1:])
def test_each_line_of_the_rows_is_requested(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a line is requested, its first element is set to zero instead."""

    def clear(self: Piece, e: Vectors, row: Number, offset: Number) -> None:
        if not self.writes:
            place = e.builder.gep(self.first, [i64(row * self.stride + offset)], source_etype=I8)
            e.builder.store(F32(0.0), place)

    monkeypatch.setattr(Piece, "request", clear)
    case, _ = with_added(2, 30, 128, 96)
    lhs, rhs, added = (array.copy() for array in case.operands.values())
    added[:, :, ::16] = 0
    found = case.run(target=everything_is_large(level))
    assert_close(found, lhs @ rhs + added)


def test_which_rows_are_requested() -> None:
    """Not those of small arrays, those that lie across memory, or those of one vector for all rows."""

    def found(case: Case, least: int = 0) -> list[tuple[str, int]]:
        lowering = Lowering(case.kernel, emulated("x86-64-v4"))
        marked, oriented = lowering.marked, lowering.plan.oriented
        assert isinstance(marked, Marked)
        lane = marked.parameters[oriented.columns.axes[-1]]
        return [(rows.buffer.name, rows.step) for rows in rows_of_epilogue(marked, oriented.rows, lane, least)]

    plain, _ = with_added(1, 40, 64, 50)
    assert found(plain) == [("added", 64), ("result", 64)]
    assert found(plain, least=40 * 64 * 4) == []
    turned, _ = with_added(1, 40, 64, 50, (0, 2, 1))
    assert found(turned) == [("result", 64)]
    bias = buffer("bias", np.zeros(64, np.float32), (0,))
    extra = {bias: np.zeros(64, np.float32)}
    one = matmul(
        normal(1, 40, 50),
        normal(1, 50, 64),
        extra=extra,
        epilogue=lambda b, total, at: b.add(total, b.load(bias, at[2])),
    )
    assert found(one) == [("result", 64)]


def test_rare_writes_are_not_requested() -> None:
    """Of long sums, a tile alone takes so long that its writes do not matter; what it reads still does."""
    target = everything_is_large("x86-64-v4")
    short, long = (matmul(normal(1, 40, k), normal(1, k, 64)) for k in (200, 2000))
    assert (set(requests(short, target)), requests(long, target)) == ({"1"}, [])
    assert set(requests(with_added(1, 40, 64, 1000)[0], target)) == {"0", "1"}
