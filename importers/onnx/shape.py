"""Shapes, constants, and ops that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx

from trivium.importers.emit import require_computable
from trivium.importers.onnx.context import Context, axes_of, axis_of, rule
from trivium.importers.onnx.files import array_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


@rule("Constant")
def constant(
    ctx: Context, value: onnx.TensorProto | None = None, value_int=None, value_ints=None, value_float=None,
    value_floats=None,
) -> Value:  # fmt: skip
    """Constant(value)"""
    if value is not None:
        return ctx.elements(array_of(value))
    if value_int is not None or value_ints is not None:
        return ctx.elements(np.array(value_ints if value_int is None else value_int, np.int64))
    return ctx.elements(np.array(value_floats if value_float is None else value_float, np.float32))


@rule("ConstantOfShape")
def constant_of_shape(ctx: Context, shape: Value, value: onnx.TensorProto | None = None) -> Value:
    """ConstantOfShape(input, value)"""
    element = np.zeros(1, np.float32) if value is None else array_of(value)
    sizes = ctx.known_ints(shape, "input")
    return ctx.elements(np.broadcast_to(element.reshape(()), sizes))


@rule("Shape")
def shape(ctx: Context, x: Value, start: int = 0, end: int | None = None) -> Value:
    """Shape(data, start, end)"""
    return ctx.elements(np.array(x.type.static_shape[start:end], np.int64))


@rule("Size")
def size(ctx: Context, x: Value) -> Value:
    """Size(data)"""
    return ctx.elements(np.array(x.type.size, np.int64))


@rule("Range")
def range_(ctx: Context, start: Value, limit: Value, delta: Value) -> Value:
    """Range(start, limit, delta)"""
    bounds = [ctx.known(value, name) for value, name in ((start, "start"), (limit, "limit"), (delta, "delta"))]
    first, last, step = (bound.item() for bound in bounds)
    if step == 0:
        ctx.unsupported("delta", 0, "another number")
    return ctx.ramp(first, step, max(0, math.ceil((last - first) / step)), start.type.element_type)


@rule("EyeLike")
def eye_like(ctx: Context, x: Value, k: int = 0, dtype: int | None = None) -> Value:
    """EyeLike(input, dtype, k)"""
    if dtype is not None:
        ctx.unsupported("dtype", dtype, "none")
    rows, columns = (ctx.iota(x.type.static_shape, d) for d in range(2))
    return ctx.convert(ctx.compare("EQ", columns, ctx.plus(rows, ctx.scalar(k, I64))), x.type.element_type)


@rule("Reshape")
def reshape(ctx: Context, x: Value, shape: Value, allowzero: int = 0) -> Value:
    """Reshape(data, shape): 0 keeps an extent, -1 is what is left"""
    sizes = ctx.known_ints(shape, "shape")
    if not allowzero:
        sizes = [x.type.shape[index] if extent == 0 else extent for index, extent in enumerate(sizes)]
    if -1 in sizes:
        rest = math.prod(extent for extent in sizes if extent != -1)
        sizes[sizes.index(-1)] = x.type.size // max(rest, 1)
    return ctx.reshape(x, sizes)


@rule("Flatten")
def flatten(ctx: Context, x: Value, axis: int = 1) -> Value:
    """Flatten(input, axis)"""
    extents = x.type.static_shape
    axis = axis + len(extents) if axis < 0 else axis
    return ctx.reshape(x, (math.prod(extents[:axis]), math.prod(extents[axis:])))


@rule("Squeeze")
def squeeze(ctx: Context, x: Value, axes: Value | None = None) -> Value:
    """Squeeze(data, axes)"""
    if axes is None:
        return ctx.squeeze(x, [index for index, extent in enumerate(x.type.shape) if extent == 1])
    return ctx.squeeze(x, axes_of(ctx.known_ints(axes, "axes"), x.type.rank))


@rule("Unsqueeze")
def unsqueeze(ctx: Context, x: Value, axes: Value) -> Value:
    """Unsqueeze(data, axes)"""
    places = ctx.known_ints(axes, "axes")
    return ctx.unsqueeze(x, axes_of(places, x.type.rank + len(places)))


@rule("Transpose")
def transpose(ctx: Context, x: Value, perm: Sequence[int] | None = None) -> Value:
    """Transpose(data, perm)"""
    return ctx.transpose(x, perm if perm is not None else list(reversed(range(x.type.rank))))


@rule("Expand")
def expand(ctx: Context, x: Value, shape: Value) -> Value:
    """Expand(input, shape)"""
    return ctx.broadcast(x, np.broadcast_shapes(x.type.static_shape, tuple(ctx.known_ints(shape, "shape"))))


@rule("Tile")
def tile(ctx: Context, x: Value, repeats: Value) -> Value:
    """Tile(input, repeats)"""
    counts, extents = ctx.known_ints(repeats, "repeats"), x.type.static_shape
    spread = [number for pair in zip(counts, extents, strict=True) for number in pair]
    repeated = ctx.broadcast_in_dim(x, spread, range(1, 2 * x.type.rank, 2))
    return ctx.reshape(repeated, [count * extent for count, extent in zip(counts, extents, strict=True)])


@rule("Concat")
def concat(ctx: Context, *values: Value, axis: int) -> Value:
    """Concat(inputs, axis)"""
    return ctx.concatenate(values, axis_of(axis, values[0].type.rank))


@rule("Split")
def split(
    ctx: Context, x: Value, sizes: Value | None = None, axis: int = 0, num_outputs: int | None = None
) -> Sequence[Value]:
    """Split(input, split, axis, num_outputs): the last part may be smaller"""
    axis = axis_of(axis, x.type.rank)
    extent = x.type.shape[axis]
    if sizes is not None:
        parts = ctx.known_ints(sizes, "split")
    else:
        count = num_outputs or ctx.outputs
        each = -(-extent // count)
        parts = [min(each, extent - each * index) for index in range(count)]
    starts = np.cumsum([0, *parts]).tolist()
    return [ctx.slice(x, axis, start, start + part) for start, part in zip(starts, parts, strict=False)]


@rule("Slice")
def slice_(
    ctx: Context, x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None
) -> Value:
    """Slice(data, starts, ends, axes, steps), as in NumPy; a negative step reverses"""
    lows, highs = ctx.known_ints(starts, "starts"), ctx.known_ints(ends, "ends")
    places = axes_of(ctx.known_ints(axes, "axes"), x.type.rank) if axes is not None else range(len(lows))
    strides = ctx.known_ints(steps, "steps") if steps is not None else [1] * len(lows)
    for low, high, axis, step in zip(lows, highs, places, strides, strict=True):
        taken = range(x.type.shape[axis])[low:high:step]
        if not taken:
            x = ctx.slice(x, axis, 0, 0)
        elif step > 0:
            x = ctx.slice(x, axis, taken[0], taken[-1] + 1, step)
        else:
            x = ctx.add(ops.Reverse(ctx.slice(x, axis, taken[-1], taken[0] + 1, -step), dimensions=(axis,)))
    return x


@rule("Pad")
def pad(
    ctx: Context, x: Value, pads: Value, value: Value | None = None, axes: Value | None = None, mode: str = "constant"
) -> Value:
    """Pad(data, pads, constant_value, axes, mode)"""
    amounts = ctx.known_ints(pads, "pads")
    places = axes_of(ctx.known_ints(axes, "axes"), x.type.rank) if axes is not None else range(x.type.rank)
    low, high = [0] * x.type.rank, [0] * x.type.rank
    for index, axis in enumerate(places):
        low[axis], high[axis] = amounts[index], amounts[index + len(amounts) // 2]
    if mode == "constant":
        fill: Value | int = 0 if value is None else ctx.reshape(value, ())
        return ctx.pad(x, low, high, fill)
    if mode not in ("reflect", "edge", "wrap"):
        ctx.unsupported("mode", mode, "constant, reflect, edge or wrap")
    for axis, edges in enumerate(zip(low, high, strict=True)):
        if any(edges):
            require_computable(x.type.shape[axis] + sum(edges), f"axis {axis} of the result")
            taken = np.pad(np.arange(x.type.shape[axis]), edges, mode=mode)
            x = ctx.take(x, ctx.elements(taken, I64), axis)
    return x


@rule("DepthToSpace")
def depth_to_space(ctx: Context, x: Value, blocksize: int, mode: str = "DCR") -> Value:
    """DepthToSpace(input, blocksize, mode)"""
    n, c, h, w = x.type.static_shape
    deep = c // blocksize**2
    if mode == "DCR":
        parts, order = (n, blocksize, blocksize, deep, h, w), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (n, deep, blocksize, blocksize, h, w), (0, 1, 4, 2, 5, 3)
    return ctx.reshape(ctx.transpose(ctx.reshape(x, parts), order), (n, deep, h * blocksize, w * blocksize))
