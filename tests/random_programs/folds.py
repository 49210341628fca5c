"""Ops that combine many elements: reductions and computations with their results, windows, and sorts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tests.random_programs.generator import Generator, Rejected, scalar_region, scalars
from trivium.ir import ops
from trivium.ir.builder import Builder, region
from trivium.ir.core import Region, Value
from trivium.ir.types import C64, C128, F32, F64, I32, UI8, Type, is_boolean, is_complex, is_float, is_integer, tensor


def _limits(element: Type) -> tuple[float, float]:
    """Returns the smallest and the largest number."""
    if is_float(element):
        return -math.inf, math.inf
    info = np.iinfo(tensor(of=element).dtype)
    return int(info.min), int(info.max)


def combiner(g: Generator, element: Type) -> tuple[Region, float]:
    """An associative region, and its initial value, which is mostly its identity."""
    other = g.number(-2, 3) if not is_boolean(element) else g.number(0, 1)
    if is_boolean(element):
        op, neutral = g.pick(((ops.And, 1), (ops.Or, 0), (ops.Xor, 0)))
    elif is_complex(element):
        op, neutral = ops.Add, 0
    else:
        low, high = _limits(element)
        op, neutral = g.pick(((ops.Add, 0), (ops.Add, 0), (ops.Maximum, low), (ops.Minimum, high), (ops.Multiply, 1)))
        if is_integer(element) and g.chance(0.2):
            op, neutral = g.pick(((ops.And, -1 if low < 0 else high), (ops.Or, 0), (ops.Xor, 0)))
        other = max(other, 0) if is_integer(element) and low == 0 else other
    if g.chance(0.2) and op is not ops.Multiply:
        neutral = other
    if op is ops.Maximum and g.chance(0.3):
        return custom(g, element), neutral
    return scalar_region(op, element), neutral


def custom(g: Generator, element: Type) -> Region:
    """The larger of two numbers, expressed in other ways: by a select, a branch, or tensors."""
    draw = g.rng.random()

    def greater(b: Builder, x: Value, y: Value) -> Value:
        if draw < 0.3:
            pair = [b.add(ops.Reshape(v, result=tensor(1, of=element))) for v in (x, y)]
            both, body = b.add(ops.Concatenate(pair, 0)), scalar_region(ops.Maximum, element)
            return b.add(ops.Reduce([both], [x], [0], body))[0]
        above = b.add(ops.Compare(x, y, ops.ComparisonDirection.GT))
        if draw < 0.5:
            return b.add(ops.If(above, region([], lambda b: x), region([], lambda b: y)))[0]
        return b.add(ops.Select(above, x, y))

    return region(scalars(element, 2), greater)


def start(g: Generator, element: Type, number: float) -> Value:
    dtype = tensor(of=element).dtype
    array = np.array(number, np.float64 if isinstance(number, float) else object).astype(dtype)
    return g.constant(array)


def reduce(g: Generator) -> None:
    value = g.value(rank=1)
    dimensions = g.some(value.type.rank, 0.6) or [value.type.rank - 1]
    body, neutral = combiner(g, value.type.element_type)
    init = start(g, value.type.element_type, neutral)
    (folded,) = g.add(ops.Reduce([value], [init], dimensions, body))
    g.offer(folded)
    if g.chance(0.5):
        kept = tuple(d for d in range(value.type.rank) if d not in dimensions)
        spread = g.add(ops.BroadcastInDim(folded, broadcast_dimensions=kept, result=value.type))
        g.offer(spread)


def argmax(g: Generator) -> None:
    """Two results: the maximum, and the first index at which it occurs."""
    value = g.float_value(rank=1)
    if 0 in value.type.shape:
        raise Rejected
    dimension = g.number(0, value.type.rank - 1)
    element = value.type.element_type
    index = g.add(ops.Iota(dimension, result=value.type.with_element(I32)))

    def body(b: Builder, x: Value, i: Value, y: Value, j: Value) -> list[Value]:
        direction = ops.ComparisonDirection
        above = b.add(ops.Compare(x, y, direction.GT))
        same = b.add(ops.Compare(x, y, direction.EQ))
        earlier = b.add(ops.And(same, b.add(ops.Compare(i, j, direction.LT))))
        stays = b.add(ops.Or(above, earlier))
        return [b.add(ops.Select(stays, x, y)), b.add(ops.Select(stays, i, j))]

    inits = [start(g, element, -math.inf), g.constant(np.int32(2**31 - 1))]
    kinds = [tensor(of=element), tensor(of=I32)]
    g.offer(*g.add(ops.Reduce([value, index], inits, [dimension], region([*kinds, *kinds], body))))


def together(g: Generator) -> None:
    """Two inputs, which are reduced together by different ops."""
    value = g.value(lambda kind: not is_boolean(kind) and not is_complex(kind), rank=1)
    element = value.type.element_type
    dimensions = g.some(value.type.rank, 0.6) or [0]

    def body(b: Builder, a: Value, x: Value, c: Value, y: Value) -> list[Value]:
        return [b.add(ops.Add(a, c)), b.add(ops.Maximum(x, y))]

    inits = [start(g, element, 0), start(g, element, _limits(element)[0])]
    g.offer(*g.add(ops.Reduce([value, g.like(value)], inits, dimensions, region(scalars(element, 4), body))))


def wider(g: Generator) -> None:
    """Narrow numbers, summed in a wider type."""
    value = g.value(lambda kind: is_float(kind) and tensor(of=kind).dtype.itemsize == 2, rank=1)
    dimensions = g.some(value.type.rank, 0.6) or [0]
    init = start(g, value.type.element_type, 0)
    g.offer(*g.add(ops.Reduce([value], [init], dimensions, scalar_region(ops.Add, F32))))


def fold(g: Generator, operand: Value, op: type, init: float, dimension: int, like: Value) -> Value:
    """A value reduced along a dimension, and broadcast along it again."""
    element = operand.type.element_type
    (folded,) = g.add(ops.Reduce([operand], [start(g, element, init)], [dimension], scalar_region(op, element)))
    kept = tuple(d for d in range(operand.type.rank) if d != dimension)
    return g.add(ops.BroadcastInDim(folded, broadcast_dimensions=kept, result=like.type))


def softmax(g: Generator) -> None:
    value = g.float_value(rank=1)
    d = g.number(0, value.type.rank - 1)
    power = g.add(ops.Exponential(g.add(ops.Subtract(value, fold(g, value, ops.Maximum, -math.inf, d, value)))))
    g.offer(g.add(ops.Divide(power, fold(g, power, ops.Add, 0.0, d, value))))
    if g.chance(0.3):
        g.offer(power)


def normalize(g: Generator) -> None:
    """Subtracts the mean, and sometimes divides by the deviation."""
    value = g.float_value(rank=1)
    d = g.number(0, value.type.rank - 1)
    if not value.type.shape[d]:
        raise Rejected
    element = value.type.element_type

    def number(x: float) -> Value:
        scalar = g.constant(np.float32(x), element)
        return g.add(ops.BroadcastInDim(scalar, broadcast_dimensions=(), result=value.type))

    count = number(1 / value.type.shape[d])
    mean = g.add(ops.Multiply(fold(g, value, ops.Add, 0.0, d, value), count))
    centred = g.add(ops.Subtract(value, mean))
    if g.chance(0.5):
        squares = g.add(ops.Multiply(centred, centred))
        variance = g.add(ops.Multiply(fold(g, squares, ops.Add, 0.0, d, value), count))
        centred = g.add(ops.Multiply(centred, g.add(ops.Rsqrt(g.add(ops.Add(variance, number(0.5)))))))
    g.offer(centred)


# Windows


def window(g: Generator, shape: tuple[int, ...], slide: list[int], dilate: bool = True) -> dict[str, list]:
    """Sizes, strides, paddings and dilations, which are 1 except where the window slides."""
    rank = len(shape)
    sizes, strides, dilations, bases = ([1] * rank for _ in range(4))
    padding = [[0, 0] for _ in range(rank)]
    for d in slide:
        sizes[d], strides[d] = g.number(1, 4), g.number(1, 3)
        if g.chance(0.6):
            padding[d] = [g.number(0, 2), g.number(0, 2)]
        if dilate and g.chance(0.15):
            padding[d] = [g.number(-1, 2), g.number(-1, 2)]
        if dilate and g.chance(0.25):
            dilations[d] = 2
        if dilate and g.chance(0.15):
            bases[d] = 2
    found = {"window_dimensions": sizes, "window_strides": strides, "padding": padding}
    return found | {"window_dilations": dilations, "base_dilations": bases} if dilate else found


def reduce_window(g: Generator) -> None:
    value = g.value(rank=1)
    slide = g.some(value.type.rank, 0.6) or [0]
    body, neutral = combiner(g, value.type.element_type)
    init = start(g, value.type.element_type, neutral)
    op = ops.ReduceWindow([value], [init], body=body, **window(g, value.type.shape, slide))
    g.offer(*g.add(op))


def running(g: Generator) -> None:
    """A window that ends, or begins, at each element: often of a row that is longer than a vector."""
    long = (g.number(1, 3), g.number(64, 200)), g.pick((F32, F64, I32, UI8))
    value = g.argument(*long) if g.chance(0.5) else g.value(rank=1)
    d = g.number(0, value.type.rank - 1)
    extent, rank = value.type.shape[d], value.type.rank
    if not extent:
        raise Rejected
    body, neutral = combiner(g, value.type.element_type)
    padding = [[0, 0] for _ in range(rank)]
    padding[d] = [extent - 1, 0] if g.chance(0.5) else [0, extent - 1]
    sizes = [extent if i == d else 1 for i in range(rank)]
    init = start(g, value.type.element_type, neutral)
    (result,) = g.add(ops.ReduceWindow([value], [init], window_dimensions=sizes, padding=padding, body=body))
    if g.chance(0.5) and not is_boolean(value.type.element_type):
        other = value if g.chance(0.5) else g.of_type(value.type)
        result = g.add(ops.Subtract(g.add(ops.Add(result, result)), other))
    g.offer(result)


def select_and_scatter(g: Generator) -> None:
    value = g.value(lambda kind: not is_boolean(kind) and not is_complex(kind), rank=1)
    element = value.type.element_type
    slide = g.some(value.type.rank, 0.6) or [0]
    options = window(g, value.type.shape, slide, dilate=False)
    body = scalar_region(ops.Add, element)
    counts = ops.ReduceWindow([value], [start(g, element, 0)], body=body, **options)
    kind = counts.results[0].type
    counts.erase()
    direction = g.pick((ops.ComparisonDirection.GE, ops.ComparisonDirection.LE))
    select = region(scalars(element, 2), lambda b, x, y: b.add(ops.Compare(x, y, direction)))
    source, init = g.of_type(kind), start(g, element, 0)
    scatter = scalar_region(ops.Add, element)
    g.offer(g.add(ops.SelectAndScatter(value, source, init, select=select, scatter=scatter, **options)))


# Sorts


def sort(g: Generator) -> None:
    """One to three values, sorted by the first."""
    value = g.value(lambda kind: not is_complex(kind), rank=1)
    element, values = value.type.element_type, [value]
    for _ in range(g.number(0, 2)):
        other = g.element()
        values.append(g.of_type(value.type.with_element(other)))
    kinds = [tensor(of=v.type.element_type) for v in values for _ in range(2)]
    direction = g.pick((ops.ComparisonDirection.LT, ops.ComparisonDirection.GT))
    order = ops.ComparisonType.TOTALORDER if is_float(element) else None
    less = region(kinds, lambda b, x, y, *rest: b.add(ops.Compare(x, y, direction, compare_type=order)))
    dimension = g.number(0, value.type.rank - 1)
    g.offer(*g.add(ops.Sort(values, dimension=dimension, is_stable=g.chance(0.5), comparator=less)))


def sort_long(g: Generator) -> None:
    """Rows that are long enough to be sorted by digits or by vectors, with many equal elements; the result has only a
    few of them."""
    value = g.value(lambda kind: not is_complex(kind), rank=1)
    element, size = value.type.element_type, math.prod(value.type.shape)
    if not size:
        raise Rejected
    flat = g.add(ops.Reshape(value, result=tensor(size, of=element)))
    row = g.add(ops.Concatenate([flat] * -(-g.number(256, 1200) // size), dimension=0))
    extent = row.type.shape[0]
    if g.chance(0.4) and is_float(element):
        values = g.add(ops.TopK(row, k=g.number(1, 100)))
    else:
        operands = [row] if g.chance(0.5) else [row, g.add(ops.Iota(0, result=tensor(extent, of=I32)))]
        values = g.add(ops.Sort(operands, dimension=0, is_stable=True, comparator=_comparator(g, operands)))
    step = -(-values[0].type.shape[0] // 8)
    limits = values[0].type.shape
    if g.chance(0.4):  # few are needed, of all values or of one
        limits, step = (min(limits[0], g.number(1, 80)),), 1
        values = values[: g.number(1, len(values))]
    g.offer(*(g.add(ops.Slice(v, start_indices=[0], limit_indices=limits, strides=[step])) for v in values))


def _comparator(g: Generator, operands: Sequence[Value]) -> Region:
    """Compares the first elements; some comparators take -0 for 0."""
    element = operands[0].type.element_type
    kinds = [tensor(of=v.type.element_type) for v in operands for _ in range(2)]
    direction = g.pick((ops.ComparisonDirection.LT, ops.ComparisonDirection.GT))
    order = ops.ComparisonType.TOTALORDER if is_float(element) else None
    alike = is_float(element) and g.chance(0.4)

    def unsigned(b: Builder, x: Value) -> Value:
        zero = b.add(ops.Constant(np.zeros((), tensor(of=element).dtype)))
        return b.add(ops.Select(b.add(ops.Compare(x, zero, ops.ComparisonDirection.EQ)), zero, x))

    def less(b: Builder, *elements: Value) -> Value:
        x, y = (unsigned(b, element) if alike else element for element in elements[:2])
        return b.add(ops.Compare(x, y, direction, compare_type=order))

    return region(kinds, less)


def transform(g: Generator) -> None:
    """A Fourier transform of rows, most of them of a length with small prime factors."""
    value = g.value(lambda kind: kind in (F32, F64, C64, C128), rank=1)
    element, size = value.type.element_type, math.prod(value.type.shape)
    length = int(g.pick((16, 16, 32, 64, 128, 6, 20, 27, 40, 84, 22)))
    if not size:
        raise Rejected
    rows, way = g.number(1, 3), g.pick((ops.FftType.FFT, ops.FftType.IFFT, ops.FftType.IRFFT))
    count = length // 2 + 1 if is_complex(element) and way is ops.FftType.IRFFT else length
    flat = g.add(ops.Reshape(value, result=tensor(size, of=element)))
    long = g.add(ops.Concatenate([flat] * -(-rows * count // size), dimension=0))
    cut = g.add(ops.Slice(long, [0], [rows * count], [1]))
    row = g.add(ops.Reshape(cut, result=tensor(rows, count, of=element)))
    if is_complex(element):
        found = g.add(ops.Fft(row, way, (length,)))
    elif g.chance(0.5):
        found = g.add(ops.Fft(row, ops.FftType.RFFT, (length,)))
    else:
        found = g.add(ops.Fft(g.add(ops.Complex(row, g.like(row))), ops.FftType.FFT, (length,)))
    whole, real = found.type.shape, g.add(ops.Real(found))
    g.offer(found, g.add(ops.Slice(real, [0, 0], whole, [1, -(-whole[1] // 8)])))


def across(g: Generator) -> None:
    """Sums of each feature of two images, one of which has its features last, and what is computed with them, as in
    the gradient of a batch norm."""
    shape, element = (2, g.number(8, 12), 16, g.number(16, 20)), g.pick((F32, F32, F64, I32))
    image, last = g.argument(shape, element), g.argument((shape[0], *shape[2:], shape[1]), element)
    both = g.add(ops.Add(image, g.add(ops.Transpose(last, permutation=(0, 3, 1, 2)))))
    product = g.add(ops.Multiply(both, image)) if g.chance(0.7) else both
    region = scalar_region(ops.Add, element)
    (total,) = g.add(ops.Reduce([product], [start(g, element, 0)], (0, 2, 3), region))
    spread = g.add(ops.BroadcastInDim(total, broadcast_dimensions=(1,), result=both.type))
    g.offer(total, g.add(ops.Subtract(both, spread)))


FAMILIES = (
    *(reduce,) * 5, across, argmax, together, wider, softmax, softmax, normalize, *(reduce_window,) * 4, running,
    select_and_scatter, select_and_scatter, sort, sort, sort_long, transform, transform,
)  # fmt: skip
