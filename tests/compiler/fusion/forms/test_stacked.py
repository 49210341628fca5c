"""Pieces of a concatenation that are computed from the same values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.compiler.fusion.test_fuser import launches
from tests.compiler.lowering.running import expect_same, program_of, some
from trivium.compiler.fusion.forms import Stacked, form_of
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.types import C64, tensor


def pieces(b: Builder, x: Value, y: Value) -> list[Value]:
    """Returns three values that are computed from the same two."""
    one, other = b.add(ops.Tanh(x)), b.add(ops.Multiply(y, b.add(ops.Tanh(y))))
    return [b.add(kind(one, other)) for kind in (ops.Add, ops.Subtract, ops.Maximum)]


def stacked(b: Builder, x: Value, y: Value, dimension: int = 0) -> Value:
    return b.add(ops.Concatenate(pieces(b, x, y), dimension))


def after(b: Builder, x: Value, y: Value) -> Value:
    return b.add(ops.Exponential(stacked(b, x, y)))


def with_another_result(b: Builder, x: Value, y: Value) -> list[Value]:
    values = pieces(b, x, y)
    return [b.add(ops.Concatenate(values, 1)), values[1]]


def again(b: Builder, x: Value, y: Value) -> Value:
    first, second, third = pieces(b, x, y)
    return b.add(ops.Concatenate([first, second, first, third], 0))


def moved(b: Builder, x: Value, y: Value) -> Value:
    return b.add(ops.Concatenate([b.add(ops.Transpose(each, (1, 0))) for each in pieces(b, x, y)], 0))


def of_different_extents(b: Builder, x: Value, y: Value) -> Value:
    first, second, third = pieces(b, x, y)
    return b.add(ops.Concatenate([first, second, b.add(ops.Slice(third, (0, 0), (2, 40), (1, 1)))], 0))


def with_little_in_common(b: Builder, x: Value, y: Value) -> Value:
    kinds = (ops.Tanh, ops.Sine, ops.Cosine)
    return b.add(ops.Concatenate([b.add(kind(x)) for kind in kinds], 0))


def of_two(b: Builder, x: Value, y: Value) -> Value:
    return b.add(ops.Concatenate(pieces(b, x, y)[:2], 0))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (stacked, 1),
        (lambda b, x, y: stacked(b, x, y, 1), 1),
        (after, 2),
        (with_another_result, 1),
        (again, 1),
        (moved, 1),
        (of_different_extents, 5),
        (with_little_in_common, 3),
        (of_two, 4),
    ],
    ids=["rows", "columns", "read by another op", "a piece is a result", "one piece twice", "transposed",
         "of different extents", "with little in common", "of two"],
)  # fmt: skip
def test_pieces_are_computed_together(body: Callable, expected: int) -> None:
    given = [some(3, 40), some(3, 40, seed=1)]
    program = expect_same(program_of([tensor(3, 40)] * 2, body), given)
    assert len(launches(program)) == expected


def test_complex_pieces() -> None:
    given = [(some(3, 4) + 1j * some(3, 4, seed=1)).astype("complex64")] * 2

    def body(b: Builder, x: Value, y: Value) -> Value:
        one, other = b.add(ops.Negate(x)), b.add(ops.Multiply(y, x))
        return b.add(ops.Concatenate([b.add(kind(one, other)) for kind in (ops.Add, ops.Subtract, ops.Multiply)], 0))

    assert len(launches(expect_same(program_of([tensor(3, 4, of=C64)] * 2, body), given))) == 1


def test_empty_pieces() -> None:
    module = program_of([tensor(3, 0)] * 2, stacked)
    concatenation = next(op for op in module.walk() if isinstance(op, ops.Concatenate))
    assert not isinstance(form_of(concatenation), Stacked)
    expect_same(module, [some(3, 0)] * 2)
