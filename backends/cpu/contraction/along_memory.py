"""Contractions that need no template: products of a matrix and one vector in which each sum runs along a row in memory,
products of tiny matrices, and windows that slide along memory, each over one channel, and their gradients. The own
loops of a kernel read operands as they lie; a template would rearrange them for its lanes, and use that once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.compiler.contraction.marked import Marked
from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop
from trivium.compiler.kernel.ops import cost
from trivium.compiler.kernel.structure import Apply, walk

SHORTEST = 128
"""The length of a sum from which on folding the lanes is a small part of it."""
LARGEST = 49
"""The number of terms, those of a window of 7 x 7, up to which it is faster that sums over several channels slide along
memory, and that the gradients of kernels of as many taps are sums along lines."""
TINY = 64
"""The number of terms of all sums of a product of 4x4 matrices."""
TERMS = 16
"""The terms of a sum, folded in lanes, that take as long as one operation on the sum, which is not."""


def has_tiny_matrices(contraction: Contraction) -> bool:
    """Whether there are many products of matrices that are too small for tiles: loops compute one in each lane."""
    products = math.prod(loop.extent for loop in contraction.loops if loop.role != "batch")
    return products <= TINY < math.prod(contraction.extents("batch"))


def sums_along_memory(contraction: Contraction) -> bool:
    """Whether the plain loops of a contraction are the faster ones."""
    wide = [loop for loop in contraction.loops if loop.extent > 1]
    sums = [loop for loop in wide if loop.role == "k"]
    if {"m", "n"} <= {loop.role for loop in wide} or math.prod(loop.extent for loop in sums) < SHORTEST:
        return False
    if len(sums) != 1:
        return _are_lines(contraction, sums)
    applied = (i for i in walk(contraction.epilogue) if isinstance(i, Apply))
    if TERMS * sum(cost(i.op, i.arguments[0].dtype) for i in applied) > sums[0].extent:
        return False
    return all(_is_contiguous(operand, sums[0]) for operand in (contraction.lhs, contraction.rhs))


def _are_lines(contraction: Contraction, sums: Sequence[ContractionLoop]) -> bool:
    """Whether each sum is one over all lines of a channel, for each tap of a small window: the gradient of a depthwise
    convolution's kernel."""
    taps = math.prod((*contraction.extents("m"), *contraction.extents("n")))
    pairs = ((_step(contraction.lhs, loop), _step(contraction.rhs, loop)) for loop in sums)
    lines = any(lhs in (1, 2) and rhs == 1 for lhs, rhs in pairs)
    return lines and math.prod(contraction.extents("batch")) > 1 and 1 < taps <= LARGEST


def slides_along_memory(contraction: Contraction) -> bool:
    """Whether each sum is one over a window of one channel, as in a depthwise convolution, or of few, and neighbouring
    windows are neighbours in memory, as are their sums."""
    sums = [loop for loop in contraction.loops if loop.role == "k" and loop.extent > 1]
    in_windows = all(_in_window(contraction.lhs, loop) for loop in sums)
    small = in_windows or math.prod(loop.extent for loop in sums) <= LARGEST
    if any(extent > 1 for extent in contraction.extents("n")) or not small:
        return False
    problem = Marked(contraction).problem
    places = [axis for axis in problem.rows.axes if axis.extent > 1]
    windows = [window for window in problem.lhs.windows if window.dilation > 1]
    if not places or windows or not any(problem.lhs.stride(axis) for axis in problem.reduction.axes):
        return False
    return problem.out.stride(places[-1]) == 1 and problem.lhs.stride(places[-1]) in (1, 2)


def _in_window(operand: Access, loop: ContractionLoop) -> bool:
    """Whether a loop moves within a window, which another loop moves."""
    positions = [subscript.position for subscript in operand.subscripts]
    return any(loop in position.terms and len(position.terms) > 1 for position in positions)


def _is_contiguous(operand: Access, along: ContractionLoop) -> bool:
    """Whether neighbours of a loop are neighbours in memory, at places that no other loop moves within the row."""
    last = operand.last
    return _step(operand, along) == 1 and last is not None and operand.subscripts[last].position.sole is along


def _step(operand: Access, along: ContractionLoop) -> int:
    """Returns how far apart neighbours of a loop are in a row in memory; 0 if they are not in one."""
    last = operand.last
    if last is None or operand.buffer.layout[last] != 1 or operand.padded(last):
        return 0
    return operand.subscripts[last].position.terms.get(along, 0)
