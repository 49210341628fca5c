"""Ops that move elements, each to a place that follows from its own, and ops that compute each element by itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from trivium.compiler.bounded.axes import (
    Axes,
    Axis,
    Extent,
    different,
    divided,
    is_fixed,
    is_one,
    joined,
    listed,
    simple,
    times,
)
from trivium.compiler.bounded.writer import Bounded, Unbounded, Writer, cloned, inferred_extents, known, rule
from trivium.compiler.passes.patterns.dynamic import size_operand
from trivium.ir.core import Value
from trivium.ir.declare import Op
from trivium.ir.ops import (
    BitcastConvert,
    BroadcastInDim,
    Concatenate,
    DynamicBroadcastInDim,
    DynamicIota,
    DynamicPad,
    DynamicReshape,
    DynamicSlice,
    DynamicUpdateSlice,
    Fft,
    GetDimensionSize,
    Iota,
    Maximum,
    Minimum,
    Pad,
    RealDynamicSlice,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from trivium.ir.ops import OptimizationBarrier as Barrier
from trivium.ir.types import I32, I64


def elementwise(w: Writer, op: Op) -> list[Bounded]:
    """Scalars among the operands, such as the bounds of a clamp, apply to all elements."""
    operands = [w.values[value] for value in op.operands]
    axes = max((x.axes for x in operands), key=lambda axes: (len(axes), sum(len(axis.parts) for axis in axes)))
    taken = [w.aligned(x, axes).value if x.axes else x.value for x in operands]
    return cloned(w, op, taken, [axes] * len(op.results))


@rule(Barrier)
def barrier(w: Writer, op: Barrier) -> list[Bounded]:
    operands = [w.values[value] for value in op.operands]
    return cloned(w, op, [x.value for x in operands], [x.axes for x in operands])


@rule(GetDimensionSize)
def get_dimension_size(w: Writer, op: GetDimensionSize) -> list[Bounded]:
    extent = w.values[op.operand].axes[op.dimension].extent
    numbers = w.noted([np.array(number, np.int32) for number in extent])
    return [Bounded(w.convert(w.size(extent), I32), (), numbers)]


@rule(DynamicIota)
def dynamic_iota(w: Writer, op: DynamicIota) -> list[Bounded]:
    axes = tuple(map(simple, listed(known(w, op.output_shape, "a shape"))))
    kind = op.result.type.with_shape(tuple(axis.bound for axis in axes))
    return [Bounded(w.add(Iota(op.iota_dimension, result=kind)), axes)]


@rule(BroadcastInDim, DynamicBroadcastInDim)
def broadcast_in_dim(w: Writer, op: Any) -> list[Bounded]:
    x = w.values[op.operand]
    is_static = isinstance(op, BroadcastInDim)
    extents = _stated(w, op.result) if is_static else listed(known(w, op.output_dimensions, "a shape"))
    axes = list(map(simple, extents))
    for axis, dimension in zip(x.axes, op.broadcast_dimensions, strict=True):
        if axis.extent == axes[dimension].extent:
            axes[dimension] = axis
        elif not is_one(axis.extent):
            other = different(axis.extent, axes[dimension].extent)
            wrong = [number for number in other if axis.extent[number] != 1]
            raise Unbounded("a dimension is repeated in some combinations of sizes, and not in others", wrong)
    return [Bounded(w.spread(x.value, [axis.bound for axis in axes], op.broadcast_dimensions), tuple(axes))]


@rule(Transpose)
def transpose(w: Writer, op: Transpose) -> list[Bounded]:
    x = w.values[op.operand]
    return cloned(w, op, [x.value], [tuple(x.axes[d] for d in op.permutation)])


@rule(Reshape, DynamicReshape)
def reshape(w: Writer, op: Any) -> list[Bounded]:
    """The parts of dimensions stay as they are; dimensions of the result are made of several, or of a piece of one."""
    x = w.values[op.operand]
    is_static = isinstance(op, Reshape)
    extents = _stated(w, op.result) if is_static else listed(known(w, op.output_shape, "a shape"))
    one = (1,) * w.combinations
    has, wanted = (functools.reduce(times, each, one) for each in ([axis.extent for axis in x.axes], extents))
    if has != wanted:
        raise Unbounded(
            "a reshape has another number of elements in some combinations of sizes", different(has, wanted)
        )
    x, axes = _regrouped(w, x, extents)
    return [Bounded(w.reshape(x.value, [axis.bound for axis in axes]), axes)]


def _regrouped(w: Writer, x: Bounded, extents: Sequence[Extent]) -> tuple[Bounded, Axes]:
    """Returns the dimensions of the result, and the operand with space where they have it."""
    if any(0 in extent for axis in x.axes for extent in axis.parts):
        raise Unbounded("a reshape of a value that may be empty")
    left = [[d, part] for d, axis in enumerate(x.axes) for part in axis.parts if not is_one(part)]
    axes: list[Axis] = []
    for extent in extents:
        parts: list[Extent] = []
        wanted = extent
        while not is_one(wanted):
            dimension, part = left[0]
            rest = divided(wanted, part)
            if rest is not None:
                left.pop(0)
            else:
                remainder = divided(part, wanted)
                if remainder is None:
                    raise Unbounded("a reshape parts a dimension differently in different combinations of sizes")
                if not is_fixed(remainder):
                    x = _parted(w, x, dimension, part, (wanted, remainder))
                part, rest, left[0] = wanted, (1,) * w.combinations, [dimension, remainder]
            parts.append(part)
            wanted = rest
        axes.append(joined(parts, w.combinations))
    return x, tuple(axes)


def _parted(w: Writer, x: Bounded, dimension: int, part: Extent, pieces: tuple[Extent, Extent]) -> Bounded:
    """Returns `x` with space behind both of the pieces that one part of a dimension is made of."""
    axis = x.axes[dimension]
    if axis.parts != (part,):
        raise Unbounded("a reshape parts a dimension that is made of several")
    return w.aligned(x, (*x.axes[:dimension], Axis(pieces), *x.axes[dimension + 1 :]))


@rule(Reverse)
def reverse(w: Writer, op: Reverse) -> list[Bounded]:
    """The elements are then behind the space, from where a slice takes them."""
    x = w.with_simple(w.values[op.operand], op.dimensions)
    (result,) = cloned(w, op, [x.value], [x.axes])
    value = result.value
    for dimension in op.dimensions:
        axis = x.axes[dimension]
        if not axis.is_fixed:
            start = w.size(tuple(axis.bound - number for number in axis.extent))
            value = window(w, value, dimension, start, axis.bound, axis.bound)
    return [Bounded(value, x.axes)]


def window(w: Writer, x: Value, dimension: int, start: Value, length: int, most: int) -> Value:
    """Returns `length` places along a dimension, from `start` on, which is at most `most`."""
    x = w.resized(x, dimension, max(x.type.static_shape[dimension], most + length))
    zero = w.number(0)
    sizes = [length if d == dimension else extent for d, extent in enumerate(x.type.static_shape)]
    return w.add(DynamicSlice(x, [start if d == dimension else zero for d in range(x.type.rank)], sizes))


@rule(Slice)
def slice_(w: Writer, op: Slice) -> list[Bounded]:
    lists = (op.start_indices, op.limit_indices, op.strides)
    return _sliced(w, op, *(_fixed(w, entries) for entries in lists))


@rule(RealDynamicSlice)
def real_dynamic_slice(w: Writer, op: RealDynamicSlice) -> list[Bounded]:
    if w.values[op.start_indices].numbers is None and (sizes := size_operand(op)) is not None:
        starts = w.values[op.start_indices].value
        scalars = [w.reshape(w.add(Slice(starts, (d,), (d + 1,), (1,))), ()) for d in range(op.operand.type.rank)]
        return [
            _box(w, w.values[op.operand], scalars, tuple(map(simple, listed(known(w, sizes, "the size of a slice")))))
        ]
    lists = op.start_indices, op.limit_indices, op.strides
    return _sliced(w, op, *(listed(known(w, value, "the place of a slice")) for value in lists))


def _sliced(w: Writer, op: Any, starts: Sequence[Extent], limits: Sequence[Extent], strides: Sequence[Extent]) -> list:
    x = w.values[op.operand]
    axes, value = list(x.axes), x.value
    for d, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        if set(start) == {0} and set(stride) == {1} and limit == x.axes[d].extent:
            continue
        value = w.with_simple(Bounded(value, tuple(axes)), (d,)).value
        if not is_fixed(stride):
            raise Unbounded("a slice has different strides in different combinations of sizes")
        step = stride[0]
        extent = tuple(max(0, -(-(last - first) // step)) for first, last in zip(start, limit, strict=True))
        axes[d] = simple(extent)
        length = (axes[d].bound - 1) * step + 1 if axes[d].bound else 0
        if is_fixed(start):
            value = w.resized(value, d, max(value.type.static_shape[d], start[0] + length))
        else:
            value, start = window(w, value, d, w.size(start), length, max(start)), (0,)
        rank = value.type.rank
        shape = value.type.static_shape
        first = [start[0] if each == d else 0 for each in range(rank)]
        last = [start[0] + length if each == d else extent for each, extent in enumerate(shape)]
        by = [step if each == d else 1 for each in range(rank)]
        value = w.add(Slice(value, first, last, by))
    return [Bounded(value, tuple(axes))]


@rule(Pad, DynamicPad)
def pad(w: Writer, op: Any) -> list[Bounded]:
    """What is padded is behind the elements, wherever these end."""
    x, fill = w.values[op.operand], w.values[op.padding_value].value
    fields = ("edge_padding_low", "edge_padding_high", "interior_padding")
    if isinstance(op, Pad):
        lists = [_fixed(w, getattr(op, field)) for field in fields]
    else:
        lists = [listed(known(w, getattr(op, field), "a padding")) for field in fields]
    low, high, between = lists
    moved = [d for d in range(len(x.axes)) if any(set(numbers[d]) != {0} for numbers in lists)]
    if not all(is_fixed(numbers[d]) for numbers in (low, between) for d in moved):
        raise Unbounded("a padding before or between elements differs between combinations of sizes")
    x = w.masked(w.with_simple(x, moved), moved, fill)
    axes = list(x.axes)
    lows, highs, betweens = ([0] * len(axes) for _ in range(3))
    for d in moved:
        extent = axes[d].extent
        edges = zip(extent, low[d], between[d], high[d], strict=True)
        axes[d] = simple(tuple(a + n + max(n - 1, 0) * i + b for n, a, i, b in edges))
        lows[d], betweens[d] = low[d][0], between[d][0]
        space = max(extent)
        highs[d] = axes[d].bound - (lows[d] + space + max(space - 1, 0) * betweens[d])
    return [Bounded(w.add(Pad(x.value, fill, lows, highs, betweens)), tuple(axes))]


@rule(Concatenate)
def concatenate(w: Writer, op: Concatenate) -> list[Bounded]:
    """Each piece is written behind the elements of the one before it, over its space."""
    pieces = [w.values[value] for value in op.operands]
    axes = list(max((x.axes for x in pieces), key=lambda axes: sum(len(axis.parts) for axis in axes)))
    d = op.dimension
    pieces = [w.aligned(w.with_simple(x, (d,)), (*axes[:d], simple(x.axes[d].extent), *axes[d + 1 :])) for x in pieces]
    ends = [x.axes[d].extent for x in pieces]
    axes[d] = simple(tuple(map(sum, zip(*ends, strict=True))))
    if all(x.axes[d].is_fixed for x in pieces[:-1]):
        return cloned(w, op, [x.value for x in pieces], [tuple(axes)])
    placed = _with_starts(pieces, d)
    reached = max(max(before) + x.axes[d].bound for before, x in placed)
    value = w.resized(pieces[0].value, d, max(reached, axes[d].bound))
    zero = w.number(0)
    for start, x in placed[1:]:
        at = w.size(start)
        value = w.add(DynamicUpdateSlice(value, x.value, [at if e == d else zero for e in range(len(axes))]))
    return [Bounded(w.resized(value, d, axes[d].bound), tuple(axes))]


def _with_starts(pieces: Sequence[Bounded], dimension: int) -> list[tuple[Extent, Bounded]]:
    start, found = tuple(0 for _ in pieces[0].axes[dimension].extent), []
    for x in pieces:
        found.append((start, x))
        start = tuple(a + b for a, b in zip(start, x.axes[dimension].extent, strict=True))
    return found


@rule(DynamicSlice)
def dynamic_slice(w: Writer, op: DynamicSlice) -> list[Bounded]:
    x = w.values[op.operand]
    starts = [w.values[value].value for value in op.start_indices]
    return [_box(w, x, starts, w.fixed(*op.slice_sizes))]


def _box(w: Writer, x: Bounded, starts: Sequence[Value], sizes: Axes) -> Bounded:
    """Returns a box at places that depend on data: of a size, or all of a dimension."""
    starts, axes = [w.convert(start, I64) for start in starts], list(sizes)
    for d, (has, size) in enumerate(zip(x.axes, sizes, strict=True)):
        if has.extent == size.extent:
            starts[d], axes[d] = w.number(0), has
        elif not size.is_fixed:
            raise Unbounded("a box at a place that depends on data differs in size between combinations of sizes")
        elif not has.is_fixed:
            x = w.with_simple(x, (d,))
            starts[d] = inside(w, starts[d], has.extent, size.bound)
    return Bounded(w.add(DynamicSlice(x.value, starts, [axis.bound for axis in axes])), tuple(axes))


@rule(DynamicUpdateSlice)
def dynamic_update_slice(w: Writer, op: DynamicUpdateSlice) -> list[Bounded]:
    x, update = w.values[op.operand], w.values[op.update]
    starts = [w.convert(w.values[value].value, I64) for value in op.start_indices]
    for d, (has, given) in enumerate(zip(x.axes, update.axes, strict=True)):
        if has.extent == given.extent:
            update = w.aligned(update, (*update.axes[:d], has, *update.axes[d + 1 :]))
            starts[d] = w.number(0)
        elif not given.is_fixed:
            raise Unbounded("an update has space behind its elements, where the operand has others")
        elif not has.is_fixed:
            x = w.with_simple(x, (d,))
            starts[d] = inside(w, starts[d], has.extent, given.extent[0])
    return cloned(w, op, [x.value, update.value, *starts], [x.axes])


def inside(w: Writer, start: Value, extent: Extent, size: int) -> Value:
    """Returns a start index so that a box of a size is inside of the elements, where there is space behind them."""
    last = w.size(tuple(number - size for number in extent))
    return w.add(Maximum(w.add(Minimum(w.convert(start, I64), last)), w.number(0)))


def _stated(w: Writer, result: Value) -> tuple[Extent, ...]:
    """Returns the extents of a type in all combinations."""
    return _fixed(w, result.type.static_shape)


def _fixed(w: Writer, numbers: Sequence[int]) -> tuple[Extent, ...]:
    return tuple(axis.parts[0] for axis in w.fixed(*numbers))


@rule(BitcastConvert)
def bitcast_convert(w: Writer, op: BitcastConvert) -> list[Bounded]:
    """The result has the dimensions of the operand, and one for the parts of a wide element."""
    x, rank = w.values[op.operand], op.result.type.rank
    if rank < len(x.axes) and not x.axes[-1].is_fixed:
        raise Unbounded("the parts of an element differ between combinations of sizes")
    if rank <= len(x.axes):
        return cloned(w, op, [x.value], [x.axes[:rank]])
    return cloned(w, op, [x.value], [(*x.axes, *w.fixed(op.result.type.shape[-1]))])


@rule(Fft)
def fft(w: Writer, op: Fft) -> list[Bounded]:
    x = w.values[op.operand]
    batch = len(x.axes) - len(op.fft_length)
    if not all(axis.is_fixed for axis in x.axes[batch:]):
        raise Unbounded("the length of a transform differs between combinations of sizes")
    return cloned(w, op, [x.value], [(*x.axes[:batch], *map(simple, inferred_extents(w, op)[batch:]))])
