"""`gather` reads windows of a tensor at the indices that another tensor lists; `scatter` combines windows into a tensor
at such indices. Both number dimensions in the same way. In the list of indices, one dimension has the coordinates
(`index_vector_dim`), and the others enumerate the windows. In the tensor, some dimensions are missing in the window
(collapsed, inserted), and some are iterated together with the list (batching)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import Struct
from trivium.ir.codecs import Ints
from trivium.ir.core import Region
from trivium.ir.declare import PURE, RECURSIVE_EFFECTS, Op, Operand, Operands, Result, Results
from trivium.ir.errors import fail
from trivium.ir.ops.common import (
    Shape,
    expect_at_least,
    expect_at_most,
    expect_element,
    expect_same_element,
    expect_same_shape,
    expect_shape,
    expect_size,
    expect_sorted,
    expect_tensor,
    expect_unique,
    expect_within,
    limits_of,
    shaped,
)
from trivium.ir.ops.quantization import promoted
from trivium.ir.ops.regions import check_reducer, outputs_of
from trivium.ir.types import TensorType, dimensions_compatible, is_integer

__all__ = [
    "Gather",
    "GatherDimensionNumbers",
    "Scatter",
    "ScatterDimensionNumbers",
]


@dataclass(frozen=True)
class GatherDimensionNumbers(Struct, mnemonic="stablehlo.gather"):
    """The roles of the dimensions of `gather`'s operands and result."""

    offset_dims: Ints = ()
    collapsed_slice_dims: Ints = ()
    operand_batching_dims: Ints = ()
    start_indices_batching_dims: Ints = ()
    start_index_map: Ints = ()
    index_vector_dim: int = 0


@dataclass(frozen=True)
class ScatterDimensionNumbers(Struct, mnemonic="stablehlo.scatter"):
    """The roles of the dimensions of `scatter`'s operands."""

    update_window_dims: Ints = ()
    inserted_window_dims: Ints = ()
    input_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()
    scatter_dims_to_operand_dims: Ints = ()
    index_vector_dim: int = 0


class Gather(Op, name="stablehlo.gather", traits={PURE}):
    """Windows of size `slice_sizes` of the operand, at the indices in `start_indices`, clamped so that the windows are
    inside."""

    operand: Operand
    start_indices: Operand
    dimension_numbers: GatherDimensionNumbers
    slice_sizes: Ints
    indices_are_sorted: bool = False
    result: Result

    def infer(operand, start_indices, dimension_numbers, slice_sizes):
        expect_tensor("I1", "operand", operand)
        expect_element("I2", "start_indices", start_indices, is_integer)
        check_gather_dimensions(operand, start_indices, dimension_numbers)
        check_slice_sizes(operand, dimension_numbers, slice_sizes)
        return gathered(operand, start_indices, dimension_numbers, slice_sizes)

    def check(operand, start_indices, dimension_numbers, slice_sizes, result):
        expect_tensor("I1", "operand", operand)
        expect_element("I2", "start_indices", start_indices, is_integer)
        check_gather_dimensions(operand, start_indices, dimension_numbers)
        check_slice_sizes(operand, dimension_numbers, slice_sizes)
        expect_shape("C22", "result", result, gathered(operand, start_indices, dimension_numbers, slice_sizes).shape)
        expect_same_element("C23", operand=operand, result=result)

    def evaluate(operand, start_indices, dimension_numbers, slice_sizes):
        n = dimension_numbers
        taken = {*n.collapsed_slice_dims, *n.operand_batching_dims}
        window = [size for d, size in enumerate(slice_sizes) if d not in taken]
        room = [extent - size for extent, size in zip(operand.shape, slice_sizes, strict=True)]
        places = _places(operand.shape, window, start_indices, n, room)
        whole = _combine(_without(start_indices.shape, n.index_vector_dim), window, n.offset_dims)
        if any(operand.shape[d] == 0 for d in taken):  # there is nothing to take
            return np.zeros(whole, operand.dtype)
        return np.broadcast_to(operand[tuple(places)], whole)


def check_gather_dimensions(operand: TensorType, start_indices: TensorType, n: GatherDimensionNumbers) -> None:
    collapsed, batching, list_batching = n.collapsed_slice_dims, n.operand_batching_dims, n.start_indices_batching_dims
    places = "offset_dims, collapsed_slice_dims and operand_batching_dims"
    expect_size("C1", places, (*n.offset_dims, *collapsed, *batching), operand.rank, "the rank of operand")
    expect_within("C2", "index_vector_dim", (n.index_vector_dim,), start_indices.rank + 1)
    _expect_coordinates("C3", "start_index_map", n.start_index_map, start_indices, n.index_vector_dim)
    expect_unique("C4", "offset_dims", n.offset_dims)
    expect_sorted("C4", "offset_dims", n.offset_dims)
    expect_unique("C6", "collapsed_slice_dims with operand_batching_dims", (*collapsed, *batching))
    expect_sorted("C7", "collapsed_slice_dims", collapsed)
    expect_within("C8", "collapsed_slice_dims", collapsed, operand.rank)
    expect_sorted("C10", "operand_batching_dims", batching)
    expect_within("C11", "operand_batching_dims", batching, operand.rank)
    expect_unique("C13", "start_indices_batching_dims", list_batching)
    expect_within("C14", "start_indices_batching_dims", list_batching, start_indices.rank)
    if n.index_vector_dim in list_batching:
        fail("C15", f"start_indices_batching_dims has index_vector_dim, {n.index_vector_dim}")
    expect_size("C16", "start_indices_batching_dims", list_batching, len(batching), "as operand_batching_dims")
    _expect_same_extents("C17", operand, batching, start_indices, list_batching)
    expect_unique("C18", "start_index_map with operand_batching_dims", (*n.start_index_map, *batching))
    expect_within("C19", "start_index_map", n.start_index_map, operand.rank)
    # C5, 0 <= offset_dims < rank(result), needs only these two numbers.
    batch_rank = start_indices.rank - (n.index_vector_dim < start_indices.rank)
    expect_within("C5", "offset_dims", n.offset_dims, batch_rank + len(n.offset_dims))


def check_slice_sizes(operand: TensorType, n: GatherDimensionNumbers, slice_sizes: Ints) -> None:
    expect_size("C20", "slice_sizes", slice_sizes, operand.rank, "the rank of operand")
    for label, dims in (("C9", n.collapsed_slice_dims), ("C12", n.operand_batching_dims)):
        sizes = [slice_sizes[dimension] for dimension in dims]
        expect_at_most(
            label, f"slice_sizes of dimensions {list(dims)}", sizes, [1] * len(sizes), "they are not in the window"
        )
    expect_at_least("C21", "slice_sizes", slice_sizes, 0)
    expect_at_most("C21", "slice_sizes", slice_sizes, limits_of(operand), f"its extent in operand {operand}")


def gathered(operand: TensorType, indices: TensorType, n: GatherDimensionNumbers, slice_sizes: Ints) -> TensorType:
    """Returns the type of the gathered windows: the dimensions of the list, with the offset dimensions inserted."""
    taken = {*n.collapsed_slice_dims, *n.operand_batching_dims}
    window = [size for dimension, size in enumerate(slice_sizes) if dimension not in taken]
    shapes = (_without(shape, n.index_vector_dim) for shape in (indices.shape, indices.bounds))
    shape, bounds = (_combine(batch, window, n.offset_dims) for batch in shapes)
    return shaped(shape, operand.element_type, bounds)


class Scatter(Op, name="stablehlo.scatter", traits={RECURSIVE_EFFECTS}):
    """The inputs, after `update_computation` has combined the elements of `updates`, in order, into those at the
    indices in `scatter_indices`. Elements whose index is outside are skipped."""

    inputs: Operands
    scatter_indices: Operand
    updates: Operands
    scatter_dimension_numbers: ScatterDimensionNumbers
    indices_are_sorted: bool = False
    unique_indices: bool = False
    update_computation: Region
    results: Results

    def infer(inputs, update_computation):
        outputs = list(zip(inputs, outputs_of(update_computation), strict=False))
        for index, (kind, scalar) in enumerate(outputs):
            expect_tensor("I1", f"inputs[{index}]", kind)
            expect_tensor("C23", "a value that update_computation returns", scalar)
        return tuple(kind.with_element(scalar.element_type) for kind, scalar in outputs)

    def check(inputs, scatter_indices, updates, scatter_dimension_numbers, update_computation, results):
        if not 0 < len(inputs) == len(updates) == len(results):
            counts = f"{len(inputs)} inputs, {len(updates)} updates and {len(results)} results"
            fail("C5", f"has {counts}, expected the same number of each, and at least one")
        expect_element("I2", "scatter_indices", scatter_indices, is_integer)
        for index, (kind, update) in enumerate(zip(inputs, updates, strict=True)):
            expect_same_shape("C1", **{"inputs[0]": inputs[0], f"inputs[{index}]": kind})
            expect_same_shape("C3", **{"updates[0]": updates[0], f"updates[{index}]": update})
            expect_same_element("C6", **{f"inputs[{index}]": kind, f"updates[{index}]": update})
        _check_scatter_dimensions(inputs[0], scatter_indices, updates[0], scatter_dimension_numbers)
        _check_updates(inputs[0], scatter_indices, updates[0], scatter_dimension_numbers)
        check_reducer("C23", "update_computation", update_computation, [kind.element_type for kind in inputs])
        for index, (kind, result) in enumerate(zip(inputs, results, strict=True)):
            expect_same_shape("C24", **{f"inputs[{index}]": kind, f"results[{index}]": result})
            scalar = outputs_of(update_computation)[index]
            expect_same_element("C25", **{"update_computation": scalar, f"results[{index}]": result})

    def evaluate(op, inputs, scatter_indices, updates, scatter_dimension_numbers, update_computation, results):
        n, shape, whole = scatter_dimension_numbers, inputs[0].shape, updates[0].shape
        window = [whole[dimension] for dimension in n.update_window_dims]
        places = _places(shape, window, scatter_indices, n)
        inside, flat = np.ones(whole, np.bool_), np.zeros(whole, np.int64)
        for place, extent in zip(places, shape, strict=True):
            inside &= (place >= 0) & (place < extent)
            flat = flat * extent + place
        targets = flat[inside]
        inputs = promoted(inputs, [value.type for value in op.inputs], results)
        updates = promoted(updates, [value.type for value in op.updates], results)
        arrays, values = [np.array(array).reshape(-1) for array in inputs], [update[inside] for update in updates]
        for chosen in _rounds(targets):
            at = targets[chosen]
            combined = update_computation.map(*(array[at] for array in arrays), *(value[chosen] for value in values))
            for array, value in zip(arrays, combined, strict=True):
                array[at] = value
        return tuple(array.reshape(shape) for array in arrays)


def _check_scatter_dimensions(
    operand: TensorType, indices: TensorType, update: TensorType, n: ScatterDimensionNumbers
) -> None:
    inserted, batching, list_batching = n.inserted_window_dims, n.input_batching_dims, n.scatter_indices_batching_dims
    places = "update_window_dims, inserted_window_dims and input_batching_dims"
    expect_size("C2", places, (*n.update_window_dims, *inserted, *batching), operand.rank, "the rank of inputs[0]")
    expect_unique("C7", "update_window_dims", n.update_window_dims)
    expect_sorted("C7", "update_window_dims", n.update_window_dims)
    expect_within("C8", "update_window_dims", n.update_window_dims, update.rank)
    expect_unique("C9", "inserted_window_dims with input_batching_dims", (*inserted, *batching))
    expect_sorted("C10", "inserted_window_dims", inserted)
    expect_within("C11", "inserted_window_dims", inserted, operand.rank)
    expect_sorted("C12", "input_batching_dims", batching)
    expect_within("C13", "input_batching_dims", batching, operand.rank)
    expect_unique("C14", "scatter_indices_batching_dims", list_batching)
    expect_within("C15", "scatter_indices_batching_dims", list_batching, indices.rank)
    if n.index_vector_dim in list_batching:
        fail("C16", f"scatter_indices_batching_dims has index_vector_dim, {n.index_vector_dim}")
    expect_size("C17", "scatter_indices_batching_dims", list_batching, len(batching), "as input_batching_dims")
    _expect_same_extents("C18", operand, batching, indices, list_batching)
    expect_within("C22", "index_vector_dim", (n.index_vector_dim,), indices.rank + 1)
    name = "scatter_dims_to_operand_dims"
    _expect_coordinates("C19", name, n.scatter_dims_to_operand_dims, indices, n.index_vector_dim)
    expect_unique("C20", f"{name} with input_batching_dims", (*n.scatter_dims_to_operand_dims, *batching))
    expect_within("C21", name, n.scatter_dims_to_operand_dims, operand.rank)


def _check_updates(operand: TensorType, indices: TensorType, update: TensorType, n: ScatterDimensionNumbers) -> None:
    """Checks the shape of updates: windows no larger than the inputs, one for each entry of the list."""
    taken = {*n.inserted_window_dims, *n.input_batching_dims}
    limits = [limit for dimension, limit in enumerate(limits_of(operand)) if dimension not in taken]
    windows = [update.shape[dimension] for dimension in n.update_window_dims]
    sizes = [size or 0 for size in windows]
    expect_at_most("C4", "window of updates[0]", sizes, limits, f"its extent in inputs[0] {operand}")
    batch = _without(indices.shape, n.index_vector_dim)
    if len(batch) + len(windows) != update.rank:
        fail("C4", f"updates[0] has type {update}, expected rank {len(batch) + len(windows)}")
    expect_shape("C4", "updates[0]", update, _combine(batch, windows, n.update_window_dims))


def _rounds(targets: np.ndarray) -> list[np.ndarray]:
    """Splits updates into rounds in which all targets differ, so that each round is one vectorized step: the first
    update of every target, then the second ones, and so on. Each target receives its updates in order."""
    if not targets.size:
        return []
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    turn = np.arange(targets.size) - np.repeat(first, np.diff(first, append=targets.size))
    return np.split(order[np.argsort(turn, kind="stable")], np.cumsum(np.bincount(turn))[:-1])


# Shared by both


def _expect_coordinates(label: str, name: str, index_map: Ints, indices: TensorType, vector_dim: int) -> None:
    """Checks for one coordinate per entry of the map. If `index_vector_dim` is the list's rank, the entries are
    scalars.
    """
    size = indices.shape[vector_dim] if vector_dim < indices.rank else 1
    if size is not None:
        expect_size(label, name, index_map, size, "the coordinates of each index")


def _expect_same_extents(label: str, one: TensorType, dims: Ints, other: TensorType, other_dims: Ints) -> None:
    for dimension, other_dimension in zip(dims, other_dims, strict=True):
        if not dimensions_compatible(one.shape[dimension], other.shape[other_dimension]):
            fail(label, f"batching dimension {dimension} of {one} differs in extent from {other_dimension} of {other}")


def _without(shape: Shape, dimension: int) -> Shape:
    return (*shape[:dimension], *shape[dimension + 1 :])


def _combine(batch: Sequence[int | None], window: Sequence[int | None], window_dims: Ints) -> list[int | None]:
    """Returns the shape with `window` at `window_dims`, and `batch` at the other dimensions."""
    extents, sizes = iter(batch), iter(window)
    return [next(sizes) if d in window_dims else next(extents) for d in range(len(batch) + len(window))]


def _places(
    shape: Sequence[int],
    window: Sequence[int],
    indices: np.ndarray,
    numbers: GatherDimensionNumbers | ScatterDimensionNumbers,
    room: Sequence[int] | None = None,
) -> list[np.ndarray]:
    """Returns the positions of the elements of all windows in a tensor of this shape: the coordinates along each of its
    dimensions, as arrays that broadcast to the shape of the windows. `room` is the largest start along each dimension
    if starts are clamped."""
    window_dims, dropped, batching, indices_batching, index_map, vector_dim = (value for _, value in numbers.items())
    starts = np.moveaxis(indices, vector_dim, 0) if vector_dim < indices.ndim else indices[None]
    rank = starts.ndim - 1 + len(window_dims)
    batch_dims = [d for d in range(rank) if d not in window_dims]
    offsets = iter(zip(window_dims, window, strict=True))
    places = []
    for d, extent in enumerate(shape):
        place = np.zeros((1,) * rank, np.int64)
        if d in index_map:
            start = _integers(starts[index_map.index(d)])
            place = place + _spread(start if room is None else np.clip(start, 0, room[d]), batch_dims, rank)
        if d in batching:
            source = indices_batching[batching.index(d)]
            place = place + _spread(np.arange(extent), [batch_dims[source - (source > vector_dim)]], rank)
        elif d not in dropped:
            axis, size = next(offsets)
            place = place + _spread(np.arange(size), [axis], rank)
        places.append(place)
    return places


def _integers(indices: np.ndarray) -> np.ndarray:
    """Converts indices to `int64`; larger ones become the largest `int64`."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return indices.astype(np.int64)


def _spread(array: np.ndarray, axes: Sequence[int], rank: int) -> np.ndarray:
    """Returns the array with its dimensions, in order, at `axes` of `rank` dimensions."""
    shape = [1] * rank
    for axis, extent in zip(axes, array.shape, strict=True):
        shape[axis] = extent
    return array.reshape(shape)
