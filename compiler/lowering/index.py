"""Index expressions (`compiler.kernel.index`) in the form that the lowering uses: in terms of loop variables and of
numbers computed at run time, with conversions to and from row-major positions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from trivium.compiler.kernel import Register
from trivium.compiler.kernel.index import Index, Indices, Quotient, Remainder, Variable, constant, variable

__all__ = [
    "Index",
    "Indices",
    "Quotient",
    "Remainder",
    "RunTimeIndex",
    "Variable",
    "constant",
    "delinearize",
    "fresh",
    "indices_of",
    "linearize",
    "variable",
]


@dataclass(eq=False)
class RunTimeIndex:
    """A run-time index in [0, high], the value of an instruction."""

    value: Register
    high: int

    @property
    def range(self) -> tuple[int, int]:
        return 0, self.high


def fresh(shape: Sequence[int]) -> list[Variable]:
    """Returns a new variable for each dimension."""
    return [Variable(extent) for extent in shape]


def every_place(shape: Sequence[int]) -> list[Indices]:
    """Returns the indices of all elements of a shape, in row-major order."""
    return [tuple(map(constant, place)) for place in itertools.product(*map(range, shape))]


def indices_of(variables: Sequence[Variable]) -> Indices:
    """Returns the variables as indices; those of extent 1 become 0."""
    return tuple(constant(0) if v.extent == 1 else variable(v) for v in variables)


def linearize(indices: Sequence[Index], shape: Sequence[int]) -> Index:
    """Returns the row-major position of an element."""
    position = constant(0)
    for index, extent in zip(indices, shape, strict=True):
        position = position * extent + index
    return position


def delinearize(position: Index, shape: Sequence[int]) -> Indices:
    """Returns the indices of a row-major position."""
    indices: list[Index] = []
    for extent in reversed(shape[1:]):
        indices.append(position % extent if extent else constant(0))
        position = position // extent if extent else constant(0)
    return tuple(reversed([*indices, position])) if shape else ()
