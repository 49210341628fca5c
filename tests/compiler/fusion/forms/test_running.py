"""Running folds with what is made of their results, in one kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.fusion.test_fuser import launches
from tests.compiler.lowering.running import expect_same, program_of, some
from tests.compiler.targets import TARGET
from tests.random_programs.generator import scalar_region
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.types import F64, tensor

IN_LANES = dataclasses.replace(TARGET, scans=True)


def sums(b: Builder, x: Value, dimension: int = 1, reverse: bool = False) -> Value:
    """Returns the cumulative sums along a dimension."""
    shape, element = x.type.shape, x.type.element_type
    before, after = (0, shape[dimension] - 1) if reverse else (shape[dimension] - 1, 0)
    sizes = [extent if d == dimension else 1 for d, extent in enumerate(shape)]
    padding = [[before, after] if d == dimension else [0, 0] for d in range(len(shape))]
    zero = b.add(ops.Constant(np.zeros((), tensor(of=element).dtype)))
    body = scalar_region(ops.Add, element)
    return b.add(ops.ReduceWindow([x], [zero], window_dimensions=sizes, padding=padding, body=body))[0]


def in_double_precision(b: Builder, x: Value, **how) -> Value:
    wide = b.add(ops.Convert(x, result=x.type.with_element(F64)))
    return b.add(ops.Convert(sums(b, wide, **how), result=x.type))


def scaled(b: Builder, x: Value, **how) -> Value:
    each = b.add(ops.Reduce([x], [b.add(ops.Constant(np.float32(0)))], [1], scalar_region(ops.Add)))[0]
    return b.add(ops.Multiply(sums(b, x, **how), b.add(ops.BroadcastInDim(each, [0], result=x.type))))


def twice(b: Builder, x: Value) -> Value:
    return sums(b, b.add(ops.Tanh(sums(b, x))))


def stored_as_well(b: Builder, x: Value) -> list[Value]:
    found = sums(b, x)
    return [b.add(ops.Tanh(found)), found]


def read_elsewhere(b: Builder, x: Value) -> Value:
    found = sums(b, x)
    return b.add(ops.Subtract(found, b.add(ops.Reverse(found, [1]))))


def transposed(b: Builder, x: Value) -> Value:
    return b.add(ops.Tanh(b.add(ops.Transpose(sums(b, x), (1, 0)))))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (in_double_precision, 1),
        (lambda b, x: in_double_precision(b, x, reverse=True), 1),
        (lambda b, x: in_double_precision(b, x, dimension=0), 1),
        (lambda b, x: in_double_precision(b, x, dimension=0, reverse=True), 1),
        (scaled, 2),
        (twice, 2),
        (stored_as_well, 2),
        (read_elsewhere, 2),
        (transposed, 2),
    ],
    ids=["along rows", "along rows, from the end", "across rows", "across rows, from the end",
         "with another reduction", "twice", "a result", "read elsewhere", "transposed"],
)  # fmt: skip
def test_what_follows_is_computed_in_the_loop(body: Callable, expected: int) -> None:
    given = [some(5, 100)]
    program = expect_same(program_of([tensor(5, 100)], body), given, target=IN_LANES)
    assert len(launches(program)) == expected


@pytest.mark.parametrize("shape", [(100, 3), (4, 20)])
def test_folds_that_are_not_in_vectors_are_alone(shape: tuple[int, int]) -> None:
    dimension = 0 if shape[0] == 100 else 1
    module = program_of([tensor(*shape)], lambda b, x: b.add(ops.Tanh(sums(b, x, dimension))))
    assert len(launches(expect_same(module, [some(*shape)], target=IN_LANES))) == 2
