"""Functions of f32 on an interval that is divided into 16 or 8 parts, each with a separate polynomial, on processors
whose lanes select coefficients from registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm import lookup
from trivium.backends.llvm.code import I32, Code

FIRST = 0.5
FRACTION = {lookup.SIZE: 21, lookup.SHORT: 22}
"""The bits of a number of f32 below those of its fraction that are in a part's number, by how many parts there are."""


@dataclass(frozen=True)
class ByParts:
    """A function from 0 to `last`. Four parts of 16, or two of 8, are between each two powers of two of `scale` * x +
    FIRST, so that they become wider; the low bits of that sum's exponent and the high bits of its fraction are a
    part's number. `coefficients` are those of polynomials in the distance from each part's centre, from the highest
    power down."""

    scale: float
    last: float
    centres: Sequence[float]
    coefficients: Sequence[Sequence[float]]

    def __call__(self, code: Code, x: ll.Value) -> ll.Value:
        fraction = FRACTION[len(self.centres)]
        number = code.lshr(code.bits(code.fma(x, self.scale, FIRST), I32), fraction)
        centre, found, *others = lookup.rows(code, (self.centres, *self.coefficients), number)
        step = code.sub(x, centre)
        for coefficient in others:
            found = code.fma(found, step, coefficient)
        return found
