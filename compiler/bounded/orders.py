"""Ops that order elements: the space comes behind them."""

from __future__ import annotations

import numpy as np

from trivium.compiler.bounded.axes import simple
from trivium.compiler.bounded.sums import alike
from trivium.compiler.bounded.writer import Bounded, Unbounded, Writer, captured, cloned, rule
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder
from trivium.ir.core import Region
from trivium.ir.numerals import integer_range
from trivium.ir.ops import And, Constant, Not, Or, Sort, Xor
from trivium.ir.ops.chlo import TopK
from trivium.ir.types import BF16, F16, F32, F64, I1, ElementType, is_boolean, is_integer, tensor


@rule(Sort)
def sort(w: Writer, op: Sort) -> list[Bounded]:
    """Along a dimension with space, places without an element are marked, and come last whatever they have."""
    inputs = alike(w, op.inputs)
    if inputs[0].axes[op.dimension].is_fixed:
        return cloned(w, op, [x.value for x in inputs], [inputs[0].axes] * len(inputs))
    inputs = [w.with_simple(x, (op.dimension,)) for x in inputs]
    axes, shape = inputs[0].axes, inputs[0].value.type.static_shape
    absent = w.spread(w.add(Not(w.mask(axes[op.dimension]))), shape, (op.dimension,))
    region = op.comparator.clone({value: w.values[value].value for value in captured(op)})
    _last_if_absent(region)
    made = Sort([*(x.value for x in inputs), absent], region, dimension=op.dimension, is_stable=op.is_stable)
    w.add(made)
    return [Bounded(value, axes) for value in made.results[:-1]]


def _last_if_absent(comparator: Region) -> None:
    """Lets a comparator take two more arguments, of which the first says that a row is absent: those come last."""
    block, end = comparator.block, comparator.terminator
    one, other = (block.add_argument(tensor(of=I1)) for _ in range(2))
    emit = Builder(block, before=end)
    (before,) = end.operands
    only = emit.add(And(emit.add(Not(one)), other))
    both = emit.add(Not(emit.add(Xor(one, other))))
    end.set_operand(0, emit.add(Or(only, emit.add(And(both, before)))))


@rule(TopK)
def top_k(w: Writer, op: TopK) -> list[Bounded]:
    """There is nothing less than what is in the space, and of equal elements, the first ones count."""
    x = w.values[op.operand]
    if not x.axes[-1].is_fixed:
        last = len(x.axes) - 1
        x = w.with_simple(x, (last,))
        least = Constant(DenseElements(_least(op.operand.type.element_type), tensor(of=op.operand.type.element_type)))
        x = w.masked(x, (last,), w.add(least))
    axes = (*x.axes[:-1], simple((op.k,) * w.combinations))
    return cloned(w, op, [x.value], [axes, axes])


def _least(kind: ElementType) -> np.ndarray:
    """Returns the first element in total order: of floats, the NaN whose bits are all set."""
    if is_boolean(kind):
        return np.array(False)
    if is_integer(kind):
        return np.array(integer_range(kind)[0], kind.dtype)
    if kind not in (F16, BF16, F32, F64):
        raise Unbounded(f"the largest elements along a dimension whose size differs, of type {kind}")
    return np.full(kind.dtype.itemsize, 0xFF, np.uint8).view(kind.dtype).reshape(())
