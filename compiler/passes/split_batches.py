"""Batches of attention: frameworks merge batches and heads into one dimension around each of its products. Fusion
follows the indices of rows through the softmax between them, which has both dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from trivium.compiler.fusion.forms.softmax import above
from trivium.compiler.passes.manager import Pass, blocks
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module


@dataclass(frozen=True)
class SplitBatches(Pass):
    """Afterwards, the products of attention have the batching dimensions that reshapes of both factors had merged."""

    NAME: ClassVar[str] = "split-batches"

    def run(self, module: Module) -> bool:
        products = [op for block in blocks(module) for op in block if isinstance(op, ops.DotGeneral)]
        found = dict.fromkeys(op for last in products for op in _of_attention(last) if _shape(op) is not None)
        for op in found:
            _split(op)
        return bool(found)


def _of_attention(last: ops.DotGeneral) -> Iterator[ops.DotGeneral]:
    """Yields a product of which one factor has been computed by exponentials of another one, and that."""
    for weights in last.operands:
        computed = list(above(weights))
        if any(isinstance(op, ops.Exponential) for op in computed):
            yield last
            yield from (op for op in computed if isinstance(op, ops.DotGeneral))


def _shape(op: ops.DotGeneral) -> tuple[int, ...] | None:
    """Returns the dimensions that both factors had instead of the first one, which is the only batch."""
    numbers = op.dot_dimension_numbers
    if numbers.lhs_batching_dimensions != (0,) or numbers.rhs_batching_dimensions != (0,):
        return None
    one, other = map(_merged, op.operands)
    return one if one == other else None


def _merged(value: Value) -> tuple[int, ...] | None:
    before = value.defining_op
    if not isinstance(before, ops.Reshape) or not value.type.is_static or not before.operand.type.is_static:
        return None
    shape, rest = before.operand.type.static_shape, value.type.static_shape[1:]
    count = len(shape) - len(rest)
    return shape[:count] if count > 1 and shape[count:] == rest else None


def _split(op: ops.DotGeneral) -> None:
    rewriter, numbers, shape = Rewriter(op), op.dot_dimension_numbers, _shape(op)
    assert shape is not None
    factors = [value.defining_op.operands[0] for value in op.operands if value.defining_op is not None]
    batch, more = tuple(range(len(shape))), len(shape) - 1
    split = replace(
        numbers,
        lhs_batching_dimensions=batch,
        rhs_batching_dimensions=batch,
        lhs_contracting_dimensions=tuple(d + more for d in numbers.lhs_contracting_dimensions),
        rhs_contracting_dimensions=tuple(d + more for d in numbers.rhs_contracting_dimensions),
    )
    kind = op.result.type
    attributes = op.attributes | {"dot_dimension_numbers": split}
    result = kind.with_shape((*shape, *kind.static_shape[1:]))
    new = type(op).create(factors, [result], attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    rewriter.replace(rewriter.add(ops.Reshape(new.results[0], result=kind)))
