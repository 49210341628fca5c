"""Rewrites of gathers at constant places that follow a rule, as nearest-neighbour resizing, reflected edges and flipped
or strided indices are written: slices, reversals and repetitions, which are addressing, and not loads of indices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trivium.compiler.passes.patterns.matching import constant
from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.ops import BroadcastInDim, Concatenate, Constant, Gather, Reshape, Reverse, Slice, Transpose
from trivium.ir.types import is_quantized

GATHERING = PatternSet()
pattern = GATHERING.pattern

MOST_PIECES, LEAST_OF_PIECE = 4, 8
"""Into how many pieces places are divided, and how many elements pieces have on average, at least."""

LONGEST = 1 << 16
"""The number of elements up to which constants are read."""


@pattern(Gather)
def gather_from_nothing(op):
    """gather(empty, indices) == 0   (no element may be read)"""
    result = op.result.type
    is_empty = op.operand.type.is_static and not op.operand.type.size
    if not is_empty or not result.is_static or is_quantized(result.element_type):
        return None
    return Constant(DenseElements.splat(0, result))


@pattern(Gather)
def gather_of_regular_places(op):
    """gather(x, constant rows and columns) == repeat(slice(x)) or reverse(slice(x)), or several of these joined, along
    each dimension"""
    numbers, kind = op.dimension_numbers, op.operand.type
    if not takes_rows(op) or not op.result.type.size:
        return None
    mapped, collapsed = numbers.start_index_map, numbers.collapsed_slice_dims
    tables = _tables(op)
    if tables is None:
        return None
    varying = {d: _varying(table) for d, table in zip(mapped, tables, strict=True)}
    places = {d: _clamped(table.reshape(-1), kind.shape[d]) for d, table in zip(mapped, tables, strict=True)}
    divided = {d: pieces for d, each in places.items() if (pieces := _divided(each)) is not None}
    if len(divided) < len(places):
        return None
    value = op.operand
    for d, pieces in divided.items():
        taken = [_taken(value, d, piece) for piece in pieces]
        value = taken[0] if len(taken) == 1 else Concatenate(taken, dimension=d).result
    # The dimensions of the operand in the order of the result's, those of extent 1 left out.
    batch = {dims[0]: d for d, dims in varying.items() if dims}
    outer = [d for d in range(op.result.type.rank) if d not in numbers.offset_dims]
    kept = iter(d for d in range(kind.rank) if d not in collapsed)
    order = [batch.get(outer.index(d)) if d in outer else next(kept) for d in range(op.result.type.rank)]
    order = [d for d in order if d is not None]
    left = sorted(order)
    value = Reshape(value, result=kind.with_shape(tuple(value.type.shape[d] for d in left))).result
    return Reshape(Transpose(value, tuple(map(left.index, order))).result, result=op.result.type)


def takes_rows(op: Gather) -> bool:
    """Whether a gather of static shape takes all elements at places of some dimensions, without batching dimensions."""
    numbers, kind = op.dimension_numbers, op.operand.type
    if not (kind.is_static and op.result.type.is_static and op.start_indices.type.is_static):
        return False
    mapped, collapsed = numbers.start_index_map, numbers.collapsed_slice_dims
    whole = all(size == (1 if d in collapsed else kind.shape[d]) for d, size in enumerate(op.slice_sizes))
    return whole and not numbers.operand_batching_dims and set(mapped) == set(collapsed)


def joined_indices(op: Gather) -> Sequence[Value]:
    """Returns the values that a gather's indices are joined from along the dimension of index vectors."""
    made, vector = op.start_indices.defining_op, op.dimension_numbers.index_vector_dim
    return made.inputs if isinstance(made, Concatenate) and made.dimension == vector else (op.start_indices,)


def _tables(op: Gather) -> list[np.ndarray] | None:
    """Returns the places along each mapped dimension, as arrays of the batch dimensions' rank that vary along at most
    one of them, a different one for each, and together along all."""
    indices, vector = op.start_indices, op.dimension_numbers.index_vector_dim
    shape = [e for d, e in enumerate(indices.type.shape) if d != vector]
    pieces = _pieces(op)
    if pieces is None:
        return None
    tables = list(map(_compressed, pieces))
    varying = [d for table in tables for d in _varying(table)]
    alone = all(len(_varying(table)) <= 1 for table in tables) and len(set(varying)) == len(varying)
    return tables if alone and set(varying) == {d for d, extent in enumerate(shape) if extent != 1} else None


def _pieces(op: Gather) -> list[np.ndarray] | None:
    """Returns the places along each mapped dimension, as far as `_known` tells them."""
    indices, vector = op.start_indices, op.dimension_numbers.index_vector_dim
    joined = joined_indices(op)
    found = [array for value in joined if (array := _known(value)) is not None]
    if len(found) < len(joined):
        return None
    if vector == indices.type.rank:
        return found
    return [np.take(array, j, vector) for array in found for j in range(array.shape[vector])]


def _known(value: Value) -> np.ndarray | None:
    """Returns the elements of a value that repeats a constant, with extent 1 instead of dimensions along which it is
    broadcast; None for other values."""
    root, dimensions = repeated(value)
    array = constant(root) if root.type.is_static and root.type.size <= LONGEST else None
    if array is None or list(dimensions) != sorted(dimensions):
        return None
    extents = dict(zip(dimensions, (extent for extent in array.shape if extent != 1), strict=True))
    return array.reshape([extents.get(d, 1) for d in range(value.type.rank)])


def repeated(value: Value) -> tuple[Value, tuple[int, ...]]:
    """Returns what a value repeats, and which of its dimensions those of that are, apart from extents of 1."""
    made, own = value.defining_op, _not_one(value)
    if isinstance(made, BroadcastInDim):
        root, dimensions = repeated(made.operand)
        return root, tuple(made.broadcast_dimensions[d] for d in dimensions)
    if isinstance(made, Reshape):
        before = _not_one(made.operand)
        if [made.operand.type.shape[d] for d in before] == [value.type.shape[d] for d in own]:
            root, dimensions = repeated(made.operand)
            return root, tuple(own[before.index(d)] for d in dimensions)
    return value, own


def _not_one(value: Value) -> tuple[int, ...]:
    return tuple(d for d, extent in enumerate(value.type.shape) if extent != 1)


def _compressed(array: np.ndarray) -> np.ndarray:
    """Returns the array with extent 1 instead of dimensions along which its elements are equal."""
    for d in range(array.ndim):
        first = array.take([0], d)
        array = first if (array == first).all() else array
    return array


def _clamped(places: np.ndarray, extent: int) -> np.ndarray:
    """Returns places of any integer type as signed integers within a dimension."""
    if places.dtype.kind == "u":
        return np.minimum(places.astype(np.uint64), np.uint64(extent - 1)).astype(np.int64)
    return np.clip(places.astype(np.int64), 0, extent - 1)


def _varying(table: np.ndarray) -> list[int]:
    return [d for d, extent in enumerate(table.shape) if extent != 1]


def _divided(places: np.ndarray) -> list[np.ndarray] | None:
    """Returns places in as few pieces as `_taken` takes; None if these are many."""
    if _is_regular(places):
        return [places]
    steps, pieces, begin = np.diff(places), list[np.ndarray](), 0
    while begin < len(places):
        end = _same_until(steps, begin) + 1
        if begin + 1 < end < len(places) and _same_until(steps, end - 1) - end >= end - begin - 1:
            end -= 1  # its last place is the first one of a longer piece
        pieces.append(places[begin:end])
        begin = end
        if len(pieces) > MOST_PIECES:
            return None
    return pieces if len(places) >= LEAST_OF_PIECE * len(pieces) else None


def _same_until(steps: np.ndarray, begin: int) -> int:
    """Returns how far steps are equal from one on."""
    changes = np.flatnonzero(steps[begin:] != steps[begin : begin + 1])
    return begin + int(changes[0]) if len(changes) else len(steps)


def _is_regular(places: np.ndarray) -> bool:
    """Whether `_taken` can take them."""
    times = _times(places)
    once = places[::times]
    return np.array_equal(places, np.repeat(once, times)) and _step(once) is not None


def _times(places: np.ndarray) -> int:
    """Returns how often the first place is repeated, if the places may be repeated so, else 1."""
    differ = np.flatnonzero(places != places[0])
    first = int(differ[0]) if len(differ) else len(places)
    return first if len(places) % first == 0 else 1


def _step(places: np.ndarray) -> int | None:
    """Returns the constant distance of places, if it is not zero."""
    steps = {int(b) - int(a) for a, b in pairwise(places)} or {1}
    return steps.pop() if len(steps) == 1 and 0 not in steps else None


def _taken(value: Value, dimension: int, places: np.ndarray) -> Value:
    """Returns the elements at regular places of a dimension: a slice of it, reversed if they descend, repeated."""
    times = _times(places)
    once = places[::times]
    step = _step(once)
    assert step is not None, "the places are regular"
    low, high, shape = int(once.min()), int(once.max()), list(value.type.shape)
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[dimension], limits[dimension], strides[dimension] = low, high + 1, abs(step)
    value = Slice(value, start_indices=starts, limit_indices=limits, strides=strides).result
    if step < 0:
        value = Reverse(value, dimensions=(dimension,)).result
    if times == 1:
        return value
    shape[dimension : dimension + 1] = [len(once), times]
    kept = tuple(d for d in range(len(shape)) if d != dimension + 1)
    value = BroadcastInDim(value, kept, result=value.type.with_shape(tuple(shape))).result
    shape[dimension : dimension + 2] = [len(places)]
    return Reshape(value, result=value.type.with_shape(tuple(shape))).result
