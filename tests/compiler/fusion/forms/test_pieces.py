"""Concatenations and pads: a launch for each part of the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.fusion.forms.members import ops_of
from tests.compiler.fusion.test_fuser import launches, number
from tests.compiler.lowering.running import expect_same, program_of, some
from tests.compiler.targets import TARGET
from tests.random_programs.generator import scalar_region
from trivium.compiler.fusion.forms import Elementwise, Padded, Pieces, form_of
from trivium.ir import ops
from trivium.ir.types import F32, ComplexType, tensor

IN_ORDER = replace(TARGET, loops_in_order=True)


def test_operands_of_a_concatenation_are_computed_where_they_go() -> None:
    def body(b, x, y):
        return b.add(ops.Concatenate([b.add(ops.Tanh(x)), y, b.add(ops.Negate(y))], 1))

    program = expect_same(program_of([tensor(3, 4), tensor(3, 2)], body), [some(3, 4), some(3, 2)])
    assert len(launches(program)) == 3
    assert program.arena_size == 0


def test_empty_operands_have_no_launch() -> None:
    module = program_of([tensor(3, 4), tensor(3, 0)], lambda b, x, y: b.add(ops.Concatenate([y, x, y], 1)))
    assert len(launches(expect_same(module, [some(3, 4), np.zeros((3, 0), np.float32)]))) == 1


@pytest.mark.parametrize(
    ("dimension", "count", "lengths", "expected"),
    [(2, 2, 1, 1), (2, 8, 1, 1), (2, 9, 1, 9), (2, 2, 4, 1), (2, 2, 5, 2), (1, 3, 1, 3)],
    ids=["pairs", "eights", "too many", "fours", "too long", "not neighbours"],
)
def test_rows_of_few_elements_are_written_together(dimension: int, count: int, lengths: int, expected: int) -> None:
    shape = [3, 40, 2]
    shape[dimension] = lengths

    def body(b, x, y):
        pieces = [b.add((ops.Tanh, ops.Negate)[n % 2]((x, y)[n % 2])) for n in range(count)]
        return b.add(ops.Concatenate(pieces, dimension))

    program = expect_same(program_of([tensor(*shape), tensor(*shape)], body), [some(*shape), some(*shape, seed=1)])
    assert len(launches(program)) == expected


@pytest.mark.parametrize(("low", "interior", "form"), [(1, 2, Padded), (0, 0, Padded), (-1, 0, Elementwise)])
def test_pads_that_cut_off_are_elementwise(low: int, interior: int, form: type) -> None:
    def pad(b, x):
        return b.add(ops.Pad(x, number(b, 7), (low, 0), (0, 1), (interior, 0)))

    assert isinstance(form_of(ops_of([tensor(3, 4)], lambda b, x: {"pad": pad(b, x)})["pad"]), form)
    expect_same(program_of([tensor(3, 4)], pad), [some(3, 4)])


def test_a_concatenation_begins_its_own_pieces() -> None:
    op = ops_of([tensor(3, 4)], lambda b, x: {"join": b.add(ops.Concatenate([x, x], 0))})["join"]
    assert isinstance(form_of(op), Pieces)


def test_a_concatenation_of_concatenations_is_written_in_place() -> None:
    """A matrix of blocks."""

    def body(b, x, y):
        upper = b.add(ops.Concatenate([b.add(ops.Tanh(x)), y], 1))
        lower = b.add(ops.Concatenate([y, b.add(ops.Negate(x)), b.add(ops.Slice(y, (0, 0), (3, 0), (1, 1)))], 1))
        return b.add(ops.Concatenate([upper, lower, upper], 0))

    given = [some(3, 4), some(3, 2)]
    assert len(launches(expect_same(program_of([tensor(3, 4), tensor(3, 2)], body), given))) > 4

    def once(b, x, y):
        upper = b.add(ops.Concatenate([b.add(ops.Tanh(x)), y], 1))
        return b.add(ops.Concatenate([upper, b.add(ops.Concatenate([y, b.add(ops.Negate(x))], 1))], 0))

    program = expect_same(program_of([tensor(3, 4), tensor(3, 2)], once), given)
    assert len(launches(program)) == 4
    assert program.arena_size == 0


def rolled(dimensions: tuple[int, ...], shape: tuple[int, ...], count: int, element=F32):
    """Moves the last `count` elements along some dimensions before the others."""

    def part(b, x, begin: list[int], end: list[int], left: tuple[int, ...]):
        if not left:
            return b.add(ops.Slice(x, begin, end, [1] * len(shape)))
        *left, dimension = left
        extent, halves = shape[dimension], []
        for first, last in ((extent - count, extent), (0, extent - count)):
            low, high = list(begin), list(end)
            low[dimension], high[dimension] = first, last
            halves.append(part(b, x, low, high, tuple(left)))
        return b.add(ops.Concatenate(halves, dimension))

    types = [tensor(*shape, of=element)]
    return program_of(types, lambda b, x: part(b, x, [0] * len(shape), list(shape), dimensions))


@pytest.mark.parametrize(
    ("shape", "dimensions", "count"),
    [
        (shape, dimensions, count)
        for shape in ((2, 9, 40), (1, 9, 40))
        for dimensions in ((2,), (1, 2), (2, 1), (0, 2), (2, 1, 0))
        for count in (1, 3)
        if count < shape[0] or 0 not in dimensions
    ],
    ids=str,
)
def test_concatenations_of_concatenations_are_written_row_by_row(shape, dimensions, count) -> None:
    assert len(launches(expect_same(rolled(dimensions, shape, count), [some(*shape)], target=IN_ORDER))) == 1


def sums_of_three(b, y):
    threes = b.add(ops.BroadcastInDim(y, (0, 1), result=tensor(9, 20, 3)))
    return b.add(ops.Reduce([threes], [number(b, 0)], [2], scalar_region(ops.Add)))[0]


@pytest.mark.parametrize(
    ("compute", "threads", "count"),
    [
        (lambda b, y: y, 1, 1),
        (lambda b, y: b.add(ops.Reverse(b.add(ops.Tanh(y)), (0, 1))), 2, 1),
        (lambda b, y: y, 3, 2),
        (lambda b, y: b.add(ops.Transpose(b.add(ops.Reshape(y, result=tensor(20, 9))), (1, 0))), 1, 2),
        (lambda b, y: sums_of_three(b, y), 1, 2),
    ],
    ids=["copy", "reversed", "few rows for each thread", "across rows", "sums"],
)
def test_operands_are_written_row_by_row(compute, threads: int, count: int) -> None:
    """Unless threads would have few rows, or one of them is read across rows, or computed by loops."""

    def body(b, x, y):
        return b.add(ops.Concatenate([b.add(ops.Negate(x)), compute(b, y)], 1))

    program = program_of([tensor(9, 30), tensor(9, 20)], body)
    target = replace(IN_ORDER, threads=threads)
    assert len(launches(expect_same(program, [some(9, 30), some(9, 20, seed=1)], target=target))) == count


def test_complex_parts_of_a_line() -> None:
    shape = (5, 30)
    given = (some(*shape) + 1j * some(*shape, seed=1)).astype(np.complex64)
    assert len(launches(expect_same(rolled((1,), shape, 2, ComplexType(F32)), [given], target=IN_ORDER))) == 1


def test_devices_whose_threads_share_iterations_have_a_launch_for_each_operand() -> None:
    assert len(launches(expect_same(rolled((1,), (9, 40), 3), [some(9, 40)], target=TARGET))) == 2


def test_a_concatenation_that_an_operand_is_computed_from_is_another_kernel() -> None:
    def body(b, x):
        return b.add(ops.Concatenate([b.add(ops.Tanh(b.add(ops.Concatenate([x, b.add(ops.Negate(x))], 1)))), x], 1))

    program = expect_same(program_of([tensor(3, 4)], body), [some(3, 4)])
    assert len(launches(program)) == 4


@pytest.mark.parametrize("interior", [0, 1])
def test_a_pad_of_sums_is_written_by_the_contraction(interior: int) -> None:
    def body(b, x, y):
        sums = b.add(ops.DotGeneral(x, y, ops.DotDimensionNumbers((), (), (1,), (0,)), result=tensor(5, 6)))
        return b.add(ops.Pad(b.add(ops.Negate(sums)), number(b, 7), (1, 0), (1, 2), (interior, 0)))

    given = [some(5, 4), some(4, 6)]
    program = expect_same(program_of([tensor(5, 4), tensor(4, 6)], body), given)
    assert sum(kernel.contraction is not None for kernel in program.kernels()) == 1
    assert program.arena_size == 0


def test_the_operand_of_a_pad_is_written_beside_it() -> None:
    def body(b, x):
        y = b.add(ops.Exponential(x))
        return [b.add(ops.Pad(y, number(b, 0), (1, 1), (1, 1), (0, 0))), y]

    program = expect_same(program_of([tensor(6, 8)], body), [some(6, 8)])
    assert program.arena_size == 0
    assert sum(len(kernel.params) == 3 for kernel in program.kernels()) == 1
