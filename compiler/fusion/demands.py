"""The elements that a kernel demands: the indices of a value, as expressions of the kernel's loop variables where they
are known, and the elements of its operands that an op reads to compute them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trivium.compiler.costs import free_values, is_reduction
from trivium.compiler.lowering import INDEXING, REPEATING, is_elementwise
from trivium.compiler.lowering.index import Index, Indices, Variable, constant, indices_of
from trivium.ir import ops
from trivium.ir.core import Operation, Value


@dataclass(eq=False)
class Opaque:
    """Indices that are only known at run time. `once`: no element is demanded twice."""

    once: bool


Demand = Indices | Opaque


MOST_PLACES = 4
"""The number of elements of a value that one iteration of a kernel may compute."""


def computes_once(op: Operation, demands: Sequence[Demand]) -> bool:
    """Whether a kernel that computes an elementwise op anew for each demand, such as for both coordinates of points,
    computes no more elements than the op's results have."""
    if len(demands) > MOST_PLACES or not is_elementwise(op):
        return False
    used = [{v for index in demand for v in index.variables()} for demand in demands if not isinstance(demand, Opaque)]
    count = sum(math.prod(v.extent for v in variables) for variables in used)
    return len(used) == len(demands) and count <= op.results[0].type.size


def row_indices(row: Sequence[Variable], extents: Sequence[int]) -> Indices:
    """Returns the variables of a row as the indices of reduced dimensions; dimensions of extent 1 have no variable."""
    variables = iter([v for v in row if v.extent != 1])
    return tuple(indices_of([next(variables)])[0] if extent != 1 else Index({}) for extent in extents)


def reads(op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
    """Yields the operands of an op, each with the demand for it if the op's results are demanded at `demand`."""
    kind = type(op)
    if kind in INDEXING:
        operand = op.operands[0]
        if isinstance(demand, Opaque):
            yield operand, () if not operand.type.rank else moved(op, demand)
        else:
            yield operand, INDEXING[kind](op, demand)
    elif isinstance(op, ops.Reduce) and not is_reduction(op) and not isinstance(demand, Opaque):
        kept = iter(demand)
        at = tuple(constant(0) if d in op.dimensions else next(kept) for d in range(op.inputs[0].type.rank))
        for operand in op.inputs:
            yield operand, at
        for operand in dict.fromkeys((*op.init_values, *free_values(op))):
            yield operand, ()
    elif (
        isinstance(op, ops.Gather) and not isinstance(demand, Opaque) and len(op.dimension_numbers.start_index_map) == 1
    ):
        yield op.operand, Opaque(False)
        yield op.start_indices, _listed_at(op, demand)
    elif is_elementwise(op):
        for operand in op.operands:
            yield operand, demand if operand.type.rank else ()
        for operand in free_values(op):
            yield operand, ()
    else:
        for operand in dict.fromkeys((*op.operands, *free_values(op))):
            once = kind not in REPEATING and not (isinstance(demand, Opaque) and not demand.once)
            yield operand, Opaque(once) if operand.type.rank else ()


def _listed_at(op: ops.Gather, demand: Indices) -> Indices:
    """Returns where the only number of each place is listed, of which an element is demanded."""
    numbers = op.dimension_numbers
    batch = [index for dimension, index in enumerate(demand) if dimension not in numbers.offset_dims]
    if numbers.index_vector_dim < op.start_indices.type.rank:
        batch.insert(numbers.index_vector_dim, constant(0))
    return tuple(batch)


def moved(op: Operation, demand: Opaque) -> Opaque:
    return Opaque(demand.once and not isinstance(op, ops.BroadcastInDim))


def reads_once(op: Operation, operand: Value) -> bool:
    """Whether a kernel reads each element of an operand at most once."""
    if isinstance(op, ops.Scatter):
        return operand in op.updates
    if isinstance(op, ops.RaggedDot):
        return operand is op.rhs
    return isinstance(op, ops.Sort | ops.Fft | ops.DynamicUpdateSlice | ops.ReduceWindow)


def covers(demand: Demand, variables: Sequence[Variable], shape: Sequence[int]) -> bool:
    """Whether every element is demanded, each once, in the order of the loops."""
    return (
        not isinstance(demand, Opaque)
        and tuple(v.extent for v in variables) == tuple(shape)
        and demand == indices_of(variables)
    )


def plain_variables(demand: Indices) -> list[Variable] | None:
    """Returns the loop variables if each index is a different one (or zero); None if an index is anything else."""
    found = []
    for index in demand:
        if not index.terms and not index.offset:
            continue
        variable = index.variable
        if variable is None or variable in found:
            return None
        found.append(variable)
    return found


def row_major_variables(index: Index) -> tuple[Variable, ...] | None:
    """Returns the loop variables of which an index is the row-major position, the outermost first; None if it is
    anything else."""
    terms, step = sorted(index.terms.items(), key=lambda item: -item[1]), 1
    for atom, factor in reversed(terms):
        if not isinstance(atom, Variable) or factor != step:
            return None
        step *= atom.extent
    return None if index.offset else tuple(atom for atom, _ in terms)  # type: ignore[misc]


def same_extents(variables: Sequence[Variable], extents: Sequence[int]) -> bool:
    return [v.extent for v in variables if v.extent != 1] == [extent for extent in extents if extent != 1]
