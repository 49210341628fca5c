"""Calls of LAPACK's routines, and what is done with their results, for the importers whose frameworks factor matrices
on a CPU in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.emit import Emitter
from trivium.importers.extents import Extent, known_shape, smaller
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.custom_calls import SHAPES_OF_RESULTS
from trivium.ir.lapack import call_attributes, result_shapes
from trivium.ir.types import I32, ElementType, is_complex


def lapack(emit: Emitter, routine: str, *operands: Value, **numbers: int) -> Sequence[Value]:
    """Returns the results of a LAPACK routine."""
    kinds = [operand.type for operand in operands]
    if not isinstance(emit, DynamicEmitter) or all(kind.is_static for kind in kinds):
        return emit.add(ops.CustomCall(list(operands), **call_attributes(routine, kinds, numbers)))
    shapes = result_shapes(routine, [emit.extents(x) for x in operands], numbers, partial(smaller, emit))
    attributes = call_attributes(routine, kinds, numbers, [known_shape(shape) for shape in shapes])
    given = [*operands, *map(emit.vector, shapes)]
    stated = DenseElements(np.arange(len(operands), len(given)))
    return emit.add(ops.CustomCall(given, **attributes, extra={SHAPES_OF_RESULTS: stated}))


def identities(emit: Emitter, shape: Sequence[Any], element_type: ElementType) -> Value:
    """Returns identity matrices, or nothing if that has no elements."""
    if 0 in shape:
        return emit.full(shape, 0, element_type)
    rows, columns = (emit.iota(shape[-2:], d, I32) for d in range(2))
    return emit.broadcast(emit.convert(emit.compare("EQ", rows, columns), element_type), shape)


# Matrices


def permutation_of(emit: DynamicEmitter, pivots: Value, rows: Extent) -> Value:
    """Returns the order of rows that the interchanges with `pivots`, counted from 1, lead to."""
    *batch, count = emit.extents(pivots)
    last = len(batch)
    places = emit.iota((*batch, rows), last, I32)
    if 0 in pivots.type.shape:
        return places
    end = emit.number_as(count, I32)

    def more(emit: DynamicEmitter, step: Value, order: Value) -> Value:
        return emit.compare("LT", step, end)

    def advance(emit: DynamicEmitter, step: Value, order: Value) -> Sequence[Value]:
        other = emit.unsqueeze(emit.minus(element_at(emit, pivots, step, last), emit.scalar(1, I32)), [last])
        here, there = emit.compare("EQ", places, step), emit.compare("EQ", places, other)
        ours, theirs = (
            emit.reduce(ops.Add, emit.select(chosen, order, emit.full_like(order, 0)), [last], keep=True)
            for chosen in (here, there)
        )
        return emit.plus(step, emit.scalar(1, I32)), emit.select(here, theirs, emit.select(there, ours, order))

    start = [emit.scalar(0, I32), places]
    types = [value.type for value in start]
    return emit.add(ops.While(start, cond=emit.region(types, more), body=emit.region(types, advance)))[1]


def element_at(emit: DynamicEmitter, x: Value, index: Value, d: int) -> Value:
    """Returns `x` at an index along a dimension."""
    if not x.type.is_static:
        return emit.take(x, index, d)
    zero = emit.scalar(0, I32)
    starts = [index if i == d else zero for i in range(x.type.rank)]
    sizes = [1 if i == d else extent for i, extent in enumerate(x.type.static_shape)]
    return emit.squeeze(emit.add(ops.DynamicSlice(x, starts, slice_sizes=sizes)), [d])


def half(emit: DynamicEmitter, x: Value, direction: str) -> Value:
    """Returns the elements whose column is in this relation to their row; zero elsewhere."""
    rows, columns = (emit.iota(emit.extents(x)[-2:], d) for d in range(2))
    return emit.select(emit.compare(direction, columns, rows), x, emit.full_like(x, 0))


def diagonal_of(emit: DynamicEmitter, x: Value) -> Value:
    """Returns the diagonal of square matrices."""
    last = x.type.rank - 1
    *batch, order, _ = emit.extents(x)
    if isinstance(order, int):
        return emit.slice(emit.reshape(x, [*batch, order * order]), last - 1, 0, order * order, order + 1)
    rows, columns = (emit.iota(emit.extents(x)[-2:], d) for d in range(2))
    kept = emit.select(emit.compare("EQ", columns, rows), x, emit.full_like(x, 0))
    return emit.reduce(ops.Add, kept, [last])


def real_part(emit: Emitter, x: Value) -> Value:
    """Returns the real parts of numbers, which may be real."""
    return emit.add(ops.Real(x)) if is_complex(x.type.element_type) else x


def conjugate(emit: Emitter, x: Value) -> Value:
    """Returns the complex conjugate."""
    if not is_complex(x.type.element_type):
        return x
    return emit.add(ops.Complex(emit.add(ops.Real(x)), emit.add(ops.Negate(emit.add(ops.Imag(x))))))


def adjoint(emit: Emitter, x: Value) -> Value:
    """Returns the conjugate transposes."""
    rank = x.type.rank
    return conjugate(emit, emit.transpose(x, [*range(rank - 2), rank - 1, rank - 2]))
