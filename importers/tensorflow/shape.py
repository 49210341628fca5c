"""Shapes: ops that return them, and ops that move elements into another one. Returned shapes are known during
import, unless sizes are dynamic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from trivium.importers.extents import Extent, Size, is_number, larger, numbers_of, with_inferred
from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, extents_of, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64, is_complex

# Shapes as arrays


@rule("Shape")
def shape(ctx: Context, input: Tensor) -> Tensor:
    """Shape(input) -> output"""
    return ctx.held(extents_of(ctx, input), ctx.element_type)


@rule("ShapeN")
def shape_n(ctx: Context, input: list[Tensor]) -> list[Tensor]:
    """ShapeN(N * input) -> N * output"""
    return [ctx.held(extents_of(ctx, x), ctx.element_type) for x in input]


@rule("Size")
def size(ctx: Context, input: Tensor) -> Tensor:
    """Size(input) -> output"""
    count, kind = math.prod(extents_of(ctx, input)), ctx.element_type
    return np.array(count, kind.dtype) if isinstance(count, int) else ctx.number_as(count, kind)


@rule("Rank")
def rank(ctx: Context, input: Tensor) -> np.ndarray:
    """Rank(input) -> output"""
    return np.array(input.ndim if isinstance(input, np.ndarray) else input.type.rank, np.int32)


@rule("BroadcastArgs")
def broadcast_args(ctx: Context, s0: Tensor, s1: Tensor) -> Tensor:
    """BroadcastArgs(s0, s1) -> r0"""
    shapes = [ctx.given_shape(s, name) for s, name in ((s0, "s0"), (s1, "s1"))]
    return ctx.held(ctx.common_shape(*shapes), ctx.element_type)


@rule("BroadcastGradientArgs")
def broadcast_gradient_args(ctx: Context, s0: Tensor, s1: Tensor) -> list[np.ndarray]:
    """BroadcastGradientArgs(s0, s1) -> r0, r1: an extent of 1 is repeated where the other one is unknown, which changes
    nothing if that is 1, too"""
    shapes = [list(ctx.given_shape(x, name)) for x, name in ((s0, "s0"), (s1, "s1"))]
    if all(numbers_of(shape) is not None for shape in shapes):
        ctx.common_shape(*shapes)  # refuses those that cannot be broadcast
    rank = max(map(len, shapes))
    first, second = ([None] * (rank - len(shape)) + shape for shape in shapes)
    kind = ctx.element_type.dtype
    return [np.array(_repeated(ctx, *pair), kind) for pair in ((first, second), (second, first))]


def _repeated(ctx: Context, given: Sequence[Extent | None], other: Sequence[Extent | None]) -> list[int]:
    """Returns the dimensions along which a shape, aligned with another one, is repeated when broadcast with it."""
    for mine, theirs in zip(given, other, strict=True):
        if isinstance(mine, Size) and theirs is not None and mine != theirs and not is_number(theirs, 1):
            ctx.unsupported("s0", "extents that are computed at run time", "sizes that are known, or the same ones")
    return [
        i
        for i, (mine, theirs) in enumerate(zip(given, other, strict=True))
        if mine is None or (mine == 1 and theirs is not None and theirs != 1)
    ]


@rule("InvertPermutation")
def invert_permutation(ctx: Context, x: Value) -> Value:
    """InvertPermutation(x) -> y"""
    return ctx.sort([x, ctx.iota(ctx.extents(x), 0, x.type.element_type)], 0)[1]


@rule("ConcatOffset")
def concat_offset(ctx: Context, concat_dim: Known, shape: list[Operand]) -> list[Tensor]:
    """ConcatOffset(concat_dim, N * shape) -> N * offset"""
    shapes = [ctx.given_sizes(x, "shape") for x in shape]
    at = ctx.axis(concat_dim, len(shapes[0]), "concat_dim")
    starts = accumulate((x[at] for x in shapes), initial=0)
    offsets = [[start if d == at else 0 for d in range(len(x))] for x, start in zip(shapes, starts, strict=False)]
    return [ctx.held(offset, ctx.element_type) for offset in offsets]


@rule("UnravelIndex")
def unravel_index(ctx: Context, indices: Value, dims: Value) -> Value:
    """UnravelIndex(indices, dims) -> output: a row for each dimension"""
    found = []
    for i in reversed(range(dims.type.static_shape[0])):
        extent = ctx.reshape(ctx.slice(dims, 0, i, i + 1), ())
        found.append(ctx.unsqueeze(ctx.binary(ops.Remainder, indices, extent), [0]))
        indices = ctx.over(indices, extent)
    return ctx.concatenate(found[::-1], 0)


# Constants


@rule("Const")
def const(ctx: Context, *, value: TensorProto) -> np.ndarray:
    """Const(; value) -> output"""
    array = tf.make_ndarray(value)
    return array.view(array.dtype[0]) if array.dtype.names else array  # of quantized dtypes


@rule("Fill")
def fill(ctx: Context, dims: Tensor, value: Value) -> Value:
    """Fill(dims, value) -> output"""
    return ctx.broadcast(value, ctx.given_shape(dims, "dims"))


@rule("LinSpace")
def lin_space(ctx: Context, start: Value, stop: Value, num: Known) -> Value:
    """LinSpace(start, stop, num) -> output"""
    count, kind = int(num), start.type.element_type
    if count == 1:
        return ctx.reshape(start, (1,))
    steps = ctx.over(ctx.minus(stop, start), ctx.scalar(count - 1, kind))
    line = ctx.plus(start, ctx.times(ctx.iota((count - 1,), 0, kind), steps))
    return ctx.concatenate([line, ctx.reshape(stop, (1,))], 0)


@rule("Empty")
def empty(ctx: Context, shape: Tensor, *, init: bool) -> Value:
    """Empty(shape; init=false) -> output"""
    return ctx.full(ctx.given_shape(shape), 0, ctx.element_type)


# The same elements in another shape


@rule("Reshape")
def reshape(ctx: Context, tensor: Value, shape: Tensor) -> Value:
    """Reshape(tensor, shape) -> output"""
    sizes, given = ctx.given_sizes(shape, "shape"), ctx.extents(tensor)
    if -1 in sizes and 0 in sizes:  # Without elements, -1 stands for what follows from the extents that are not zero.
        kept = with_inferred(ctx, [x for x in sizes if x != 0], [larger(ctx, x, 1) for x in given])
        sizes = [0 if x == 0 else kept.pop(0) for x in sizes]
    return ctx.reshape(tensor, with_inferred(ctx, sizes, given))


@rule("ExpandDims")
def expand_dims(ctx: Context, input: Value, dim: Known) -> Value:
    """ExpandDims(input, dim) -> output"""
    return ctx.unsqueeze(input, [ctx.axis(dim, input.type.rank + 1, "dim")])


@rule("Squeeze")
def squeeze(ctx: Context, input: Value, *, squeeze_dims: tuple[int, ...]) -> Value:
    """Squeeze(input; squeeze_dims=[]) -> output"""
    chosen = [ctx.axis(d, input.type.rank, "squeeze_dims") for d in squeeze_dims]
    if not (chosen or input.type.is_static):
        ctx.unsupported("squeeze_dims", f"none for {input.type}", "some: the rank of the result depends on sizes")
    return ctx.squeeze(input, chosen or [i for i, extent in enumerate(input.type.shape) if extent == 1])


@rule("Transpose", "ConjugateTranspose")
def transpose(ctx: Context, x: Value, perm: Known) -> Value:
    """Transpose(x, perm) -> y"""
    moved = ctx.transpose(x, [ctx.axis(d, x.type.rank, "perm") for d in perm])
    conjugates = ctx.op == "ConjugateTranspose" and is_complex(x.type.element_type)
    return ctx.add(ops.Conj(moved)) if conjugates else moved


@rule("Reverse", "ReverseV2")
def reverse(ctx: Context, tensor: Value, axis: Known) -> Value:
    """ReverseV2(tensor, axis) -> output: that of a scalar is the scalar, for any axis"""
    if not tensor.type.rank:
        return tensor
    flipped = np.flatnonzero(axis) if axis.dtype == np.bool_ else ctx.axes(axis, tensor.type.rank)
    return ctx.add(ops.Reverse(tensor, dimensions=tuple(map(int, flipped)))) if len(flipped) else tensor


@rule("MatrixBandPart")
def matrix_band_part(ctx: Context, input: Value, num_lower: Known, num_upper: Known) -> Value:
    """MatrixBandPart(input, num_lower, num_upper) -> band"""
    rows, columns = ctx.extents(input)[-2:]
    for bound, most, argument in ((num_lower, rows, "num_lower"), (num_upper, columns, "num_upper")):
        if isinstance(most, int) and bound > most:
            ctx.unsupported(argument, int(bound), f"a negative number, or at most {most}")
    distance = ctx.minus(ctx.iota((rows, columns), 0), ctx.iota((rows, columns), 1))
    for bound, direction in ((int(num_lower), "LE"), (-int(num_upper), "GE")):
        if int(num_lower if direction == "LE" else num_upper) >= 0:
            inside = ctx.compare(direction, distance, ctx.constant_like(distance, bound))
            input = ctx.select(inside, input, ctx.constant_like(input, 0))
    return input


# More elements, or fewer


@rule("BroadcastTo")
def broadcast_to(ctx: Context, input: Value, shape: Tensor) -> Value:
    """BroadcastTo(input, shape) -> output"""
    wanted = ctx.given_sizes(shape, "shape")
    own = [1] * (len(wanted) - input.type.rank) + ctx.extents(input)
    return ctx.broadcast(input, [have if n == -1 else n for n, have in zip(wanted, own, strict=True)])


@rule("Tile")
def tile(ctx: Context, input: Value, multiples: Tensor) -> Value:
    """Tile(input, multiples) -> output"""
    shape, counts = ctx.extents(input), ctx.given_shape(multiples, "multiples")
    spread = [extent for pair in zip(counts, shape, strict=True) for extent in pair]
    repeated = ctx.broadcast_in_dim(input, spread, range(1, 2 * len(shape), 2))
    return ctx.reshape(repeated, [n * extent for n, extent in zip(counts, shape, strict=True)])


@rule("ConcatV2")
def concat(ctx: Context, values: list[Value], axis: Known) -> Value:
    """ConcatV2(N * values, axis) -> output"""
    return ctx.concatenate(values, ctx.axis(axis, values[0].type.rank))


@rule("Concat")
def concat_first(ctx: Context, concat_dim: Known, values: list[Value]) -> Value:
    """Concat(concat_dim, N * values) -> output"""
    return ctx.concatenate(values, ctx.axis(concat_dim, values[0].type.rank, "concat_dim"))


@rule("Pack")
def pack(ctx: Context, values: list[Value], *, axis: int) -> Value:
    """Pack(N * values; axis=0) -> output"""
    at = ctx.axis(axis, values[0].type.rank + 1)
    return ctx.concatenate([ctx.unsqueeze(x, [at]) for x in values], at)


@rule("Unpack")
def unpack(ctx: Context, value: Value, *, num: int, axis: int) -> list[Value]:
    """Unpack(value; num, axis=0) -> num * output"""
    at = ctx.axis(axis, value.type.rank)
    return [ctx.squeeze(ctx.slice(value, at, i, i + 1), [at]) for i in range(num)]


@rule("Split")
def split(ctx: Context, split_dim: Known, value: Value, *, num_split: int) -> list[Value]:
    """Split(split_dim, value; num_split) -> num_split * output"""
    at = ctx.axis(split_dim, value.type.rank, "split_dim")
    return pieces(ctx, value, [ctx.extent(value, at) // num_split] * num_split, at)


@rule("SplitV")
def split_sizes(ctx: Context, value: Value, size_splits: Tensor, axis: Known) -> list[Value]:
    """SplitV(value, size_splits, split_dim; num_split) -> num_split * output"""
    at = ctx.axis(axis, value.type.rank)
    sizes = ctx.given_sizes(size_splits, "size_splits")
    if -1 in sizes:
        sizes[sizes.index(-1)] = ctx.extent(value, at) - sum(sizes) - 1
    return pieces(ctx, value, sizes, at)


def pieces(ctx: Context, x: Value, sizes: Sequence[Extent], dimension: int) -> list[Value]:
    """Returns `x` cut along a dimension into pieces of the given sizes."""
    starts = [0, *accumulate(sizes)]
    return [ctx.slice(x, dimension, start, start + n) for start, n in zip(starts, sizes, strict=False)]


@rule("Roll")
def roll(ctx: Context, input: Value, shift: Tensor, axis: Known) -> Value:
    """Roll(input, shift, axis) -> output"""
    for amount, d in zip(ctx.entries(shift, "shift"), np.ravel(axis).tolist(), strict=True):
        at = ctx.axis(d, input.type.rank)
        extent = ctx.extent(input, at)
        if not (isinstance(extent, int) and isinstance(amount, int)):
            input = ctx.take(input, _rolled(ctx, extent, amount), at)
        elif cut := -amount % extent if extent else 0:
            input = ctx.concatenate([ctx.slice(input, at, cut, extent), ctx.slice(input, at, 0, cut)], at)
    return input


def _rolled(ctx: Context, extent: Extent, amount: Extent) -> Value:
    """Returns where each element of a dimension that is rolled comes from."""
    count = ctx.number_as(extent, I64)
    moved = ctx.minus(ctx.iota([extent], 0), ctx.number_as(amount, I64))
    rest = ctx.binary(ops.Remainder, moved, count)
    return ctx.select(ctx.compare("LT", rest, ctx.scalar(0, I64)), ctx.plus(rest, count), rest)


# Blocks of space that become channels


@rule("SpaceToDepth")
def space_to_depth(ctx: Context, input: Value, *, block_size: int, data_format: str) -> Value:
    """SpaceToDepth(input; block_size, data_format="NHWC") -> output"""
    x = _channels_last(ctx, input, data_format)
    n, h, w, c = ctx.extents(x)
    b = block_size
    x = ctx.transpose(ctx.reshape(x, (n, h // b, b, w // b, b, c)), (0, 1, 3, 2, 4, 5))
    return _channels_back(ctx, ctx.reshape(x, (n, h // b, w // b, b * b * c)), data_format)


@rule("DepthToSpace")
def depth_to_space(ctx: Context, input: Value, *, block_size: int, data_format: str) -> Value:
    """DepthToSpace(input; block_size, data_format="NHWC") -> output"""
    x = _channels_last(ctx, input, data_format)
    n, h, w, c = ctx.extents(x)
    b = block_size
    x = ctx.transpose(ctx.reshape(x, (n, h, w, b, b, c // b**2)), (0, 1, 3, 2, 4, 5))
    return _channels_back(ctx, ctx.reshape(x, (n, h * b, w * b, c // b**2)), data_format)


def _channels_last(ctx: Context, x: Value, data_format: str) -> Value:
    if data_format not in ("NHWC", "NCHW"):
        ctx.unsupported("data_format", data_format, "NHWC or NCHW")
    return x if data_format == "NHWC" else ctx.transpose(x, (0, 2, 3, 1))


def _channels_back(ctx: Context, x: Value, data_format: str) -> Value:
    return x if data_format == "NHWC" else ctx.transpose(x, (0, 3, 1, 2))


# Orders of dimensions, by their names


@rule("DataFormatDimMap")
def data_format_dim_map(ctx: Context, x: Value, *, src_format: str, dst_format: str) -> Value:
    """DataFormatDimMap(x; src_format="NHWC", dst_format="NCHW") -> y"""
    places = np.array([dst_format.index(name) for name in src_format], x.type.dtype)
    counted = ctx.select(ctx.compare("LT", x, ctx.full_like(x, 0)), ctx.plus(x, ctx.full_like(x, len(places))), x)
    return ctx.take(ctx.elements(places), counted)


@rule("DataFormatVecPermute")
def data_format_permute(ctx: Context, x: Value, *, src_format: str, dst_format: str) -> Value:
    """DataFormatVecPermute(x; src_format="NHWC", dst_format="NCHW") -> y"""
    source, target = src_format, dst_format
    if x.type.static_shape[0] == len(source) - 2:  # those of space alone
        source, target = ([name for name in names if name not in "NC"] for names in (source, target))
    return ctx.take(x, ctx.elements(np.array([source.index(name) for name in target], np.int32)))
