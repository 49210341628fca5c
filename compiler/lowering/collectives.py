"""Collectives, as steps of the program. Groups consist of devices: a program runs as several replicas or as several
partitions, never both, so either number identifies a device."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.compiler.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    CollectiveKind,
    CollectivePermute,
    Groups,
    ReduceScatter,
)
from trivium.compiler.lowering.program_builder import ProgramBuilder
from trivium.compiler.lowering.rules import step
from trivium.compiler.program import Collective
from trivium.ir import ops
from trivium.ir.core import Region, Value
from trivium.ir.declare import Op
from trivium.ir.errors import CompileError
from trivium.ir.ops.groups import rows_of

COMBINERS = (ops.Add, ops.Multiply, ops.Maximum, ops.Minimum, ops.And, ops.Or, ops.Xor)


@step(ops.AllReduce)
def all_reduce(lowering: ProgramBuilder, op: ops.AllReduce) -> None:
    kind = AllReduce(_combiner(op, op.computation))
    _exchange(lowering, op, kind, op.operands, op.results)


@step(ops.ReduceScatter)
def reduce_scatter(lowering: ProgramBuilder, op: ops.ReduceScatter) -> None:
    kind = ReduceScatter(_combiner(op, op.computation), op.scatter_dimension)
    _exchange(lowering, op, kind, [op.operand], [op.result])


@step(ops.AllGather)
def all_gather(lowering: ProgramBuilder, op: ops.AllGather) -> None:
    _exchange(lowering, op, AllGather(op.all_gather_dim), op.operands, op.results)


@step(ops.AllToAll)
def all_to_all(lowering: ProgramBuilder, op: ops.AllToAll) -> None:
    _exchange(lowering, op, AllToAll(op.split_dimension, op.concat_dimension), op.operands, op.results)


@step(ops.CollectivePermute)
def collective_permute(lowering: ProgramBuilder, op: ops.CollectivePermute) -> None:
    pairs = tuple(map(tuple, op.source_target_pairs))
    _step(lowering, CollectivePermute(), pairs, op.operand, op.result)


def _exchange(
    lowering: ProgramBuilder, op: Op, kind: CollectiveKind, sources: Sequence[Value], results: Sequence[Value]
) -> None:
    # If a group has fewer members than its row has numbers, the remaining numbers are -1.
    groups = tuple(tuple(member for member in row if member >= 0) for row in rows_of(op))
    if not groups:
        raise CompileError(f"{op.NAME} lists no groups, expected groups of all devices", source=op.location.describe())
    for source, result in zip(sources, results, strict=True):
        _step(lowering, kind, groups, source, result)


def _step(lowering: ProgramBuilder, kind: CollectiveKind, groups: Groups, source: Value, result: Value) -> None:
    destination = lowering.temporary(result)
    lowering.bind(result, destination)
    # A reshaped value shares the array of its operand, which has different dimensions.
    shape = lowering.temporary(source).shape
    lowering.steps.append(Collective(kind, groups, lowering.array(source), destination, shape))


def _combiner(op: Op, computation: Region) -> str:
    """Returns the name of the only op of a computation, which combines its two arguments."""
    *body, end = computation.block
    only = body[0] if len(body) == 1 else None
    arguments = set(computation.block.arguments)
    if isinstance(only, COMBINERS) and set(only.operands) == arguments and end.operands == tuple(only.results):
        return only.short_name()
    raise CompileError(
        f"{op.NAME} combines by an arbitrary computation, expected one op: "
        + ", ".join(kind.short_name() for kind in COMBINERS),
        source=op.location.describe() or None,
    )
