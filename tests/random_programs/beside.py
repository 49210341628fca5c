"""Ops that do not depend on one another, of every form that a GPU's kernels have: rows of one warp and of a large
block, rows that several blocks share, products in tiles, sorts, updates, copies. Where a device runs several kernels in
one launch, such programs have launches of many kinds."""

from __future__ import annotations

import math

import numpy as np

from tests.random_programs.folds import combiner, fold, start
from tests.random_programs.generator import Generator, scalar_region, scalars
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.core import Value
from trivium.ir.types import BF16, F16, F32, F64, I8, I32, Type, is_float, tensor

LENGTHS = 20, 64, 65, 200, 500, 900, 1030
"""Rows of one thread, of a warp, and of larger blocks."""

LARGEST = 8000
"""The largest number of elements of a value, for which products have tiles."""


def elementwise(g: Generator) -> None:
    value = _value(g, (g.number(1, 30), g.number(1, 90)))
    element = value.type.element_type
    if is_float(element):
        g.offer(g.add(g.pick((ops.Tanh, ops.Negate, ops.Abs))(value)))
    else:
        g.offer(g.add(ops.Add(value, value)))


def moved(g: Generator) -> None:
    """A transpose, or rows in reverse."""
    value = _value(g, (g.number(1, 4), g.number(2, 30), g.number(2, 30)))
    order = [int(d) for d in g.rng.permutation(3)]
    g.offer(g.add(ops.Reverse(value, (1, 2)) if g.chance(0.3) else ops.Transpose(value, order)))


def padded(g: Generator) -> None:
    """Several kernels that write parts of one value."""
    value = _value(g, (g.number(1, 9), g.number(1, 20), g.number(1, 9)))
    zero = start(g, value.type.element_type, 0)
    low, high = ([g.number(0, 2) for _ in range(3)] for _ in range(2))
    g.offer(g.add(ops.Pad(value, zero, low, high, [0, 0, 0])))


def copied(g: Generator) -> None:
    """An argument in another shape: a copy, if it is a result."""
    value = _value(g, (g.number(1, 40), g.number(1, 40)))
    kind = tensor(math.prod(value.type.static_shape), of=value.type.element_type)
    g.offer(g.add(ops.Reshape(value, result=kind)))


def rows(g: Generator) -> None:
    """Sums or extremes of rows, or of columns, one to many of them."""
    shape, last = (g.number(1, 12), int(g.pick(LENGTHS))), g.chance(0.7)
    value = _value(g, shape if last else shape[::-1])
    body, neutral = combiner(g, value.type.element_type)
    init = start(g, value.type.element_type, neutral)
    g.offer(*g.add(ops.Reduce([value], [init], [1 if last else 0], body)))


def few_long(g: Generator) -> None:
    """Extremes of rows that several blocks share."""
    element = g.pick((F32, F32, I32))
    value = g.argument((g.number(1, 2), g.number(17_000, 36_000)), element)
    low = -math.inf if is_float(element) else -(2**31)
    g.offer(*g.add(ops.Reduce([value], [start(g, element, low)], [1], scalar_region(ops.Maximum, element))))


def softmax(g: Generator) -> None:
    """Rows whose exponentials are kept in scratch memory."""
    value = g.argument((g.number(1, 4), int(g.pick(LENGTHS))), g.pick((F32, F32, F64)))
    power = g.add(ops.Exponential(g.add(ops.Subtract(value, fold(g, value, ops.Maximum, -math.inf, 1, value)))))
    g.offer(g.add(ops.Divide(power, fold(g, power, ops.Add, 0.0, 1, value))))


def statistics(g: Generator) -> None:
    """Normalized features, which come last or after the batch, and what else becomes of their means and deviations."""
    element, features = g.pick((F32, F32, F64)), g.number(1, 20)
    image = (g.number(1, 3), g.number(2, 12), g.number(2, 12))
    place = int(g.pick((1, 3, 3)))
    shape = (*image, features) if place == 3 else (image[0], features, *image[1:])
    value, means = g.argument(shape, element), g.argument((features,), element)

    def number(x: float, like: Value) -> Value:
        return g.add(ops.BroadcastInDim(start(g, element, x), broadcast_dimensions=(), result=like.type))

    def average(terms: Value) -> Value:
        kept = [d for d in range(4) if d != place]
        (total,) = g.add(ops.Reduce([terms], [start(g, element, 0.0)], kept, scalar_region(ops.Add, element)))
        return g.add(ops.Multiply(total, number(1 / math.prod(image), total)))

    def spread(points: Value) -> Value:
        return g.add(ops.BroadcastInDim(points, broadcast_dimensions=(place,), result=value.type))

    mean = average(value)
    centred = g.add(ops.Subtract(value, spread(mean)))
    variance = average(g.add(ops.Multiply(centred, centred)))
    scale = g.add(ops.Rsqrt(g.add(ops.Add(variance, number(0.5, variance)))))
    result = g.add(ops.Multiply(centred, spread(scale)))
    more = [scale, variance, mean, g.add(ops.Add(means, g.add(ops.Multiply(mean, number(0.25, mean)))))]
    g.offer(*(v for v in more if g.chance(0.5)))
    g.offer(g.add(ops.Transpose(result, (0, 3, 1, 2))) if g.chance(0.2) else g.add(ops.Tanh(result)))


def running(g: Generator) -> None:
    value = g.argument((g.number(1, 3), int(g.pick(LENGTHS))), g.pick((F32, I32)))
    extent, element = value.type.static_shape[1], value.type.element_type
    low = start(g, element, -math.inf if is_float(element) else -(2**31))
    body, sizes, padding = scalar_region(ops.Maximum, element), [1, extent], [[0, 0], [extent - 1, 0]]
    g.offer(*g.add(ops.ReduceWindow([value], [low], window_dimensions=sizes, padding=padding, body=body)))


def ordered(g: Generator) -> None:
    value = g.argument((g.number(1, 3), int(g.pick(LENGTHS))), g.pick((F32, I32)))
    element = value.type.element_type
    kind = ops.ComparisonType.TOTALORDER if is_float(element) else None
    direction = ops.ComparisonDirection.LT
    less = region(scalars(element, 2), lambda b, x, y: b.add(ops.Compare(x, y, direction, compare_type=kind)))
    g.offer(*g.add(ops.Sort([value], dimension=1, is_stable=True, comparator=less)))


def updated(g: Generator) -> None:
    """Whole numbers added to rows, of which some occur more than once."""
    count, features = g.number(2, 20), g.number(1, 30)
    into, added = (g.argument((n, features), I32) for n in (count, g.number(1, 30)))
    places = g.rng.integers(0, count, (added.type.static_shape[0], 1), np.int32)
    numbers = ops.ScatterDimensionNumbers((1,), (0,), (), (), (0,), 1)
    g.offer(*g.add(ops.Scatter([into], g.constant(places), [added], numbers, scalar_region(ops.Add, I32))))


def products(g: Generator) -> None:
    """Products of some matrices: enough of them for tiles, or too few."""
    element = g.pick((F32, F32, F32, F64, BF16, F16))
    for _ in range(g.number(2, 3)):
        batch, least = g.pick(((32, 16), (32, 16), (3, 1)))
        _dot(g, element, element, (batch, g.number(least, 20), g.number(16, 70), g.number(least, 20)))


def deep_products(g: Generator) -> None:
    """Products with long sums, which several blocks share."""
    for _ in range(2):
        operand, result = g.pick(((F32, F32), (F32, F32), (BF16, BF16), (F16, F16), (I8, I32)))
        _dot(g, operand, result, (1, g.number(30, 80), g.number(2048, 2300), g.number(30, 80)))


def _dot(g: Generator, operand: Type, result: Type, extents: tuple[int, int, int, int]) -> None:
    batch, m, k, n = extents
    lhs = g.argument((batch, m, k), operand)
    flipped = g.chance(0.5)
    rhs = g.argument((batch, n, k) if flipped else (batch, k, n), operand)
    numbers = ops.DotDimensionNumbers((0,), (0,), (2,), (2 if flipped else 1,))
    found = g.add(ops.DotGeneral(lhs, rhs, numbers, result=tensor(batch, m, n, of=result)))
    if is_float(result) and g.chance(0.3):
        found = g.add(ops.Tanh(found))
    g.offer(found)


def _value(g: Generator, shape: tuple[int, ...]) -> Value:
    """Returns a new argument, or sometimes an earlier result of that rank."""
    inside = [v for v in g.pool if v.type.rank == len(shape) and v not in g.block.arguments]
    return g.pick(inside) if inside and g.chance(0.4) else g.argument(shape, g.element())


FORMS = (
    elementwise, elementwise, moved, padded, copied, rows, rows, rows, few_long, softmax, statistics,
    statistics, running, ordered, updated, products, products, deep_products,
)  # fmt: skip
