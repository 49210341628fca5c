"""Maximum pooling that also returns where the largest elements are, and its gradient."""

from __future__ import annotations

import math

import numpy as np

from trivium.importers.convolution import Windows
from trivium.importers.emit import lowest
from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, rule
from trivium.importers.tensorflow.indexing import scattered
from trivium.importers.tensorflow.pooling import along, edges, windows_in
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64, TensorType, is_float


@rule("MaxPoolWithArgmax")
def max_pool_with_argmax(
    ctx: Context,
    input: Value,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    include_batch_in_index: bool,
) -> list[Value]:
    """MaxPoolWithArgmax(input; ksize, strides, Targmax=DT_INT64, padding, include_batch_in_index=false) -> output,
    argmax"""
    kind, shape = input.type.element_type, ctx.extents(input)
    layout, windows = windows_in(ctx, shape, ksize, strides, padding, "NHWC")
    places = _places(ctx, shape, include_batch_in_index)
    given = ctx.select(ctx.compare("NE", input, input), ctx.full_like(input, lowest(kind)), input)
    low, high = edges(layout, windows)
    last = np.iinfo(np.int64).max
    given, numbers = ctx.pad(given, low, high, lowest(kind)), ctx.pad(places, low, high, last)
    types = [TensorType((), kind), TensorType((), I64)] * 2

    def larger(emit: Context, best: Value, at: Value, new: Value, here: Value) -> tuple[Value, Value]:
        first = emit.add(ops.And(emit.compare("EQ", best, new), emit.compare("LT", at, here)))
        keep = emit.add(ops.Or(emit.compare("GT", best, new), first))
        return emit.select(keep, best, new), emit.select(keep, at, here)

    pooled = ops.ReduceWindow(
        [given, numbers],
        [ctx.scalar(lowest(kind), kind), ctx.scalar(last, I64)],
        window_dimensions=along(layout, windows.sizes),
        window_strides=along(layout, windows.strides),
        base_dilations=(1,) * layout.rank,
        window_dilations=(1,) * layout.rank,
        padding=((0, 0),) * layout.rank,
        body=ctx.region(types, larger),
    )
    values, found = ctx.add(pooled)
    if is_float(kind):
        values, found = _with_first_nan(ctx, input, places, values, found, windows)
    return [values, ctx.convert(found, ctx.result_types[1].element_type)]


def _places(ctx: Context, shape: list[Extent], with_batch: bool) -> Value:
    """Returns the number of each element: among all, or among those of its image."""
    if with_batch:
        return ctx.reshape(ctx.iota([math.prod(shape)], 0), shape)
    one = ctx.reshape(ctx.iota([math.prod(shape[1:])], 0), [1, *shape[1:]])
    return ctx.broadcast(one, shape)


def _with_first_nan(
    ctx: Context, x: Value, places: Value, values: Value, found: Value, windows: Windows
) -> list[Value]:
    """Returns NaN for windows that begin with it: TensorFlow finds nothing that is larger, and finds no other one."""
    firsts, numbers = x, places
    for d, stride, (before, _) in zip((1, 2), windows.strides, windows.padding, strict=True):
        starts = ctx.scaled(ctx.iota([ctx.extent(values, d)], 0), stride)
        starts = ctx.minus(starts, ctx.number_as(before, I64))
        starts = ctx.binary(ops.Maximum, starts, ctx.scalar(0, I64))
        firsts, numbers = (ctx.take(each, starts, d) for each in (firsts, numbers))
    is_nan = ctx.compare("NE", firsts, firsts)
    return [ctx.select(is_nan, firsts, values), ctx.select(is_nan, numbers, found)]


@rule("MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(
    ctx: Context,
    input: Value,
    grad: Value,
    argmax: Value,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    include_batch_in_index: bool,
) -> Value:
    """MaxPoolGradWithArgmax(input, grad, argmax; ksize, strides, padding, include_batch_in_index=false) -> output"""
    shape = ctx.extents(input)
    places = ctx.convert(argmax, I64)
    if not include_batch_in_index:
        image = ctx.number_as(math.prod(shape[1:]), I64)
        places = ctx.plus(places, ctx.times(ctx.iota_like(argmax, 0), image))
    rows = ctx.unsqueeze(ctx.flattened(places), [1])
    nothing = ctx.full([math.prod(shape)], 0, grad.type.element_type)
    return ctx.reshape(scattered(ctx, ops.Add, nothing, rows, ctx.flattened(grad)), shape)
