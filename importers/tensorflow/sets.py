"""Sets of integers along the last dimension of dense or sparse tensors: their sizes, unions, intersections, and
differences. How many elements a result has depends on data; they are in the order of the integers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from trivium.importers.extents import is_number
from trivium.importers.tensorflow.context import Context, Operand, Tensor, rule
from trivium.importers.tensorflow.counted import Counted, existing_rows
from trivium.importers.tensorflow.indexing import scattered
from trivium.importers.tensorflow.selection import chosen, number_of
from trivium.importers.tensorflow.sparse_order import begins, groups, ordered
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1, I64

OPERATIONS = ("a-b", "b-a", "intersection", "union")


@dataclass(frozen=True)
class _Sets:
    """Elements of sets: the place of the set in each row of `places`, and its element. `shape` is that of the tensor
    of sets. `is_valid` says whether a sparse tensor is as TensorFlow's kernel requires, where a program can tell."""

    places: Value
    elements: Value
    shape: Tensor
    is_valid: Value | None = None


@rule("SetSize")
def set_size(
    ctx: Context, set_indices: Value, set_values: Value, set_shape: Tensor, *, validate_indices: bool
) -> Value:
    """SetSize(set_indices, set_values, set_shape; validate_indices=true) -> size: indices out of range belong to no
    set"""
    _require_rank(ctx, "set_indices", set_indices, set_indices.type.shape[-1] or 0)
    sets = _of_sparse(ctx, set_indices, set_values, set_shape, False)
    rows, _ = _sorted(ctx, sets.places, sets.elements)
    places = ctx.slice(rows, 1, 0, sets.places.type.shape[1])
    is_first = ctx.convert(begins(ctx, rows), ctx.element_type)
    extents = ctx.given_shape(set_shape, "set_shape")[:-1]
    return scattered(ctx, ops.Add, ctx.full(extents, 0, ctx.element_type), places, is_first)


@rule("DenseToDenseSetOperation")
def dense_to_dense(
    ctx: Context, set1: Value, set2: Value, *, set_operation: str, validate_indices: bool
) -> Sequence[Operand]:
    """DenseToDenseSetOperation(set1, set2; set_operation, validate_indices=true) -> result_indices, result_values,
    result_shape"""
    return _combined(ctx, set_operation, _of_dense(ctx, "set1", set1), _of_dense(ctx, "set2", set2))


@rule("DenseToSparseSetOperation")
def dense_to_sparse(
    ctx: Context,
    set1: Value,
    set2_indices: Value,
    set2_values: Value,
    set2_shape: Tensor,
    *,
    set_operation: str,
    validate_indices: bool,
) -> Sequence[Operand]:
    """DenseToSparseSetOperation(set1, set2_indices, set2_values, set2_shape; set_operation, validate_indices=true) ->
    result_indices, result_values, result_shape"""
    other = _of_sparse(ctx, set2_indices, set2_values, set2_shape, validate_indices)
    return _combined(ctx, set_operation, _of_dense(ctx, "set1", set1), other)


@rule("SparseToSparseSetOperation")
def sparse_to_sparse(
    ctx: Context,
    set1_indices: Value,
    set1_values: Value,
    set1_shape: Tensor,
    set2_indices: Value,
    set2_values: Value,
    set2_shape: Tensor,
    *,
    set_operation: str,
    validate_indices: bool,
) -> Sequence[Operand]:
    """SparseToSparseSetOperation(set1_indices, set1_values, set1_shape, set2_indices, set2_values, set2_shape;
    set_operation, validate_indices=true) -> result_indices, result_values, result_shape"""
    _require_rank(ctx, "set1_indices", set1_indices, set1_indices.type.shape[-1] or 0)
    one = _of_sparse(ctx, set1_indices, set1_values, set1_shape, validate_indices)
    other = _of_sparse(ctx, set2_indices, set2_values, set2_shape, validate_indices)
    return _combined(ctx, set_operation, one, other)


def _require_rank(ctx: Context, argument: str, x: Value, rank: int) -> None:
    if rank < 2:
        ctx.unsupported(argument, f"sets in a tensor of rank {rank}", "rank 2 or higher")


def _of_dense(ctx: Context, argument: str, x: Value) -> _Sets:
    _require_rank(ctx, argument, x, x.type.rank)
    extents = ctx.extents(x)
    count = functools.reduce(lambda a, b: a * b, extents)
    found = [ctx.reshape(ctx.iota(extents, d), [count]) for d in range(len(extents) - 1)]
    places = ctx.concatenate([ctx.unsqueeze(each, [1]) for each in found], 1)
    return _Sets(places, ctx.reshape(x, [count]), ctx.held(extents[:-1], I64))


def _of_sparse(ctx: Context, indices: Value, values: Value, shape: Tensor, validate: bool) -> _Sets:
    rank = indices.type.shape[1]
    assert rank is not None
    known = ctx.known_if_possible(shape)
    outer = ctx.slice(ctx.value(shape), 0, 0, rank - 1) if known is None else known[:-1]
    is_valid = _is_canonical(ctx, indices, ctx.value(shape)) if validate and ctx.room is not None else None
    return _Sets(ctx.slice(indices, 1, 0, rank - 1), values, outer, is_valid)


def _is_canonical(ctx: Context, indices: Value, shape: Value) -> Value:
    """Whether indices are in a shape, in order, and not repeated."""
    after = ctx.compare("GE", indices, ctx.full_like(indices, 0))
    before = ctx.compare("LT", indices, ctx.broadcast(ctx.unsqueeze(shape, [0]), ctx.extents(indices)))
    is_inside = ctx.reduce(ops.And, ctx.binary(ops.And, after, before), [0, 1])
    (place,) = ordered(ctx, indices, ctx.iota(ctx.extents(indices)[:1], 0))[1:]
    is_alike = ctx.compare("EQ", place, ctx.iota_like(place, 0))
    each = ctx.binary(ops.And, is_alike, begins(ctx, indices))
    return ctx.binary(ops.And, is_inside, ctx.reduce(ops.And, each, [0]))


def _sorted(ctx: Context, places: Value, elements: Value, *lists: Value) -> list[Value]:
    """Sorts elements by their sets, and those of a set. Returns rows of both, the elements, and lists in that order."""
    rows = ctx.concatenate([places, ctx.unsqueeze(ctx.convert(elements, I64), [1])], 1)
    return ordered(ctx, rows, elements, *lists)


def _combined(ctx: Context, operation: str, one: _Sets, other: _Sets) -> list[Operand]:
    if operation.lower() not in OPERATIONS:
        ctx.unsupported("set_operation", operation, f"one of {', '.join(OPERATIONS)}")
    if one.places.type.shape[1] != other.places.type.shape[1]:
        ctx.unsupported("set2", f"sets at {other.places.type}", f"as many dimensions as set1, at {one.places.type}")
    is_fitting = _fits(ctx, one, other)
    sides = [ctx.full(ctx.extents(x.elements), is_other, I1) for x, is_other in ((one, False), (other, True))]
    pairs = ((one.places, other.places), (one.elements, other.elements), sides)
    rows, elements, is_other = _sorted(ctx, *(ctx.concatenate(pair, 0) for pair in pairs))
    places = ctx.slice(rows, 1, 0, one.places.type.shape[1] or 0)
    is_first = begins(ctx, rows)
    in_sides = (_anywhere(ctx, is_first, x) for x in (ctx.add(ops.Not(is_other)), is_other))
    kept = ctx.binary(ops.And, is_first, _belongs(ctx, operation.lower(), *in_sides))
    within = _places_within(ctx, kept, begins(ctx, places))
    after = ctx.select(kept, ctx.plus(within, ctx.scalar(1, I64)), ctx.full_like(within, 0))
    largest = ctx.reduce(ops.Maximum, after, [0], init=0)
    order, elements = chosen(ctx, kept, ctx.iota_like(kept, 0), elements)
    indices = ctx.concatenate([places, ctx.unsqueeze(within, [1])], 1)
    indices = indices if is_number(ctx.extent(indices, 0), 0) else ctx.take(indices, order)
    count = number_of(ctx, kept)
    shape = ctx.concatenate([ctx.value(one.shape), ctx.reshape(largest, (1,))], 0)
    return [*(_existing(ctx, x, count, is_fitting) for x in (indices, elements)), shape]


def _fits(ctx: Context, one: _Sets, other: _Sets) -> Value | None:
    """Whether sets are in tensors of one shape, with valid indices; `None` where they are, or where no program can tell
    that they are not."""
    shapes = [ctx.known_if_possible(x.shape) for x in (one, other)]
    found = [x.is_valid for x in (one, other) if x.is_valid is not None]
    if shapes[0] is not None and shapes[1] is not None:
        if shapes[0].tolist() != shapes[1].tolist():
            has, expected = (f"sets in a tensor of {x.tolist()}" for x in (shapes[1], shapes[0]))
            ctx.unsupported("set2", has, f"{expected}, as set1")
    elif ctx.room is not None:
        is_alike = ctx.compare("EQ", ctx.value(one.shape), ctx.value(other.shape))
        found.append(ctx.reduce(ops.And, is_alike, [0]))
    return functools.reduce(lambda a, b: ctx.binary(ops.And, a, b), found) if found else None


def _anywhere(ctx: Context, is_first: Value, x: Value) -> Value:
    """Whether any of the equal elements that begin where `is_first` says has an entry that is true."""
    group = groups(ctx, is_first)
    found = scattered(ctx, ops.Or, ctx.full_like(x, False), ctx.unsqueeze(group, [1]), x)
    return found if is_number(ctx.extent(x, 0), 0) else ctx.take(found, group)


def _belongs(ctx: Context, operation: str, in_one: Value, in_other: Value) -> Value:
    """Whether elements belong to the result of an operation."""
    if operation == "union":
        return ctx.binary(ops.Or, in_one, in_other)
    if operation == "intersection":
        return ctx.binary(ops.And, in_one, in_other)
    own, without = (in_one, in_other) if operation == "a-b" else (in_other, in_one)
    return ctx.binary(ops.And, own, ctx.add(ops.Not(without)))


def _places_within(ctx: Context, kept: Value, is_start: Value) -> Value:
    """Returns the place of each element that is kept, among those of its set, which are side by side."""
    before = ctx.cumulative(ops.Add, ctx.convert(kept, I64), 0, exclusive=True)
    starts = ctx.select(is_start, before, ctx.full_like(before, 0))
    return ctx.minus(before, ctx.cumulative(ops.Maximum, starts, 0))


def _existing(ctx: Context, rows: Value, count: Value, is_fitting: Value | None) -> Operand:
    """Returns the rows that exist, if the operands are as TensorFlow requires."""
    if is_fitting is None:
        return existing_rows(ctx, rows, count)
    expected = "tensors of sets whose shapes are alike, with indices in order, in the shape, and not repeated"
    return Counted(ctx.op, rows, ctx.select(is_fitting, count, ctx.scalar(-1, I64)), expected=expected)
