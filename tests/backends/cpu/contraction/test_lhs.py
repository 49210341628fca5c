"""Reading lhs in place: the addresses of rows lead to the elements that the problem names, or to zeros; and
convolutions with windows of every kind, in every layout."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import LAYOUTS, WINDOWS, assert_close, convolution, normal, reference
from tests.backends.llvm.running import of_memory
from tests.compiler.contraction import meaning
from tests.compiler.contraction.meaning import place, points
from trivium.backends.cpu.contraction.lhs import Lhs
from trivium.backends.cpu.contraction.plan import plan
from trivium.backends.cpu.contraction.tiling import Reduction, Tiling, run_of
from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import F32, I64, Code
from trivium.backends.llvm.displacement import displacement, origin, unflatten
from trivium.backends.llvm.numbers import Int, Number
from trivium.backends.llvm.vectors import Vectors
from trivium.compiler.contraction.problem import Access, Axis, AxisGroup, Problem
from trivium.compiler.kernel.index import Index

ELEMENTS, TARGET = 1000, 1100
LANES = 4


def matrix(row: int, step: int, batch: int = 1) -> Problem:
    """3 batches of 10 rows of 12 steps, at these distances."""
    b, m, n, k = Axis(3), Axis(10), Axis(8), Axis(12)
    lhs, rhs = Access(Index({b: batch, m: row, k: step})), Access(Index({k: 8, n: 1}))
    return Problem(
        AxisGroup((b,)), AxisGroup((m,)), AxisGroup((n,)), AxisGroup((k,)), lhs, rhs, Access(Index({b: 80, m: 8, n: 1}))
    )


PROBLEMS = {
    "rows of a matrix": matrix(row=12, step=1, batch=120),
    "columns of a matrix": matrix(row=1, step=10, batch=120),
    "no distance": matrix(row=0, step=1, batch=12),
    **{
        f"{'last' if last else 'first'}, {name}": meaning.convolution(last, **options)
        for last, (name, options) in product(
            (True, False),
            {
                "plain": {}, "padded": {"low": 1}, "far": {"low": 4}, "strided": {"stride": 2, "low": 1},
                "dilated": {"dilation": 3, "low": 2}, "wide": {"step": 2, "low": 2},
            }.items(),
        )
    },
}  # fmt: skip


def in_place(problem: Problem) -> tuple[Problem, Tiling]:
    """Returns the problem in canonical form, with a tiling that reads lhs in place, whether that is profitable or
    not."""
    chosen = plan(problem, 4, host())
    total, run = chosen.problem.reduction.extent, run_of(chosen.problem.reduction, chosen.problem.lhs)
    return chosen.problem, replace(chosen.tiling, reduction=Reduction(total // run, run, 1, run), pack_lhs=False)


def read(problem: Problem, tiling: Tiling, elements: np.ndarray, batch: int, row: int, rows: int, known: bool) -> list:
    """Returns the elements at all steps of all taps of some rows, by their addresses."""
    run, taps = tiling.reduction.run, tiling.reduction.taps
    array = np.zeros(TARGET + rows * run * taps, np.float32)
    array[:ELEMENTS] = elements

    def number(code: Code, value: int) -> Number:
        if known:
            return value
        slot = code.builder.alloca(I64)
        code.builder.store(I64(value), slot)
        return Int(code, code.builder.load(slot, typ=I64))

    def emit(code: Code, pointer: ll.Value) -> None:
        e = Vectors(code.builder, host(), F32, LANES)
        lhs = Lhs(e, problem, tiling, pointer)
        outer = origin(problem.lhs) + displacement(problem.lhs, unflatten(problem.batch, number(e, batch)))
        pointers = lhs.pointers(outer, number(e, row), rows)
        for tap in range(taps):
            for r, start in enumerate(pointers(number(e, tap))):
                for step in range(run):
                    value = e.builder.load(e.at(start, step * lhs.stride), typ=F32)
                    e.builder.store(value, e.at(pointer, TARGET + (r * taps + tap) * run + step))

    of_memory(emit)(array.ctypes.data)
    return array[TARGET:].reshape(rows, taps * run).tolist()


@pytest.mark.parametrize("known", [True, False], ids=("known", "unknown"))
@pytest.mark.parametrize("name", PROBLEMS)
def test_addresses_lead_to_elements_or_zeros(name: str, known: bool) -> None:
    problem, tiling = in_place(PROBLEMS[name])
    elements = np.random.default_rng(0).uniform(1, 2, ELEMENTS).astype(np.float32)
    batches, all_rows = list(points(problem.batch)), list(points(problem.rows))
    for batch, first in product({0, len(batches) - 1}, {0, len(all_rows) - 5}):
        got = read(problem, tiling, elements, batch, first, 5, known)
        for row, found in zip(all_rows[first : first + 5], got, strict=True):
            places = [place(problem.lhs, batches[batch] | row | step) for step in points(problem.reduction)]
            assert found == [0 if where is None else elements[where] for where in places]


def test_zeros_are_made_once_and_reach_as_far_as_a_run() -> None:
    problem, tiling = in_place(PROBLEMS["last, padded"])
    function = ll.Function(ll.Module("test"), ll.FunctionType(ll.VoidType(), [ll.PointerType()]), "test")
    e = Vectors(ll.IRBuilder(function.append_basic_block("entry")), host(), F32, LANES)
    lhs = Lhs(e, problem, tiling, function.args[0])
    for _ in range(3):
        lhs.pointers(origin(problem.lhs), 0, 4)(Int(e, I64(0)))
    (zeros,) = (v for v in function.module.globals.values() if isinstance(v, ll.GlobalVariable))
    assert zeros.global_constant
    assert zeros.value_type.count == (tiling.reduction.run - 1) * lhs.stride + 1


def test_rows_of_a_matrix_are_a_constant_apart() -> None:
    """Only one address is computed, from which instructions reach all others."""
    problem, tiling = in_place(PROBLEMS["rows of a matrix"])
    function = ll.Function(ll.Module("test"), ll.FunctionType(ll.VoidType(), [ll.PointerType(), I64]), "test")
    e = Vectors(ll.IRBuilder(function.append_basic_block("entry")), host(), F32, LANES)
    lhs = Lhs(e, problem, tiling, function.args[0])
    lhs.pointers(origin(problem.lhs), Int(e, function.args[1]), 6)(0)
    text = str(function)
    assert text.count("getelementptr") == 6
    assert text.count(" mul ") == 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", WINDOWS)
def test_convolution(name: str, layout: str) -> None:
    lhs_shape, rhs_shape, window = WINDOWS[name]
    lhs, rhs = normal(*lhs_shape), normal(*rhs_shape)
    assert_close(convolution(lhs, rhs, window, LAYOUTS[layout]).run(), reference(lhs, rhs, window))
