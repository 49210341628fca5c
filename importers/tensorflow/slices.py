"""Slices, and writing to them. A bound is known during import; an index, which picks one slice of a dimension, may be
computed at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.importers.context import evaluate_known
from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.state import read_value, update
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1

Entry = int | Value
"""An entry of an index: a number, or a 0-d value that is computed at run time."""


@dataclass(frozen=True)
class Cut:
    """A strided slice: for each dimension a start, a number of elements and a step; then the shape of the result. The
    dimensions in `picked` are whole here; of each of them, the result has the slice at an index."""

    starts: list[int]
    counts: list[int]
    steps: list[int]
    shape: list[int]
    picked: dict[int, Value]

    @property
    def sizes(self) -> list[int]:
        """The number of elements of each dimension, before some are dropped and others inserted."""
        return [1 if d in self.picked else count for d, count in enumerate(self.counts)]


def cut_of(
    ctx: Context,
    shape: Sequence[int],
    begin: Sequence[Entry],
    end: Sequence[Entry],
    strides: Sequence[int],
    masks: Sequence[int],
) -> Cut:
    """Decodes NumPy's basic indexing in TensorFlow's form. Bit `i` of the masks (begin, end, ellipsis, new axis, shrink
    axis) refers to entry `i`."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = masks
    cut = Cut([], [], [], [], {})

    def keep(start: int, count: int, step: int) -> None:
        cut.starts.append(start)
        cut.counts.append(count)
        cut.steps.append(step)

    def bound(mask: int, entry: Entry, i: int) -> int | None:
        if _has(mask, i):
            return None
        if isinstance(entry, Value):
            ctx.unsupported("begin", "a value computed at run time", "indices, or bounds that are known")
        return entry

    named = [i for i in range(len(begin)) if not _has(new_axis_mask, i) and not _has(ellipsis_mask, i)]
    if len(named) > len(shape):
        ctx.unsupported("begin", f"{len(named)} entries", f"at most one for each of {len(shape)} dimensions")
    for i in range(len(begin)):
        at = len(cut.starts)
        if _has(ellipsis_mask, i):
            for extent in shape[at : at + len(shape) - len(named)]:
                keep(0, extent, 1)
                cut.shape.append(extent)
        elif _has(new_axis_mask, i):
            cut.shape.append(1)
        elif _has(shrink_axis_mask, i):
            index = begin[i]
            if isinstance(index, Value):
                cut.picked[at] = _counted(ctx, index, shape[at])
                keep(0, shape[at], 1)
            else:
                keep(ctx.axis(index, shape[at], "begin"), 1, 1)
        else:
            first, last = bound(begin_mask, begin[i], i), bound(end_mask, end[i], i)
            places = range(*slice(first, last, strides[i]).indices(shape[at]))
            keep(places.start if len(places) else 0, len(places), strides[i])
            cut.shape.append(len(places))
    for extent in shape[len(cut.starts) :]:
        keep(0, extent, 1)
        cut.shape.append(extent)
    return cut


def _has(mask: int, i: int) -> bool:
    return bool(mask >> i & 1)


def _counted(ctx: Context, index: Value, extent: int) -> Value:
    """Returns an index counted from the front."""
    is_negative = ctx.compare("LT", index, ctx.constant_like(index, 0))
    return ctx.select(is_negative, ctx.plus(index, ctx.constant_like(index, extent)), index)


def _read_cut(ctx: Context, shape: Sequence[int], bounds: Sequence[Tensor], masks: Sequence[int]) -> Cut:
    begin, end = (_entries(ctx, x) for x in bounds[:2])
    steps = ctx.known(bounds[2], "strides").tolist()
    if not len(begin) == len(end) == len(steps):
        ctx.unsupported("strides", steps, f"as many as begin, {len(begin)}, and end, {len(end)}")
    if 0 in steps:
        ctx.unsupported("strides", steps, "numbers that are not zero")
    return cut_of(ctx, shape, begin, end, steps, masks)


def _entries(ctx: Context, x: Tensor) -> list[Entry]:
    """Returns the elements of a vector."""
    if isinstance(x, np.ndarray):
        return x.tolist()
    # It is joined of numbers, of which only some are computed at run time.
    op = x.defining_op
    if isinstance(op, ops.Concatenate) and all(part.type.shape == (1,) for part in op.inputs):
        parts = op.inputs
    else:
        parts = [ctx.slice(x, 0, i, i + 1) for i in range(x.type.static_shape[0])]
    known = [evaluate_known(part) for part in parts]
    return [ctx.reshape(part, ()) if array is None else int(array[0]) for part, array in zip(parts, known, strict=True)]


@rule("StridedSlice")
def strided_slice(
    ctx: Context,
    input: Value,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Value:
    """StridedSlice(input, begin, end, strides; begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
    shrink_axis_mask=0) -> output"""
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    cut = _read_cut(ctx, input.type.shape, (begin, end, strides), masks)
    return ctx.reshape(_taken(ctx, input, cut), cut.shape)


def _taken(ctx: Context, x: Value, cut: Cut) -> Value:
    if not all(cut.counts):
        return ctx.full(cut.sizes, 0, x.type.element_type)
    # A backward slice is a forward one, then reversed.
    spans = [(count - 1) * step for count, step in zip(cut.counts, cut.steps, strict=True)]
    lows = [min(start, start + span) for start, span in zip(cut.starts, spans, strict=True)]
    highs = [max(start, start + span) + 1 for start, span in zip(cut.starts, spans, strict=True)]
    backwards = tuple(i for i, step in enumerate(cut.steps) if step < 0)
    steps = [abs(step) for step in cut.steps]
    if lows != [0] * len(lows) or highs != list(x.type.shape) or any(step != 1 for step in steps):
        x = ctx.add(ops.Slice(x, start_indices=lows, limit_indices=highs, strides=steps))
    x = ctx.add(ops.Reverse(x, dimensions=backwards)) if backwards else x
    return ctx.add(ops.DynamicSlice(x, _places(ctx, cut), slice_sizes=cut.sizes)) if cut.picked else x


def _places(ctx: Context, cut: Cut) -> list[Value]:
    """Returns where the slice at the computed indices begins."""
    zero = ctx.constant_like(next(iter(cut.picked.values())), 0)
    return [cut.picked.get(d, zero) for d in range(len(cut.counts))]


@rule("StridedSliceGrad")
def strided_slice_grad(
    ctx: Context,
    shape: Known,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    dy: Value,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Value:
    """StridedSliceGrad(shape, begin, end, strides, dy; begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
    shrink_axis_mask=0) -> output"""
    extents = shape.tolist()
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return _put(ctx, extents, _read_cut(ctx, extents, (begin, end, strides), masks), dy)


def _put(ctx: Context, extents: Sequence[int], cut: Cut, x: Value) -> Value:
    """Returns `x` among zeros, at the positions from which a cut of an array of the given extents would take it."""
    if not all(cut.counts):
        return ctx.full(extents, 0, x.type.element_type)
    x = ctx.reshape(x, cut.sizes)
    if cut.picked:
        x = ctx.add(ops.DynamicUpdateSlice(ctx.full(cut.counts, 0, x.type.element_type), x, _places(ctx, cut)))
    if backwards := tuple(i for i, step in enumerate(cut.steps) if step < 0):
        x = ctx.add(ops.Reverse(x, dimensions=backwards))
    low, high, interior = [], [], []
    for extent, start, count, step in zip(extents, cut.starts, cut.counts, cut.steps, strict=True):
        span = (count - 1) * step
        low.append(min(start, start + span))
        high.append(extent - 1 - max(start, start + span))
        interior.append(abs(step) - 1 if count > 1 else 0)
    return ctx.pad(x, low, high, 0, interior)


@rule("Slice")
def slice_(ctx: Context, input: Value, begin: Tensor, size: Known) -> Value:
    """Slice(input, begin, size) -> output"""
    shape, sizes = input.type.shape, size.tolist()
    if isinstance(begin, np.ndarray):
        starts = begin.tolist()
        limits = [extent if n < 0 else at + n for at, n, extent in zip(starts, sizes, shape, strict=True)]
        return ctx.add(ops.Slice(input, start_indices=starts, limit_indices=limits, strides=[1] * len(shape)))
    entries = _entries(ctx, begin)
    for d, (at, n) in enumerate(zip(entries, sizes, strict=True)):
        if n < 0 and isinstance(at, Value):
            ctx.unsupported("size", sizes, "known sizes, with a begin that is computed at run time")
        sizes[d] = shape[d] - at if n < 0 else n
    starts = _scalars(ctx, begin)
    return ctx.add(ops.DynamicSlice(input, starts, slice_sizes=sizes))


@rule("TensorStridedSliceUpdate")
def strided_slice_update(
    ctx: Context,
    input: Value,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    value: Value,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Value:
    """TensorStridedSliceUpdate(input, begin, end, strides, value; begin_mask=0, end_mask=0, ellipsis_mask=0,
    new_axis_mask=0, shrink_axis_mask=0) -> output"""
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return _replaced(ctx, input, _read_cut(ctx, input.type.shape, (begin, end, strides), masks), value)


@rule("ResourceStridedSliceAssign")
def strided_slice_assign(
    ctx: Context,
    ref: Operand,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    value: Value,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> None:
    """ResourceStridedSliceAssign(ref, begin, end, strides, value; begin_mask=0, end_mask=0, ellipsis_mask=0,
    new_axis_mask=0, shrink_axis_mask=0)"""
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    cut = _read_cut(ctx, read_value(ctx, ref).type.shape, (begin, end, strides), masks)
    update(ctx, ref, lambda old: _replaced(ctx, old, cut, value))


def _replaced(ctx: Context, x: Value, cut: Cut, new: Value) -> Value:
    """Returns `x` with other elements at the positions of a cut."""
    if cut.picked and cut.counts == list(x.type.shape) and all(step == 1 for step in cut.steps) and all(cut.counts):
        whole = ctx.reshape(ctx.broadcast(new, cut.shape), cut.sizes)
        return ctx.add(ops.DynamicUpdateSlice(x, whole, _places(ctx, cut)))
    hit = _put(ctx, x.type.shape, cut, ctx.full(cut.shape, True, I1))
    return ctx.select(hit, _put(ctx, x.type.shape, cut, ctx.broadcast(new, cut.shape)), x)


@rule("XlaDynamicSlice")
def xla_dynamic_slice(ctx: Context, input: Value, start_indices: Value, size_indices: Known) -> Value:
    """XlaDynamicSlice(input, start_indices, size_indices) -> output"""
    return ctx.add(ops.DynamicSlice(input, _scalars(ctx, start_indices), slice_sizes=size_indices.tolist()))


@rule("XlaDynamicUpdateSlice")
def xla_dynamic_update_slice(ctx: Context, input: Value, update: Value, indices: Value) -> Value:
    """XlaDynamicUpdateSlice(input, update, indices) -> output"""
    return ctx.add(ops.DynamicUpdateSlice(input, update, _scalars(ctx, indices)))


def _scalars(ctx: Context, x: Value) -> list[Value]:
    return [ctx.reshape(ctx.slice(x, 0, i, i + 1), ()) for i in range(x.type.shape[0])]
