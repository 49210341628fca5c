"""Contractions that need no template: products of a matrix and one vector in which each sum runs along a row in memory.
The kernel's own loops read the matrix once, as it lies; a template would turn it around for its lanes, and use that
once."""

from __future__ import annotations

from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop
from trivium.compiler.kernel.ops import cost
from trivium.compiler.kernel.structure import Apply, walk

SHORTEST = 128
"""The length of a sum from which on folding the lanes is a small part of it."""
TERMS = 16
"""The terms of a sum, folded in lanes, that take as long as one operation on the sum, which is not."""


def sums_along_memory(contraction: Contraction) -> bool:
    """Whether the plain loops of a contraction are the faster ones."""
    wide = [loop for loop in contraction.loops if loop.extent > 1]
    sums = [loop for loop in wide if loop.role == "k"]
    if len(sums) != 1 or sums[0].extent < SHORTEST or {"m", "n"} <= {loop.role for loop in wide}:
        return False
    applied = (i for i in walk(contraction.epilogue) if isinstance(i, Apply))
    if TERMS * sum(cost(i.op, i.arguments[0].dtype) for i in applied) > sums[0].extent:
        return False
    return all(_is_contiguous(operand, sums[0]) for operand in (contraction.lhs, contraction.rhs))


def _is_contiguous(operand: Access, along: ContractionLoop) -> bool:
    """Whether neighbours of a loop are neighbours in memory."""
    buffer = operand.buffer
    dimensions = [d for d, extent in enumerate(buffer.shape) if extent > 1]
    if not dimensions or buffer.layout[dimensions[-1]] != 1 or operand.padded(dimensions[-1]):
        return False
    return operand.subscripts[dimensions[-1]].position.sole is along
