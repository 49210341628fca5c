"""Index arithmetic: reshapes that undo each other disappear, and the remaining expressions compute the right places."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from trivium.compiler.lowering.index import (
    Index,
    Quotient,
    Remainder,
    Variable,
    constant,
    delinearize,
    fresh,
    indices_of,
    linearize,
    variable,
)


def value(index: Index, at: dict[Variable, int]) -> int:
    """Returns the value of an index for values of its variables; quotients round towards zero, as on machines."""

    def atom(part) -> int:
        if isinstance(part, Variable):
            return at[part]
        dividend = value(part.dividend, at)
        assert dividend >= 0
        return dividend // part.divisor if isinstance(part, Quotient) else dividend % part.divisor

    return index.offset + sum(factor * atom(part) for part, factor in index.terms.items())


def test_reshape_there_and_back():
    variables = fresh((2, 3, 4))
    at = indices_of(variables)
    flat = linearize(at, (2, 3, 4))
    assert delinearize(flat, (2, 3, 4)) == at
    assert delinearize(linearize(delinearize(flat, (4, 6)), (4, 6)), (2, 3, 4)) == at


def test_quotient_and_remainder_join():
    flat = variable(Variable(60))
    split = delinearize(flat, (3, 4, 5))
    assert all(isinstance(atom, Quotient | Remainder) for index in split for atom in index.terms)
    assert linearize(split, (3, 4, 5)) == flat
    assert linearize(split[:2], (3, 4)) == flat // 5


def test_known_range_divides_away():
    inner, outer = variable(Variable(4)), variable(Variable(7))
    assert (outer * 4 + inner) // 4 == outer
    assert (outer * 4 + inner) % 4 == inner
    assert (outer * 8 + inner * 2 + 1) // 2 == outer * 4 + inner


def test_multiples_and_what_is_less_are_divided_apart():
    outer, inner = variable(Variable(12)), variable(Variable(16))
    flat = outer * 16 + inner
    assert flat // 64 == outer // 4
    assert flat % 64 == outer % 4 * 16 + inner
    assert (flat + 16) // 64 == (outer + 1) // 4
    assert flat // 64 * 64 + flat % 64 == flat


@pytest.mark.parametrize("seed", range(40))
def test_values_of_places_in_a_tensor(seed: int):
    """Compares quotients and remainders of a place in a tensor, or some elements beyond it, with plain integers."""
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.integers(1, 5, 3)]
    variables = fresh(shape)
    flat = linearize(indices_of(variables), tuple(shape)) * int(rng.integers(1, 4)) + int(rng.integers(0, 6))
    divisor, other = int(np.prod(shape[1:])) * int(rng.integers(1, 4)), shape[2] * int(rng.integers(1, 4))
    forms = [flat // divisor, flat % divisor, flat % divisor // other, flat // divisor * divisor + flat % divisor]
    for point in itertools.product(*map(range, shape)):
        at = dict(zip(variables, point, strict=True))
        plain = value(flat, at)
        expected = [plain // divisor, plain % divisor, plain % divisor // other, plain]
        assert [value(form, at) for form in forms] == expected


@pytest.mark.parametrize("seed", range(30))
def test_values(seed: int):
    """Compares sums, quotients and remainders of reversed and shifted indices with plain integers."""
    rng = np.random.default_rng(seed)
    variables = fresh([int(n) for n in rng.integers(1, 5, 3)])
    index, numbers = constant(int(rng.integers(0, 5))), []
    for v in variables:
        factor = int(rng.integers(-4, 5))
        index += variable(v) * factor + max(0, -factor * (v.extent - 1))
        numbers.append(factor)
    divisor, other = (int(n) for n in rng.integers(1, 7, 2))
    forms = [
        index // divisor,
        index % divisor,
        (index // divisor) % other,
        (index // divisor) * divisor + index % divisor,
    ]
    for point in itertools.product(*(range(v.extent) for v in variables)):
        at = dict(zip(variables, point, strict=True))
        plain = value(index, at)
        expected = [plain // divisor, plain % divisor, plain // divisor % other, plain]
        assert [value(form, at) for form in forms] == expected
