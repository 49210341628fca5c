"""Calls of LAPACK in machine code and in the interpreter of programs; matrices without factors; empty batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import trivium
from tests.compiler.targets import TARGET
from tests.ir.lapack_cases import CALLS, CASES, numbers
from trivium.compiler.interpreter import interpret
from trivium.compiler.lower import lower
from trivium.compiler.program import HostCall, walk
from trivium.ir.interpreter import evaluate


@pytest.mark.parametrize(("name", "dtype"), CALLS)
def test_machine_code(name: str, dtype: Any) -> None:
    case = CASES[name]
    operands = case.make(dtype)
    case.holds(list(operands), list(trivium.compile(case.module(operands))(*operands)))


@pytest.mark.parametrize("name", CASES)
def test_interpreted_program(name: str) -> None:
    case = CASES[name]
    operands = case.make(np.complex64)
    program = lower(case.module(operands), TARGET)
    (call,) = (step for step in walk(program.steps) if isinstance(step, HostCall))
    assert call.target == case.routine
    case.holds(list(operands), interpret(program, *operands))


def test_a_singular_matrix_and_a_number_that_is_missing() -> None:
    """A matrix that fails does not affect the others of its batch."""
    case = CASES["getrf"]
    a = numbers(3, 3, 3, dtype=np.float32)
    a[1] = 0
    lu, _, info = trivium.compile(case.module((a,)))(a)
    assert info.tolist() == [0, 1, 0]
    assert np.isfinite(lu).all()
    case = CASES["syevd"]
    a[1] = np.nan
    vectors, values, info = trivium.compile(case.module((a,)))(a)
    assert np.isfinite(vectors[[0, 2]]).all()
    assert np.isfinite(values[[0, 2]]).all()
    assert info[1] != 0 or np.isnan(values[1]).all()


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (1, 1)])
@pytest.mark.parametrize("name", ["getrf", "geqrf", "syevd", "gesdd, S of (3, 5)", "geev", "gees", "sytrd"])
def test_small_shapes(name: str, shape: tuple[int, ...]) -> None:
    case = CASES[name]
    operands = (numbers(*shape, dtype=np.float64),)
    found = trivium.compile(case.module(operands))(*operands)
    assert [x.shape[: len(shape) - 2] for x in found] == [shape[:-2]] * len(found)
    if shape == (1, 1):
        case.holds(list(operands), list(found))


def test_pivots_of_no_factorization() -> None:
    """LAPACK would read and write outside of the matrix."""
    case = CASES["sytrs, L"]
    factors, pivots, b = (np.repeat(x[:1], 6, 0) for x in case.make(np.float32))
    pivots[1:] = [[0, 1, 2, 3, 4], [1, 2, 3, 4, 6], [1, 2, 3, 4, -5], [-2, -2, -4, 4, 5], [-3, -2, 3, 4, 5]]
    module = case.module((factors, pivots, b))
    for found in (trivium.compile(module)(factors, pivots, b)[0], evaluate(module, factors, pivots, b)[0]):
        assert np.isfinite(found[0]).all()
        assert np.isnan(found[1:]).all()


@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 3, 0)])
def test_vectors_of_matrices_without_elements(shape: tuple[int, ...]) -> None:
    case = replace(CASES["gesdd, S of (3, 5)"], attributes={"mode": ord("A")})
    operands = (numbers(*shape, dtype=np.float32),)
    _, _, left, right, _ = trivium.compile(case.module(operands))(*operands)
    for found, order in ((left, shape[1]), (right, shape[2])):
        np.testing.assert_array_equal(found, np.broadcast_to(np.eye(order), (2, order, order)))
