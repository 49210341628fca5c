"""Index expressions (`compiler.kernel.index`) as the lowering writes them: of loop variables and of numbers computed at
run time, with row-major positions and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trivium.compiler.kernel import Value
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

    value: Value
    high: int

    @property
    def range(self) -> tuple[int, int]:
        return 0, self.high


def fresh(shape: Sequence[int]) -> list[Variable]:
    """A variable for each dimension."""
    return [Variable(extent) for extent in shape]


def indices_of(variables: Sequence[Variable]) -> Indices:
    """The variables as indices; those of extent 1 are 0."""
    return tuple(constant(0) if v.extent == 1 else variable(v) for v in variables)


def linearize(indices: Sequence[Index], shape: Sequence[int]) -> Index:
    """The row-major position of an element."""
    position = constant(0)
    for index, extent in zip(indices, shape, strict=True):
        position = position * extent + index
    return position


def delinearize(position: Index, shape: Sequence[int]) -> Indices:
    """The indices of a row-major position."""
    indices: list[Index] = []
    for extent in reversed(shape[1:]):
        indices.append(position % extent if extent else constant(0))
        position = position // extent if extent else constant(0)
    return tuple(reversed([*indices, position])) if shape else ()
