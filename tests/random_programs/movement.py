"""Ops that only move elements: by fixed positions (`reshape`, `pad`, ...) and by computed ones (slices, gathers,
scatters)."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tests.random_programs.generator import Generator, Rejected, scalars
from trivium.compiler.passes.layout import to_first, to_last
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.core import Region, Value
from trivium.ir.types import I8, I32, I64, UI8, UI32, Type, is_boolean, is_complex, tensor


def reshape(g: Generator) -> None:
    value = g.value()
    size, shape = math.prod(value.type.shape), []
    if not size:
        raise Rejected
    for _ in range(g.number(0, 3)):
        shape.append(int(g.pick([d for d in range(1, size + 1) if size % d == 0])))
        size //= shape[-1]
    shape.insert(g.number(0, len(shape)), size)
    g.offer(g.add(ops.Reshape(value, result=tensor(*shape, of=value.type.element_type))))


def merge(g: Generator) -> None:
    """Merges two adjacent dimensions."""
    value = g.value(rank=2)
    shape, d = list(value.type.shape), g.number(0, value.type.rank - 2)
    shape[d : d + 2] = [shape[d] * shape[d + 1]]
    g.offer(g.add(ops.Reshape(value, result=tensor(*shape, of=value.type.element_type))))


def broadcast(g: Generator) -> None:
    kind = g.value().type.element_type
    g.offer(g.broadcast_to(tensor(*g.shape(), of=kind)))


def spread(g: Generator) -> None:
    """Adds a dimension, and sometimes repeats those of extent 1."""
    value = g.value(most=4)
    shape, position = list(value.type.shape), g.number(0, value.type.rank)
    shape = [int(g.pick((2, 3))) if extent == 1 and g.chance(0.5) else extent for extent in shape]
    shape.insert(position, int(g.pick((1, 2, 3, 8))))
    kept = [d for d in range(len(shape)) if d != position]
    g.offer(g.add(ops.BroadcastInDim(value, kept, result=tensor(*shape, of=value.type.element_type))))


def transpose(g: Generator) -> None:
    value = g.value(rank=2)
    g.offer(g.add(ops.Transpose(value, tuple(int(d) for d in g.rng.permutation(value.type.rank)))))


def turn(g: Generator) -> None:
    """A transpose of an array with rows and columns of several vectors, which may be reversed, or of what is computed
    from several arrays; sometimes combined with another array."""
    largest = int(g.pick((40, 40, 160)))
    shape = (*[g.number(1, 3)] * g.number(0, 1), g.number(2, largest), g.number(2, 40))
    order = tuple(int(d) for d in g.rng.permutation(len(shape)))
    value = g.argument(shape, g.element())
    if not is_boolean(value.type.element_type) and g.chance(0.5):
        value = _of_neighbours(g, value)
    if g.chance(0.3):
        value = g.add(ops.Reverse(value, tuple(d for d in range(len(shape)) if g.chance(0.5))))
    result = g.add(ops.Transpose(value, order))
    g.offer(result)
    if not is_boolean(result.type.element_type) and g.chance(0.4):
        g.offer(g.add(ops.Add(result, g.like(result))))


def _of_neighbours(g: Generator, value: Value) -> Value:
    """Returns the sum of a value, of its neighbours along one dimension, with other elements beyond the last of them,
    and of another array."""
    d, (*shape,) = g.number(0, value.type.rank - 1), value.type.shape
    first = [int(k == d) for k in range(len(shape))]
    kept = g.add(ops.Slice(value, first, shape, [1] * len(shape)))
    if g.chance(0.5):
        beyond = g.argument([1 if k == d else extent for k, extent in enumerate(shape)], value.type.element_type)
        moved = g.add(ops.Concatenate([kept, beyond], d))
    else:
        filling, none = g.of_type(tensor(of=value.type.element_type)), [0] * len(shape)
        moved = g.add(ops.Pad(kept, filling, none, first, none))
    return g.add(ops.Add(g.add(ops.Add(value, moved)), g.argument(shape, value.type.element_type)))


def repeat(g: Generator) -> None:
    """Repeats the elements of rows, or the rows as a whole, from some element on; sometimes combined with another
    array. Vectors have several elements of each, or each of several elements more than once."""
    count, times = g.number(2, 40), int(g.pick((2, 2, 3, 4, 8, 16)))
    rows, tiled = [g.number(1, 3)] * g.number(0, 1), g.chance(0.3)
    row, repeated = ((times,), (count, times)) if tiled else ((count,), (count, times))
    value = g.argument((*rows, *row), g.element())
    kept = [*range(len(rows)), len(rows) + tiled]
    value = g.add(ops.BroadcastInDim(value, kept, result=tensor(*rows, *repeated, of=value.type.element_type)))
    shape = (*rows, count * times)
    value = g.add(ops.Reshape(value, result=tensor(*shape, of=value.type.element_type)))
    first = [*(0 for _ in rows), g.number(0, times)]
    value = g.add(ops.Slice(value, first, shape, [*(1 for _ in rows), int(g.pick((1, 1, 1, 2, 3)))]))
    g.offer(value)
    if not is_boolean(value.type.element_type) and g.chance(0.6):
        g.offer(g.add(ops.Add(value, g.like(value))))


def reverse(g: Generator) -> None:
    value = g.value(rank=1)
    g.offer(g.add(ops.Reverse(value, g.some(value.type.rank))))


def cut(g: Generator) -> None:
    value = g.value(rank=1)
    starts = [g.number(0, max(0, extent - 1)) for extent in value.type.shape]
    limits = [g.number(min(s + 1, e), e) for s, e in zip(starts, value.type.shape, strict=True)]
    g.offer(g.add(ops.Slice(value, starts, limits, [g.number(1, 3) for _ in starts])))


def pad(g: Generator) -> None:
    """Padding at both ends, which may be negative, and between the elements."""
    value = g.value(rank=1)
    low, high = ([g.number(-1, 2) for _ in value.type.shape] for _ in range(2))
    interior = [int(g.pick((0, 0, 1, 2))) for _ in value.type.shape]
    extents = zip(value.type.shape, low, high, interior, strict=True)
    if any(e + max(0, e - 1) * i + a + b < 0 for e, a, b, i in extents):
        raise Rejected
    filling = g.of_type(tensor(of=value.type.element_type))
    g.offer(g.add(ops.Pad(value, filling, low, high, interior)))


def concatenate(g: Generator) -> None:
    value = g.value(rank=1)
    dimension, pieces = g.number(0, value.type.rank - 1), [value]
    for _ in range(g.number(1, 3)):
        shape = list(value.type.shape)
        if g.chance(0.4):
            shape[dimension] = g.extent()
        pieces.append(g.of_type(tensor(*shape, of=value.type.element_type)))
    g.rng.shuffle(pieces)  # type: ignore[arg-type]
    g.offer(g.add(ops.Concatenate(pieces, dimension)))


def frame(g: Generator) -> None:
    """Puts a few elements at one or both ends of long rows, and of their columns, in any order."""
    kind = g.element()
    value = g.argument((*[g.number(1, 3)] * g.number(0, 1), g.number(2, 9), g.number(17, 70)), kind)
    rank = value.type.rank
    for dimension in g.pick(((rank - 1,), (rank - 1, rank - 2), (rank - 2, rank - 1))):
        ends = []
        for last in range(2):
            count, extent = g.number(0, 2), value.type.shape[dimension]
            begin = extent - count if last != g.chance(0.5) else 0
            low, high = [0] * rank, list(value.type.shape)
            low[dimension], high[dimension] = begin, begin + count
            end = g.add(ops.Slice(value, low, high, [1] * rank))
            ends.append(g.add(ops.Reverse(end, (dimension,))) if g.chance(0.3) else end)
        value = g.add(ops.Concatenate([ends[0], value, ends[1]], dimension))
    g.offer(value)


def heads(g: Generator) -> None:
    """Puts pieces of each head of long rows, cut or padded, in another order: a piece ends where its head does, or is
    every second element, or third. The heads may come first, and may be combined with the result."""
    rows, count, size = g.number(1, 6), g.number(1, 4), int(g.pick((2, 4, 8, 12, 16, 32)))
    value = g.argument((rows, count * size), g.element())
    value = g.add(ops.Reshape(value, result=tensor(rows, count, size, of=value.type.element_type)))
    if g.chance(0.5):
        value = g.add(ops.Transpose(value, (1, 0, 2)))
    dimension, shape = int(g.pick((2, 2, 2, 1, 0))), value.type.shape
    if g.chance(0.4) and (steps := [step for step in (2, 3) if size % step == 0]):
        step = int(g.pick(steps))
        every = [g.add(ops.Slice(value, [0, 0, first], shape, [1, 1, step])) for first in range(step)]
        kind = tensor(*shape[:2], size // step, 1, of=value.type.element_type)
        stacked = g.add(ops.Concatenate([g.add(ops.Reshape(x, result=kind)) for x in every[::-1]], 3))
        turned = g.add(ops.Reshape(stacked, result=value.type))
        g.offer(turned if is_boolean(kind.element_type) else g.add(ops.Add(turned, value)))
    cuts = sorted(g.number(0, shape[dimension]) for _ in range(g.number(1, 3)))
    pieces = []
    for start, end in itertools.pairwise([0, *cuts, shape[dimension]]):
        low, high = [0] * 3, list(shape)
        low[dimension], high[dimension] = start, end
        piece = g.add(ops.Slice(value, low, high, [1] * 3))
        pieces.append(g.add(ops.Reverse(piece, (dimension,))) if g.chance(0.2) else piece)
    g.rng.shuffle(pieces)  # type: ignore[arg-type]
    result = g.add(ops.Concatenate(pieces, dimension))
    if not is_boolean(value.type.element_type) and g.chance(0.6):
        result = g.add(ops.Add(result, value))
    g.offer(result)
    if g.chance(0.4):
        filling, edges = g.of_type(tensor(of=value.type.element_type)), [0, 0, 0]
        edges[dimension] = g.number(-1, 3)
        g.offer(g.add(ops.Pad(value, filling, edges, [0, 0, g.number(0, 3)], [0] * 3)))


def combinations(g: Generator) -> None:
    """Joins values that are computed from the same ones, and may be results themselves."""
    value = g.value(lambda kind: not is_boolean(kind), rank=1, most=4)
    terms, kinds = [value, g.like(value)], (ops.Add, ops.Subtract, ops.Multiply)
    for _ in range(g.number(1, 4)):
        terms.append(g.add(g.pick(kinds)(g.pick(terms), g.pick(terms))))
    pieces = [g.add(g.pick(kinds)(g.pick(terms[2:]), g.pick(terms))) for _ in range(g.number(2, 6))]
    g.offer(g.add(ops.Concatenate(pieces, g.number(0, value.type.rank - 1))))
    if g.chance(0.3):
        g.offer(g.pick([*terms[2:], *pieces]))


def stack(g: Generator) -> None:
    """Puts the elements of several values next to each other, as those of complex numbers are."""
    value = g.value(most=4)
    shape = (*value.type.shape, 1)
    pieces = [value, *(g.of_type(value.type) if g.chance(0.5) else value for _ in range(g.number(1, 3)))]
    alone = tensor(*shape, of=value.type.element_type)
    g.offer(g.add(ops.Concatenate([g.add(ops.Reshape(piece, result=alone)) for piece in pieces], value.type.rank)))


def points(g: Generator) -> None:
    """Rows of a few coordinates: combined with what all points, or all coordinates of a point, share; then sometimes
    each coordinate by itself, and coordinates next to each other again."""
    shape = (*[g.number(1, 3)] * g.number(0, 1), g.number(2, 50), g.number(2, 7))
    element, rank = g.element(lambda kind: not is_boolean(kind)), len(shape)
    value = g.argument(shape, element)
    choices = (ops.Add, ops.Multiply, ops.Subtract)
    for _ in range(g.number(1, 3)):
        kept = g.pick(((rank - 1,), (rank - 2,), tuple(range(rank - 1)), tuple(range(rank))))
        other = g.fresh([shape[d] for d in kept], element)
        spread = g.add(ops.BroadcastInDim(other, kept, result=value.type))
        value = g.add(g.pick(choices)(value, spread))
    if g.chance(0.3):
        value = g.add(ops.Reverse(value, g.some(rank)))
    if g.chance(0.4):
        g.offer(value)
    if g.chance(0.6):
        places = [g.number(0, shape[-1] - 1) for _ in range(g.number(2, 4))]
        parts = [_coordinate(g, value, place) for place in places]
        results = [g.add(g.pick(choices)(g.pick(parts), part)) for part in parts]
        g.offer(*(_stacked(g, results) if g.chance(0.5) else results[:2]))
        return
    g.offer(value)


def _coordinate(g: Generator, value: Value, place: int) -> Value:
    """Returns one coordinate of all points."""
    *shape, _ = value.type.shape
    strides = (1,) * (len(shape) + 1)
    part = g.add(ops.Slice(value, (*(0 for _ in shape), place), (*shape, place + 1), strides))
    return g.add(ops.Reshape(part, result=value.type.with_shape(shape)))


def _stacked(g: Generator, values: list[Value]) -> list[Value]:
    """Returns values as the coordinates of points, stacked along the last dimension or along the first one."""
    shape, kind = values[0].type.shape, values[0].type
    if g.chance(0.5):
        each = kind.with_shape((*shape, 1))
        return [g.add(ops.Concatenate([g.add(ops.Reshape(v, result=each)) for v in values], len(shape)))]
    each = kind.with_shape((1, *shape))
    stacked = g.add(ops.Concatenate([g.add(ops.Reshape(v, result=each)) for v in values], 0))
    return [g.add(ops.Transpose(stacked, (*range(1, len(shape) + 1), 0)))]


def join(g: Generator) -> None:
    """Combines two values of the program: both are sliced or padded to one shape, then added, multiplied or
    concatenated."""
    one = g.value(lambda kind: not is_boolean(kind), rank=1)
    kind = one.type.element_type
    found = [v for v in g.pool if v is not one and v.type.rank == one.type.rank and v.type.element_type is kind]
    other = g.pick(found)
    if g.chance(0.3):
        dimension = g.number(0, one.type.rank - 1)
        shape = [e if d != dimension else other.type.shape[d] for d, e in enumerate(one.type.shape)]
        g.offer(g.add(ops.Concatenate([one, g.fitted(other, shape)], dimension)))
        return
    shape = [g.pick(pair) for pair in zip(one.type.shape, other.type.shape, strict=True)]
    operands = [g.fitted(one, shape), g.fitted(other, shape)]
    choices = (ops.Add, ops.Multiply, ops.Subtract)
    g.offer(g.add(g.pick(choices if is_complex(kind) else (*choices, ops.Maximum))(*operands)))


# Computed positions


def places(g: Generator, shape: tuple[int, ...], most: int) -> Value:
    """Integers, some of them out of bounds."""
    element = g.pick((I32, I32, I64, I8, UI8, UI32))
    numbers = g.rng.integers(0 if element in (UI8, UI32) else -2, most + 3, shape)
    array = numbers.astype(tensor(of=element).dtype)
    if g.chance(0.5):
        return g.constant(array)
    found = [v for v in g.pool if v.type.shape == shape and v.type.element_type in (I32, I64)]
    if found and g.chance(0.7):
        return g.pick(found)
    # Unknown to the compiler: computed from an argument whose numbers are small.
    drawn = g.argument(shape, element)
    return g.add(ops.And(drawn, g.add(ops.Constant(np.full(shape, 7, array.dtype)))))


def starts(g: Generator, value: Value) -> list[Value]:
    found = [places(g, (), extent) for extent in value.type.shape]
    kind = found[0].type.element_type
    return [v if v.type.element_type is kind else g.constant(np.int8(g.number(0, 3)), kind) for v in found]


def dynamic_slice(g: Generator) -> None:
    value = g.value(rank=1)
    sizes = [g.number(min(1, extent), extent) for extent in value.type.shape]
    g.offer(g.add(ops.DynamicSlice(value, starts(g, value), sizes)))


def dynamic_update(g: Generator) -> None:
    value = g.value(rank=1)
    shape = [g.number(min(1, extent), extent) for extent in value.type.shape]
    update = g.of_type(tensor(*shape, of=value.type.element_type))
    g.offer(g.add(ops.DynamicUpdateSlice(value, update, starts(g, value))))


def gather(g: Generator) -> None:
    """Windows at listed positions, of any dimensions, in any order."""
    value = g.value(rank=1)
    rank, shape = value.type.rank, value.type.shape
    if 0 in shape:
        raise Rejected
    sizes = [1 if g.chance(0.5) else g.number(1, extent) for extent in shape]
    collapsed = [d for d in range(rank) if sizes[d] == 1 and g.chance(0.7)]
    mapped = tuple(int(d) for d in g.rng.permutation(rank)[: g.number(1, rank)])
    listed = tuple(int(g.pick((1, 2, 3, 5, 8))) for _ in range(g.number(0, 2)))
    vector = g.number(0, len(listed))
    indices = places(g, (*listed[:vector], len(mapped), *listed[vector:]), max(shape))
    kept = rank - len(collapsed)
    offsets = sorted(int(d) for d in g.rng.permutation(len(listed) + kept)[:kept])
    numbers = ops.GatherDimensionNumbers(tuple(offsets), tuple(collapsed), (), (), mapped, vector)
    g.offer(g.add(ops.Gather(value, indices, numbers, sizes)))


def resize(g: Generator) -> None:
    """A gather at constant places along one or two dimensions, most of which follow a rule."""
    value = g.value(rank=1)
    rank, shape = value.type.rank, value.type.shape
    if 0 in shape:
        raise Rejected
    mapped = tuple(int(d) for d in g.rng.permutation(rank)[: g.number(1, min(2, rank))])
    tables = []
    for d in mapped:
        table = np.arange(g.number(0, shape[d] - 1), shape[d], g.number(1, 3))[:: int(g.pick((1, 1, -1)))]
        table = np.repeat(table, int(g.pick((1, 2, 2, 3))))
        tables.append(table if g.chance(0.8) else g.rng.permutation(table) + g.number(-1, 1))
    grid = np.stack(np.meshgrid(*tables, indexing="ij"), -1)
    kept = rank - len(mapped)
    offsets = sorted(int(d) for d in g.rng.permutation(rank)[:kept])
    numbers = ops.GatherDimensionNumbers(tuple(offsets), tuple(sorted(mapped)), (), (), mapped, len(mapped))
    sizes = [1 if d in mapped else extent for d, extent in enumerate(shape)]
    g.offer(g.add(ops.Gather(value, g.constant(grid), numbers, sizes)))


def interpolate(g: Generator) -> None:
    """Elements on grids of computed rows and columns, combined in pairs, as resizing does; some of an image whose
    features are last in memory."""
    value = g.value(lambda kind: not is_boolean(kind), rank=1)
    features_last = g.chance(0.2) and value.type.rank > 3
    if features_last:
        value = g.add(ops.Transpose(value, to_first(value.type.rank)))
    rank, shape = value.type.rank, value.type.shape
    if 0 in shape:
        raise Rejected
    mapped = sorted(int(d) for d in g.rng.permutation(rank)[: g.number(1, min(2, rank))])
    counts = {d: g.pick((1, shape[d], shape[d], 2 * shape[d], shape[d] // 2 + 1)) for d in mapped}
    vectors = {d: [places(g, (counts[d],), shape[d]) for _ in range(2)] for d in mapped}
    other = value if g.chance(0.7) else g.like(value)
    corners = [
        _on_grid(g, g.pick((value, value, other)), dict(zip(mapped, chosen, strict=True)))
        for chosen in itertools.product(*vectors.values())
    ]
    for d in reversed(mapped):
        kind = corners[0].type
        weights = g.fresh((counts[d],), kind.element_type)
        spread = g.add(ops.BroadcastInDim(weights, (d,), result=kind))
        pairs = zip(corners[::2], corners[1::2], strict=True)
        corners = [g.add(ops.Add(a, g.add(ops.Multiply(g.add(ops.Subtract(b, a)), spread)))) for a, b in pairs]
    g.offer(*(g.add(ops.Transpose(each, to_last(rank))) if features_last else each for each in corners))


def _on_grid(g: Generator, value: Value, chosen: dict[int, Value]) -> Value:
    """Returns the elements at places of some dimensions: by one gather or by several, of the value or a transpose."""
    if len(chosen) > 1 and g.chance(0.3):
        for index in g.order(len(chosen)):
            d = list(chosen)[index]
            value = _on_grid(g, value, {d: chosen[d]})
        return value
    rank, last = value.type.rank, len(chosen)
    listed = [vector.type.shape[0] for vector in chosen.values()]
    parts = []
    for k, vector in enumerate(chosen.values()):
        narrow = g.add(ops.Convert(vector, result=vector.type.with_element(I32)))
        spread = g.add(ops.BroadcastInDim(narrow, (k,), result=tensor(*listed, of=I32)))
        parts.append(g.add(ops.Reshape(spread, result=tensor(*listed, 1, of=I32))))
    indices = g.add(ops.Concatenate(parts, last)) if last > 1 else parts[0]
    kept = [d for d in range(rank) if d not in chosen]
    if g.chance(0.5):  # places come first
        order = (*chosen, *kept)
        turned = g.add(ops.Transpose(value, order))
        mapped, offsets = tuple(range(last)), tuple(range(last, rank))
        found = _grid(g, turned, indices, mapped, offsets)
        return g.add(ops.Transpose(found, tuple(order.index(d) for d in range(rank))))
    return _grid(g, value, indices, tuple(chosen), tuple(kept))


def _grid(g: Generator, value: Value, indices: Value, mapped: tuple[int, ...], offsets: tuple[int, ...]) -> Value:
    numbers = ops.GatherDimensionNumbers(offsets, mapped, (), (), mapped, len(mapped))
    sizes = [1 if d in mapped else extent for d, extent in enumerate(value.type.shape)]
    return g.add(ops.Gather(value, indices, numbers, sizes))


def take_along(g: Generator) -> None:
    """A position for each row, with batching dimensions."""
    value = g.value(rank=2)
    rows, columns, *rest = value.type.shape
    if not rows * columns:
        raise Rejected
    indices = places(g, (rows, g.number(1, 4), 1), columns)
    kept = tuple(range(2, 2 + len(rest)))
    numbers = ops.GatherDimensionNumbers(kept, (1,), (0,), (0,), (1,), 2)
    g.offer(g.add(ops.Gather(value, indices, numbers, (1, 1, *rest))))


def update_region(g: Generator, element: Type) -> Region:
    """Adds, replaces, or takes the maximum."""
    draw = g.rng.random()
    if draw < 0.35:
        return region(scalars(element, 2), lambda b, old, new: new)
    if is_boolean(element):
        return region(scalars(element, 2), lambda b, old, new: b.add(ops.Or(old, new)))
    op = ops.Add if draw < 0.8 or is_complex(element) else g.pick((ops.Maximum, ops.Minimum, ops.Multiply))
    return region(scalars(element, 2), lambda b, old, new: b.add(op(old, new)))


def scatter(g: Generator) -> None:
    """Rows, or single elements, at listed positions, some of which are equal."""
    value = g.value(rank=1)
    rank, shape, count = value.type.rank, value.type.shape, g.number(1, 6)
    if 0 in shape:
        raise Rejected
    element = value.type.element_type
    depth = g.number(1, rank)
    mapped = tuple(int(d) for d in g.rng.permutation(rank)[:depth])
    window = [extent for d, extent in enumerate(shape) if d not in mapped]
    indices = places(g, (count, depth), max(shape))
    updates = g.of_type(tensor(count, *window, of=element))
    numbers = ops.ScatterDimensionNumbers(tuple(range(1, 1 + len(window))), tuple(sorted(mapped)), (), (), mapped, 1)
    g.offer(*g.add(ops.Scatter([value], indices, [updates], numbers, update_computation=update_region(g, element))))


FAMILIES = (
    reshape, merge, broadcast, spread, transpose, transpose, turn, repeat, reverse, cut, cut, pad, pad, concatenate,
    concatenate, frame, *(heads,) * 2, *(combinations,) * 2, stack, points, points, *(join,) * 4, dynamic_slice,
    dynamic_update, gather, gather, resize, interpolate, take_along, scatter, scatter,
)  # fmt: skip
