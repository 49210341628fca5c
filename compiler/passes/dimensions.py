"""Which dimensions of an op's operands go along with a dimension of its results: what the results hold at index i of
that dimension depends on no other index of those."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trivium.ir.attributes import DenseElements
from trivium.ir.core import Operation, Value
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.ops import BroadcastInDim, Constant, DotGeneral, Iota, Pad, Reduce, Reshape, Reverse, Slice, Transpose

Along = tuple[int | None, ...]
"""One entry per operand: the dimension that goes along, or None if every index needs the whole operand."""


def along(op: Operation, dimension: int) -> Along | None:
    """Returns the dimensions of the operands that go along with `dimension` of the results; None for ops whose results
    at one index depend on other indices. All shapes are static."""
    match op:
        case Constant():
            return () if op.value.is_splat else None
        case Iota():
            return () if op.iota_dimension != dimension else None
        case BroadcastInDim():
            return (_repeated(op, dimension),)
        case Transpose():
            return (op.permutation[dimension],)
        case Reshape():
            kept = _kept(op.operand.type.static_shape, op.result.type.static_shape, dimension)
            return None if kept is None else (kept,)
        case DotGeneral():
            return _factors(op, dimension)
        case Reduce():
            remaining = [d for d in range(op.inputs[0].type.rank) if d not in op.dimensions]
            return (*[remaining[dimension]] * len(op.inputs), *[None] * len(op.init_values))
        case Slice():
            is_whole = op.operand.type.static_shape[dimension] == op.result.type.static_shape[dimension]
            return (dimension,) if is_whole else None
        case Reverse():
            return (dimension,) if dimension not in op.dimensions else None
        case Pad():
            padding = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
            return (dimension, None) if not any(amounts[dimension] for amounts in padding) else None
        case Op() if op.has_trait(ELEMENTWISE):
            rank = op.results[0].type.rank
            return tuple(dimension if value.type.rank == rank else None for value in op.operands)
    return None


def on_parts(op: Op, extents: Mapping[int, int], operands: Sequence[Value]) -> Operation:
    """Returns the op on parts of its operands, which have these extents along the dimensions that go along with those
    of `extents`. Its results are that part of the op's own results."""
    attributes = dict(op.attributes)
    if isinstance(op, Slice):
        attributes["limit_indices"] = _with_extents(op.limit_indices, extents)
    if isinstance(op, Constant):
        kind = op.value.type.with_shape(_with_extents(op.value.type.static_shape, extents))
        attributes["value"] = DenseElements.splat(op.value.array.flat[0], kind)
    types = [result.type.with_shape(_with_extents(result.type.static_shape, extents)) for result in op.results]
    regions = [region.clone() for region in op.regions]
    return type(op).create(operands, types, attributes, regions, op.extra, op.location, op.segments)


def _with_extents(shape: Sequence[int], extents: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(extents.get(d, extent) for d, extent in enumerate(shape))


def with_extent(shape: Sequence[int], dimension: int, extent: int) -> tuple[int, ...]:
    """Returns a shape with another extent of one dimension."""
    return (*shape[:dimension], extent, *shape[dimension + 1 :])


def _repeated(op: BroadcastInDim, dimension: int) -> int | None:
    if dimension not in op.broadcast_dimensions:
        return None
    source = op.broadcast_dimensions.index(dimension)
    is_same = op.operand.type.static_shape[source] == op.result.type.static_shape[dimension]
    return source if is_same else None


def _kept(before: Sequence[int], after: Sequence[int], dimension: int) -> int | None:
    """Returns the dimension before a reshape that has the same extent and as many elements before it."""
    in_front, extent = math.prod(after[:dimension]), after[dimension]
    for candidate in range(len(before)):
        if math.prod(before[:candidate]) == in_front and before[candidate] == extent:
            return candidate
    return None


def _factors(op: DotGeneral, dimension: int) -> Along:
    numbers = op.dot_dimension_numbers
    batching = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    if dimension < len(batching):
        return batching[dimension]
    left = _free(op.lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions)
    right = _free(op.rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions)
    place = dimension - len(batching)
    return (left[place], None) if place < len(left) else (None, right[place - len(left)])


def _free(value: Value, *taken: Sequence[int]) -> list[int]:
    return [d for d in range(value.type.rank) if not any(d in dimensions for dimensions in taken)]
