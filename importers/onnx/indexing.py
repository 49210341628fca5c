"""Reading and writing at computed positions."""

from __future__ import annotations

from trivium.importers.extents import Extent, scalar_of
from trivium.importers.onnx.context import Context, axis_of, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.known import evaluate_known
from trivium.ir.types import I64, TensorType

COMBINERS = {"add": ops.Add, "mul": ops.Multiply, "max": ops.Maximum, "min": ops.Minimum}


def _from_front(ctx: Context, indices: Value, extent: Extent) -> Value:
    """Returns indices counted from the front: negative ones count from the end."""
    low = ctx.full_like(indices, 0)
    shift = ctx.convert(scalar_of(ctx, extent), indices.type.element_type)
    return ctx.select(ctx.compare("LT", indices, low), ctx.plus(indices, shift), indices)


@rule("Gather")
def gather(ctx: Context, x: Value, indices: Value, axis: int = 0) -> Value:
    """Gather(data, indices, axis)"""
    axis = axis_of(axis, x.type.rank)
    return ctx.take(x, _from_front(ctx, indices, ctx.extent(x, axis)), axis)


@rule("GatherElements")
def gather_elements(ctx: Context, x: Value, indices: Value, axis: int = 0) -> Value:
    """GatherElements(data, indices, axis): `out[i][j] = data[index[i][j]][j]` along `axis` 0"""
    vectors = _element_places(ctx, x, indices, axis_of(axis, x.type.rank))
    rank = x.type.rank
    numbers = ops.GatherDimensionNumbers(
        collapsed_slice_dims=tuple(range(rank)), start_index_map=tuple(range(rank)), index_vector_dim=rank
    )
    return ctx.add(ops.Gather(x, vectors, dimension_numbers=numbers, slice_sizes=[1] * rank))


@rule("ScatterElements")
def scatter_elements(
    ctx: Context, x: Value, indices: Value, updates: Value, axis: int = 0, reduction: str = "none"
) -> Value:
    """ScatterElements(data, indices, updates, axis, reduction)"""
    vectors = _element_places(ctx, x, indices, axis_of(axis, x.type.rank))
    rank = x.type.rank
    numbers = ops.ScatterDimensionNumbers(
        inserted_window_dims=tuple(range(rank)), scatter_dims_to_operand_dims=tuple(range(rank)), index_vector_dim=rank
    )
    return scattered(ctx, x, vectors, updates, numbers, reduction)


def _element_places(ctx: Context, x: Value, indices: Value, axis: int) -> Value:
    """Returns, for each element of `indices`, its whole index into `x`, in a last dimension."""
    shape = ctx.extents(indices)
    places = [ctx.iota(shape, dimension) for dimension in range(x.type.rank)]
    places[axis] = ctx.convert(_from_front(ctx, indices, ctx.extent(x, axis)), I64)
    return ctx.concatenate([ctx.unsqueeze(place, [len(shape)]) for place in places], len(shape))


@rule("GatherND")
def gather_nd(ctx: Context, x: Value, indices: Value, batch_dims: int = 0) -> Value:
    """GatherND(data, indices, batch_dims)"""
    depth, rank, batch = _depth(ctx, indices), x.type.rank, tuple(range(batch_dims))
    extents = ctx.extents(x)
    negative = ctx.compare("LT", indices, ctx.full_like(indices, 0))
    bounds = ctx.vector(extents[batch_dims : batch_dims + depth])
    shifted = ctx.plus(indices, ctx.convert(bounds, indices.type.element_type))
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(range(indices.type.rank - 1, indices.type.rank - 1 + rank - batch_dims - depth)),
        collapsed_slice_dims=tuple(range(batch_dims, batch_dims + depth)),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
        start_index_map=tuple(range(batch_dims, batch_dims + depth)),
        index_vector_dim=indices.type.rank - 1,
    )
    places = ctx.select(negative, shifted, indices)
    return ctx.gather(x, places, numbers, [1] * (batch_dims + depth) + extents[batch_dims + depth :])


def _depth(ctx: Context, indices: Value) -> int:
    """Returns how many dimensions each index has."""
    depth = indices.type.shape[-1]
    if depth is None:
        ctx.unsupported("indices", f"type {indices.type}", "a last dimension whose extent is known while importing")
    return depth


@rule("ScatterND")
def scatter_nd(ctx: Context, x: Value, indices: Value, updates: Value, reduction: str = "none") -> Value:
    """ScatterND(data, indices, updates, reduction)"""
    depth = _depth(ctx, indices)
    extents = ctx.convert(ctx.vector(ctx.extents(x)[:depth]), indices.type.element_type)
    negative = ctx.compare("LT", indices, ctx.full_like(indices, 0))
    places = ctx.select(negative, ctx.plus(indices, extents), indices)
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=tuple(range(indices.type.rank - 1, updates.type.rank)),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
        index_vector_dim=indices.type.rank - 1,
    )
    return scattered(ctx, x, places, updates, numbers, reduction)


def scattered(
    ctx: Context, x: Value, indices: Value, updates: Value, numbers: ops.ScatterDimensionNumbers,
    reduction: str = "none",
) -> Value:  # fmt: skip
    """Returns `x` with updates written at indices, or combined with what is there."""
    if reduction not in ("none", *COMBINERS):
        ctx.unsupported("reduction", reduction, "none, add, mul, max or min")
    kind = TensorType((), x.type.element_type)
    if reduction == "none":
        body = ctx.region([kind, kind], lambda emit, old, new: new)
    else:
        body = ctx.combiner(COMBINERS[reduction], x.type.element_type)
    return ctx.add(ops.Scatter([x], indices, [updates], scatter_dimension_numbers=numbers, update_computation=body))[0]


@rule("OneHot")
def one_hot(ctx: Context, indices: Value, depth: Value, values: Value, axis: int = -1) -> Value:
    """OneHot(indices, depth, values, axis): values are (off, on)"""
    count = ctx.number(depth, "depth")
    rank = indices.type.rank + 1
    axis = axis_of(axis, rank)
    places = ctx.unsqueeze(_from_front(ctx, indices, count), [axis])
    shape = [count if d == axis else extent for d, extent in enumerate(ctx.extents(places))]
    hot = ctx.compare("EQ", ctx.iota(shape, axis, indices.type.element_type), places)
    off, on = (ctx.reshape(ctx.slice(values, 0, at, at + 1), ()) for at in (0, 1))
    return ctx.select(hot, on, off)


@rule("Trilu")
def trilu(ctx: Context, x: Value, k: Value | None = None, upper: int = 1) -> Value:
    """Trilu(input, k, upper)"""
    offset = ctx.scalar(0, I64) if k is None else ctx.reshape(k, ())
    shape = ctx.extents(x)[-2:]
    rows, columns = (ctx.iota(shape, d) for d in range(2))
    kept = ctx.compare("GE" if upper else "LE", columns, ctx.plus(rows, offset))
    return ctx.select(kept, x, ctx.full_like(x, 0))


@rule("ai.onnx.ml::ArrayFeatureExtractor")
def array_feature_extractor(ctx: Context, x: Value, indices: Value) -> Value:
    """ArrayFeatureExtractor(X, Y): elements along the last dimension"""
    x = ctx.unsqueeze(x, [0]) if x.type.rank == 1 else x
    known, width = evaluate_known(indices), x.type.shape[-1]
    if known is not None and width is not None and not ((known >= 0) & (known < width)).all():
        raise Error(f"Y has {known.reshape(-1).tolist()}, expected places in X of type {x.type}")
    return ctx.take(x, ctx.flattened(indices), x.type.rank - 1)
