"""How devices hold values for which the program does not specify it: like those that they are computed from, for ops
that keep dimensions separate. This only affects how a caller finds the results divided."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trivium.ir.core import Block, Operation, Value
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.ops import (
    BroadcastInDim,
    Concatenate,
    Convolution,
    CustomCall,
    DotGeneral,
    DynamicSlice,
    DynamicUpdateSlice,
    Gather,
    ManualComputation,
    OptimizationBarrier,
    Pad,
    Reduce,
    Reshape,
    Reshard,
    Reverse,
    ShardingConstraint,
    ShardingGroup,
    Slice,
    Sort,
    Transpose,
    While,
)
from trivium.ir.sharding import Column, Part
from trivium.ir.types import TensorType

Stated = Callable[[Operation, Mapping[Value, Part]], Sequence[Part]]
"""Returns the parts of an op's results if the op itself specifies them, given the parts that are known before it."""


def propagate(block: Block, known: Mapping[Value, Part], devices: int, stated: Stated) -> dict[Value, Part]:
    """Returns the parts of the block's values that are not wholes. `stated` is called for ops of Shardy."""
    return _Propagation(dict(known), devices, stated).over(block)


@dataclass
class _Propagation:
    parts: dict[Value, Part]
    devices: int
    stated: Stated
    groups: dict[int, list[Value]] = field(default_factory=dict)

    def over(self, block: Block) -> dict[Value, Part]:
        for op in block:
            if isinstance(op, ShardingGroup):
                self._join(op.input, self.groups.setdefault(op.group_id, []))
            self._hold(op.results, self._of(op))
        return self.parts

    def _join(self, value: Value, group: list[Value]) -> None:
        """Holds the values of a group like the first that is divided. How arguments are held is the caller's choice."""
        group.append(value)
        divided = next((self.parts[member] for member in group if member in self.parts), None)
        if divided is not None:
            free = [member for member in group if member not in self.parts and member.defining_op is not None]
            self._hold(free, [divided] * len(free))

    def _hold(self, values: Sequence[Value], parts: Sequence[Part]) -> None:
        for value, part in zip(values, parts, strict=False):
            if isinstance(value.type, TensorType) and part.shape != value.type.static_shape:
                self.parts[value] = part

    def _of(self, op: Operation) -> Sequence[Part]:
        if isinstance(op, ManualComputation | ShardingConstraint | Reshard):
            return self.stated(op, self.parts)
        if isinstance(op, While):
            return self._loop(op)
        if not any(operand in self.parts for operand in op.operands):
            return ()
        if isinstance(op, OptimizationBarrier) or _states_layout(op):
            return [self._held(value) for value in op.operands]
        columns = self._columns(op)
        if columns is None or not all(isinstance(result.type, TensorType) for result in op.results):
            return ()
        return [Part.of(self._independent(columns), self.devices)] * len(op.results)

    def _loop(self, op: While) -> Sequence[Part]:
        """Values that a loop carries are held as they are before it, and its results as they are after one turn."""
        block = op.body.block
        self._hold(block.arguments, [self._held(value) for value in op.operands])
        self.over(block)
        return [self._held(value) for value in block.terminator.operands]

    def _held(self, value: Value) -> Part:
        known = self.parts.get(value)
        return known if known is not None else Part.whole(shape_of(value), self.devices)

    def _columns(self, op: Operation) -> list[Column] | None:
        """Returns the dimensions of an op's results; None if they do not follow from those of its operands."""
        match op:
            case BroadcastInDim():
                return self._broadcast(op)
            case Transpose():
                return [self._column(op.operand, dimension) for dimension in op.permutation]
            case DotGeneral():
                return self._product(op)
            case Reduce():
                first = op.operands[0]
                return [self._column(first, d) for d in _dims(first) if d not in op.dimensions]
            case Convolution():
                return self._convolution(op)
            case Sort():
                first, along = op.operands[0], op.dimension % op.operands[0].type.rank
                extents = enumerate(first.type.static_shape)
                return [self._whole(extent) if d == along else self._column(first, d) for d, extent in extents]
            case Reshape():
                return self._reshape(op)
            case Gather():
                return self._gathered(op)
            case Slice() | DynamicSlice() | DynamicUpdateSlice() | Pad() | Concatenate() | Reverse():
                return self._cut_or_joined(op)
            case Op() if op.TRAITS & {ELEMENTWISE}:
                shape = op.results[0].type.static_shape
                divided = [value for value in op.operands if value in self.parts and value.type.static_shape == shape]
                return [self._column(divided[0], d) for d in _dims(divided[0])] if divided else None
        return None

    def _broadcast(self, op: BroadcastInDim) -> list[Column]:
        shape = op.result.type.static_shape
        columns = [self._whole(extent) for extent in shape]
        for dimension, target in enumerate(op.broadcast_dimensions):
            if op.operand.type.static_shape[dimension] == shape[target]:
                columns[target] = self._column(op.operand, dimension)
        return columns

    def _product(self, op: DotGeneral) -> list[Column]:
        numbers = op.dot_dimension_numbers
        left = [self._column(op.lhs, d) for d in numbers.lhs_batching_dimensions]
        for value, batching, contracting in (
            (op.lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
            (op.rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
        ):
            left += [self._column(value, d) for d in _dims(value) if d not in (*batching, *contracting)]
        return left

    def _convolution(self, op: Convolution) -> list[Column]:
        """Keeps the division of the batch."""
        numbers, found = op.dimension_numbers, [self._whole(extent) for extent in op.result.type.static_shape]
        if op.batch_group_count == 1:
            found[numbers.output_batch_dimension] = self._column(op.lhs, numbers.input_batch_dimension)
        return found

    def _reshape(self, op: Reshape) -> list[Column] | None:
        """Handles reshapes that only add or remove dimensions of extent 1."""
        before, after = op.operand.type.static_shape, op.result.type.static_shape
        if [extent for extent in before if extent != 1] != [extent for extent in after if extent != 1]:
            return None
        moved = iter([self._column(op.operand, d) for d, extent in enumerate(before) if extent != 1])
        return [self._whole(1) if extent == 1 else next(moved) for extent in after]

    def _gathered(self, op: Gather) -> list[Column]:
        """Keeps the division of the indices, and of dimensions of which every window has the whole extent."""
        numbers = op.dimension_numbers
        single = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        extents = zip(op.slice_sizes, op.operand.type.static_shape, strict=True)
        windows = iter(
            self._column(op.operand, d) if size == extent else self._whole(size)
            for d, (size, extent) in enumerate(extents)
            if d not in single
        )
        indices = iter(
            self._column(op.start_indices, d) for d in _dims(op.start_indices) if d != numbers.index_vector_dim
        )
        return [next(windows if d in numbers.offset_dims else indices) for d in _dims(op.result)]

    def _cut_or_joined(self, op: Operation) -> list[Column]:
        """Keeps the division of dimensions whose extent does not change; the others are whole."""
        first = op.operands[0]
        before, after = first.type.static_shape, op.results[0].type.static_shape
        pairs = enumerate(zip(before, after, strict=True))
        return [self._column(first, d) if old == new else self._whole(new) for d, (old, new) in pairs]

    def _column(self, value: Value, dimension: int) -> Column:
        if value not in self.parts:
            return self._whole(value.type.static_shape[dimension])
        return self.parts[value].column(dimension)

    def _whole(self, extent: int) -> Column:
        return extent, (0,) * self.devices

    def _independent(self, columns: Sequence[Column]) -> list[Column]:
        """Resolves conflicts: of two dimensions that are divided among the same devices, only the first stays
        divided."""
        kept: list[Column] = []
        for column in columns:
            together = [*kept, column]
            places = set(zip(*(begins for _, begins in together), strict=True))
            if len(places) < math.prod(len(set(begins)) for _, begins in together):
                # The number of parts is the number of different places where they begin.
                column = self._whole(column[0] * len(set(column[1])))
            kept.append(column)
        return kept


def shape_of(value: Value) -> tuple[int, ...]:
    """Returns the shape of a tensor; empty for a token."""
    return value.type.static_shape if isinstance(value.type, TensorType) else ()


def _dims(value: Value) -> range:
    return range(value.type.rank)


def _states_layout(op: Operation) -> bool:
    return isinstance(op, CustomCall) and op.call_target_name == "LayoutConstraint"
