"""Rewrites of scatters of a few neighbours, as assignments to single elements are written: updates of slices, which
work in place, also where the new elements are computed from other elements of the same array."""

from __future__ import annotations

import math

from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.ops import (
    Add,
    And,
    Compare,
    Constant,
    Convert,
    DynamicSlice,
    DynamicUpdateSlice,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Reshape,
    Scatter,
    Select,
    Slice,
    Subtract,
    Xor,
)
from trivium.ir.types import I64, tensor

SCATTERING = PatternSet()
pattern = SCATTERING.pattern

FEW = 16
"""The number of elements up to which reading those that are there costs less than a branch."""

COMBINING = Add | Subtract | Multiply | Maximum | Minimum | And | Or | Xor


@pattern(Scatter)
def scatter_of_one_window(op):
    """scatter(x, place, y) == dynamic_update_slice(x, y if place is inside of x, else what is there, place)   (a few
    elements at one place)"""
    window = _window(op)
    if window is None:
        return None
    (operand,), (update,) = op.inputs, op.updates
    mapped = op.scatter_dimension_numbers.scatter_dims_to_operand_dims
    places = dict(zip(mapped, _coordinates(op.scatter_indices, len(mapped)), strict=True))
    starts = [places.get(d, _number(0)) for d in range(operand.type.rank)]
    old = DynamicSlice(operand, starts, window).result
    new = _combined(op, old, Reshape(update, result=old.type).result)
    if new is None:
        return None
    for d, place in places.items():
        for direction, bound in (("GE", 0), ("LT", operand.type.static_shape[d])):
            inside = Compare(place, _number(bound), comparison_direction=direction).result
            new = Select(inside, new, old).result
    return DynamicUpdateSlice(operand, new, starts)


def _window(op: Scatter) -> tuple[int, ...] | None:
    """Returns the shape of the only window, in the dimensions of the operand, if it is small, and a single element
    along the dimensions of its place: it is then inside of the operand as a whole, or not at all."""
    numbers = op.scatter_dimension_numbers
    if len(op.inputs) != 1 or op.results[0].type is not op.inputs[0].type:
        return None
    if not all(value.type.is_static for value in (*op.inputs, op.scatter_indices, *op.updates)):
        return None
    (operand,), (update,) = op.inputs, op.updates
    windowed = [d for d in range(operand.type.rank) if d not in numbers.inserted_window_dims]
    if numbers.input_batching_dims or len(windowed) != len(numbers.update_window_dims) or 0 in operand.type.shape:
        return None
    extents = dict(zip(windowed, (update.type.static_shape[d] for d in numbers.update_window_dims), strict=True))
    shape = tuple(extents.get(d, 1) for d in range(operand.type.rank))
    alone = all(shape[d] == 1 for d in numbers.scatter_dims_to_operand_dims)
    return shape if alone and 0 < update.type.size == math.prod(shape) <= FEW else None


def _coordinates(indices: Value, count: int) -> list[Value]:
    """Returns the numbers of the only vector of indices."""
    vector = Convert(Reshape(indices, result=indices.type.with_shape((count,))).result, result=tensor(count, of=I64))
    each = (Slice(vector.result, (k,), (k + 1,), (1,)).result for k in range(count))
    return [Reshape(one, result=tensor(of=I64)).result for one in each]


def _number(number: int) -> Value:
    return Constant(DenseElements.splat(number, tensor(of=I64))).result


def _combined(op: Scatter, old: Value, new: Value) -> Value | None:
    """Returns the combination of old and new elements, if it is the new ones, or one operation."""
    block = op.update_computation.block
    arguments: dict[Value, Value] = dict(zip(block.arguments, (old, new), strict=True))
    (result,) = block.terminator.operands
    if result in arguments:
        return arguments[result]
    made = result.defining_op
    if not isinstance(made, COMBINING) or not all(operand in arguments for operand in made.operands):
        return None
    return type(made)(*(arguments[operand] for operand in made.operands)).result
