"""What each device contributes to a value that the devices hold as parts, or as terms of a sum. Programs compute
wholes: a device's part is cut out of one, and its term is the sum over the device's own part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import integer_array
from trivium.ir.builder import Builder
from trivium.ir.core import Operation, Region, Value
from trivium.ir.ops import (
    Add,
    Constant,
    Convert,
    DotGeneral,
    DynamicSlice,
    DynamicUpdateSlice,
    PartitionId,
    Reduce,
    Reshape,
    Reshard,
    Scatter,
    Select,
    ShardingConstraint,
)
from trivium.ir.sharding import Part
from trivium.ir.types import I1, I32, tensor

Columns = Mapping[int, tuple[int, Sequence[int]]]
"""Dimensions of a value: the extent of a device's own part, and where it begins on each device."""


def contribution(builder: Builder, value: Value, part: Part, held: Mapping[Value, Part]) -> Value:
    """Returns this device's part of a whole, or its term of that part. `held` has the parts in which devices hold
    values."""
    own = _Own(builder, part.terms, held, len(part.begins))
    value = own.term(value) if part.terms else value
    extents = value.type.static_shape
    columns = {d: (extent, [at[d] for at in part.begins]) for d, extent in enumerate(part.shape)}
    return own.cut(value, columns)[0] if extents else value


def own_number(builder: Builder, numbers: Sequence[int]) -> Value:
    """Looks up this device's number in a list with one number per device."""
    place = builder.add(Convert(builder.add(PartitionId()), result=tensor(of=I32)))
    table = builder.add(Constant(integer_array(tuple(numbers), I32)))
    one = builder.add(DynamicSlice(table, [place], (1,)))
    return builder.add(Reshape(one, result=tensor(of=I32)))


@dataclass
class _Own:
    builder: Builder
    terms: Sequence[tuple[int, ...]]
    held: Mapping[Value, Part]
    devices: int

    def term(self, value: Value) -> Value:
        """Returns this device's term of a value. If the value, or what it is the sum of, is divided among the devices
        that have terms of it, each has the sum of its own elements. Otherwise the first one has the value, and the
        others have zeros."""
        op = value.defining_op
        if op is not None and (masked := self._addends(op)):
            added = op.clone(masked)
            self.builder.add(added)
            return added.results[0]
        if columns := self._divided(value, range(value.type.rank)):
            return self._alone(value, columns)
        if isinstance(op, ShardingConstraint | Reshard):
            return self.term(op.operands[0])
        return self._only_first(value)

    def _addends(self, op: Operation) -> dict[Value, Value]:
        """Returns, for an op that adds up elements, operands in which those of other devices are zeros."""
        match op:
            case Reduce() if len(op.inputs) == 1 and _adds(op.body) and _is_zero(op.init_values[0]):
                return self._masked({op.inputs[0]: op.dimensions})
            case DotGeneral():
                numbers = op.dot_dimension_numbers
                sides = {op.lhs: numbers.lhs_contracting_dimensions, op.rhs: numbers.rhs_contracting_dimensions}
                return self._masked(sides) if op.lhs is not op.rhs else {}
            case Scatter() if len(op.inputs) == 1 and _adds(op.update_computation):
                return self._updates(op)
        return {}

    def _updates(self, op: Scatter) -> dict[Value, Value]:
        numbers, (updates,), (first,) = op.scatter_dimension_numbers, op.updates, op.inputs
        indices = op.scatter_indices
        if len({updates, first, indices}) < 3:
            return {}
        places = [d for d in range(indices.type.rank) if d != numbers.index_vector_dim]
        batch = [d for d in range(updates.type.rank) if d not in numbers.update_window_dims]
        columns = self._divided(updates, batch)
        if not columns:
            found = self._divided(indices, places)
            columns = {batch[places.index(d)]: column for d, column in found.items()}
        return {updates: self._alone(updates, columns), first: self._only_first(first)} if columns else {}

    def _masked(self, sides: Mapping[Value, Sequence[int]]) -> dict[Value, Value]:
        """Masks values along the given dimensions of each, which correspond to each other and of which at least one
        value's must be divided."""
        for value, dimensions in sides.items():
            if columns := self._divided(value, dimensions):
                place = {d: i for i, d in enumerate(dimensions)}
                return {
                    other: self._alone(other, {theirs[place[d]]: column for d, column in columns.items()})
                    for other, theirs in sides.items()
                }
        return {}

    def _divided(self, value: Value, dimensions: Sequence[int]) -> Columns:
        """Returns those of the dimensions that are divided, if that gives each device that has a term elements of its
        own, and all elements to one of them."""
        part, shape = self.held.get(value), value.type.static_shape
        if part is None or part.terms or 0 in shape:
            return {}
        count = math.prod(shape[d] // part.shape[d] for d in dimensions)
        for group in self.terms:
            places = {tuple(part.begins[device][d] for d in dimensions) for device in group}
            if not len(places) == len(group) == count:
                return {}
        divided = [d for d in dimensions if part.shape[d] != shape[d]]
        return {d: (part.shape[d], [begins[d] for begins in part.begins]) for d in divided}

    def _alone(self, value: Value, columns: Columns) -> Value:
        """Returns a value with zeros in place of other devices' elements."""
        own, starts = self.cut(value, columns)
        zeros = self.builder.add(Constant(np.zeros(value.type.static_shape, value.type.dtype)))
        return self.builder.add(DynamicUpdateSlice(zeros, own, starts))

    def cut(self, value: Value, columns: Columns) -> tuple[Value, list[Value]]:
        """Returns the device's own part of a value, and where it begins."""
        shape = value.type.static_shape
        own = [columns.get(d, (extent, [0] * self.devices)) for d, extent in enumerate(shape)]
        starts = [self._number(begins) for _, begins in own]
        return self.builder.add(DynamicSlice(value, starts, tuple(extent for extent, _ in own))), starts

    def _only_first(self, value: Value) -> Value:
        first = {group[0] for group in self.terms}
        is_first = self._number([int(device in first) for device in range(self.devices)])
        chosen = self.builder.add(Convert(is_first, result=tensor(of=I1)))
        zeros = self.builder.add(Constant(np.zeros(value.type.static_shape, value.type.dtype)))
        return self.builder.add(Select(chosen, value, zeros))

    def _number(self, numbers: Sequence[int]) -> Value:
        return own_number(self.builder, numbers)


def _adds(body: Region) -> bool:
    """Whether a region returns the sum of its two arguments."""
    block = body.block
    add = block.first
    return (
        isinstance(add, Add)
        and set(add.operands) == set(block.arguments)
        and tuple(block.terminator.operands) == tuple(add.results)
    )


def _is_zero(value: Value) -> bool:
    op = value.defining_op
    while isinstance(op, ShardingConstraint | Reshard):
        op = op.operands[0].defining_op
    return isinstance(op, Constant) and not np.any(op.value.array)
