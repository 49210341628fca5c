"""Which part of its operands an op needs, so that a device can compute a part of its results by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trivium.ir import ops
from trivium.ir.core import Operation, Value
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.quantized_types import QuantizedType
from trivium.ir.sharding import Column, Part
from trivium.ir.types import TensorType


@dataclass(frozen=True)
class Needed:
    """The parts of its operands that an op needs for a part of each of its results, and its attributes for them."""

    results: Part
    operands: Sequence[Part]
    attributes: dict[str, Any]


def needed(op: Operation, part: Part) -> Needed | None:
    """Returns what an op needs for the same part of each of its results; None if its kind is computed on wholes only,
    or the op mixes elements along a dimension that is divided."""
    if not all(map(_is_plain, (*op.operands, *op.results))) or any(region.free_values() for region in op.regions):
        return None
    rule = _elementwise if _is_elementwise(op) else _RULES.get(type(op))
    found = rule(op, _Division(part, op.results[0].type.static_shape)) if rule is not None else None
    if found is None:
        return None
    columns, changed = found
    devices = len(part.begins)
    parts = [
        Part.whole(value.type.static_shape, devices) if listed is None else Part.of(listed, devices)
        for value, listed in zip(op.operands, columns, strict=True)
    ]
    return Needed(part, parts, op.attributes | changed)


def _is_plain(value: Value) -> bool:
    """Whether a value's type does not depend on which part of it is meant."""
    kind = value.type
    return isinstance(kind, TensorType) and kind.is_static and not isinstance(kind.element_type, QuantizedType)


def _is_elementwise(op: Operation) -> bool:
    return isinstance(op, Op) and op.has_trait(ELEMENTWISE) and not op.regions


class _Division:
    """How a part divides a value of the shape `whole`."""

    def __init__(self, part: Part, whole: Sequence[int]) -> None:
        self.devices = len(part.begins)
        self.columns = [part.column(d) for d in range(len(part.shape))]
        self.divided = [d for d, extent in enumerate(whole) if part.shape[d] != extent]

    def all_of(self, extent: int) -> Column:
        return extent, (0,) * self.devices

    def like(self, value: Value, places: Sequence[int]) -> list[Column]:
        """Returns the columns of a value whose dimension d is dimension `places[d]` of the result; those at -1 are not
        divided."""
        extents = value.type.static_shape
        return [self.columns[at] if at >= 0 else self.all_of(extents[d]) for d, at in enumerate(places)]


Found = tuple[list[list[Column] | None], dict[str, Any]] | None
"""The columns of each operand, None for a whole, and attributes that change."""


def _elementwise(op: Operation, result: _Division) -> Found:
    shape = op.results[0].type.static_shape
    return [result.columns if value.type.static_shape == shape else None for value in op.operands], {}


def _nothing(op: Operation, result: _Division) -> Found:
    return [], {}


def _constant(op: ops.Constant, result: _Division) -> Found:
    return ([], {}) if op.value.is_splat else None


def _broadcast(op: ops.BroadcastInDim, result: _Division) -> Found:
    shape, extents = op.result.type.static_shape, op.operand.type.static_shape
    pairs = zip(extents, op.broadcast_dimensions, strict=True)
    return [result.like(op.operand, [at if extent == shape[at] else -1 for extent, at in pairs])], {}


def _transpose(op: ops.Transpose, result: _Division) -> Found:
    return [result.like(op.operand, [op.permutation.index(d) for d in range(op.result.type.rank)])], {}


def _reshape(op: ops.Reshape, result: _Division) -> Found:
    """A divided dimension may be split up or joined with faster ones, if its parts remain blocks in memory."""
    before, after = op.operand.type.static_shape, op.result.type.static_shape
    columns = [result.all_of(extent) for extent in before]
    if 0 in after:
        return None
    for d in result.divided:
        extent, begins = result.columns[d]
        # The slowest dimension of the operand, other than those of extent 1, among as many elements as follow.
        rest = math.prod(after[d:])
        place = next((i for i, own in enumerate(before) if own > 1 and math.prod(before[i:]) == rest), None)
        if place is None or before[place] * extent % after[d]:
            return None
        columns[place] = before[place] * extent // after[d], tuple(at * before[place] // after[d] for at in begins)
    return [columns], {}


def _reduce(op: ops.Reduce, result: _Division) -> Found:
    kept = iter(range(op.results[0].type.rank))
    places = [-1 if d in op.dimensions else next(kept) for d in range(op.inputs[0].type.rank)]
    return [*(result.like(value, places) for value in op.inputs), *(None for _ in op.init_values)], {}


def _product(op: ops.DotGeneral, result: _Division) -> Found:
    numbers = op.dot_dimension_numbers
    batch = len(numbers.lhs_batching_dimensions)
    free = iter(range(batch, op.result.type.rank))
    found: list[list[Column] | None] = []
    for value, batching, contracting in (
        (op.lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (op.rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    ):
        places = [
            batching.index(d) if d in batching else -1 if d in contracting else next(free)
            for d in range(value.type.rank)
        ]
        found.append(result.like(value, places))
    return found, {}


def _convolution(op: ops.Convolution, result: _Division) -> Found:
    numbers = op.dimension_numbers
    if op.batch_group_count > 1 or result.divided != [numbers.output_batch_dimension]:
        return None
    places = [
        numbers.output_batch_dimension if d == numbers.input_batch_dimension else -1 for d in range(op.lhs.type.rank)
    ]
    return [result.like(op.lhs, places), None], {}


def _concatenate(op: ops.Concatenate, result: _Division) -> Found:
    if op.dimension in result.divided:
        return None
    places = [-1 if d == op.dimension else d for d in range(op.result.type.rank)]
    return [result.like(value, places) for value in op.operands], {}


def _in_place(op: Operation, result: _Division, *values: Value) -> list[list[Column] | None] | None:
    """Returns the columns of values that have all of the divided dimensions, as the result has."""
    shape = op.results[0].type.static_shape
    if any(value.type.static_shape[d] != shape[d] for value in values for d in result.divided):
        return None
    places = [d if d in result.divided else -1 for d in range(len(shape))]
    return [result.like(value, places) for value in values]


def _slice(op: ops.Slice, result: _Division) -> Found:
    found = _in_place(op, result, op.operand)
    limits = [result.columns[d][0] if d in result.divided else limit for d, limit in enumerate(op.limit_indices)]
    return None if found is None else (found, {"limit_indices": tuple(limits)})


def _dynamic_slice(op: ops.DynamicSlice, result: _Division) -> Found:
    found = _in_place(op, result, op.operand)
    if found is None:
        return None
    sizes = tuple(extent for extent, _ in result.columns)
    return [*found, *(None for _ in op.start_indices)], {"slice_sizes": sizes}


def _dynamic_update_slice(op: ops.DynamicUpdateSlice, result: _Division) -> Found:
    found = _in_place(op, result, op.operand, op.update)
    return None if found is None else ([*found, *(None for _ in op.start_indices)], {})


def _pad(op: ops.Pad, result: _Division) -> Found:
    paddings = zip(op.edge_padding_low, op.edge_padding_high, op.interior_padding, strict=True)
    padded = [d for d, each in enumerate(paddings) if any(each)]
    found = _in_place(op, result, op.operand)
    return None if found is None or set(padded) & set(result.divided) else ([*found, None], {})


def _reverse(op: ops.Reverse, result: _Division) -> Found:
    return None if set(op.dimensions) & set(result.divided) else ([result.columns], {})


def _gather(op: ops.Gather, result: _Division) -> Found:
    """Windows of the whole operand, at a device's own indices."""
    numbers = op.dimension_numbers
    if numbers.operand_batching_dims or set(numbers.offset_dims) & set(result.divided):
        return None
    batch = iter(d for d in range(op.result.type.rank) if d not in numbers.offset_dims)
    indices = op.start_indices
    places = [-1 if d == numbers.index_vector_dim else next(batch) for d in range(indices.type.rank)]
    return [None, result.like(indices, places)], {}


def _sort(op: ops.Sort, result: _Division) -> Found:
    along = op.dimension % op.results[0].type.rank
    return None if along in result.divided else ([result.columns for _ in op.operands], {})


def _same(op: Operation, result: _Division) -> Found:
    return [result.columns], {}


_RULES: dict[type, Callable[[Any, _Division], Found]] = {
    ops.Iota: _nothing,
    ops.Constant: _constant,
    ops.BroadcastInDim: _broadcast,
    ops.Transpose: _transpose,
    ops.Reshape: _reshape,
    ops.Reduce: _reduce,
    ops.DotGeneral: _product,
    ops.Convolution: _convolution,
    ops.Concatenate: _concatenate,
    ops.Slice: _slice,
    ops.DynamicSlice: _dynamic_slice,
    ops.DynamicUpdateSlice: _dynamic_update_slice,
    ops.Pad: _pad,
    ops.Reverse: _reverse,
    ops.Gather: _gather,
    ops.Sort: _sort,
    ops.ShardingConstraint: _same,
    ops.Reshard: _same,
}
