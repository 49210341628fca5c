"""Gathers and scatters: indices are clamped, or skipped, by the elements that exist, and not by the space for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trivium.compiler.bounded.axes import Axis, Extent, is_fixed, listed, simple
from trivium.compiler.bounded.writer import Bounded, Unbounded, Writer, cloned, known, rule
from trivium.ir.core import Value
from trivium.ir.ops import Concatenate, DynamicGather, Gather, Maximum, Minimum, Scatter
from trivium.ir.types import I64


@rule(Gather, DynamicGather)
def gather(w: Writer, op: Any) -> list[Bounded]:
    numbers = op.dimension_numbers
    if isinstance(op, Gather):
        sizes = [axis.extent for axis in w.fixed(*op.slice_sizes)]
    else:
        sizes = listed(known(w, op.slice_sizes, "the size of a slice"))
    x, indices = w.values[op.operand], w.values[op.start_indices]
    batching = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    for d, place in batching.items():
        x = w.aligned(x, (*x.axes[:d], indices.axes[place], *x.axes[d + 1 :]))
    whole = [d for d, size in enumerate(sizes) if size == x.axes[d].extent and d not in batching]
    for d, size in enumerate(sizes):
        if d not in whole and d not in batching:
            x = w.with_simple(x, (d,))
            if not is_fixed(size):
                raise Unbounded("windows of a gather differ in size between combinations of sizes")
    starts = _clamped(w, indices, numbers, x, sizes)
    windows = [x.axes[d] if d in whole else simple(size) for d, size in enumerate(sizes)]
    dropped = {*numbers.collapsed_slice_dims, *batching}
    offsets = iter([axis for d, axis in enumerate(windows) if d not in dropped])
    batch = iter([axis for d, axis in enumerate(indices.axes) if d != numbers.index_vector_dim])
    axes = tuple(next(offsets if d in numbers.offset_dims else batch) for d in range(op.result.type.rank))
    made = Gather(x.value, starts, numbers, [axis.bound for axis in windows])
    return [Bounded(w.add(w.reading(made, [x.axes[d] for d in numbers.start_index_map])), axes)]


def _clamped(w: Writer, indices: Bounded, numbers: Any, x: Bounded, sizes: Sequence[Extent]) -> Value:
    """Returns indices so that windows are inside of the elements, along the dimensions that have space behind them."""
    if all(x.axes[d].is_fixed for d in numbers.start_index_map):
        return indices.value
    last = [
        tuple(has - size for has, size in zip(x.axes[d].extent, sizes[d], strict=True)) for d in numbers.start_index_map
    ]
    value = w.convert(indices.value, I64)
    shape = value.type.static_shape
    if numbers.index_vector_dim == len(shape):
        limits, at = w.size(last[0]), ()
    else:
        limits = w.add(Concatenate([w.reshape(w.size(extent), (1,)) for extent in last], 0))
        at = (numbers.index_vector_dim,)
    value = w.add(Minimum(value, w.spread(limits, shape, at)))
    return w.add(Maximum(value, w.spread(w.number(0), shape)))


@rule(Scatter)
def scatter(w: Writer, op: Scatter) -> list[Bounded]:
    """An update from the space behind the indices has an index outside of the inputs. One that ends in the space behind
    the inputs does no harm."""
    numbers = op.scatter_dimension_numbers
    inputs, updates = ([w.values[value] for value in values] for values in (op.inputs, op.updates))
    indices = w.values[op.scatter_indices]
    batching = dict(zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    axes = list(inputs[0].axes)
    for d, place in batching.items():
        axes[d] = indices.axes[place]
    for d in numbers.scatter_dims_to_operand_dims:
        axes[d] = simple(axes[d].extent)
    dropped = {*numbers.inserted_window_dims, *batching}
    windows = dict(zip(numbers.update_window_dims, (d for d in range(len(axes)) if d not in dropped), strict=True))
    rest = iter([axis for d, axis in enumerate(indices.axes) if d != numbers.index_vector_dim])
    wanted: list[Axis] = []
    for place, axis in enumerate(updates[0].axes):
        d = windows.get(place)
        if d is None:
            wanted.append(next(rest))
        elif axis.extent == axes[d].extent:
            wanted.append(axes[d])
        elif axis.is_fixed:
            wanted.append(axis)
        else:
            raise Unbounded("windows of a scatter differ in size between combinations of sizes")
    open_ones = [d for d, axis in enumerate(indices.axes) if d != numbers.index_vector_dim and not axis.is_fixed]
    if open_ones and not numbers.scatter_dims_to_operand_dims:
        raise Unbounded("a scatter without indices has a number of updates that differs")
    signed = Bounded(w.convert(indices.value, I64), indices.axes)
    places = w.masked(signed, open_ones, w.number(-1)).value if open_ones else indices.value
    inputs = [w.aligned(x, tuple(axes)) for x in inputs]
    updates = [w.aligned(x, tuple(wanted)) for x in updates]
    operands = [*(x.value for x in inputs), places, *(x.value for x in updates)]
    return cloned(w, op, operands, [tuple(axes)] * len(inputs))
