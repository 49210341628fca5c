"""Products of matrices that GPUs have matrix instructions for: batches, dimensions in any order, lines that are
multiples of 16 bytes and others."""

from __future__ import annotations

import math

from tests.random_programs.generator import Generator
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import BF16, F16, F32, I8, I32, UI8, UI32, Type, is_float, tensor

LARGEST = 1 << 16
"""The largest number of elements of a value."""

PAIRS = ((BF16, F32), (BF16, BF16), (F16, F32), (F16, F16), (F32, F32), (I8, I32), (UI8, UI32))
"""The types of factors and results."""


def product(g: Generator) -> None:
    operand, result = g.pick(PAIRS)
    batch = [g.number(1, 3) for _ in range(g.number(0, 2))]
    depth = [g.number(2048, 2200)] if g.chance(0.1) else _extents(g)
    rows, columns = ([g.number(16, 24)], [g.number(16, 24)]) if math.prod(depth) > 1000 else (_extents(g), _extents(g))
    lhs, lhs_numbers = _factor(g, operand, batch, rows, depth)
    rhs, rhs_numbers = _factor(g, operand, batch, columns, depth)
    numbers = ops.DotDimensionNumbers(*(side[kind] for kind in (0, 1) for side in (lhs_numbers, rhs_numbers)))
    found = g.add(ops.DotGeneral(lhs, rhs, numbers, result=tensor(*batch, *rows, *columns, of=result)))
    if is_float(result) and g.chance(0.3):
        found = g.add(ops.Tanh(found))
    if is_float(result) and g.chance(0.3):
        found = g.add(ops.Negate(_divided(g, found)))
    g.offer(found)


def _divided(g: Generator, value: Value) -> Value:
    """Returns a value with some of its dimensions divided in two, perhaps in another order."""
    parts = [next((n for n in (g.number(2, 8), 2) if extent % n == 0 and extent > n), 1) for extent in value.type.shape]
    shape = [one for n, extent in zip(parts, value.type.shape, strict=True) for one in (n, extent // n) if one > 1]
    value = g.add(ops.Reshape(value, result=tensor(*shape, of=value.type.element_type)))
    return g.add(ops.Transpose(value, [int(d) for d in g.rng.permutation(len(shape))])) if g.chance(0.3) else value


def _extents(g: Generator) -> list[int]:
    """Returns the extents of rows, columns, or the depth."""
    extent = g.number(16, 90)
    if g.chance(0.6):
        extent = -(-extent // 16) * 16
    return [g.number(2, 4), -(-extent // 32) * 8] if g.chance(0.2) else [extent]


def _factor(
    g: Generator, element: Type, batch: list[int], own: list[int], depth: list[int]
) -> tuple[Value, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Returns a factor, whose own dimensions keep their order, and the places of those of the batch and the depth."""
    extents = [*batch, *own, *depth]
    order = list(range(len(extents)))
    if g.chance(0.5):
        order = [int(d) for d in g.rng.permutation(len(order))]
        kept = range(len(batch), len(batch) + len(own))
        places = [place for place, dimension in enumerate(order) if dimension in kept]
        for place, dimension in zip(places, kept, strict=True):
            order[place] = dimension
    value = g.argument([extents[d] for d in order], element)
    where = tuple(order.index(d) for d in range(len(order)))
    return value, (where[: len(batch)], where[len(batch) + len(own) :])
