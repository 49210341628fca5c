"""Reductions, scans, sorts and searches along dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import ml_dtypes
import numpy as np

from trivium.importers.emit import lowest
from trivium.importers.extents import Extent, larger
from trivium.importers.searching import places_in
from trivium.importers.tensorflow.context import Context, Known, Tensor, rule
from trivium.importers.tensorflow.segments import segments
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, I32, I64, is_complex, is_float, is_integer

REDUCTIONS = {
    "All": ops.And,
    "Any": ops.Or,
    "Max": ops.Maximum,
    "Min": ops.Minimum,
    "Prod": ops.Multiply,
    "Sum": ops.Add,
}


def _register() -> None:
    for name, op in REDUCTIONS.items():
        rule.add(name, _reduction(op))


def _reduction(op: type):
    def reduce(ctx: Context, input: Value, reduction_indices: Known, *, keep_dims: bool) -> Value:
        """Sum(input, reduction_indices; keep_dims=false) -> output"""
        return _wide(ctx, op, input, ctx.axes(reduction_indices, input.type.rank, "reduction_indices"), keep_dims)

    return reduce


def _wide(ctx: Context, op: type, x: Value, dimensions: tuple[int, ...], keep: bool = False) -> Value:
    """Reduces; narrow floats are summed in 32 bits, as in TensorFlow."""
    kind = x.type.element_type
    if op in (ops.Add, ops.Multiply) and is_float(kind) and kind.width < 32:
        return ctx.convert(ctx.reduce(op, ctx.convert(x, F32), dimensions, keep), kind)
    return ctx.reduce(op, x, dimensions, keep)


_register()


@rule("Mean")
def mean(ctx: Context, input: Value, reduction_indices: Known, *, keep_dims: bool) -> Value:
    """Mean(input, reduction_indices; keep_dims=false) -> output"""
    dimensions = ctx.axes(reduction_indices, input.type.rank, "reduction_indices")
    kind = input.type.element_type
    if not dimensions:
        return input
    count = ctx.count(input, dimensions)
    if not is_float(kind):  # Without elements, the mean of floats alone is NaN.
        count = larger(ctx, count, 1)
    if is_float(kind) or is_complex(kind) or kind.width == 64:
        return ctx.over(_wide(ctx, ops.Add, input, dimensions, keep_dims), ctx.number_as(count, kind))
    # TensorFlow sums integers in 64 bits.
    total = ctx.reduce(ops.Add, ctx.convert(input, I64), dimensions, keep_dims)
    return ctx.convert(ctx.over(total, ctx.number_as(count, I64)), kind)


@rule("EuclideanNorm")
def euclidean_norm(ctx: Context, input: Value, reduction_indices: Known, *, keep_dims: bool) -> Value:
    """EuclideanNorm(input, reduction_indices; keep_dims=false) -> output"""
    dimensions = ctx.axes(reduction_indices, input.type.rank, "reduction_indices")
    other = ctx.add(ops.Conj(input)) if is_complex(input.type.element_type) else input
    total = _wide(ctx, ops.Add, ctx.times(input, other), dimensions, keep_dims)
    kind = total.type.element_type
    if is_integer(kind):
        return ctx.convert(ctx.add(ops.Sqrt(ctx.convert(total, F64))), kind)
    return ctx.add(ops.Sqrt(total))


@rule("L2Loss")
def l2_loss(ctx: Context, t: Value) -> Value:
    """L2Loss(t) -> output"""
    return ctx.scaled(_wide(ctx, ops.Add, ctx.times(t, t), tuple(range(t.type.rank))), 0.5)


@rule("ArgMax")
def arg_max(ctx: Context, input: Value, dimension: Known) -> Value:
    """ArgMax(input, dimension) -> output"""
    return _place_of(ctx, "GT", "LE", input, dimension)


@rule("ArgMin")
def arg_min(ctx: Context, input: Value, dimension: Known) -> Value:
    """ArgMin(input, dimension) -> output"""
    return _place_of(ctx, "LT", "GE", input, dimension)


def _place_of(ctx: Context, direction: str, not_beyond: str, x: Value, dimension: Known) -> Value:
    """Returns where the largest or smallest element is. TensorFlow's kernel looks for one that is beyond the lowest, or
    highest, finite number, passes over NaN, and otherwise finds the first element."""
    at, kind = ctx.axis(dimension, x.type.rank, "dimension"), x.type.element_type
    if is_float(kind):
        info, infinite = ml_dtypes.finfo(kind.dtype), -math.inf if direction == "GT" else math.inf
        end = ctx.scalar(float(info.min if direction == "GT" else info.max), kind)
        passed = ctx.binary(ops.Or, ctx.compare("NE", x, x), ctx.compare(not_beyond, x, end))
        x = ctx.select(passed, ctx.full_like(x, infinite), x)
    return ctx.convert(ctx.arg_reduce(direction, x, at)[1], ctx.element_type)


# Sorting


@rule("TopKV2")
def top_k(ctx: Context, input: Value, k: Tensor, *, sorted: bool) -> Sequence[Value]:
    """TopKV2(input, k; sorted=true) -> values, indices"""
    # Whether or not sorting is requested, both allow the order with the largest first.
    (count,) = [int(ctx.known(k, "k"))] if ctx.of_ranges else ctx.given_sizes(k, "k")
    last, kind = input.type.rank - 1, ctx.result_types[1].element_type
    if isinstance(count, int):
        values, indices = ctx.add(ops.TopK(input, k=count))
        return [values, ctx.convert(indices, kind)]
    both = [input, ctx.iota(ctx.extents(input), last, kind)]
    return [ctx.slice(x, last, 0, count) for x in ctx.sort(both, last, descending=True, total=True)]


@rule("NthElement")
def nth_element(ctx: Context, input: Value, n: Value, *, reverse: bool) -> Value:
    """NthElement(input, n; reverse=false) -> values"""
    last = input.type.rank - 1
    (ordered,) = ctx.sort([input], last)
    if reverse:
        n = ctx.minus(ctx.number_as(ctx.extent(input, last) - 1, I32), n)
    return ctx.take(ordered, n, last)


@rule("ApproxTopK")
def approximate_top_k(
    ctx: Context,
    input: Value,
    *,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> Sequence[Value]:
    """ApproxTopK(input; k, reduction_dimension=-1, recall_target=0.95, is_max_k=true, reduction_input_size_override=-1,
    aggregate_to_topk=true) -> values, indices: the exact ones, as many as the result has"""
    dimension = ctx.axis(reduction_dimension, input.type.rank, "reduction_dimension")
    places = ctx.iota(input.type.static_shape, dimension, I32)
    count = k if aggregate_to_topk else ctx.result.static_shape[dimension]
    return [ctx.slice(x, dimension, 0, count) for x in ctx.sort([input, places], dimension, descending=is_max_k)]


@rule("InTopKV2")
def in_top_k(ctx: Context, predictions: Value, targets: Value, k: Known) -> Value:
    """InTopKV2(predictions, targets, k) -> precision"""
    places = ctx.iota(ctx.extents(predictions), 1, targets.type.element_type)
    at = ctx.compare("EQ", ctx.unsqueeze(targets, [1]), places)
    nothing = ctx.full_like(predictions, 0)
    chosen = ctx.reduce(ops.Add, ctx.select(at, predictions, nothing), [1], keep=True)
    better = ctx.convert(ctx.compare("GT", predictions, chosen), I32)
    few = ctx.compare("LT", ctx.reduce(ops.Add, better, [1]), ctx.scalar(int(k), I32))
    finite = ctx.reduce(ops.And, ctx.add(ops.IsFinite(predictions)), [1])
    exists = ctx.reduce(ops.Or, at, [1])
    return ctx.add(ops.And(ctx.add(ops.And(few, finite)), exists))


@rule("InTopK")
def in_top_k_attribute(ctx: Context, predictions: Value, targets: Value, *, k: int) -> Value:
    """InTopK(predictions, targets; k) -> precision"""
    return in_top_k(ctx, predictions, targets, np.array(k))


@rule("Bucketize")
def bucketize(ctx: Context, input: Value, *, boundaries: tuple[float, ...]) -> Value:
    """Bucketize(input; boundaries) -> output"""
    kind = F64 if input.type.element_type is F64 else F32
    edges = ctx.elements(np.array(boundaries, np.float32).astype(kind.dtype))
    return _upper_bound(ctx, edges, ctx.convert(input, kind))


@rule("LowerBound")
def lower_bound(ctx: Context, sorted_inputs: Value, values: Value) -> Value:
    """LowerBound(sorted_inputs, values) -> output"""
    return places_in(ctx, sorted_inputs, values, partial(ctx.compare, "LT"), ctx.element_type)


@rule("UpperBound")
def upper_bound(ctx: Context, sorted_inputs: Value, values: Value) -> Value:
    """UpperBound(sorted_inputs, values) -> output"""
    return _upper_bound(ctx, sorted_inputs, values)


def _upper_bound(ctx: Context, rows: Value, x: Value) -> Value:
    """Returns how many elements of its row are not greater than each number; none are greater than NaN."""
    return places_in(ctx, rows, x, lambda one, other: ctx.add(ops.Not(ctx.compare("GT", one, other))), ctx.element_type)


# Scans


@rule("Cumsum")
def cumsum(ctx: Context, x: Value, axis: Known, *, exclusive: bool, reverse: bool) -> Value:
    """Cumsum(x, axis; exclusive=false, reverse=false) -> out"""
    return ctx.cumulative(ops.Add, x, ctx.axis(axis, x.type.rank), reverse, exclusive)


@rule("Cumprod")
def cumprod(ctx: Context, x: Value, axis: Known, *, exclusive: bool, reverse: bool) -> Value:
    """Cumprod(x, axis; exclusive=false, reverse=false) -> out"""
    return ctx.cumulative(ops.Multiply, x, ctx.axis(axis, x.type.rank), reverse, exclusive)


@rule("CumulativeLogsumexp")
def cumulative_logsumexp(ctx: Context, x: Value, axis: Known, *, exclusive: bool, reverse: bool) -> Value:
    """CumulativeLogsumexp(x, axis; exclusive=false, reverse=false) -> out"""
    dimension = ctx.axis(axis, x.type.rank)
    extent = x.type.shape[dimension]
    if extent is None:
        ctx.unsupported("x", f"the type {x.type}", f"a known extent of dimension {dimension}")
    if reverse:
        x = ctx.add(ops.Reverse(x, dimensions=[dimension]))
    if exclusive:
        x = _moved(ctx, x, dimension, 1, lowest(x.type.element_type))
    step = 1
    while step < extent:
        x = _log_add_exp(ctx, x, _moved(ctx, x, dimension, step, -math.inf))
        step *= 2
    return ctx.add(ops.Reverse(x, dimensions=[dimension])) if reverse else x


def _moved(ctx: Context, x: Value, dimension: int, step: int, first: float) -> Value:
    """Returns `x` moved towards higher indices, with a number before it."""
    edge = [step if d == dimension else 0 for d in range(x.type.rank)]
    return ctx.pad(x, edge, [-n for n in edge], first)


def _log_add_exp(ctx: Context, x: Value, y: Value) -> Value:
    """Returns `log(exp(x) + exp(y))`, where neither power needs to be a number."""
    largest = ctx.binary(ops.Maximum, x, y)
    power = ctx.add(ops.Exponential(ctx.minus(ctx.binary(ops.Minimum, x, y), largest)))
    total = ctx.plus(largest, ctx.add(ops.LogPlusOne(power)))
    return ctx.select(ctx.add(ops.IsFinite(largest)), total, largest)


# Counting


@rule("Bincount")
def bincount(ctx: Context, arr: Value, size: Tensor, weights: Value) -> Value:
    """Bincount(arr, size, weights) -> bins"""
    (count,) = ctx.given_sizes(size, "size")
    numbers = ctx.flattened(arr)
    row = ctx.convert(ctx.full_like(numbers, 0), I64)
    return ctx.squeeze(_bins(ctx, numbers, row, (1, count), weights), [0])


@rule("HistogramFixedWidth")
def histogram(ctx: Context, values: Value, value_range: Value, nbins: Tensor) -> Value:
    """HistogramFixedWidth(values, value_range, nbins; dtype=DT_INT32) -> out: what is beyond the range counts at its
    ends"""
    (count,) = ctx.given_sizes(nbins, "nbins")
    low, high = (ctx.reshape(ctx.slice(value_range, 0, i, i + 1), ()) for i in range(2))
    step = ctx.over(ctx.convert(ctx.minus(high, low), F64), ctx.number_as(count, F64))
    above = ctx.minus(ctx.binary(ops.Maximum, ctx.flattened(values), low), low)
    bins = ctx.binary(ops.Minimum, ctx.over(ctx.convert(above, F64), step), ctx.number_as(count - 1, F64))
    return segments(ctx, ops.Add, ctx.full_like(ctx.convert(bins, ctx.element_type), 1), ctx.convert(bins, I32), count)


@rule("DenseBincount")
def dense_bincount(ctx: Context, input: Value, size: Tensor, weights: Value, *, binary_output: bool) -> Value:
    """DenseBincount(input, size, weights; binary_output=false) -> output: of each row, if `input` has several"""
    rows = input if input.type.rank == 2 else ctx.unsqueeze(ctx.flattened(input), [0])
    (count,) = ctx.given_sizes(size, "size")
    found = _bins(ctx, rows, ctx.iota_like(rows, 0), (ctx.extent(rows, 0), count), weights, binary_output)
    return ctx.reshape(found, (*ctx.extents(input)[:-1], count))


@rule("RaggedBincount")
def ragged_bincount(
    ctx: Context, splits: Value, values: Value, size: Tensor, weights: Value, *, binary_output: bool
) -> Value:
    """RaggedBincount(splits, values, size, weights; binary_output=false) -> output"""
    (count,) = ctx.given_sizes(size, "size")
    number = ctx.extent(splits, 0) - 1
    ends = ctx.slice(splits, 0, 1, number + 1)
    row = places_in(ctx, ends, ctx.convert(ctx.iota_like(values, 0), I64), partial(ctx.compare, "LE"), I64)
    return _bins(ctx, values, row, (number, count), weights, binary_output)


@rule("SparseBincount")
def sparse_bincount(
    ctx: Context,
    indices: Value,
    values: Value,
    dense_shape: Tensor,
    size: Tensor,
    weights: Value,
    *,
    binary_output: bool,
) -> Value:
    """SparseBincount(indices, values, dense_shape, size, weights; binary_output=false) -> output"""
    (count,), shape = ctx.given_sizes(size, "size"), ctx.given_sizes(dense_shape, "dense_shape")
    if len(shape) > 2:
        ctx.unsupported("dense_shape", f"{len(shape)} dimensions", "one or two")
    first = ctx.squeeze(ctx.slice(indices, 1, 0, 1), [1])
    row = first if len(shape) == 2 else ctx.full_like(first, 0)
    found = _bins(ctx, values, row, (shape[0] if len(shape) == 2 else 1, count), weights, binary_output)
    return ctx.reshape(found, (*shape[:-1], count))


def _bins(
    ctx: Context, numbers: Value, row: Value, shape: tuple[Extent, Extent], weights: Value, binary_output: bool = False
) -> Value:
    """Returns how often each number from 0 to below the second extent is in each row, or the sum of its weights, if
    there are any; or, if the output is binary, whether it is there. `row` says in which row a number is."""
    count, size = shape
    number, limit = ctx.convert(numbers, I64), ctx.number_as(size, I64)
    fits = ctx.binary(ops.And, ctx.compare("GE", number, ctx.scalar(0, I64)), ctx.compare("LT", number, limit))
    place = ctx.plus(number, ctx.times(row, limit))
    if binary_output or (weights.type.is_static and not weights.type.size):
        values = ctx.full(ctx.extents(numbers), 1, ctx.element_type)
    else:
        values = ctx.reshape(weights, ctx.extents(numbers))
    found = segments(ctx, ops.Add, values, ctx.select(fits, place, ctx.full_like(place, -1)), count * size)
    found = ctx.reshape(found, (count, size))
    if not binary_output:
        return found
    return ctx.convert(ctx.compare("GT", found, ctx.constant_like(found, 0)), ctx.element_type)
