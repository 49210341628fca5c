"""The exponential function in f32: with a table of roots of 2 and a short polynomial, on processors whose lanes select
numbers from registers and scale by powers of two; or by the formula of all formats."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.llvm import lookup
from trivium.backends.llvm.code import I32, SHIFT_F32, Code
from trivium.backends.llvm.math.exponential import LOG2_E, Exponential
from trivium.backends.llvm.whole_vectors import limited, scaled

LARGEST = 0.03
"""More than |r|, unless x is so large, or no number, that n alone decides: then r is any small number."""
SHIFT = SHIFT_F32 / lookup.SIZE
"""Adding this number rounds to a multiple of 1/16, whose last four bits are then the lowest ones."""
ROOTS = tuple(2.0 ** (index / lookup.SIZE) for index in range(lookup.SIZE))
COEFFICIENTS = 0.16667055653893081, 0.5000161868396479
"""(exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 32"""


def exp(code: Code, x: ll.Value, formula: Exponential) -> ll.Value:
    """2^n exp(r), where n is x / ln 2 rounded to 16ths: scaling is by the whole part, and the rest selects a root."""
    if not (lookup.is_possible(code) and code.target.ldexp and code.target.orders_zeros):
        return formula(code, x)
    high_part, low_part = formula.ln2
    rounded = code.fma(x, LOG2_E, SHIFT)
    n = code.sub(rounded, SHIFT)
    r = limited(code, code.fma(n, -low_part, code.fma(n, -high_part, x)), LARGEST)
    (root,) = lookup.rows(code, (ROOTS,), code.bits(rounded, I32))
    less_one = code.fma(code.mul(r, r), code.polynomial(r, COEFFICIENTS), r)
    return scaled(code, code.fma(root, less_one, root), n)
