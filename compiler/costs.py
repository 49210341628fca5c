"""What fusion knows about single ops: how they are computed, and the cost of computing one element, which follows from
the scalar operations that their rules emit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from trivium.compiler.kernel.ops import OPERATIONS, SPECIAL, cost
from trivium.compiler.kernel.structure import Apply, walk
from trivium.compiler.lowering import BRANCHING, ELEMENT, INDEXING, KERNEL, REPEATING, is_elementwise
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.contraction import is_markable, loops_of
from trivium.compiler.lowering.scalars import dtype_of
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value
from trivium.ir.types import Type, is_complex

MOST_TOGETHER = 8
"""The length of rows, each joined of several, up to which they are written together: vectors of their elements are all
in registers."""

MANY_ROWS = 64
"""The number of such rows from which vectors are filled with them, if they are not of single elements."""

FAR = 40
"""The number of ops after which a search backwards through operands gives up."""


def is_kernel_op(op: Operation) -> bool:
    """Whether the op is computed in kernels (or is a view), rather than by a separate step."""
    kind = type(op)
    return kind in ELEMENT or kind in INDEXING or kind in KERNEL or kind is ops.OptimizationBarrier


def is_marked_contraction(op: Operation) -> bool:
    """Whether the op becomes a marked contraction: it has loops, and none of them is empty."""
    return (
        isinstance(op, ops.DotGeneral | ops.Convolution)
        and is_markable(op)
        and all(loop.extent > 0 for loop in loops_of(op).loops.values())
    )


def free_values(op: Operation) -> list[Value]:
    """Returns the values from outside that the op's regions use."""
    return list(dict.fromkeys(value for region in op.regions for value in region.free_values()))


def is_addressing(op: Operation) -> bool:
    """Whether an element takes only index arithmetic."""
    return type(op) in INDEXING or isinstance(op, ops.Iota | ops.Constant)


def element_cost(op: Operation) -> float:
    """Returns the cost of one element of an elementwise op, without that of its operands; 0 for other ops."""
    if not is_elementwise(op):
        return 0.0
    if isinstance(op, ops.Map):
        return sum(map(element_cost, op.computation.block))
    name, kinds = op.NAME.partition(".")[2], tuple(value.type.element_type for value in op.operands)
    if name in OPERATIONS and not any(map(is_complex, kinds)):
        return cost(name, dtype_of(kinds[0]))
    if name in SPECIAL or type(op) not in ELEMENT:
        return 1.0
    if (type(op), kinds) not in _EMITTED:
        _EMITTED[type(op), kinds] = _emitted_cost(op)
    return _EMITTED[type(op), kinds]


_EMITTED: dict[tuple[type[Operation], tuple[Type, ...]], float] = {}


def _emitted_cost(op: Operation) -> float:
    """Returns the cost of the scalar operations that the op's rule emits. It depends only on the op's kind and its
    types: the elementwise ops with attributes are themselves scalar operations."""
    ctx = LoweringContext("cost")
    for value in op.operands:
        ctx.know(value, (), ctx.literal(1, value.type.element_type))
    ELEMENT[type(op)](ctx, op, ())
    return sum(cost(i.op, i.arguments[0].dtype) for i in walk(ctx.b.body) if isinstance(i, Apply))


def worth_storing(op: Operation, target: Target) -> bool:
    """Whether storing and loading an element is cheaper than computing it again."""
    return element_cost(op) >= target.recompute_cost


def takes_loop(op: Operation) -> bool:
    """Whether computing one element takes a loop."""
    return type(op) in REPEATING or is_reduction(op)


def takes_loop_or_branch(op: Operation) -> bool:
    """Whether computing one element takes a loop or a branch."""
    return takes_loop(op) or type(op) in BRANCHING


def as_cheap_as_loading(op: Operation, target: Target) -> bool:
    """Whether computing the op again costs no more than reading its result: it is cheap, and reads at most one operand
    of that size, whose elements are not wider."""
    if not is_elementwise(op) or worth_storing(op, target):
        return False
    size, width = op.results[0].type.size, op.results[0].type.dtype.itemsize
    large = [operand for operand in op.operands if _source_size(operand) * 4 > size]
    return len(set(large)) <= 1 and all(operand.type.dtype.itemsize <= width for operand in large)


def _source_size(value: Value) -> int:
    """Returns the number of elements that a value is made from, looking through ops that move or repeat elements."""
    for _ in range(FAR):
        op = value.defining_op
        if isinstance(op, ops.Iota) or (isinstance(op, ops.Constant) and op.value.is_splat):
            return 1
        if isinstance(op, ops.Convert | ops.Reshape | ops.Transpose | ops.BroadcastInDim):
            value = op.operand
            continue
        if isinstance(op, ops.Compare):
            return max(map(_source_size, op.operands))
        break
    return value.type.size


def interleaves(inputs: Sequence[Value], dimension: int) -> bool:
    """Whether a concatenation has rows of few elements, from different operands, and is written in one launch."""
    kind, extents = inputs[0].type, [value.type.shape[dimension] for value in inputs]
    if dimension < kind.rank - 1 or min(extents) == 0 or sum(extents) > MOST_TOGETHER:
        return False
    return kind.size > 0 and (max(extents) == 1 or kind.size >= MANY_ROWS * extents[0])


def is_reduction(op: Operation | None) -> TypeGuard[ops.Reduce]:
    """Whether the op is a reduction that combines more than one element per result. A reduction along dimensions of
    extent 1 is elementwise."""
    if not isinstance(op, ops.Reduce):
        return False
    shape = op.inputs[0].type.shape
    return any(shape[dimension] != 1 for dimension in op.dimensions)
