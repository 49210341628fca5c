"""Views that are described by their strides in memory, of tensors with dynamic sizes: the strides are products of
sizes, and the program computes where the elements are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import sympy
import torch

from trivium.importers.extents import Extent, chosen, scalar_of
from trivium.importers.pytorch.context import Context
from trivium.importers.pytorch.indexing import scatter_into
from trivium.importers.pytorch.symbols import expression_of, without_limits
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64

Extents = Sequence[Extent]


def open_view(ctx: Context, x: Value, size: Extents, stride: Extents, storage_offset: Extent | None) -> Value:
    """Returns the elements of `x` that a view has."""
    begin, limit = _span(ctx, x, size, stride, storage_offset)
    flat, _ = _packed(ctx, x)
    # A slice that is not inside the tensor is an error when the program runs.
    return ctx.take(ctx.slice(flat, 0, begin, limit), _places(ctx, size, stride))


def open_scatter(
    ctx: Context, x: Value, src: Value, size: Extents, stride: Extents, storage_offset: Extent | None
) -> Value:
    """Returns `x` with other elements in the places of a view."""
    begin, limit = _span(ctx, x, size, stride, storage_offset)
    flat, order = _packed(ctx, x)
    places = ctx.flattened(_places(ctx, size, stride))
    written = scatter_into(ctx, None, ctx.slice(flat, 0, begin, limit), 0, places, ctx.flattened(src))
    edges = ctx.slice(flat, 0, 0, begin), ctx.slice(flat, 0, limit, ctx.extent(flat, 0))
    joined = ctx.concatenate([edges[0], written, edges[1]], 0)
    extents = ctx.extents(x)
    return ctx.transpose(ctx.reshape(joined, [extents[d] for d in order]), np.argsort(order).tolist())


def _span(ctx: Context, x: Value, size: Extents, stride: Extents, storage_offset: Extent | None) -> tuple[Extent, ...]:
    """Returns where a view begins and ends, counted from the first element of `x`."""
    start = ctx.symbols.extent(ctx, _meta(ctx, x).storage_offset())
    begin = 0 if storage_offset is None else storage_offset - start
    reach = begin + sum(((extent - 1) * step for extent, step in zip(size, stride, strict=True)), 0) + 1
    return begin, chosen(ctx, "EQ", math.prod(size), 0, begin, reach)


def _places(ctx: Context, size: Extents, stride: Extents) -> Value:
    """Returns the position of each element of a view, counted from the first one."""
    places = ctx.full(size, 0, I64)
    for d, step in enumerate(stride):
        places = ctx.plus(places, ctx.binary(ops.Multiply, ctx.iota(size, d), scalar_of(ctx, step)))
    return places


def _packed(ctx: Context, x: Value) -> tuple[Value, list[int]]:
    """Returns the elements in the order of memory, which must have no gaps, and the dimensions in that order."""
    meta = _meta(ctx, x)
    order = memory_order(list(map(expression_of, meta.shape)), list(map(expression_of, meta.stride())))
    if order is None:
        ctx.unsupported("self", f"the strides {tuple(meta.stride())}", "a tensor without gaps in its memory")
    return ctx.flattened(ctx.transpose(x, order)), order


def _meta(ctx: Context, x: Value) -> torch.Tensor:
    return ctx.open_metas[x] if x in ctx.open_metas else ctx.metas[x]


def memory_order(shape: Sequence[sympy.Basic], strides: Sequence[sympy.Basic]) -> list[int] | None:
    """Returns the dimensions from the slowest to the fastest in memory; `None` if there are gaps, or if it depends on
    the sizes."""
    left, order, step = list(range(len(shape))), list[int](), sympy.Integer(1)
    while left:
        fits = (d for d in reversed(left) if shape[d] == 1 or _is_same(strides[d], step))
        if (d := next(fits, None)) is None:
            return None
        left.remove(d)
        order.insert(0, d)
        step = step * shape[d]  # type: ignore[operator]
    return order


def _is_same(a: sympy.Basic, b: sympy.Basic) -> bool:
    """Whether two strides are the same in every tensor that has elements: there, no size is less than 1."""
    return sympy.expand(without_limits(a) - without_limits(b)) == 0  # type: ignore[operator]
