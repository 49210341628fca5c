"""Reading and writing at computed positions: embeddings, gathers, scatters, indexing with tensors. All become `gather`
and `scatter`, with indices in one vector for each element or slice."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import Emitter, neutral
from trivium.importers.extents import Extent, scalar_of
from trivium.importers.pytorch.checking import check_elements, check_indices, check_rows, check_that
from trivium.importers.pytorch.context import Context, Number, dim, rule
from trivium.importers.pytorch.elementwise import floor_divide
from trivium.importers.selection import true_places
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64, TensorType, is_boolean, is_complex, is_float

REDUCTIONS = {"sum": ops.Add, "add": ops.Add, "prod": ops.Multiply, "multiply": ops.Multiply}
REDUCTIONS |= {"amax": ops.Maximum, "amin": ops.Minimum, "mean": ops.Add}


@rule("aten.embedding.default")
def embedding(
    ctx: Context,
    weight: Value,
    indices: Value,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    """embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)
    -> Tensor"""
    check_rows(ctx, indices, ctx.extent(weight, 0))
    return ctx.take(weight, indices)


@rule("aten.embedding_dense_backward.default")
def embedding_dense_backward(
    ctx: Context, grad_output: Value, indices: Value, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Value:
    """embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx,
    bool scale_grad_by_freq) -> Tensor"""
    places = ctx.flattened(indices)
    count, width = ctx.extent(places, 0), ctx.extent(grad_output, grad_output.type.rank - 1)
    rows = ctx.reshape(grad_output, (count, width))
    if padding_idx >= 0:
        kept = ctx.compare("NE", places, ctx.scalar_like(padding_idx, places))
        rows = ctx.select(ctx.unsqueeze(kept, [1]), rows, ctx.full_like(rows, 0))
    kind = rows.type.element_type
    if scale_grad_by_freq:
        seen = _scatter(ctx, ops.Add, ctx.full((num_weights,), 0, kind), [places], ctx.full((count,), 1, kind))
        rows = ctx.over(rows, ctx.unsqueeze(ctx.take(seen, places), [1]))
    return _scatter(ctx, ops.Add, ctx.full((num_weights, width), 0, kind), [places], rows)


@rule("aten.index_select.default")
def index_select(ctx: Context, x: Value, dim: int, index: Value) -> Value:
    """index_select(Tensor self, int dim, Tensor index) -> Tensor"""
    if not x.type.rank:
        return x
    check_rows(ctx, index, ctx.extent(x, dim % x.type.rank))
    return ctx.take(x, index if index.type.rank else ctx.unsqueeze(index, [0]), dim % x.type.rank)


@rule("aten.gather.default")
def gather(ctx: Context, x: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    """gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"""
    if not x.type.rank:
        return ctx.broadcast(x, ctx.shape)
    if 0 in index.type.shape:  # of any rank
        return ctx.full(ctx.extents(index), 0, x.type.element_type)
    d = dim % x.type.rank
    check_indices(ctx, index, ctx.extent(x, d), d, RuntimeError)
    others = tuple(i for i in range(x.type.rank) if i != d)
    if x.type.is_static and index.type.is_static:
        for i in others:
            x = ctx.slice(x, i, 0, index.type.shape[i])
    if 0 in x.type.shape or any(ctx.extent(x, i) != ctx.extent(index, i) for i in others):
        return _gather(ctx, x, _all_places(ctx, index, d))
    numbers = ops.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(d,),
        operand_batching_dims=others,
        start_indices_batching_dims=others,
        start_index_map=(d,),
        index_vector_dim=x.type.rank,
    )
    return ctx.gather(x, _vectors(ctx, [index]), numbers, [ctx.one_of(x, i) for i in range(x.type.rank)])


@rule("aten.take_along_dim.default")
def take_along_dim(ctx: Context, x: Value, indices: Value, dim: int | None = None) -> Value:
    """take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor"""
    if dim is None:
        return ctx.take(ctx.flattened(x), ctx.flattened(indices))
    d = dim % x.type.rank
    given, wanted = ctx.extents(x), ctx.extents(indices)
    shape = ctx.common_shape(*([*extents[:d], *extents[d + 1 :]] for extents in (given, wanted)))
    x = ctx.broadcast(x, (*shape[:d], given[d], *shape[d:]))
    return gather(ctx, x, d, ctx.broadcast(indices, (*shape[:d], wanted[d], *shape[d:])))


def _all_places(ctx: Context, index: Value, d: int) -> list[Value]:
    """Returns the index of each element in every dimension: its own position, except in dimension `d`."""
    index = ctx.convert(index, I64)
    return [index if i == d else ctx.iota_like(index, i) for i in range(index.type.rank)]


def _vectors(ctx: Context, places: Sequence[Value]) -> Value:
    """Returns index tensors of one shape as one tensor of vectors."""
    last = places[0].type.rank
    return ctx.concatenate([ctx.unsqueeze(ctx.convert(place, I64), [last]) for place in places], last)


def _gather(ctx: Context, x: Value, places: Sequence[Value]) -> Value:
    """Returns `x[places]`: the places have one shape, and index the first dimensions of `x`."""
    count, batch = len(places), places[0].type.rank
    if 0 in x.type.shape:  # so no place is asked for
        return ctx.full((*ctx.extents(places[0]), *ctx.extents(x)[count:]), 0, x.type.element_type)
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(range(batch, batch + x.type.rank - count)),
        collapsed_slice_dims=tuple(range(count)),
        start_index_map=tuple(range(count)),
        index_vector_dim=batch,
    )
    sizes = [*(ctx.one_of(x, d) for d in range(count)), *ctx.extents(x)[count:]]
    return ctx.gather(x, _vectors(ctx, places), numbers, sizes)


def _scatter(
    ctx: Context,
    op: type | None,
    x: Value,
    places: Sequence[Value],
    updates: Value,
    dims_: Sequence[int] | None = None,
) -> Value:
    """Returns `x` with `op(x[places], updates)`, or just the updates, at the places, which index the dimensions `dims_`
    or, without these, the first ones. The other dimensions are the last ones of the updates."""
    count, batch = len(places), places[0].type.rank
    indexed = tuple(dims_ if dims_ is not None else range(count))
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=tuple(range(batch, batch + x.type.rank - count)),
        inserted_window_dims=tuple(sorted(indexed)),
        scatter_dims_to_operand_dims=indexed,
        index_vector_dim=batch,
    )
    return _scatter_by(ctx, numbers, op, x, _vectors(ctx, places), updates)


def _scatter_by(
    ctx: Context, numbers: ops.ScatterDimensionNumbers, op: type | None, x: Value, vectors: Value, updates: Value
) -> Value:
    """Does the same, with index vectors; `numbers` say what dimensions mean."""
    if 0 in x.type.shape:  # so no place is written to
        return x
    kind = TensorType((), x.type.element_type)

    def combine(emit: Emitter, old: Value, new: Value) -> Value:
        return new if op is None else emit.add(op(old, new))

    body = ctx.region([kind, kind], combine)
    return ctx.add(
        ops.Scatter(
            [x],
            vectors,
            [updates],
            scatter_dimension_numbers=numbers,
            indices_are_sorted=False,
            unique_indices=False,
            update_computation=body,
        )
    )[0]


def _scatter_along(
    ctx: Context, op: type | None, x: Value, dims_: Sequence[int], places: Sequence[Value], updates: Value
) -> Value:
    """Does the same as `_scatter` for any dimensions. Only if neighbours of `x` have different places, these dimensions
    become the first ones meanwhile."""
    rest = [d for d in range(x.type.rank) if d not in dims_]
    if x.type.rank - 1 in rest:
        return _scatter(ctx, op, x, places, updates, dims_)
    order = [*dims_, *rest]
    written = _scatter(ctx, op, ctx.transpose(x, order), places, updates)
    return ctx.transpose(written, np.argsort(order).tolist())


def scatter_into(ctx: Context, op: type | None, x: Value, d: int, index: Value, updates: Value) -> Value:
    """Computes `x[..., index[i, j, k], ...] = op(..., updates[i, j, k])`, like PyTorch's `scatter`, along dimension
    `d`."""
    others = tuple(i for i in range(x.type.rank) if i != d)
    if any(ctx.extent(x, i) != ctx.extent(index, i) for i in others):
        return _scatter(ctx, op, x, _all_places(ctx, index, d), updates)
    # Then it is known that different rows are written to.
    numbers = ops.ScatterDimensionNumbers(
        inserted_window_dims=(d,),
        input_batching_dims=others,
        scatter_indices_batching_dims=others,
        scatter_dims_to_operand_dims=(d,),
        index_vector_dim=x.type.rank,
    )
    return _scatter_by(ctx, numbers, op, x, _vectors(ctx, [index]), updates)


# Indexing with tensors


@rule("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(ctx: Context, x: Value, indices: Sequence[Value | None]) -> Value:
    """index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"""
    places, dims_, front = _places(ctx, x, indices)
    rest = [d for d in range(x.type.rank) if d not in dims_]
    taken = _gather(ctx, ctx.transpose(x, [*dims_, *rest]), places)
    return ctx.transpose(taken, _to_their_place(places[0].type.rank, len(rest), front))


@rule("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    ctx: Context, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> Value:
    """index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor"""
    values = ctx.convert(values, x.type.element_type)  # a scalar may have another type
    given = [i for i in indices if i is not None]
    if any(is_boolean(i.type.element_type) for i in given):
        return _masked_put(ctx, x, indices, values, accumulate)
    places, dims_, front = _places(ctx, x, indices)
    rest = [d for d in range(x.type.rank) if d not in dims_]
    batch = places[0].type.rank
    # The shape that `index` would return: the values are broadcast to it.
    back = _to_their_place(batch, len(rest), front)
    natural = [*ctx.extents(places[0]), *(ctx.extent(x, d) for d in rest)]
    updates = ctx.broadcast(values, [natural[i] for i in back])
    updates = ctx.transpose(updates, np.argsort(back).tolist())
    return _scatter_along(ctx, ops.Add if accumulate else None, x, dims_, places, updates)


def _masked_put(ctx: Context, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool) -> Value:
    """Computes `x[mask] = value` for a single value: without the places of the mask's elements."""
    (mask,) = [i for i in indices if i is not None] if sum(i is not None for i in indices) == 1 else (None,)
    if mask is None or not values.type.is_static or values.type.size != 1 or any(i is not None for i in indices[1:]):
        return index_put(ctx, x, _without_masks(ctx, indices), values, accumulate)
    mask = ctx.unsqueeze(mask, range(mask.type.rank, x.type.rank))
    value = ctx.reshape(values, ())
    return ctx.select(mask, ctx.plus(x, value) if accumulate else ctx.broadcast(value, ctx.extents(x)), x)


def _places(ctx: Context, x: Value, indices: Sequence[Value | None]) -> tuple[list[Value], list[int], int]:
    """Returns index tensors broadcast to one shape, the dimensions that they index, and the position of the indexed
    dimensions in the result: at the first of them if they are adjacent, otherwise at the front. Negative indices count
    from the end."""
    indices = _without_masks(ctx, indices)
    dims_ = [d for d, given in enumerate(indices) if given is not None]
    given = [i for i in indices if i is not None]
    shape = ctx.common_shape(*map(ctx.extents, given))
    places = []
    for number, (d, place) in enumerate(zip(dims_, given, strict=True)):
        place = ctx.convert(place, I64)
        # PyTorch moves the indexed dimensions to the front before it looks.
        check_indices(ctx, place, ctx.extent(x, d), number, IndexError, wraps=True)
        places.append(ctx.broadcast(_from_front(ctx, place, ctx.extent(x, d)), shape))
    adjacent = dims_ == list(range(dims_[0], dims_[0] + len(dims_)))
    return places, dims_, dims_[0] if adjacent else 0


@rule("aten.take.default")
def take(ctx: Context, x: Value, index: Value) -> Value:
    """take(Tensor self, Tensor index) -> Tensor"""
    flat = ctx.flattened(x)
    return _gather(ctx, flat, [_places_in_all(ctx, flat, index)])


@rule("aten.put.default")
def put(ctx: Context, x: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor"""
    if 0 in index.type.shape:
        return x
    flat = ctx.flattened(x)
    places = _places_in_all(ctx, flat, ctx.flattened(index))
    written = _scatter_along(ctx, ops.Add if accumulate else None, flat, [0], [places], ctx.flattened(source))
    return ctx.reshape(written, ctx.extents(x))


def _places_in_all(ctx: Context, flat: Value, index: Value) -> Value:
    """Returns indices into the elements of a tensor as places, which are checked."""
    extent, index = ctx.extent(flat, 0), ctx.convert(index, I64)
    check_elements(ctx, index, extent)
    return _from_front(ctx, index, extent)


def _from_front(ctx: Context, index: Value, extent: Extent) -> Value:
    """Returns indices counted from the front: negative ones count from the end."""
    wrapped = ctx.plus(index, scalar_of(ctx, extent))
    return ctx.select(ctx.compare("LT", index, ctx.scalar(0, I64)), wrapped, index)


def _without_masks(ctx: Context, indices: Sequence[Value | None]) -> list[Value | None]:
    """Replaces each boolean mask by the indices, one for each of its dimensions, of its true elements."""
    found: list[Value | None] = []
    for entry in indices:
        if entry is not None and is_boolean(entry.type.element_type):
            found += true_places(ctx, entry)
        else:
            found.append(entry)
    return found


def _to_their_place(batch: int, rest: int, front: int) -> list[int]:
    """Returns the permutation that moves the first `batch` dimensions after `front` of the `rest`."""
    others = list(range(batch, batch + rest))
    return [*others[:front], *range(batch), *others[front:]]


@rule("aten.masked_scatter.default")
def masked_scatter(ctx: Context, x: Value, mask: Value, source: Value) -> Value:
    """masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor"""
    shape = ctx.shape
    x, mask = ctx.broadcast(x, shape), ctx.broadcast(mask, shape)
    # The n-th selected position takes the n-th element of the source.
    chosen = ctx.convert(ctx.flattened(mask), I64)
    if ctx.checks_values:
        needed, given = ctx.reduce(ops.Add, chosen, [0]), scalar_of(ctx, math.prod(ctx.extents(source)))
        check_that(ctx, ctx.compare("LE", needed, given), "Number of elements of source < number of ones in mask")
    place = ctx.minus(ctx.cumulative(ops.Add, chosen, 0), ctx.scalar(1, I64))
    taken = ctx.take(ctx.flattened(source), ctx.reshape(place, shape))
    return ctx.select(mask, taken, x)


# Scatters


@rule("aten.scatter.src", "aten.scatter.value", "aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter(ctx: Context, x: Value, dim: int, index: Value, src: Value | Number, *, reduce: str | None = None) -> Value:
    """scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"""
    op = REDUCTIONS[reduce] if reduce else None
    return _scattered(ctx, op, x, dim, index, src)


@rule("aten.scatter_add.default")
def scatter_add(ctx: Context, x: Value, dim: int, index: Value, src: Value) -> Value:
    """scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"""
    return _scattered(ctx, ops.Add, x, dim, index, src)


@rule("aten.scatter_reduce.two")
def scatter_reduce(
    ctx: Context, x: Value, dim: int, index: Value, src: Value, reduce: str, *, include_self: bool = True
) -> Value:
    """scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)
    -> Tensor"""
    op, kind = REDUCTIONS[reduce], x.type.element_type
    ones, zeros = ctx.full(ctx.extents(index), 1, kind), ctx.full_like(x, 0)
    count = _scattered(ctx, ops.Add, zeros, dim, index, ones)
    untouched = ctx.compare("EQ", count, zeros)
    start = x if include_self else ctx.select(untouched, x, ctx.full_like(x, neutral(op, kind)))
    result = _scattered(ctx, op, start, dim, index, src)
    if reduce != "mean":
        return result
    count = ctx.plus(count, ctx.full_like(count, 1)) if include_self else count
    count = ctx.select(ctx.compare("EQ", count, zeros), ctx.full_like(count, 1), count)
    return ctx.over(result, count) if is_float(kind) or is_complex(kind) else floor_divide(ctx, result, count)


@rule("aten.index_reduce.default")
def index_reduce(
    ctx: Context, x: Value, dim_: int, index: Value, source: Value, reduce: str, *, include_self: bool = True
) -> Value:
    """index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True)
    -> Tensor"""
    if source.type.rank:
        index = ctx.broadcast_in_dim(ctx.flattened(index), ctx.extents(source), [dim(dim_, source.type.rank)])
    else:
        index = ctx.reshape(index, ())
    return scatter_reduce(ctx, x, dim_, index, source, reduce, include_self=include_self)


def _scattered(ctx: Context, op: type | None, x: Value, dim_: int, index: Value, src: Value | Number) -> Value:
    if 0 in index.type.shape:  # of any rank
        return x
    source = ctx.tensor(src, x.type.element_type)
    d = dim(dim_, x.type.rank)
    check_indices(ctx, index, _extent_of(ctx, x, dim_), d, RuntimeError)
    if not x.type.rank:
        old, new = ctx.reshape(x, (1,)), ctx.reshape(source, (1,))
        return ctx.reshape(scatter_into(ctx, op, old, 0, ctx.reshape(index, (1,)), new), ())
    if source.type.rank:
        for axis, extent in enumerate(ctx.extents(index)):
            source = ctx.slice(source, axis, 0, extent)
    updates = ctx.broadcast(source, ctx.extents(index))
    return scatter_into(ctx, op, x, d, index, updates)


@rule("aten.index_add.default")
def index_add(ctx: Context, x: Value, dim: int, index: Value, source: Value, *, alpha: Number = 1) -> Value:
    """index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor"""
    scaled = source if alpha == 1 else ctx.times(source, ctx.scalar_like(alpha, source))
    if x.type.rank > 1:  # which PyTorch computes as a scatter
        check_indices(ctx, index, ctx.extent(x, dim % x.type.rank), dim % x.type.rank, RuntimeError)
    else:
        check_rows(ctx, index, _extent_of(ctx, x, dim))
    return _along(ctx, ops.Add, x, dim, index, scaled)


@rule("aten.index_copy.default")
def index_copy(ctx: Context, x: Value, dim_: int, index: Value, source: Value) -> Value:
    """index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor"""
    check_indices(
        ctx, index, _extent_of(ctx, x, dim_), dim(dim_, x.type.rank), IndexError, by="index_copy_(): "
    )  # fmt: skip
    return _along(ctx, None, x, dim_, index, source)


@rule("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(ctx: Context, x: Value, dim_: int, index: Value, value: Value | Number) -> Value:
    """index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor: indices may be negative"""
    index, extent = ctx.convert(index, I64), _extent_of(ctx, x, dim_)
    check_indices(ctx, index, extent, dim(dim_, x.type.rank), IndexError, wraps=True)
    return _along(ctx, None, x, dim_, _from_front(ctx, index, extent), ctx.tensor(value, x.type.element_type))


def _extent_of(ctx: Context, x: Value, dim_: int) -> Extent:
    """Returns the extent of a dimension; a tensor without dimensions counts as having one element."""
    return ctx.extent(x, dim(dim_, x.type.rank)) if x.type.rank else 1


def _along(ctx: Context, op: type | None, x: Value, d: int, index: Value, source: Value) -> Value:
    """Writes slices of `source` at an index vector along a dimension."""
    if not x.type.rank:
        row = ctx.reshape(source, (1,)) if source.type.size == 1 else source
        return ctx.reshape(_along(ctx, op, ctx.reshape(x, (1,)), 0, index, row), ())
    d = dim(d, x.type.rank)
    order = [d, *(i for i in range(x.type.rank) if i != d)]
    index = ctx.flattened(index)
    rows = ctx.transpose(source, order) if source.type.rank == x.type.rank else source
    rows = ctx.broadcast(rows, (ctx.extent(index, 0), *(ctx.extent(x, i) for i in order[1:])))
    return _scatter_along(ctx, op, x, [d], [index], rows)
