"""Matrix products and convolutions, in every layout, alone and as parts of a network, together with windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.random_programs.arrays import values
from tests.random_programs.folds import combiner, fold, start
from tests.random_programs.generator import Generator, Rejected
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.types import BF16, F16, F32, F64, I8, I32, I64, UI8, Type, is_boolean, is_float, tensor

FEATURES = (1, 2, 3, 4, 5, 8, 8, 13, 16, 17, 32)
MOST_PRODUCTS = 60_000
PAIRS = ((BF16, F32), (BF16, BF16), (F16, F32), (F16, F16), (F32, F64), (I8, I32), (UI8, I32))
"""The types of narrow factors, and of the sums of their products."""


def dot(g: Generator) -> None:
    """Any batch dimensions, any contracted ones, in any order. All batches may have the same rhs."""
    lhs = g.value(lambda kind: not is_boolean(kind), rank=1)
    order = [int(d) for d in g.rng.permutation(lhs.type.rank)]
    batch = order[: int(g.pick((0, 0, 0, 1, 2)))]
    contracted = order[len(batch) : len(batch) + int(g.pick((0, 1, 1, 1, 2)))]
    shape = [lhs.type.shape[d] for d in (*batch, *contracted)]
    roles = list(range(len(shape)))
    for _ in range(g.number(0, 2)):
        shape.append(int(g.pick(FEATURES)))
    places = g.order(len(shape))
    rhs_shape = [shape[place] for place in places]
    where = [places.index(role) for role in roles]
    if math.prod(lhs.type.shape) * math.prod(shape[len(roles) :]) > MOST_PRODUCTS:
        raise Rejected
    kind = tensor(*rhs_shape, of=lhs.type.element_type)
    if batch and g.chance(0.4):
        own = [place for place in range(len(shape)) if place not in where[: len(batch)]]
        rhs = g.of_type(kind.with_shape([rhs_shape[place] for place in own]))
        rhs = g.add(ops.BroadcastInDim(rhs, broadcast_dimensions=own, result=kind))
    else:
        rhs = g.of_type(kind)
    numbers = ops.DotDimensionNumbers(
        tuple(batch), tuple(where[: len(batch)]), tuple(contracted), tuple(where[len(batch) :])
    )
    result = g.add(ops.DotGeneral(lhs, rhs, numbers))
    epilogue(g, result, result.type.rank - 1)


def matmul(g: Generator) -> None:
    """The product of two matrices, one of which may be transposed."""
    lhs = g.float_value(rank=2, most=3)
    rows = lhs.type.shape[-1]
    shape = (rows, int(g.pick((1, 3, 8, 16, 17, 40))))
    flipped = g.chance(0.5)
    rhs = g.of_type(tensor(*(shape[::-1] if flipped else shape), of=lhs.type.element_type))
    if flipped:
        rhs = g.add(ops.Transpose(rhs, (1, 0)))
    numbers = ops.DotDimensionNumbers((), (), (lhs.type.rank - 1,), (0,))
    epilogue(g, g.add(ops.DotGeneral(lhs, rhs, numbers)), lhs.type.rank - 1)


def long_sums(g: Generator) -> None:
    """The product of a few rows and a matrix, both contiguous along long sums, as in a linear layer."""
    element, length = g.element(is_float), g.number(30, 150)
    lhs = g.argument((g.number(1, 26), length), element)
    rhs = g.argument((g.number(1, 40), length), element)
    numbers = ops.DotDimensionNumbers((), (), (1,), (1,))
    epilogue(g, g.add(ops.DotGeneral(lhs, rhs, numbers)), 1)


def long_rows(g: Generator) -> None:
    """The product of a few rows and a matrix with long rows."""
    element, terms, columns = g.element(is_float), g.number(9, 60), g.number(120, 400)
    lhs, rhs = g.argument((int(g.pick((1, 2, 3, 5, 8, 13, 24))), terms), element), g.argument((terms, columns), element)
    epilogue(g, g.add(ops.DotGeneral(lhs, rhs, ops.DotDimensionNumbers((), (), (1,), (0,)))), 1)


def transposed_product(g: Generator) -> None:
    """The product of a transposed matrix with long rows and a wide one; or of long sums, with rows of any length."""
    element = g.element(is_float)
    rows, terms, columns = g.number(258, 300), g.number(8, 20), g.number(130, 300)
    if g.chance(0.6):
        rows, terms, columns = g.number(8, 300), g.number(66, 280), g.number(1, 20)
    lhs, rhs = g.argument((terms, rows), element), g.argument((terms, columns), element)
    epilogue(g, g.add(ops.DotGeneral(lhs, rhs, ops.DotDimensionNumbers((), (), (0,), (0,)))), 1)


def resized_lines(g: Generator) -> None:
    """Lines of a few numbers for each point, multiplied along their length, with the points' numbers last."""
    element = g.element(is_float)
    lines, terms, numbers, points = g.number(1, 20), g.number(1, 40), g.number(2, 9), g.number(1, 40)
    lhs, rhs = g.argument((lines, terms, numbers), element), g.argument((terms, points), element)
    found = g.add(ops.DotGeneral(lhs, rhs, ops.DotDimensionNumbers((), (), (1,), (0,))))
    epilogue(g, g.add(ops.Transpose(found, (0, 2, 1))), 2)


def of_a_stack(g: Generator) -> None:
    """Products with one of several matrices, whose number is an argument."""
    element, kind = g.element(is_float), g.pick((I32, I64))
    count, rows, columns = g.number(2, 5), g.number(1, 20), g.number(1, 40)
    stack, place = g.argument((count, rows, columns), element), g.argument((), kind)
    few = g.add(ops.And(place, g.add(ops.Constant(DenseElements.splat(7, place.type)))))
    place = g.add(ops.Subtract(few, g.add(ops.Constant(DenseElements.splat(1, place.type)))))
    zero = g.add(ops.Constant(DenseElements.splat(0, place.type)))
    matrix = g.add(ops.DynamicSlice(stack, [place, zero, zero], [1, rows, columns]))
    matrix = g.add(ops.Reshape(matrix, result=tensor(rows, columns, of=element)))
    for _ in range(g.number(1, 2)):
        axis = int(g.chance(0.5))
        other = g.argument((g.number(1, 9), (rows, columns)[axis]), element)
        epilogue(g, g.add(ops.DotGeneral(other, matrix, ops.DotDimensionNumbers((), (), (1,), (axis,)))), 1)
    if g.chance(0.2):
        g.offer(matrix)


def segments(g: Generator) -> None:
    """The sums of segments of rows, each row times a number. The segments may be empty, and more or fewer than fit."""
    rows = g.value(lambda kind: not is_boolean(kind), rank=1)
    (count, *_), element = rows.type.static_shape, rows.type.element_type
    numbers = g.of_type(tensor(*g.pick(((count,), (count,), (count, 1))), of=element))
    if g.chance(0.4):
        numbers = g.add(ops.Constant(DenseElements.splat(1, numbers.type)))
    lengths = g.argument((g.number(1, 12),), g.pick((I32, I64)))
    few = g.add(ops.Constant(DenseElements.splat(int(g.pick((1, 3, 7, 31))), lengths.type)))
    given = ops.RaggedDotDimensionNumbers((), (), (0,), (0,), (0,), ())
    g.offer(g.add(ops.RaggedDot(numbers, rows, g.add(ops.And(lengths, few)), given)))


def narrow_product(g: Generator) -> None:
    """The product of narrow numbers in wider sums: one row, a few or many; a short sum, or one in several blocks. The
    lines of either factor are along the sum or across it. One of them may be a constant."""
    element, sums = g.pick(PAIRS)
    rows, columns = int(g.pick((1, 2, 3, 7, 16, 20, 40, 70))), int(g.pick((1, 5, 8, 16, 33, 64, 90)))
    terms = int(g.pick((1, 8, 30, 64, 129, 192, 300, 700, 1500)))
    sides = [(rows, terms), (columns, terms)]
    along = [g.chance(0.5) for _ in sides]
    shapes = [shape if contiguous else shape[::-1] for shape, contiguous in zip(sides, along, strict=True)]
    lhs, rhs = (g.argument(shape, element) for shape in shapes)
    if g.chance(0.4):
        rhs = g.constant(g.known[rhs].array, element)
    numbers = ops.DotDimensionNumbers((), (), (int(along[0]),), (int(along[1]),))
    epilogue(g, g.add(ops.DotGeneral(lhs, rhs, numbers, result=tensor(rows, columns, of=sums))), 1)


def epilogue(g: Generator, value: Value, feature: int) -> None:
    """Sometimes adds a bias and an activation."""
    if value.type.rank and g.chance(0.3):
        bias = g.of_type(tensor(value.type.shape[feature], of=value.type.element_type))
        spread = g.add(ops.BroadcastInDim(bias, broadcast_dimensions=(feature,), result=value.type))
        value = g.add(ops.Add(value, spread))
    if is_float(value.type.element_type) and g.chance(0.2):
        zero = g.constant(np.int8(0), value.type.element_type)
        zero = g.add(ops.BroadcastInDim(zero, broadcast_dimensions=(), result=value.type))
        value = g.add(ops.Maximum(value, zero))
    g.offer(value)


def _layout(g: Generator, rank: int) -> tuple[int, int, tuple[int, ...]]:
    """Batch (or output feature), feature and spatial dimensions: features first, last, or anywhere."""
    space = tuple(range(rank - 2))
    draw = g.rng.random()
    if draw < 0.4:
        return 0, rank - 1, tuple(d + 1 for d in space)
    if draw < 0.8:
        return 0, 1, tuple(d + 2 for d in space)
    batch, feature, *rest = (int(d) for d in g.rng.permutation(rank))
    return batch, feature, tuple(rest)


def convolve(g: Generator, image: Value, layout: tuple[int, int, tuple[int, ...]], **options: Any) -> Value:
    """A convolution. Options that are not given are drawn."""
    batch, feature, space = layout
    shape, element = image.type.shape, image.type.element_type
    groups, batch_groups = (
        (found, 1) if (found := options.pop("groups", 0)) else _groups(g, shape[feature], shape[batch])
    )
    drawn = options.pop("kernels", 0) or int(g.pick(FEATURES))
    kernels = groups * batch_groups * max(1, drawn // (groups * batch_groups))
    sizes = options.pop("sizes", None) or [g.number(1, 4) for _ in space]
    out, inner, places = _layout(g, len(shape))
    kernel_shape = dict(zip(places, sizes, strict=True)) | {out: kernels, inner: shape[feature] // groups}
    if math.prod(shape) * kernels // groups * math.prod(sizes) > 8 * MOST_PRODUCTS:
        raise Rejected
    kernel = _kernel(g, [kernel_shape[d] for d in range(len(shape))], element)
    result = layout if g.chance(0.7) else _layout(g, len(shape))
    numbers = ops.ConvDimensionNumbers(batch, feature, space, inner, out, places, *result)
    window = {
        "window_strides": [int(g.pick((1, 1, 2, 3))) for _ in space],
        "padding": [[g.number(0, 2), g.number(0, 3)] for _ in space],
        "lhs_dilation": [int(g.pick((1, 1, 1, 2))) for _ in space],
        "rhs_dilation": [int(g.pick((1, 1, 1, 2))) for _ in space],
        "window_reversal": [g.chance(0.1) for _ in space],
    }
    op = ops.Convolution(
        image,
        kernel,
        dimension_numbers=numbers,
        feature_group_count=groups,
        batch_group_count=batch_groups,
        **(window | options),  # type: ignore[arg-type]
    )
    return g.add(op)


def _kernel(g: Generator, shape: Sequence[int], element: Type) -> Value:
    """A constant, on which the layouts of convolutions depend, or any value, or, as in gradients, its transpose."""
    kind = tensor(*shape, of=element)
    if g.chance(0.4):
        return g.constant(values(g.number(0, 1 << 30), kind))
    if g.chance(0.7):
        return g.of_type(kind)
    order = [int(d) for d in g.rng.permutation(len(shape))]
    source = [shape[order.index(d)] for d in range(len(shape))]
    return g.add(ops.Transpose(g.of_type(tensor(*source, of=element)), permutation=order))


def _groups(g: Generator, features: int, batch: int) -> tuple[int, int]:
    """Feature groups, or batch groups."""
    if not features or not batch:
        raise Rejected
    draw = g.rng.random()
    if draw < 0.2:
        return int(g.pick([n for n in range(1, features + 1) if features % n == 0])), 1
    if draw < 0.28:
        return 1, int(g.pick([n for n in range(1, batch + 1) if batch % n == 0]))
    return 1, 1


def convolution(g: Generator) -> None:
    image = g.value(lambda kind: not is_boolean(kind), rank=2, most=5)
    layout = _layout(g, image.type.rank)
    if layout[2] and g.chance(0.03):  # There is nothing but padding.
        empty = g.pick(layout[2])
        shape = [0 if d == empty else extent for d, extent in enumerate(image.type.shape)]
        image = g.argument(shape, image.type.element_type)
    ones = [1 for _ in layout[2]]
    # Positions each by itself, of which strides skip some.
    alone = {"sizes": ones, "padding": [[0, 0] for _ in ones], "lhs_dilation": ones} if g.chance(0.15) else {}
    result = convolve(g, image, layout, **alone)
    epilogue(g, result, layout[1])


def branches(g: Generator) -> None:
    """A window and a convolution of the same image, whose results have the same shape and are combined."""
    element = g.pick((g.element(is_float),))
    image = g.value(lambda kind: kind is element, rank=3, most=5) if g.chance(0.5) else None
    if image is None:
        space = [g.number(3, 9) for _ in range(g.number(1, 2))]
        image = g.argument((g.number(1, 2), *space, int(g.pick(FEATURES))), element)
    rank = image.type.rank
    feature = 1 if g.chance(0.4) else rank - 1
    features, space = image.type.shape[feature], tuple(d for d in range(1, rank) if d != feature)
    strides = [g.number(1, 2) for _ in space]
    pool, size = ([g.number(1, 3) for _ in space] for _ in range(2))

    def everywhere(of_space: Sequence[Any], other: Any) -> list[Any]:
        """Returns a list for all dimensions, from one for the spatial dimensions."""
        return [of_space[space.index(d)] if d in space else other for d in range(rank)]

    body, neutral = combiner(g, element)
    padding = everywhere([[s // 2, s - 1 - s // 2] for s in pool], [0, 0])
    options: dict[str, Any] = {
        "window_dimensions": everywhere(pool, 1),
        "window_strides": everywhere(strides, 1),
        "padding": padding,
    }
    (pooled,) = g.add(ops.ReduceWindow([image], [start(g, element, neutral)], body=body, **options))
    padding = [[s // 2, s - 1 - s // 2] for s in size]
    kernel = _kernel(g, (*size, features, features), element)
    numbers = ops.ConvDimensionNumbers(0, feature, space, rank - 2, rank - 1, tuple(range(rank - 2)), 0, feature, space)
    options = {"dimension_numbers": numbers, "feature_group_count": 1, "batch_group_count": 1}
    convolved = g.add(ops.Convolution(image, kernel, window_strides=strides, padding=padding, **options))
    if g.chance(0.2):
        g.offer(g.add(ops.Concatenate([pooled, convolved], feature)))
    else:
        g.offer(g.add(g.pick((ops.Add, ops.Add, ops.Multiply, ops.Maximum))(pooled, convolved)))


def weight_gradient(g: Generator) -> None:
    """The gradient of a convolution's kernel: the window is the gradient of the result, and features are a batch. The
    image of a transposed convolution is dilated."""
    images, element = g.number(1, 2), g.pick((F32, F32, F64))
    inputs, outputs = int(g.pick((3, 8, 16, 16, 17))), int(g.pick((5, 8, 16, 16, 16)))
    window, taps = (g.number(12, 24), g.number(24, 30)), [g.number(1, 3), g.number(1, 3)]
    if images * math.prod(window) * math.prod(taps) * inputs * outputs > 24 * MOST_PRODUCTS:
        raise Rejected
    padding, steps = [[g.number(0, 1), g.number(0, 1)] for _ in range(2)], [int(g.pick((1, 1, 2))) for _ in range(2)]
    sizes = zip(window, taps, steps, padding, strict=True)
    space = [(size - 1) * step + tap - sum(around) for size, tap, step, around in sizes]
    dilation = int(g.pick((1, 1, 1, 2)))
    for around, size in zip(padding, space, strict=True):
        around[1] += (size - 1) % dilation
    space = [(size - 1) // dilation + 1 for size in space]
    batch, feature, places = (1, 0, (2, 3)) if g.chance(0.7) else _layout(g, 4)
    shape = dict(zip(places, space, strict=True)) | {batch: inputs, feature: images}
    image = g.argument([shape[d] for d in range(4)], element)
    if g.chance(0.3):
        zero, spread = g.constant(np.int8(0), element), [int(d in places) for d in range(4)]
        image = g.add(ops.Pad(image, zero, spread, spread, [0] * 4))
        padding = [[low - dilation, high - dilation] for low, high in padding]
    gradient = g.of_type(tensor(images, outputs, *window, of=element))
    result = (1, 0, (2, 3)) if g.chance(0.7) else _layout(g, 4)
    numbers = ops.ConvDimensionNumbers(batch, feature, places, 0, 1, (2, 3), *result)
    op = ops.Convolution(
        image,
        gradient,
        padding=padding,
        lhs_dilation=[dilation] * 2,
        rhs_dilation=steps,
        dimension_numbers=numbers,
        feature_group_count=1,
        batch_group_count=1,
    )
    epilogue(g, g.add(op), result[1])


def along_rows(g: Generator) -> None:
    """Windows over the channels of an image, each by itself, that slide along rows of several vectors: a depthwise
    convolution, or folds."""
    element = g.element(is_float) if g.chance(0.8) else g.element(lambda kind: not is_boolean(kind))
    channels, rows, columns = g.number(1, 4), int(g.pick((g.number(1, 6), g.number(6, 20)))), g.number(8, 70)
    last = g.chance(0.3)
    shape = (rows, columns, channels) if last else (channels, rows, columns)
    image, feature, space = g.argument((g.number(1, 2), *shape), element), 3 if last else 1, (1, 2) if last else (2, 3)
    padding = [[g.number(0, 2), g.number(0, 2)] for _ in range(2)]
    options: dict[str, Any]
    if g.chance(0.5):
        largest = int(g.pick((5, 5, 13)))
        sizes = [g.number(1, min(largest, 1 + rows)), g.number(1, min(largest, columns))]
        options = {"groups": channels, "sizes": sizes, "padding": padding, "lhs_dilation": [1, 1]}
        result = convolve(g, image, (0, feature, space), **options)
    else:
        body, neutral = combiner(g, element)
        window, strides, around = [1] * 4, [1] * 4, [[0, 0]] * 4
        for place, most, pads in zip(space, (min(5, 1 + rows), 5), padding, strict=True):
            window[place], strides[place], around[place] = g.number(1, most), g.number(1, 2), pads
        options = {"window_dimensions": window, "window_strides": strides, "padding": around}
        (result,) = g.add(ops.ReduceWindow([image], [start(g, element, neutral)], body=body, **options))
    epilogue(g, result, feature)


def channel_gradient(g: Generator) -> None:
    """A gradient of a depthwise convolution: that of its kernel, for each tap of which the channels of two images are
    multiplied with one another, or that of its image, with holes where the convolution has strides; or that of an image
    which is cut into patches."""
    element, images, channels = g.element(is_float), g.number(1, 3), g.number(2, 4)
    window, sizes = [g.number(1, 6), g.number(4, 40)], [g.number(1, 4), g.number(1, 4)]
    step, draw = int(g.pick((1, 1, 2, 3))), g.rng.random()
    if draw < 0.5:
        padding = [[g.number(0, (size - 1) // 2), g.number(0, (size - 1) // 2)] for size in sizes]
        pairs = zip(window, sizes, padding, strict=True)
        image = g.argument((images, channels, *((w - 1) * step + t - sum(p) for w, t, p in pairs)), element)
        gradient = g.argument((images, channels, *window), element)
        numbers = ops.ConvDimensionNumbers(1, 0, (2, 3), 0, 1, (2, 3), 1, 0, (2, 3))
        options = {"padding": padding, "rhs_dilation": [step] * 2, "dimension_numbers": numbers}
        groups = {"feature_group_count": 1, "batch_group_count": channels}
        epilogue(g, g.add(ops.Convolution(image, gradient, **options, **groups)), 0)  # type: ignore[arg-type]
        return
    cut = draw > 0.8
    sizes = [int(g.pick((2, 4, 5))), int(g.pick((4, 5, 6)))] if cut else sizes
    image = g.argument((images, channels, min(window[0], 3), window[1] // (3 if cut else 1)), element)
    options = {
        "groups": 1 if cut else channels,
        "sizes": sizes,
        "lhs_dilation": sizes if cut else [step] * 2,
        "padding": [[size - 1, size - 1] for size in sizes],
        "window_reversal": [not g.chance(0.2)] * 2,
    }
    fixed = {"window_strides": [1, 1], "rhs_dilation": [1, 1]}
    epilogue(g, convolve(g, image, (0, 1, (2, 3)), **options, **fixed), 1)


def attention(g: Generator) -> None:
    """Scores, ops on these, and the values that they weight; or, as in gradients, a product that contracts the rows."""
    query = g.float_value(rank=2, most=4)
    *batch, rows, depth = query.type.static_shape
    columns, element = g.number(1, 20), query.type.element_type
    b = tuple(range(len(batch)))
    if g.chance(0.5):
        key = g.of_type(tensor(*batch, columns, depth, of=element))
    else:
        flipped = g.of_type(tensor(*batch, depth, columns, of=element))
        key = g.add(ops.Transpose(flipped, (*b, len(b) + 1, len(b))))
    last = len(b) + 1
    scores = g.add(ops.DotGeneral(query, key, ops.DotDimensionNumbers(b, b, (last,), (last,))))
    weights = _between_products(g, scores)
    if weights.type.rank != scores.type.rank:
        batch, b, last = [math.prod(batch)], (0,), 2
    contracted = g.pick((last, last, last, last - 1))
    extent, width = (columns, rows)[last - contracted], int(g.pick(FEATURES))
    value = g.of_type(tensor(*batch, extent, width, of=weights.type.element_type))
    g.offer(g.add(ops.DotGeneral(weights, value, ops.DotDimensionNumbers(b, b, (contracted,), (last - 1,)))))


def _between_products(g: Generator, scores: Value) -> Value:
    """Some of: a scale, a mask of positions, a softmax, another type, merged dimensions."""
    kind, last = scores.type, scores.type.rank - 1
    if g.chance(0.4):
        scores = g.add(ops.Multiply(scores, g.like(scores)))
    if g.chance(0.5):
        positions = tensor(*kind.static_shape, of=g.pick((I32, I64)))
        row, column = (g.add(ops.Iota(iota_dimension=d, result=positions)) for d in (last - 1, last))
        mask = g.add(ops.Compare(row, column, comparison_direction=g.pick(("GE", "LT", "EQ"))))
        scores = g.add(ops.Select(mask, scores, g.like(scores)))
    if g.chance(0.6):
        power = g.add(
            ops.Exponential(g.add(ops.Subtract(scores, fold(g, scores, ops.Maximum, -math.inf, last, scores))))
        )
        scores = g.add(ops.Divide(power, fold(g, power, ops.Add, 0.0, last, power)))
    if g.chance(0.2):
        scores = g.add(ops.Convert(scores, result=kind.with_element(g.element(is_float))))
    if last > 2 and g.chance(0.5):
        merged = (math.prod(kind.static_shape[:-2]), *kind.static_shape[-2:])
        scores = g.add(ops.Reshape(scores, result=scores.type.with_shape(merged)))
    return scores


FAMILIES = (
    *(dot,) * 3,
    *(matmul,) * 2,
    long_sums,
    long_rows,
    transposed_product,
    resized_lines,
    of_a_stack,
    *(segments,) * 2,
    *(narrow_product,) * 2,
    *(convolution,) * 4,
    *(branches,) * 2,
    *(along_rows,) * 2,
    weight_gradient,
    *(channel_gradient,) * 2,
    *(attention,) * 2,
)
