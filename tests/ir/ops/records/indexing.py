"""Reading and writing a part of a tensor. The oracles of gather and scatter follow the specification's formulas, one
index at a time."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Lax, Record, body
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.ops import GatherDimensionNumbers, ScatterDimensionNumbers
from trivium.ir.types import BF16, F32, I32, I64, tensor

GRID = np.arange(20, dtype=np.float32).reshape(4, 5)
CUBE = np.arange(60, dtype=np.int32).reshape(3, 4, 5)


def scalars(*values, dtype=np.int32):
    return tuple(np.array(value, dtype) for value in values)


def slice_of(operand, *boxes):
    start, limit, strides = zip(*boxes, strict=True)
    names = {"start_indices": start, "limit_indices": limit, "strides": strides}
    return Record(ops.Slice, (operand,), names, oracle=Lax("slice", **names))


def dynamic_slice(operand, starts, *sizes):
    oracle = Lax("dynamic_slice", slice_sizes=sizes)
    named = {"slice_sizes": sizes}
    return Record(ops.DynamicSlice, (operand, starts), named, oracle=lambda x, *at: oracle(x, at))


def dynamic_update_slice(operand, update, starts):
    def oracle(array, update, *starts):
        result = array.copy()
        room = np.subtract(array.shape, update.shape)
        first = [min(max(int(at), 0), most) for at, most in zip(starts, room, strict=True)]
        for index in np.ndindex(update.shape):
            result[tuple(np.add(first, index).astype(int))] = update[index]
        return result

    return Record(ops.DynamicUpdateSlice, (operand, update, starts), oracle=oracle)


# Gather and scatter, by the formulas of the specification


def start_of(indices: np.ndarray, vector_dim: int, batch_index: list[int]) -> list[int]:
    if vector_dim == indices.ndim:
        return [int(indices[tuple(batch_index)])]
    at = [*batch_index[:vector_dim], slice(None), *batch_index[vector_dim:]]
    return [int(coordinate) for coordinate in indices[tuple(at)]]


def full_index(numbers, start: list[int], batch_index: list[int], window_index: list[int], rank: int) -> list[int]:
    """The sum of the full start, batching and window index."""
    _, dropped, batching, list_batching, index_map, vector_dim = (value for _, value in numbers.items())
    window = iter(window_index)
    index = []
    for d in range(rank):
        place = start[index_map.index(d)] if d in index_map else 0
        if d in batching:
            source = list_batching[batching.index(d)]
            place += batch_index[source - (0 if source < vector_dim else 1)]
        elif d not in dropped:
            place += next(window)
        index.append(place)
    return index


def windows(numbers, shape) -> Iterator[tuple[tuple[int, ...], list[int], list[int]]]:
    """Yields every index of the windows' shape, with its part in the list of windows and its part inside the window."""
    window_dims = numbers.items()[0][1]
    for index in np.ndindex(*shape):
        yield index, [i for d, i in enumerate(index) if d not in window_dims], [index[d] for d in window_dims]


def gather(operand, indices, numbers, sizes, *shape):
    def oracle(array, indices):
        result = np.empty(shape, array.dtype)
        for index, batch_index, window_index in windows(numbers, shape):
            start = start_of(indices, numbers.index_vector_dim, batch_index)
            room = [array.shape[d] - sizes[d] for d in numbers.start_index_map]
            start = [min(max(at, 0), most) for at, most in zip(start, room, strict=True)]
            result[index] = array[tuple(full_index(numbers, start, batch_index, window_index, array.ndim))]
        return result

    return Record(ops.Gather, (operand, indices), {"dimension_numbers": numbers, "slice_sizes": sizes}, oracle=oracle)


def scatter(operand, indices, update, numbers, combine, computation):
    def oracle(array, indices, update):
        result = array.copy()
        for index, batch_index, window_index in windows(numbers, update.shape):
            start = start_of(indices, numbers.index_vector_dim, batch_index)
            at = tuple(full_index(numbers, start, batch_index, window_index, array.ndim))
            if all(0 <= i < extent for i, extent in zip(at, array.shape, strict=True)):
                result[at] = combine(result[at], update[index])
        return result

    attributes = {"scatter_dimension_numbers": numbers, "update_computation": computation}
    return Record(ops.Scatter, ((operand,), indices, (update,)), attributes, oracle=oracle)


def replace(*elements):
    """Returns a region that returns the second half of its arguments: the updates."""
    types = [tensor(of=element) for element in (*elements, *elements)]
    return lambda: region(types, lambda builder, *arguments: list(arguments[len(elements) :]))


ROWS = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1)
POINTS = GatherDimensionNumbers(collapsed_slice_dims=(0, 1), start_index_map=(1, 0), index_vector_dim=0)
BATCHED = GatherDimensionNumbers(
    offset_dims=(1,),
    collapsed_slice_dims=(1,),
    operand_batching_dims=(0,),
    start_indices_batching_dims=(1,),
    start_index_map=(1,),
    index_vector_dim=2,
)
CROSSED = GatherDimensionNumbers(
    offset_dims=(0, 2),
    operand_batching_dims=(2,),
    start_indices_batching_dims=(2,),
    start_index_map=(1,),
    index_vector_dim=1,
)

GATHERS = [
    gather(GRID, np.int32([[3], [0], [-2], [9]]), ROWS, (1, 5), 4, 5),
    gather(GRID, np.int64([2, 3]), GatherDimensionNumbers((1,), (0,), (), (), (0,), 1), (1, 2), 2, 2),
    gather(GRID, np.uint8([[0, 4, 7], [1, 2, 200]]), POINTS, (1, 1), 3),
    gather(GRID.astype(ml_dtypes.bfloat16), np.uint64([[2**64 - 1]]), ROWS, (1, 5), 1, 5),
    gather(CUBE, np.int32([[[0], [3], [1]], [[9], [-1], [2]]]), BATCHED, (1, 1, 5), 2, 5, 3),
    gather(CUBE, np.int32([[[0, 1, 2, 3, 9]], [[-1, 3, 2, 1, 0]]]), CROSSED, (2, 2, 1), 2, 2, 2, 5),
    gather(GRID, np.zeros((3, 0), np.int32), GatherDimensionNumbers((1, 2), (), (), (), (), 1), (2, 5), 3, 2, 5),
    gather(np.array(7, np.float32), np.zeros((3, 0), np.int32), GatherDimensionNumbers((), index_vector_dim=1), (), 3),
    gather(GRID, np.zeros((0, 1), np.int32), ROWS, (1, 5), 0, 5),
]

ADD_ROWS = ScatterDimensionNumbers((1,), (0,), (), (), (0,), 1)
ADD_POINTS = ScatterDimensionNumbers((), (0, 1), (), (), (1, 0), 0)
ADD_BATCHED = ScatterDimensionNumbers((1,), (1,), (0,), (1,), (1,), 2)

SCATTERS = [
    scatter(GRID, np.int32([[3], [0], [3], [4]]), GRID[::-1].copy(), ADD_ROWS, np.add, body(ops.Add, F32, F32)),
    # Windows that are partly outside: only the part inside has an effect.
    scatter(
        GRID,
        np.int32([3, -1]),
        GRID[:, :2].copy(),
        ScatterDimensionNumbers((0, 1), (), (), (), (0, 1), 0),
        np.add,
        body(ops.Add, F32, F32),
    ),
    # Of several updates of one element, the last one wins.
    scatter(GRID, np.int64([[1, 1, 1], [2, 2, 0]]), np.float32([5, 6, 7]), ADD_POINTS, lambda x, y: y, replace(F32)),
    scatter(
        GRID,
        np.int64([[1, 1, 1], [2, 2, 0]]),
        np.float32([5, 6, 7]),
        ADD_POINTS,
        lambda x, y: x - y,
        body(ops.Subtract, F32, F32),
    ),
    scatter(
        CUBE,
        np.int32([[[0], [3], [1]], [[0], [-1], [2]]]),
        CUBE.reshape(2, 5, 6)[:, :, :3].copy(),
        ADD_BATCHED,
        max,
        body(ops.Maximum, I32, I32),
    ),
    scatter(
        GRID.astype(ml_dtypes.bfloat16),
        np.zeros((0, 1), np.int32),
        np.zeros((0, 5), ml_dtypes.bfloat16),
        ADD_ROWS,
        np.add,
        body(ops.Add, BF16, BF16),
    ),
    Record(
        ops.Scatter,
        (
            (np.int64([1, 2, 3]), np.int32([10, 20, 30])),
            np.int32([[2], [0], [2]]),
            (np.int64([5, 6, 7]), np.int32([50, 60, 70])),
        ),
        {
            "scatter_dimension_numbers": ScatterDimensionNumbers((), (0,), (), (), (0,), 1),
            "update_computation": lambda: region(
                [tensor(of=kind) for kind in (I64, I32, I64, I32)],
                lambda builder, x, y, dx, dy: [builder.add(ops.Add(x, dx)), dy],
            ),
        },
        oracle=lambda *_: (np.int64([7, 2, 15]), np.int32([60, 20, 70])),
    ),
    # The body may accumulate in a wider type, which is then the result's type too.
    Record(
        ops.Scatter,
        ((np.zeros(2, np.int32),), np.int32([0, 0]), (np.int32([2**31 - 1, 1]),)),
        {
            "scatter_dimension_numbers": ScatterDimensionNumbers((), (0,), (), (), (0,), 1),
            "update_computation": body(ops.Add, I64, I64),
        },
        oracle=lambda *_: np.int64([2**31, 0]),
    ),
]

RECORDS = [
    slice_of(GRID, (1, 4, 2), (0, 5, 3)),
    slice_of(CUBE, (0, 3, 1), (2, 2, 1), (4, 5, 9)),
    dynamic_slice(GRID, scalars(1, 2), 2, 3),
    dynamic_slice(GRID, scalars(-7, 99, dtype=np.int64), 2, 3),
    dynamic_slice(CUBE, scalars(1, 200, 3, dtype=np.uint8), 1, 2, 2),
    dynamic_update_slice(GRID, -GRID[:2, :3], scalars(1, 2)),
    dynamic_update_slice(GRID, -GRID[:2, :3], scalars(-1, 4)),
    dynamic_update_slice(np.array(1, np.int32), np.array(2, np.int32), ()),
    *GATHERS,
    *SCATTERS,
]
