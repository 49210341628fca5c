"""Concatenations and pads: a launch for each part of the result."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.fusion.forms.members import ops_of
from tests.compiler.fusion.test_fuser import launches, number
from tests.compiler.lowering.running import expect_same, program_of, some
from trivium.compiler.fusion.forms import Elementwise, Padded, Pieces, form_of
from trivium.ir import ops
from trivium.ir.types import tensor


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
