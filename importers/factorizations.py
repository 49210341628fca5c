"""Calls of LAPACK's routines, and what is done with their results, for the importers whose frameworks factor matrices
on a CPU in the same way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.emit import Emitter
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.lapack import call_attributes
from trivium.ir.types import I32, TensorType, is_complex


def lapack(emit: Emitter, routine: str, *operands: Value, **numbers: int) -> Sequence[Value]:
    """Returns the results of a LAPACK routine."""
    attributes = call_attributes(routine, [operand.type for operand in operands], numbers)
    return emit.add(ops.CustomCall(list(operands), **attributes))


def identities(emit: Emitter, kind: TensorType) -> Value:
    """Returns the vectors of a matrix without elements, which are an identity, or its values, which are empty."""
    if not kind.size:
        return emit.full(kind.static_shape, 0, kind.element_type)
    size = kind.static_shape[-1]
    identity = emit.elements(np.eye(kind.static_shape[-2], size), kind.element_type)
    return emit.broadcast_in_dim(identity, kind.static_shape, [kind.rank - 2, kind.rank - 1])


# Matrices


def permutation_of(emit: Emitter, pivots: Value, rows: int) -> Value:
    """Returns the order of rows that the interchanges with `pivots`, counted from 1, lead to."""
    *batch, count = pivots.type.static_shape
    shape, last = (*batch, rows), len(batch)
    places = emit.iota(shape, last, I32)
    if not pivots.type.size:
        return places

    def more(emit: Emitter, step: Value, order: Value) -> Value:
        return emit.compare("LT", step, emit.scalar(count, I32))

    def advance(emit: Emitter, step: Value, order: Value) -> Sequence[Value]:
        other = emit.unsqueeze(emit.minus(element_at(emit, pivots, step, last), emit.scalar(1, I32)), [last])
        here, there = emit.compare("EQ", places, step), emit.compare("EQ", places, other)
        ours, theirs = (
            emit.reduce(ops.Add, emit.select(chosen, order, emit.full_like(order, 0)), [last], keep=True)
            for chosen in (here, there)
        )
        moved = emit.select(there, emit.broadcast(ours, shape), order)
        return emit.plus(step, emit.scalar(1, I32)), emit.select(here, emit.broadcast(theirs, shape), moved)

    start = [emit.scalar(0, I32), places]
    types = [value.type for value in start]
    return emit.add(ops.While(start, cond=emit.region(types, more), body=emit.region(types, advance)))[1]


def element_at(emit: Emitter, x: Value, index: Value, d: int) -> Value:
    """Returns `x` at an index along a dimension."""
    zero = emit.scalar(0, I32)
    starts = [index if i == d else zero for i in range(x.type.rank)]
    sizes = [1 if i == d else extent for i, extent in enumerate(x.type.static_shape)]
    return emit.squeeze(emit.add(ops.DynamicSlice(x, starts, slice_sizes=sizes)), [d])


def half(emit: Emitter, x: Value, direction: str) -> Value:
    """Returns the elements whose column is in this relation to their row; zero elsewhere."""
    rows, columns = (emit.iota(x.type.static_shape[-2:], d) for d in range(2))
    kept = emit.broadcast(emit.compare(direction, columns, rows), x.type.static_shape)
    return emit.select(kept, x, emit.full_like(x, 0))


def diagonal_of(emit: DynamicEmitter, x: Value) -> Value:
    """Returns the diagonal of square matrices."""
    last = x.type.rank - 1
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
