"""Control flow: branches that compute, loops that carry, swap and update values, and barriers."""

from __future__ import annotations

import math

import numpy as np

from tests.random_programs.generator import Generator, Rejected, scalar_region
from trivium.ir import ops
from trivium.ir.builder import Builder, region
from trivium.ir.core import Value
from trivium.ir.types import I32, I64, is_boolean, is_complex, is_float, tensor


def _predicate(g: Generator) -> Value:
    """Whether a number that is unknown to the compiler is positive."""
    number = g.argument((), I32)
    return g.add(ops.Compare(number, g.constant(np.int32(g.number(-3, 3))), ops.ComparisonDirection.GT))


def _change(g: Generator, b: Builder, value: Value, other: Value) -> Value:
    """Returns a value of the same type."""
    kind = value.type.element_type
    draw = g.rng.random()
    if draw < 0.2:
        return value
    if draw < 0.4 and value.type.rank:
        return b.add(ops.Reverse(value, [g.number(0, value.type.rank - 1)]))
    if draw < 0.6 and is_float(kind):
        return b.add(ops.Tanh(value))
    if is_boolean(kind):
        return b.add(ops.Not(value))
    choices = (ops.Subtract,) if is_complex(kind) else (ops.Subtract, ops.Maximum, ops.Minimum)
    return b.add(g.pick(choices)(value, other))


def branch(g: Generator) -> None:
    value = g.value()
    other, pred = g.like(value), _predicate(g)
    sides = [region([], lambda b: [_change(g, b, value, other), _change(g, b, other, value)]) for _ in range(2)]
    g.offer(*g.add(ops.If(pred, *sides)))


def case(g: Generator) -> None:
    value = g.value()
    other, index = g.like(value), g.argument((), I32)
    branches = [region([], lambda b: _change(g, b, value, other)) for _ in range(g.number(1, 4))]
    g.offer(*g.add(ops.Case(index, branches)))


def loop(g: Generator) -> None:
    """A counted loop that carries two values, sometimes swaps them, and updates one of them in place."""
    value = g.value(lambda kind: not is_boolean(kind), rank=1)
    if 0 in value.type.shape:
        raise Rejected
    other, swaps, limit = g.like(value), g.chance(0.5), g.number(0, 4)
    element = g.pick((I32, I64))
    dtype = np.int32 if element is I32 else np.int64
    count = g.constant(dtype(0))
    types = [count.type, value.type, other.type]
    changed = g.chance(0.7)

    def cond(b: Builder, i: Value, x: Value, y: Value) -> Value:
        return b.add(ops.Compare(i, b.add(ops.Constant(dtype(limit))), ops.ComparisonDirection.LT))

    def body(b: Builder, i: Value, x: Value, y: Value) -> list[Value]:
        following = b.add(ops.Add(i, b.add(ops.Constant(dtype(1)))))
        total = _change(g, b, x, y) if changed else x
        row = b.add(ops.Slice(total, [0] * value.type.rank, [1, *value.type.shape[1:]], [1] * value.type.rank))
        zeros = [b.add(ops.Constant(dtype(0))) for _ in value.type.shape[1:]]
        updated = b.add(ops.DynamicUpdateSlice(y, row, [i, *zeros]))
        return [following, *((updated, x) if swaps else (total, updated))]

    g.offer(*g.add(ops.While([count, value, other], region(types, cond), region(types, body)))[1:])


def loop_of_scalars(g: Generator) -> None:
    """A counted loop that carries two numbers, sometimes swaps them, and reads a table."""
    value = g.value(lambda kind: not is_boolean(kind), rank=1)
    kind, size = value.type.element_type, math.prod(value.type.shape)
    if not size:
        raise Rejected
    table, limit, swaps = g.add(ops.Reshape(value, result=tensor(size, of=kind))), g.number(0, 9), g.chance(0.5)
    ends = [g.add(ops.Slice(table, [place], [place + 1], [1])) for place in (0, size - 1)]
    first, last = (g.add(ops.Reshape(end, result=tensor(of=kind))) for end in ends)
    count = g.constant(np.int32(0))
    types = [count.type, first.type, last.type]

    def cond(b: Builder, i: Value, x: Value, y: Value) -> Value:
        return b.add(ops.Compare(i, b.add(ops.Constant(np.int32(limit))), ops.ComparisonDirection.LT))

    def body(b: Builder, i: Value, x: Value, y: Value) -> list[Value]:
        following = b.add(ops.Add(i, b.add(ops.Constant(np.int32(1)))))
        read = b.add(ops.Reshape(b.add(ops.DynamicSlice(table, [i], [1])), result=tensor(of=kind)))
        found = _change(g, b, x, read)
        return [following, *((y, found) if swaps else (found, y))]

    g.offer(*g.add(ops.While([count, first, last], region(types, cond), region(types, body)))[1:])


def small_loop(g: Generator) -> None:
    """A counted loop that carries a few numbers, reads a table and changes it in place, before or after it reads."""
    value = g.value(lambda kind: not is_boolean(kind), rank=1)
    kind, size = value.type.element_type, math.prod(value.type.shape)
    if not size:
        raise Rejected
    table, limit, width = (
        g.add(ops.Reshape(value, result=tensor(size, of=kind))),
        g.number(0, 5),
        min(size, g.number(1, 5)),
    )
    few = g.add(ops.Slice(table, [0], [width], [1]))
    weights = g.of_type(tensor(width, width, of=kind))
    count, draw = g.constant(np.int32(0)), g.rng.random()
    types = [count.type, few.type, table.type]

    def cond(b: Builder, i: Value, x: Value, y: Value) -> Value:
        return b.add(ops.Compare(i, b.add(ops.Constant(np.int32(limit))), ops.ComparisonDirection.LT))

    def total(b: Builder, x: Value) -> Value:
        numbers = ops.DotDimensionNumbers((), (), (0,), (int(draw < 0.7),))
        if draw < 0.4 and not is_complex(kind):
            start = b.add(ops.Constant(np.zeros((), tensor(of=kind).dtype)))
            (found,) = b.add(ops.Reduce([x], [start], [0], scalar_region(ops.Maximum, kind)))
            return b.add(ops.BroadcastInDim(found, broadcast_dimensions=(), result=x.type))
        return b.add(ops.DotGeneral(x, weights, numbers)) if draw < 0.8 else x

    def body(b: Builder, i: Value, x: Value, y: Value) -> list[Value]:
        following = b.add(ops.Add(i, b.add(ops.Constant(np.int32(1)))))
        read = b.add(ops.DynamicSlice(y, [i], [width]))
        found = _change(g, b, total(b, x), read)
        updated = b.add(ops.DynamicUpdateSlice(y, found if g.chance(0.7) else x, [following if g.chance(0.5) else i]))
        if g.chance(0.3):
            found = (
                b.add(ops.Maximum(found, b.add(ops.DynamicSlice(y, [following], [width]))))
                if not is_complex(kind)
                else found
            )
        if g.chance(0.3):
            updated = b.add(ops.DynamicUpdateSlice(updated, b.add(ops.Slice(read, [0], [1], [1])), [i]))
        return [following, found, updated]

    g.offer(*g.add(ops.While([count, few, table], region(types, cond), region(types, body)))[1:])


def loop_over_rows(g: Generator) -> None:
    """A loop that adds up products of rows, which it reads forwards or backwards, and weights, as recurrent networks
    do."""
    value = g.float_value(rank=2, most=3)
    rows, *batch, width = value.type.static_shape
    if 0 in value.type.shape or rows > 16:
        raise Rejected
    kind, columns, backwards = value.type.element_type, g.number(1, 9), g.chance(0.4)
    weights, count = g.of_type(tensor(width, columns, of=kind)), g.constant(np.int32(0))
    total = g.of_type(tensor(*batch, columns, of=kind))
    types, limit = [count.type, total.type, weights.type], g.pick((rows, rows, rows - 1, rows + 2))

    def cond(b: Builder, i: Value, x: Value, w: Value) -> Value:
        return b.add(ops.Compare(i, b.add(ops.Constant(np.int32(limit))), ops.ComparisonDirection.LT))

    def body(b: Builder, i: Value, x: Value, w: Value) -> list[Value]:
        one, zero, last = (b.add(ops.Constant(np.int32(number))) for number in (1, 0, rows - 1))
        at = b.add(ops.Subtract(last, i)) if backwards else i
        row = b.add(ops.DynamicSlice(value, [at, *(zero for _ in batch), zero], [1, *batch, width]))
        row = b.add(ops.Reshape(row, result=value.type.with_shape((*batch, width))))
        numbers = ops.DotDimensionNumbers((), (), (len(batch),), (0,))
        found = b.add(ops.Add(x, b.add(ops.DotGeneral(row, w, numbers))))
        return [b.add(ops.Add(i, one)), found, w]

    g.offer(g.add(ops.While([count, total, weights], region(types, cond), region(types, body)))[1])


def barrier(g: Generator) -> None:
    values = list(dict.fromkeys(g.value() for _ in range(g.number(1, 2))))
    g.offer(*g.add(ops.OptimizationBarrier(values)))


FAMILIES = (branch, case, loop, loop, loop_of_scalars, small_loop, small_loop, loop_over_rows, barrier)
