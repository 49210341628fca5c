"""Views that are described by their strides in memory. A program's values have no memory: the strides that PyTorch gave
the operand determine where the elements would be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import require_computable
from trivium.importers.extents import Size
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.indexing import scatter_into
from trivium.importers.pytorch.open_strides import open_scatter, open_view
from trivium.ir.core import Value

Ints = Sequence[int]


@rule("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(ctx: Context, x: Value, size: Ints, stride: Ints, storage_offset: int | None = None) -> Value:
    """as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)"""
    if _is_open(ctx, x, size, stride, storage_offset):
        return open_view(ctx, x, size, stride, storage_offset)
    if (run := _run(ctx, x, size, stride, storage_offset)) is not None:
        begin, order = run
        elements = ctx.slice(_flat(ctx, x), 0, begin, begin + math.prod(size))
        return ctx.transpose(ctx.reshape(elements, [size[d] for d in order]), np.argsort(order).tolist())
    offsets = _offsets(ctx, x, size, stride, storage_offset)
    return ctx.take(_flat(ctx, x), ctx.elements(offsets))


@rule("aten.as_strided_scatter.default")
def as_strided_scatter(
    ctx: Context, x: Value, src: Value, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Value:
    """as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None)
    -> Tensor"""
    updates = ctx.convert(src, x.type.element_type)
    if _is_open(ctx, x, size, stride, storage_offset):
        return open_scatter(ctx, x, updates, size, stride, storage_offset)
    flat = _flat(ctx, x)
    if (run := _run(ctx, x, size, stride, storage_offset)) is not None:
        begin, order = run
        end = begin + src.type.size
        updates = ctx.reshape(ctx.transpose(updates, order), (src.type.size,))
        parts = [ctx.slice(flat, 0, 0, begin), updates, ctx.slice(flat, 0, end, x.type.size)]
        written = ctx.concatenate([part for part in parts if part.type.size], 0)
    else:
        places = ctx.elements(_offsets(ctx, x, size, stride, storage_offset).reshape(-1))
        written = scatter_into(ctx, None, flat, 0, places, ctx.reshape(updates, (src.type.size,)))
    order = _memory_order(ctx, x)
    packed = ctx.reshape(written, [x.type.shape[d] for d in order])
    return ctx.transpose(packed, np.argsort(order).tolist())


def _is_open(ctx: Context, x: Value, size: Ints, stride: Ints, storage_offset: int | None) -> bool:
    return x not in ctx.metas or any(isinstance(number, Size) for number in (*size, *stride, storage_offset))


def _memory_order(ctx: Context, x: Value) -> list[int]:
    """Returns the dimensions from the slowest to the fastest in memory."""
    strides = ctx.metas[x].stride()
    return sorted(range(x.type.rank), key=lambda d: (-strides[d], d))


def _flat(ctx: Context, x: Value) -> Value:
    """Returns the elements in the order of memory, which must have no gaps."""
    strides = ctx.metas[x].stride()
    order = _memory_order(ctx, x)
    packed = ctx.transpose(x, order)
    expected = [math.prod(packed.type.shape[i + 1 :]) for i in range(packed.type.rank)]
    if any(strides[d] != wanted for d, wanted in zip(order, expected, strict=True) if x.type.shape[d] > 1):
        ctx.unsupported("self", f"the strides {tuple(strides)}", "a tensor without gaps in its memory")
    return ctx.reshape(packed, (x.type.size,))


def _run(ctx: Context, x: Value, size: Ints, stride: Ints, storage_offset: int | None) -> tuple[int, list[int]] | None:
    """Returns where a view begins whose elements are next to each other in memory, each once, and its dimensions from
    the slowest to the fastest; None if they are not."""
    start = ctx.metas[x].storage_offset()
    begin = int((start if storage_offset is None else storage_offset) - start)
    several = [d for d, extent in enumerate(size) if extent > 1]
    order = sorted(range(len(size)), key=lambda d: (-stride[d], d))
    if all(stride[a] >= stride[b] for a, b in itertools.pairwise(several)):
        order = list(range(len(size)))
    steps = [math.prod(size[d] for d in order[i + 1 :]) for i in range(len(order))]
    dense = all(stride[d] == step for d, step in zip(order, steps, strict=True) if size[d] > 1)
    count = math.prod(size)
    return (begin, order) if dense and count and begin >= 0 and begin + count <= x.type.size else None


def _offsets(ctx: Context, x: Value, size: Ints, stride: Ints, storage_offset: int | None) -> np.ndarray:
    """Returns the position of each element of the view, counted from the first element of `x`."""
    require_computable(math.prod(size), "the result")
    start = ctx.metas[x].storage_offset()
    offsets = np.asarray((start if storage_offset is None else storage_offset) - start)
    for extent, step in zip(size, stride, strict=True):
        offsets = offsets[..., None] + np.arange(extent) * step
    if offsets.size and not (offsets.min() >= 0 and offsets.max() < x.type.size):
        ctx.unsupported("size", f"{tuple(size)}, beyond the tensor's own elements", "a view of the tensor's elements")
    return offsets
