"""The importers' vocabulary for tensors some of whose extents are known only when the program runs: that of `Emitter`,
with extents (`extents.py`) in shapes. Where all of them are numbers, the ops are those of `Emitter`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import Emitter, Number, Padding, broadcast_shape, neutral
from trivium.importers.extents import Extent, Size, chosen, is_number, known_shape, numbers_of, scalar_of, smaller
from trivium.ir import ops
from trivium.ir.core import Block, Operation, Value
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.location import UNKNOWN, Location
from trivium.ir.types import I64, ElementType, TensorType


def _source(op: Op, x: Value, dimension: int) -> tuple[Value, int] | None:
    """Returns the operand's dimension from which a dimension of a result takes its extent, if that is clear."""
    match op:
        case ops.Transpose():
            return op.operand, op.permutation[dimension]
        case ops.DotGeneral():
            numbers, lhs, rhs = op.dot_dimension_numbers, op.lhs, op.rhs
            batch, contracted = numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions
            others = numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions
            left = [*batch, *(d for d in range(lhs.type.rank) if d not in (*batch, *contracted))]
            right = [d for d in range(rhs.type.rank) if not any(d in used for used in others)]
            return [*((lhs, d) for d in left), *((rhs, d) for d in right)][dimension]
        case ops.Reduce():
            first = op.inputs[0]
            return first, [d for d in range(first.type.rank) if d not in op.dimensions][dimension]
        case ops.Concatenate() if dimension != op.dimension:
            return op.inputs[0], dimension
        case ops.Convolution() if dimension == op.dimension_numbers.output_batch_dimension:
            return (op.lhs, op.dimension_numbers.input_batch_dimension) if op.batch_group_count == 1 else None
        case ops.ReduceWindow() if op.window_dimensions[dimension] == 1 and x.type.shape[dimension] is None:
            moves = (op.window_strides, op.base_dilations)
            is_same = all(given is None or given[dimension] == 1 for given in moves)
            edge = (0, 0) if op.padding is None else tuple(op.padding[dimension])
            return (op.inputs[0], dimension) if is_same and edge == (0, 0) else None
    if op.has_trait(ELEMENTWISE) and op.operands[-1].type.rank == x.type.rank:
        return op.operands[-1], dimension  # the predicate of a selection, which comes first, may be a scalar
    return None


class DynamicEmitter(Emitter):
    """An emitter whose shapes have extents of both kinds."""

    sizes: dict[tuple[Block, Value, int], Size]
    """The extents that have been computed already. A value from another block may not be used."""

    vectors: dict[Value, Sequence[Extent]]
    """The contents of lists of extents, and of extents as scalars."""

    def __init__(self, block: Block, before: Operation | None = None, location: Location = UNKNOWN):
        super().__init__(block, before, location)
        self.sizes, self.vectors = {}, {}

    # Extents

    def extents(self, x: Value) -> list[Extent]:
        """Returns the shape of `x`."""
        return [self.extent(x, dimension) for dimension in range(x.type.rank)]

    def extent(self, x: Value, dimension: int) -> Extent:
        known = x.type.shape[dimension]
        if known is not None:
            return known
        x, dimension, stated = self.extent_origin(x, dimension)
        if stated is not None:
            return stated
        key = (self.block, x, dimension)
        if key not in self.sizes:
            found = self.add(ops.GetDimensionSize(x, dimension=dimension))
            size = self.sizes[key] = Size(self, self.convert(found, I64), is_extent=True)
            self.vectors[size.value] = (size,)
        return self.sizes[key]

    def extent_origin(self, x: Value, dimension: int) -> tuple[Value, int, Extent | None]:
        """Returns the first value that has an extent which others take over, or the extent, if an operand states it."""
        while isinstance(op := x.defining_op, Op) and op.block is self.block:
            if isinstance(op, ops.DynamicBroadcastInDim) and op.output_dimensions in self.vectors:
                return x, dimension, self.vectors[op.output_dimensions][dimension]
            elif isinstance(op, ops.DynamicReshape | ops.DynamicIota) and op.output_shape in self.vectors:
                return x, dimension, self.vectors[op.output_shape][dimension]
            source = _source(op, x, dimension)
            if source is None:
                break
            x, dimension = source
        return x, dimension, None

    def vector(self, extents: Sequence[Extent]) -> Value:
        """Returns extents as a list."""
        numbers = numbers_of(extents)
        if numbers is not None:
            return self.elements(np.array(numbers, np.int64))
        parts = [Emitter.reshape(self, scalar_of(self, extent), (1,)) for extent in extents]
        result = Emitter.concatenate(self, parts, 0)
        self.vectors[result] = tuple(extents)
        return result

    def common_shape(self, *shapes: Sequence[Extent]) -> list[Extent]:
        """Returns the shape to which shapes are broadcast by NumPy's rule."""
        rank = max(map(len, shapes))
        padded = [[1] * (rank - len(shape)) + list(shape) for shape in shapes]
        return [self._common(extents) for extents in zip(*padded, strict=True)]

    def _common(self, extents: Sequence[Extent]) -> Extent:
        (known,) = broadcast_shape(*[(extent,) for extent in extents if isinstance(extent, int)] or [(1,)])
        if known != 1:
            return int(known)
        result: Extent = 1
        for extent in extents:
            if isinstance(extent, Size) and result != extent:
                result = extent if is_number(result, 1) else chosen(self, "EQ", result, 1, extent, result)
        return result

    def _is_static(self, *values: Value) -> bool:
        return all(x.type.is_static for x in values)

    # Constants

    def full(self, shape: Sequence[Extent], value: Number, element_type: ElementType) -> Value:
        numbers = numbers_of(shape)
        if numbers is not None:
            return super().full(numbers, value, element_type)
        return self.broadcast_in_dim(self.scalar(value, element_type), shape, [])

    def full_like(self, x: Value, value: Number) -> Value:
        return self.full(self.extents(x), value, x.type.element_type)

    def iota(self, shape: Sequence[Extent], dimension: int, element_type: ElementType = I64) -> Value:
        numbers = numbers_of(shape)
        if numbers is not None:
            return super().iota(numbers, dimension, element_type)
        result = TensorType(known_shape(shape), element_type)
        return self.add(ops.DynamicIota(self.vector(shape), iota_dimension=dimension, result=result))

    def iota_like(self, x: Value, dimension: int) -> Value:
        return self.iota(self.extents(x), dimension)

    # Shape and type

    def reshape(self, x: Value, shape: Sequence[Extent]) -> Value:
        numbers = numbers_of(shape)
        if numbers is not None and (x.type.is_static or x.type.shape == numbers):
            return super().reshape(x, numbers)
        return self.add(ops.DynamicReshape(x, self.vector(shape), result=x.type.with_shape(known_shape(shape))))

    def flattened(self, x: Value) -> Value:
        """Returns the elements of `x` in one dimension."""
        return self.reshape(x, [math.prod(self.extents(x))])

    def broadcast_in_dim(self, x: Value, shape: Sequence[Extent], dimensions: Sequence[int]) -> Value:
        shape, dimensions = tuple(shape), tuple(dimensions)
        numbers = numbers_of(shape)
        if numbers is not None and x.type.is_static:
            return super().broadcast_in_dim(x, numbers, dimensions)
        given = self.extents(x)
        if dimensions == tuple(range(len(shape))) and all(a == b for a, b in zip(given, shape, strict=True)):
            return x
        result = x.type.with_shape(known_shape(shape))
        return self.add(
            ops.DynamicBroadcastInDim(x, self.vector(shape), broadcast_dimensions=dimensions, result=result)
        )

    def broadcast(self, x: Value, shape: Sequence[Extent]) -> Value:
        return self.broadcast_in_dim(x, shape, range(len(shape) - x.type.rank, len(shape)))

    def unsqueeze(self, x: Value, dimensions: Sequence[int]) -> Value:
        shape = self.extents(x)
        for dimension in sorted(dimensions):
            shape.insert(dimension, 1)
        return self.reshape(x, shape)

    def squeeze(self, x: Value, dimensions: Sequence[int]) -> Value:
        return self.reshape(x, [extent for i, extent in enumerate(self.extents(x)) if i not in dimensions])

    def slice(self, x: Value, dimension: int, start: Extent, limit: Extent, stride: int = 1) -> Value:
        extents = self.extents(x)
        if is_number(start, 0) and stride == 1 and limit == extents[dimension]:
            return x
        if x.type.is_static and isinstance(start, int) and isinstance(limit, int):
            return super().slice(x, dimension, start, limit, stride)
        starts: list[Extent] = [0] * x.type.rank
        limits, strides = list(extents), [1] * x.type.rank
        starts[dimension], limits[dimension], strides[dimension] = start, limit, stride
        count = (limit - start + stride - 1) // stride
        extents[dimension] = count
        lists = [self.vector(entries) for entries in (starts, limits, strides)]
        return self.add(ops.RealDynamicSlice(x, *lists, result=x.type.with_shape(known_shape(extents))))

    def not_empty(self, x: Value, fill: Number = 0) -> Value:
        """Returns `x`, with a row of a number if it has none: the body of a loop must be able to take one, although it
        never runs."""
        extent = self.extent(x, 0)
        if isinstance(extent, int) and extent:
            return x
        more, rest = chosen(self, "EQ", extent, 0, 1, 0), [0] * (x.type.rank - 1)
        return self.pad(x, [0, *rest], [more, *rest], fill)

    def window(self, x: Value, dimension: int, start: Extent, length: Extent) -> Value:
        """Returns `length` slices along a dimension, from `start` on, which may depend on the elements of tensors."""
        if isinstance(start, int):
            return self.slice(x, dimension, start, start + length)
        sizes = self.extents(x)
        sizes[dimension] = length
        starts = self.vector([start if d == dimension else 0 for d in range(x.type.rank)])
        # The sum tells that the size does not depend on the start.
        limits = self.add(ops.Add(starts, self.vector(sizes)))
        strides = self.vector([1] * x.type.rank)
        return self.add(ops.RealDynamicSlice(x, starts, limits, strides, result=x.type.with_shape(known_shape(sizes))))

    def replace(self, x: Value, src: Value, dimension: int, start: Extent) -> Value:
        """Returns `x` with `src` in the place of as many slices along a dimension, from `start` on."""
        zero = self.scalar(0, I64)
        starts = [scalar_of(self, start) if d == dimension else zero for d in range(x.type.rank)]
        return self.add(ops.DynamicUpdateSlice(x, src, starts))

    def pad(
        self,
        x: Value,
        low: Sequence[Extent],
        high: Sequence[Extent],
        value: Value | Number = 0,
        interior: Sequence[int] | None = None,
    ) -> Value:
        lows, highs = numbers_of(low), numbers_of(high)
        if lows is not None and highs is not None:
            return super().pad(x, lows, highs, value, interior)
        fill = value if isinstance(value, Value) else self.scalar(value, x.type.element_type)
        gaps = [0] * x.type.rank if interior is None else interior
        spread = [
            n + chosen(self, "EQ", n, 0, 0, n - 1) * gap if gap else n
            for n, gap in zip(self.extents(x), gaps, strict=True)
        ]
        shape = [extent + a + b for extent, a, b in zip(spread, low, high, strict=True)]
        paddings = map(self.vector, (low, high, gaps))
        return self.add(ops.DynamicPad(x, fill, *paddings, result=x.type.with_shape(known_shape(shape))))

    def with_known_padding(self, x: Value, padding: Padding, value: Number) -> tuple[Value, Padding]:
        lows, highs = zip(*padding, strict=True)
        if numbers_of([*lows, *highs]) is not None:
            return super().with_known_padding(x, padding, value)
        return self.pad(x, lows, highs, value), ((0, 0),) * len(padding)

    # Elementwise

    def aligned(self, *values: Value) -> list[Value]:
        """Returns values broadcast to one shape."""
        shape = self.common_shape(*map(self.extents, values))
        return [self.broadcast(x, shape) for x in values]

    def binary(self, op: type, lhs: Value, rhs: Value) -> Value:
        if self._is_static(lhs, rhs):
            return super().binary(op, lhs, rhs)
        return self.add(op(*self.aligned(lhs, rhs)))

    def compare(self, direction: str, lhs: Value, rhs: Value) -> Value:
        if self._is_static(lhs, rhs):
            return super().compare(direction, lhs, rhs)
        return self.add(ops.Compare(*self.aligned(lhs, rhs), comparison_direction=ops.ComparisonDirection(direction)))

    def select(self, pred: Value, on_true: Value, on_false: Value) -> Value:
        if self._is_static(pred, on_true, on_false):
            return super().select(pred, on_true, on_false)
        return self.add(ops.Select(*self.aligned(pred, on_true, on_false)))

    # Reductions, contraction and indexing

    def count(self, x: Value, dimensions: Sequence[int]) -> Extent:
        """Returns the number of elements along dimensions."""
        return math.prod(self.extent(x, dimension) for dimension in dimensions)

    def number_as(self, extent: Extent, element_type: ElementType) -> Value:
        """Returns an extent as a 0-d value of an element type."""
        if isinstance(extent, int):
            return self.scalar(extent, element_type)
        return self.convert(extent.value, element_type)

    def mean(self, x: Value, dimensions: Sequence[int], keep: bool = False) -> Value:
        count = self.count(x, dimensions)
        if isinstance(count, int):
            return super().mean(x, dimensions, keep)
        total = self.reduce(ops.Add, x, dimensions, keep)
        return self.over(total, self.number_as(count, total.type.element_type))

    def cumulative(self, op: type, x: Value, dimension: int, reverse: bool = False, exclusive: bool = False) -> Value:
        if x.type.shape[dimension] is not None:
            return super().cumulative(op, x, dimension, reverse, exclusive)
        # A window cannot have a dynamic size: each result combines all elements, of which those outside are neutral.
        extent = self.extent(x, dimension)
        here, there = (self.iota([extent, extent], place) for place in (1, 0))
        direction = ("GT" if exclusive else "GE") if not reverse else ("LT" if exclusive else "LE")
        taken = self.compare(direction, here, there)
        shape = self.extents(x)
        spread = [*shape[: dimension + 1], extent, *shape[dimension + 1 :]]
        taken = self.broadcast_in_dim(taken, spread, (dimension, dimension + 1))
        x = self.broadcast_in_dim(x, spread, [d for d in range(len(spread)) if d != dimension + 1])
        kind = x.type.element_type
        return self.reduce(op, self.select(taken, x, self.scalar(neutral(op, kind), kind)), [dimension])

    def matmul(self, lhs: Value, rhs: Value, element_type: ElementType | None = None) -> Value:
        if self._is_static(lhs, rhs):
            return super().matmul(lhs, rhs, element_type)
        left, right = self.extents(lhs), self.extents(rhs)
        batch = self.common_shape(left[:-2], right[:-2])
        lhs, rhs = self.broadcast(lhs, [*batch, *left[-2:]]), self.broadcast(rhs, [*batch, *right[-2:]])
        places = range(len(batch))
        return self.dot(lhs, rhs, ([len(batch) + 1], [len(batch)]), (places, places), element_type)

    def gather(self, x: Value, indices: Value, numbers: ops.GatherDimensionNumbers, sizes: Sequence[Extent]) -> Value:
        """Returns the windows of `x` of the shape `sizes` that begin at `indices`, without those of an empty batch."""
        batching = numbers.operand_batching_dims
        sizes = [smaller(self, self.extent(x, d), 1) if d in batching else size for d, size in enumerate(sizes)]
        known = numbers_of(sizes)
        if known is not None:
            return self.add(ops.Gather(x, indices, dimension_numbers=numbers, slice_sizes=known))
        dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        window = iter([extent for d, extent in enumerate(known_shape(sizes)) if d not in dropped])
        batch = iter([extent for d, extent in enumerate(indices.type.shape) if d != numbers.index_vector_dim])
        rank = len(sizes) - len(dropped) + len(indices.type.shape[: numbers.index_vector_dim])
        shape = tuple(next(window if d in numbers.offset_dims else batch) for d in range(rank))
        made = ops.DynamicGather(x, indices, self.vector(sizes), numbers, result=x.type.with_shape(shape))
        return self.add(made)

    def one_of(self, x: Value, dimension: int) -> Extent:
        """Returns the extent of one element along a dimension, where there may be none."""
        return smaller(self, self.extent(x, dimension), 1) if x.type.shape[dimension] is None else 1

    def take(self, x: Value, indices: Value, dimension: int = 0) -> Value:
        extents = self.extents(x)
        extents[dimension] = self.one_of(x, dimension)
        if numbers_of(extents) is not None:
            return super().take(x, indices, dimension)
        count, batch = x.type.rank, indices.type.rank
        numbers = ops.GatherDimensionNumbers(
            offset_dims=(*range(dimension), *range(dimension + batch, count - 1 + batch)),
            collapsed_slice_dims=(dimension,),
            start_index_map=(dimension,),
            index_vector_dim=batch,
        )
        return self.gather(x, indices, numbers, extents)
