"""Elements that are chosen by their values: how many there are is known when the program runs."""

from __future__ import annotations

import math
from functools import partial

import torch

from trivium.importers.extents import Size, larger
from trivium.importers.pytorch.checking import check_not_negative
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.indexing import scatter_into
from trivium.importers.searching import places_in
from trivium.importers.selection import selected, true_places
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


@rule("aten.nonzero.default")
def nonzero(ctx: Context, x: Value) -> Value:
    """nonzero(Tensor self) -> Tensor"""
    if not x.type.rank:
        (places,) = selected(ctx, ctx.reshape(ctx.not_zero(x), [1]), ctx.iota([1], 0))
        return ctx.full((ctx.extent(places, 0), 0), 0, I64)
    return ctx.concatenate([ctx.unsqueeze(places, [1]) for places in true_places(ctx, ctx.not_zero(x))], 1)


@rule("aten.masked_select.default")
def masked_select(ctx: Context, x: Value, mask: Value) -> Value:
    """masked_select(Tensor self, Tensor mask) -> Tensor"""
    shape = ctx.common_shape(ctx.extents(x), ctx.extents(mask))
    x, mask = (ctx.reshape(ctx.broadcast(each, shape), [math.prod(shape)]) for each in (x, mask))
    return selected(ctx, mask, x)[0]


@rule("aten.repeat_interleave.Tensor")
def repeat_interleave(ctx: Context, repeats: Value, *, output_size: int | None = None) -> Value:
    """repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor: each index as often as stated"""
    if 0 in repeats.type.shape:
        return repeats
    kind = repeats.type.element_type
    check_not_negative(ctx, repeats, "repeats can not be negative")
    counts = ctx.convert(repeats, I64)
    ends, total = ctx.cumulative(ops.Add, counts, 0), ctx.reduce(ops.Add, counts, [0])
    places = ctx.iota([Size(ctx, total, is_extent=True)], 0)
    # As many indices end at or before a place as it comes after.
    return places_in(ctx, ends, places, partial(ctx.compare, "LE"), kind)


@rule("aten.bincount.default")
def bincount(ctx: Context, x: Value, weights: Value | None = None, minlength: int = 0) -> Value:
    """bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor"""
    if x.type.is_static and not x.type.size:
        return ctx.full((minlength,), 0, ctx.result.element_type)
    x = ctx.convert(x, I64)
    check_not_negative(ctx, x, "bincount only supports 1-d non-negative integral inputs.")
    highest = Size(ctx, ctx.reduce(ops.Maximum, x, [0]))
    kind = ctx.result.element_type
    added = ctx.full_like(x, 1) if weights is None else weights
    counts = ctx.full((larger(ctx, highest + 1, minlength),), 0, kind)
    return scatter_into(ctx, ops.Add, counts, 0, x, ctx.convert(added, kind))


@rule("aten._local_scalar_dense.default")
def item(ctx: Context, x: Value) -> Size:
    """_local_scalar_dense(Tensor self) -> Scalar: an integer that decides extents"""
    if not isinstance(ctx.described[0], torch.SymInt):
        ctx.unsupported("self", f"{x.type.element_type}", "integers")
    return Size(ctx, ctx.convert(ctx.reshape(x, ()), I64))
