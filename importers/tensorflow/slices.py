"""Slices, and writing to them. A bound is known during import, or a size that the program computes; an index, which
picks one slice of a dimension, may be any value of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trivium.importers.extents import (
    Extent,
    Size,
    clamped,
    from_front,
    is_number,
    larger,
    numbers_of,
    scalar_of,
    smaller,
)
from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.state import read_value, update
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1


@dataclass(frozen=True)
class Cut:
    """A strided slice: for each dimension a start, a number of elements and a step; then the shape of the result. The
    dimensions in `picked` are whole here; of each of them, the result has the slice at an index."""

    starts: list[Extent]
    counts: list[Extent]
    steps: list[int]
    shape: list[Extent]
    picked: dict[int, Value]

    @property
    def sizes(self) -> list[Extent]:
        """The number of elements of each dimension, before some are dropped and others inserted."""
        return [1 if d in self.picked else count for d, count in enumerate(self.counts)]


def cut_of(
    ctx: Context,
    shape: Sequence[Extent],
    begin: Sequence[Extent],
    end: Sequence[Extent],
    strides: Sequence[int],
    masks: Sequence[int],
) -> Cut:
    """Decodes NumPy's basic indexing in TensorFlow's form. Bit `i` of the masks (begin, end, ellipsis, new axis, shrink
    axis) refers to entry `i`."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = masks
    cut = Cut([], [], [], [], {})

    def keep(start: Extent, count: Extent, step: int) -> None:
        cut.starts.append(start)
        cut.counts.append(count)
        cut.steps.append(step)

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
            index, extent = begin[i], shape[at]
            if isinstance(index, int) and isinstance(extent, int):
                keep(ctx.axis(index, extent, "begin"), 1, 1)
            elif isinstance(index, int):
                keep(from_front(ctx, index, extent), 1, 1)
            else:
                cut.picked[at] = scalar_of(ctx, from_front(ctx, index, extent))
                keep(0, extent, 1)
        else:
            first = None if _has(begin_mask, i) else begin[i]
            last = None if _has(end_mask, i) else end[i]
            start, count = _span(ctx, shape[at], first, last, strides[i])
            keep(start, count, strides[i])
            cut.shape.append(count)
    for extent in shape[len(cut.starts) :]:
        keep(0, extent, 1)
        cut.shape.append(extent)
    return cut


def _has(mask: int, i: int) -> bool:
    return bool(mask >> i & 1)


def _span(ctx: Context, extent: Extent, first: Extent | None, last: Extent | None, step: int) -> tuple[Extent, Extent]:
    """Returns where a slice of a dimension starts, and how many elements it has."""
    if isinstance(extent, int) and not isinstance(first, Size) and not isinstance(last, Size):
        places = range(*slice(first, last, step).indices(extent))
        return (places.start if len(places) else 0), len(places)
    if ctx.room is not None:
        ctx.unsupported("begin", "a value computed at run time", "indices, or bounds that are known")
    if first is None and last is None:
        return (0 if step > 0 else extent - 1), (extent + abs(step) - 1) // abs(step)
    # Backwards, bounds lie one before those of the forward direction.
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    ends = [low, high] if step > 0 else [high, low]
    for i, bound in enumerate((first, last)):
        if bound is not None:
            is_edge = is_number(bound, 0) and step > 0
            ends[i] = 0 if is_edge else clamped(ctx, from_front(ctx, bound, extent), low, high)
    length = ends[1] - ends[0] if step > 0 else ends[0] - ends[1]
    length = length if is_number(ends[0], 0) and step > 0 else larger(ctx, length, 0)
    return ends[0], (length + abs(step) - 1) // abs(step)


def _read_cut(ctx: Context, shape: Sequence[Extent], bounds: Sequence[Tensor], masks: Sequence[int]) -> Cut:
    begin, end = (ctx.entries(x, name) for x, name in zip(bounds[:2], ("begin", "end"), strict=True))
    steps = ctx.known(bounds[2], "strides").tolist()
    if not len(begin) == len(end) == len(steps):
        ctx.unsupported("strides", steps, f"as many as begin, {len(begin)}, and end, {len(end)}")
    if 0 in steps:
        ctx.unsupported("strides", steps, "numbers that are not zero")
    return cut_of(ctx, shape, begin, end, steps, masks)


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
    cut = _read_cut(ctx, ctx.extents(input), (begin, end, strides), masks)
    return ctx.reshape(_taken(ctx, input, cut), cut.shape)


def _taken(ctx: Context, x: Value, cut: Cut) -> Value:
    if any(is_number(count, 0) for count in cut.counts):
        return ctx.full(cut.sizes, 0, x.type.element_type)
    # A backward slice is a forward one, then reversed.
    ends = [_ends(ctx, *span) for span in zip(cut.starts, cut.counts, cut.steps, strict=True)]
    lows, highs = numbers_of([low for low, _ in ends]), numbers_of([high for _, high in ends])
    backwards = tuple(i for i, step in enumerate(cut.steps) if step < 0)
    steps = [abs(step) for step in cut.steps]
    if lows is None or highs is None or not x.type.is_static:
        for dimension, ((low, high), count) in enumerate(zip(ends, cut.counts, strict=True)):
            whole = steps[dimension] == 1
            x = ctx.window(x, dimension, low, count) if whole else ctx.slice(x, dimension, low, high, steps[dimension])
    elif any(lows) or highs != x.type.shape or any(step != 1 for step in steps):
        x = ctx.add(ops.Slice(x, start_indices=lows, limit_indices=highs, strides=steps))
    x = ctx.add(ops.Reverse(x, dimensions=backwards)) if backwards else x
    sizes = numbers_of(cut.sizes)
    if sizes is not None and cut.picked:
        return ctx.add(ops.DynamicSlice(x, _places(ctx, cut), slice_sizes=sizes))
    for dimension, place in cut.picked.items():
        x = ctx.unsqueeze(ctx.take(x, place, dimension), [dimension])
    return x


def _ends(ctx: Context, start: Extent, count: Extent, step: int) -> tuple[Extent, Extent]:
    """Returns the bounds of a slice in the forward direction."""
    if step == 1:
        return start, start + count
    low, high = start, start + (count - 1) * step + 1
    if step < 0:
        low, high = high - 1, start + 1
    if isinstance(count, int):
        return low, high
    # Of no elements, both bounds are the same.
    return (low, larger(ctx, high, low)) if step > 0 else (smaller(ctx, low, high), high)


def _places(ctx: Context, cut: Cut) -> list[Value]:
    """Returns where the slice at the computed indices begins."""
    zero = ctx.constant_like(next(iter(cut.picked.values())), 0)
    return [cut.picked.get(d, zero) for d in range(len(cut.counts))]


@rule("StridedSliceGrad")
def strided_slice_grad(
    ctx: Context,
    shape: Tensor,
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
    extents = ctx.given_shape(shape)
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return _put(ctx, extents, _read_cut(ctx, extents, (begin, end, strides), masks), dy)


def _put(ctx: Context, extents: Sequence[Extent], cut: Cut, x: Value) -> Value:
    """Returns `x` among zeros, at the positions from which a cut of an array of the given extents would take it."""
    if any(is_number(count, 0) for count in cut.counts):
        return ctx.full(extents, 0, x.type.element_type)
    x = ctx.reshape(x, cut.sizes)
    if cut.picked:
        x = ctx.add(ops.DynamicUpdateSlice(ctx.full(cut.counts, 0, x.type.element_type), x, _places(ctx, cut)))
    if backwards := tuple(i for i, step in enumerate(cut.steps) if step < 0):
        x = ctx.add(ops.Reverse(x, dimensions=backwards))
    low, high, interior = [], [], []
    for extent, start, count, step in zip(extents, cut.starts, cut.counts, cut.steps, strict=True):
        first, after = _ends(ctx, start, count, step)
        low.append(first)
        high.append(extent - after)
        interior.append(abs(step) - 1 if count != 1 else 0)
    return ctx.pad(x, low, high, 0, interior)


@rule("Slice")
def slice_(ctx: Context, input: Value, begin: Tensor, size: Tensor) -> Value:
    """Slice(input, begin, size) -> output"""
    shape, starts = ctx.extents(input), ctx.entries(begin, "begin")
    given = zip(shape, starts, ctx.given_sizes(size, "size"), strict=True)
    counts = [extent - at if n == -1 else n for extent, at, n in given]
    if ctx.room is not None and numbers_of(counts) is None:
        ctx.unsupported("size", "-1", "known sizes, with a begin that is computed at run time")
    known, places = numbers_of(counts), numbers_of(starts)
    if places is None and known is not None:
        return ctx.add(ops.DynamicSlice(input, _scalars(ctx, ctx.value(begin)), slice_sizes=known))
    if places is not None and known is not None and input.type.is_static:
        limits = [at + n for at, n in zip(places, known, strict=True)]
        return ctx.add(ops.Slice(input, start_indices=places, limit_indices=limits, strides=[1] * len(shape)))
    for dimension, (at, count) in enumerate(zip(starts, counts, strict=True)):
        input = ctx.window(input, dimension, at, count)
    return input


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
    return _replaced(ctx, input, _read_cut(ctx, ctx.extents(input), (begin, end, strides), masks), value)


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
    cut = _read_cut(ctx, ctx.extents(read_value(ctx, ref)), (begin, end, strides), masks)
    update(ctx, ref, lambda old: _replaced(ctx, old, cut, value))


def _replaced(ctx: Context, x: Value, cut: Cut, new: Value) -> Value:
    """Returns `x` with other elements at the positions of a cut."""
    extents = ctx.extents(x)
    if cut.picked and cut.counts == extents and all(step == 1 for step in cut.steps) and all(cut.counts):
        whole = ctx.reshape(ctx.broadcast(new, cut.shape), cut.sizes)
        return ctx.add(ops.DynamicUpdateSlice(x, whole, _places(ctx, cut)))
    hit = _put(ctx, extents, cut, ctx.full(cut.shape, True, I1))
    return ctx.select(hit, _put(ctx, extents, cut, ctx.broadcast(new, cut.shape)), x)


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
