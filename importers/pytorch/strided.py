"""Views that are described by their strides in memory. A program's values have no memory: the strides that PyTorch gave
the operand determine where the elements would be."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import require_computable
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.indexing import scatter_into
from trivium.ir.core import Value

Ints = Sequence[int]


@rule("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(ctx: Context, x: Value, size: Ints, stride: Ints, storage_offset: int | None = None) -> Value:
    """as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)"""
    offsets = _offsets(ctx, x, size, stride, storage_offset)
    return ctx.take(_flat(ctx, x), ctx.elements(offsets))


@rule("aten.as_strided_scatter.default")
def as_strided_scatter(
    ctx: Context, x: Value, src: Value, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Value:
    """as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None)
    -> Tensor"""
    places = ctx.elements(_offsets(ctx, x, size, stride, storage_offset).reshape(-1))
    updates = ctx.reshape(ctx.convert(src, x.type.element_type), (src.type.size,))
    written = scatter_into(ctx, None, _flat(ctx, x), 0, places, updates)
    order = _memory_order(ctx, x)
    packed = ctx.reshape(written, [x.type.shape[d] for d in order])
    return ctx.transpose(packed, np.argsort(order).tolist())


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
