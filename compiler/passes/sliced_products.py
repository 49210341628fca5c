"""Products of what a loop reads row by row, such as those of a recurrent network's inputs and its weights: one product
of all rows before the loop keeps the processor busy, and the loop reads rows of the result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.dimensions import with_extent
from trivium.compiler.passes.hoist import fixed_arguments, varies
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.passes.patterns.contraction import with_numbers
from trivium.compiler.passes.patterns.matching import splat
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.ops import (
    Add,
    Compare,
    ComparisonDirection,
    Constant,
    DotDimensionNumbers,
    DotGeneral,
    DynamicSlice,
    Reshape,
    While,
)

MANY_ROWS = 128
"""The number of rows of a product from which on it keeps the processor busy by itself."""
LARGER = 4
"""How many times as many elements as the rows the products may have: these are all in memory at once."""


@dataclass(frozen=True)
class SlicedProducts(Pass):
    """Afterwards, no counted loop multiplies a few rows, which it reads from an array that never changes, with another
    such array."""

    NAME: ClassVar[str] = "sliced-products"

    def run(self, module: Module) -> bool:
        loops = [op for block in blocks(module) for op in block if isinstance(op, While)]
        return any([_change(loop) for loop in loops])


@dataclass(frozen=True)
class _Row:
    """One index along a dimension of `source`, which exists before the loop. `dropped`: the row has no such dimension
    any more."""

    source: Value
    dimension: int
    dropped: bool
    slice: DynamicSlice

    def of_source(self, dimension: int) -> int:
        """Returns the source's dimension that one of the row is."""
        return dimension + (self.dropped and dimension >= self.dimension)


def _change(loop: While) -> bool:
    turns, fixed = _turns(loop), fixed_arguments(loop)
    products = [op for op in loop.body.block if isinstance(op, DotGeneral)] if turns else []
    return any([_move(op, side, turns, fixed, loop) for op in products for side in ("lhs", "rhs") if op.block])


def _turns(loop: While) -> int:
    """Returns by how much a number grows, in steps, before it ends the loop; 0 if nothing like that is known."""
    test = loop.cond.terminator.operands[0].defining_op
    if not isinstance(test, Compare) or test.comparison_direction is not ComparisonDirection.LT:
        return 0
    places = [place for place, argument in enumerate(loop.cond.arguments) if argument is test.lhs]
    if not places:
        return 0
    (place,) = places
    argument, returned = loop.body.arguments[place], loop.body.terminator.operands[place].defining_op
    first, limit = splat(loop.operand[place]), splat(test.rhs)
    counts = isinstance(returned, Add) and returned.lhs is argument and splat(returned.rhs) is not None
    return int(limit) - int(first) if counts and first is not None and limit is not None else 0


def _move(op: DotGeneral, side: str, turns: int, fixed: Mapping[Value, Value], loop: While) -> bool:
    """Moves the product before the loop if one factor is a row, and the other one never changes."""
    row, other = _row(getattr(op, side), loop, fixed), _before(op.rhs if side == "lhs" else op.lhs, loop, fixed)
    if row is None or other is None:
        return False
    numbers = _numbers(op, side, row)
    left, right = (row.source, other) if side == "lhs" else (other, row.source)
    kind = DotGeneral.infer(left.type, right.type, numbers).with_element(op.result.type.element_type)
    count = row.source.type.static_shape[row.dimension]
    used = {*getattr(numbers, f"{side}_batching_dimensions"), *getattr(numbers, f"{side}_contracting_dimensions")}
    free = [d for d in range(row.source.type.rank) if d not in used]
    rows = math.prod(row.source.type.static_shape[d] for d in free) // max(1, count)
    if row.dimension in used or not count <= 2 * turns or rows > MANY_ROWS:
        return False
    if kind.size > LARGER * row.source.type.size:
        return False
    place = free.index(row.dimension) + (
        len(numbers.lhs_batching_dimensions) if side == "lhs" else kind.rank - len(free)
    )
    before = Rewriter(loop)
    product = before.add(with_numbers(op, left, right, numbers, kind))
    rewriter = Rewriter(op)
    start = row.slice.start_indices[row.dimension]
    zero = rewriter.add(Constant(DenseElements.splat(np.asarray(0, start.type.dtype), start.type)))
    starts = [start if d == place else zero for d in range(kind.rank)]
    part = rewriter.add(DynamicSlice(product, starts, with_extent(kind.static_shape, place, 1)))
    rewriter.replace(rewriter.add(Reshape(part, result=op.result.type)))
    return True


def _row(value: Value, loop: While, fixed: Mapping[Value, Value]) -> _Row | None:
    """Returns what a value is a row of."""
    made = value.defining_op
    sliced = made.operand.defining_op if isinstance(made, Reshape) else made
    if not isinstance(sliced, DynamicSlice) or sliced.block is not loop.body.block:
        return None
    source = _before(sliced.operand, loop, fixed)
    if source is None or not source.type.is_static:
        return None
    sizes, extents = sliced.slice_sizes, source.type.static_shape
    cut = [d for d, extent in enumerate(extents) if sizes[d] != extent]
    if len(cut) != 1 or sizes[cut[0]] != 1:
        return None
    without = (*extents[: cut[0]], *extents[cut[0] + 1 :])
    if made is not sliced and value.type.shape != without:
        return None
    return _Row(source, cut[0], made is not sliced, sliced)


def _before(value: Value, loop: While, fixed: Mapping[Value, Value]) -> Value | None:
    """Returns a value of the loop's body as it is before the loop; None if it may change."""
    return None if varies(value, loop.body.block, fixed) else fixed.get(value, value)


def _numbers(op: DotGeneral, side: str, row: _Row) -> DotDimensionNumbers:
    """Returns the dimension numbers of the product of all rows."""
    numbers = op.dot_dimension_numbers
    names = (f"{side}_batching_dimensions", f"{side}_contracting_dimensions")
    return replace(numbers, **{name: tuple(map(row.of_source, getattr(numbers, name))) for name in names})
