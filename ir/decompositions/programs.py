"""CHLO's ops that are small programs: selection, recurrences and grouped products; and its constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder, inline_block, region
from trivium.ir.codecs import Ints
from trivium.ir.core import Region, Value
from trivium.ir.declare import Op
from trivium.ir.decompositions.table import decomposition, unsupported
from trivium.ir.decompositions.tensors import Tensor, where
from trivium.ir.ops import ComparisonDirection, ComparisonType, Precision, RaggedDotDimensionNumbers
from trivium.ir.types import I32, I64, TensorType, accumulation_type, is_float, tensor

MOST_GROUPS = 1 << 10
"""The largest number of groups of a ragged product, which becomes one product per group."""


def _expect_static(op: Op) -> None:
    for kind in (*op.operand_types, *op.result_types):
        if isinstance(kind, TensorType) and not kind.is_static:
            raise unsupported(op, f"it has type {kind}, expected static extents")


@decomposition(ops.ChloConstant)
def constant(op, scope, value, result):
    if value.type is not result:
        raise unsupported(op, f"its value has type {value.type}, its result {result}")
    return Tensor(scope.add(ops.Constant(value)), scope)


@decomposition(ops.ConstantLike)
def constant_like(operand, value, result):
    return operand.to(result.element_type).like(value.value)


# Selection


@decomposition(ops.TopK)
def top_k(operand, k, values, indices):
    """A stable sort in descending order, cut to its first `k` elements."""
    kind, last = operand.type, operand.type.rank - 1
    scalars = [tensor(of=kind.element_type)] * 2 + [tensor(of=I32)] * 2
    order = ComparisonType.TOTALORDER if is_float(kind.element_type) else None
    comparator = region(
        scalars,
        lambda builder, x, y, *_: builder.add(ops.Compare(x, y, ComparisonDirection.GT, compare_type=order)),
    )
    places = _iota(operand, last)
    ordered = operand.of(ops.Sort([operand.value, places.value], comparator, dimension=last, is_stable=True))
    return tuple(_beginning(whole, k, kind) for whole, kind in zip(ordered, (values, indices), strict=True))


def _iota(like: Tensor, axis: int) -> Tensor:
    kind = like.type.with_element(I32)
    if kind.is_static:
        return like.of(ops.Iota(axis, result=kind))
    return like.of(ops.DynamicIota(like.scope.shape(like.value), axis, result=kind))


def _beginning(whole: Tensor, count: int, kind: TensorType) -> Tensor:
    """Returns the first elements along the last dimension."""
    rank = kind.rank
    if whole.type.is_static:
        return whole.of(ops.Slice(whole.value, (0,) * rank, (*whole.type.shape[:-1], count), (1,) * rank))
    counts = [*whole.scope.extents(whole.value)[:-1], whole.scope.add(ops.Constant(np.array([count], np.int32)))]
    limits = whole.scope.add(ops.Concatenate(counts, 0))
    starts, strides = (whole.scope.add(ops.Constant(np.full(rank, each, np.int32))) for each in (0, 1))
    return whole.of(ops.RealDynamicSlice(whole.value, starts, limits, strides, result=kind))


# Recurrences


@decomposition(ops.Scan)
def scan(op, scope, inputs, inits, dimension, is_reverse, scan_dim_size, body, outputs):
    """A loop that takes slices from the inputs and puts slices into the outputs."""
    _expect_static(op)
    if body.free_values():
        raise unsupported(op, "its body uses values from around it")
    length = inputs[0].type.shape[dimension] if inputs else scan_dim_size
    blanks = [scope.add(ops.Constant(DenseElements.splat(0, kind))) for kind in outputs]
    state = [scope.add(ops.Constant(np.int64(0))), *blanks, *(init.value for init in inits)]
    step = _Step(body, [tensor.value for tensor in inputs], len(outputs), dimension, length, is_reverse)
    kinds = [value.type for value in state]
    results = scope.add(ops.While(state, region(kinds, step.goes_on), region(kinds, step.run)))
    return tuple(Tensor(value, scope) for value in results[1:])


class _Step:
    """One step of a scan, at the index that the loop counts."""

    def __init__(
        self, body: Region, inputs: Sequence[Value], outputs: int, dimension: int, length: int, is_reverse: bool
    ):
        self.body = body
        self.inputs = inputs
        self.outputs = outputs
        self.dimension = dimension
        self.length = length
        self.is_reverse = is_reverse

    def goes_on(self, builder: Builder, index: Value, *_: Value) -> Value:
        end = builder.add(ops.Constant(np.int64(self.length)))
        return builder.add(ops.Compare(index, end, ComparisonDirection.LT))

    def run(self, builder: Builder, index: Value, *state: Value) -> list[Value]:
        place = index
        if self.is_reverse:
            place = builder.add(ops.Subtract(builder.add(ops.Constant(np.int64(self.length - 1))), index))
        slices = [self._taken(builder, whole, place) for whole in self.inputs]
        returned = inline_block(self.body.block, [*slices, *state[self.outputs :]], builder)
        parts = zip(state[: self.outputs], returned, strict=False)
        wholes = [self._put(builder, whole, part, place) for whole, part in parts]
        following = builder.add(ops.Add(index, builder.add(ops.Constant(np.int64(1)))))
        return [following, *wholes, *returned[self.outputs :]]

    def _starts(self, builder: Builder, rank: int, place: Value) -> list[Value]:
        zero = builder.add(ops.Constant(np.int64(0)))
        return [place if axis == self.dimension else zero for axis in range(rank)]

    def _taken(self, builder: Builder, whole: Value, place: Value) -> Value:
        kind: TensorType = whole.type
        sizes = [1 if axis == self.dimension else extent for axis, extent in enumerate(kind.shape)]
        part = builder.add(ops.DynamicSlice(whole, self._starts(builder, kind.rank, place), sizes))
        return builder.add(ops.Reshape(part, result=kind.with_shape(_without(kind.shape, self.dimension))))

    def _put(self, builder: Builder, whole: Value, part: Value, place: Value) -> Value:
        kind: TensorType = whole.type
        sizes = [1 if axis == self.dimension else extent for axis, extent in enumerate(kind.shape)]
        part = builder.add(ops.Reshape(part, result=kind.with_shape(sizes)))
        return builder.add(ops.DynamicUpdateSlice(whole, part, self._starts(builder, kind.rank, place)))


def _without(shape: Sequence[int | None], axis: int) -> tuple[int | None, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


# Sums of segments


def _sums_of_segments(lhs: Tensor, rhs: Tensor, sizes: Tensor, result: TensorType) -> Tensor:
    """Adds each row to the sum of its segment: as many segments end at or before a row as come before its own. Rows
    outside of all segments are in one that does not exist."""
    rows, kind = lhs.type.size, result.element_type
    if not rows or not result.size:
        return lhs.of(ops.Constant(DenseElements.splat(0, result)))
    wide = accumulation_type(kind)
    ends = _running_sum(sizes.to(I64))
    segments = _running_sum(_sums_at(ends, ends.like(1), tensor(rows, of=I64)))
    numbers = lhs.of(ops.Reshape(lhs.value, result=lhs.type.with_shape((rows,)))).to(wide)
    terms = rhs.to(wide)
    terms = terms * numbers.of(ops.BroadcastInDim(numbers.value, (0,), result=terms.type))
    shape = sizes.type.static_shape + terms.type.static_shape[1:]
    sums = _sums_at(segments, terms, terms.type.with_shape(shape)).to(kind)
    return sums.of(ops.Reshape(sums.value, result=result))


def _add(kind: TensorType) -> Region:
    scalar = tensor(of=kind.element_type)
    return region([scalar, scalar], lambda builder, x, y: builder.add(ops.Add(x, y)))


def _running_sum(x: Tensor) -> Tensor:
    (extent,), zero = x.type.static_shape, x.scope.add(ops.Constant(DenseElements.splat(0, x.type.with_shape(()))))
    window = {"window_dimensions": (extent,), "padding": ((extent - 1, 0),), "body": _add(x.type)}
    return x.of(ops.ReduceWindow([x.value], [zero], **window))[0]


def _sums_at(places: Tensor, terms: Tensor, kind: TensorType) -> Tensor:
    """Returns zeros of a type, to each of whose rows the terms with its place are added."""
    zeros = terms.scope.add(ops.Constant(DenseElements.splat(0, kind)))
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, kind.rank)),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )
    return terms.of(ops.Scatter([zeros], places.value, [terms.value], numbers, update_computation=_add(kind)))[0]


# Grouped products


@decomposition(ops.RaggedDot)
def ragged_dot(op, lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision_config, result):
    """One product per group, with the group's matrix or of the group's part; the rest is zero."""
    _expect_static(op)
    if op.adds_rows():
        return _sums_of_segments(lhs, rhs, group_sizes, result)
    if (groups := group_sizes.type.static_shape[-1]) > MOST_GROUPS:
        raise unsupported(op, f"it has {groups} groups, expected at most {MOST_GROUPS}")
    numbers: RaggedDotDimensionNumbers = ragged_dot_dimension_numbers
    precision = None if precision_config is None else [Precision(entry.value) for entry in precision_config]
    contracted = numbers.ragged in numbers.lhs_contracting_dimensions
    kind = result.with_shape(result.shape[1:]) if contracted else result

    def product(lhs: Tensor, rhs: Tensor) -> Tensor:
        dot = ops.DotGeneral(lhs.value, rhs.value, numbers.for_one_group(), precision_config=precision, result=kind)
        return lhs.of(dot)

    if contracted:
        masks = _group_masks(group_sizes, lhs.type.shape, range(lhs.type.rank), numbers)
        if not masks:
            return Tensor(lhs.scope.add(ops.Constant(DenseElements.splat(0, result))), lhs.scope)
        parts = [product(where(mask, lhs, 0), rhs) for mask in masks]
        rows = [part.of(ops.Reshape(part.value, result=kind.with_shape((1, *kind.shape)))).value for part in parts]
        return lhs.of(ops.Concatenate(rows, 0, result=result))
    order = (*numbers.lhs_batching_dimensions, *numbers.lhs_free(lhs.type.rank))
    total = Tensor(lhs.scope.add(ops.Constant(DenseElements.splat(0, kind))), lhs.scope)
    for group, mask in enumerate(_group_masks(group_sizes, kind.shape, order, numbers)):
        total = where(mask, product(lhs, _matrix(rhs, group, numbers)), total)
    return total


def _matrix(rhs: Tensor, group: int, numbers: RaggedDotDimensionNumbers) -> Tensor:
    """Returns the part of `rhs` that belongs to a group."""
    return _at(rhs, group, numbers.rhs_group_dimensions[0]) if numbers.rhs_group_dimensions else rhs


def _at(x: Tensor, index: int, axis: int) -> Tensor:
    """Returns the slice at an index of an axis, without the axis."""
    shape = x.type.shape
    starts = [index if each == axis else 0 for each in range(len(shape))]
    limits = [index + 1 if each == axis else extent for each, extent in enumerate(shape)]
    part = x.of(ops.Slice(x.value, starts, limits, (1,) * len(shape)))
    return x.of(ops.Reshape(part.value, result=x.type.with_shape(_without(shape, axis))))


def _group_masks(sizes: Tensor, shape: Ints, order: Sequence[int], numbers: RaggedDotDimensionNumbers) -> list[Tensor]:
    """Returns, for each group, a mask of the elements of a tensor that are in it. The tensor's first dimensions are
    those of `lhs` that `order` names."""
    order = list(order)
    outer = numbers.outer(len(order) + _contracted(numbers, order)) if sizes.type.rank > 1 else []
    axes = tuple(order.index(axis) for axis in outer)
    kind = TensorType(shape, I64)
    places = sizes.of(ops.Iota(order.index(numbers.ragged), result=kind))
    sizes, groups = sizes.to(I64), sizes.type.static_shape[-1]
    if not groups:
        return []
    end = _in_shape(_at(sizes, 0, sizes.type.rank - 1).like(0), axes, kind)
    masks = []
    for group in range(groups):
        start = end
        end = start + _in_shape(_at(sizes, group, sizes.type.rank - 1), axes, kind)
        masks.append((places >= start) & (places < end))
    return masks


def _contracted(numbers: RaggedDotDimensionNumbers, order: Sequence[int]) -> int:
    """Returns how many dimensions of `lhs` are missing in `order`."""
    return sum(axis not in order for axis in numbers.lhs_contracting_dimensions)


def _in_shape(x: Tensor, axes: Ints, kind: TensorType) -> Tensor:
    return x.of(ops.BroadcastInDim(x.value, axes, result=kind))
