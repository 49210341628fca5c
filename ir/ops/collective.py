"""Collectives, which processes compute together: each passes its operands to its group, and computes its results from
those of the whole group, in the group's order. See `trivium.ir.parallel` for how processes meet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from trivium.ir.attributes import Struct, SymbolRef, Unit
from trivium.ir.codecs import IntMatrix, Pairs, ReplicaGroups
from trivium.ir.core import Region
from trivium.ir.declare import EXPRESSED, Op, Operand, Operands, Result, Results
from trivium.ir.errors import ConstraintKind, fail
from trivium.ir.ops.common import (
    expect_compatible,
    expect_compatible_baseline,
    expect_same_element,
    expect_same_shape,
    expect_shape,
    expect_tensor,
    expect_within,
    shaped,
)
from trivium.ir.ops.distribution import ChannelHandle, check_pairs
from trivium.ir.ops.groups import (
    Group,
    channel_of,
    check_global,
    check_groups,
    check_members,
    check_mesh,
    check_processes,
    check_range,
    group_of,
    known_rows,
    listed_rows,
    meet,
    one_kind_group,
    one_kind_groups,
    own_group,
    rows_of,
)
from trivium.ir.ops.quantization import promoted, zeros
from trivium.ir.ops.regions import check_reducer, outputs_of
from trivium.ir.types import I32, TensorType, Type, tensor

if TYPE_CHECKING:
    from trivium.ir.interpreter import RegionCallable

__all__ = [
    "AllGather",
    "AllReduce",
    "AllToAll",
    "CollectiveBroadcast",
    "CollectivePermute",
    "CollectiveReduce",
    "CrossReplicaSum",
    "ReduceScatter",
]


class Collective(Op):
    """An op on groups of processes."""

    replica_groups: ReplicaGroups
    channel_handle: ChannelHandle | None = None

    # The labels of two constraints: all processes are in groups, and the groups have only existing processes.
    SIZE_LABEL = ""
    RANGE_LABEL = ""
    # Whether groups of replicas with a channel include all partitions of these replicas.
    TAKES_PARTITIONS_ALONG = False

    def check_symbols(op, symbols):
        check_processes(op, *symbols.processes(op))
        mesh = getattr(op.replica_groups, "mesh", None)
        if isinstance(mesh, SymbolRef):
            check_mesh(op.replica_groups, symbols.lookup(op, mesh))


class GlobalCollective(Collective):
    """A collective whose groups consist of replicas, of replicas with all partitions, or of global process numbers."""

    use_global_device_ids: Unit | None = None
    TAKES_PARTITIONS_ALONG = True


class AllGather(GlobalCollective, name="stablehlo.all_gather"):
    """The operands of all processes of the group, joined along `all_gather_dim`."""

    operands: Operands
    all_gather_dim: int
    results: Results

    SIZE_LABEL = "C3"

    def check(operands, all_gather_dim, replica_groups, channel_handle, use_global_device_ids, results):
        check_groups("C2", "C4", replica_groups, even=True)
        check_global("C5", channel_handle, use_global_device_ids)
        _check_count("C6", operands, results)
        count = _group_size(replica_groups, channel_handle, use_global_device_ids)
        for index, (operand, result) in enumerate(zip(operands, results, strict=True)):
            expect_tensor("I1", f"operands[{index}]", operand)
            expect_same_element("C6", operand=operand, result=result)
            expect_within("C1", "all_gather_dim", (all_gather_dim,), operand.rank)
            shape = list(operand.shape)
            shape[all_gather_dim] = (
                None if count is None or shape[all_gather_dim] is None else shape[all_gather_dim] * count
            )
            expect_shape("C6", f"results[{index}]", result, shape)
            if not _is_multiple(result.shape[all_gather_dim], operand.shape[all_gather_dim]):
                fail("C6", f"results[{index}] has type {result}, expected a multiple of the extent of {operand}")

    def evaluate(op, operands, all_gather_dim, context):
        members = meet(op, group_of(op, context), operands, context)
        return tuple(np.concatenate(arrays, all_gather_dim) for arrays in zip(*members, strict=True))


class AllReduce(GlobalCollective, name="stablehlo.all_reduce"):
    """The operands of all processes of the group, reduced by `computation`."""

    operands: Operands
    computation: Region
    results: Results

    SIZE_LABEL = "C2"

    def infer(operands, computation):
        return _reduced(operands, computation)

    def check(operands, replica_groups, channel_handle, use_global_device_ids, computation, results):
        check_groups("C1", "C3", replica_groups)
        check_global("C4", channel_handle, use_global_device_ids)
        _check_computation("C5", computation, operands)
        _check_count("C6", operands, results)
        for expected, result in zip(_reduced(operands, computation), results, strict=True):
            expect_same_shape("C6", expected=expected, result=result)
            expect_same_element("C7", expected=expected, result=result)

    def evaluate(op, operands, computation, results, context):
        members = meet(op, group_of(op, context), promoted(operands, op.operand_types, results), context)
        return _fold_all(computation, members)


class ReduceScatter(GlobalCollective, name="stablehlo.reduce_scatter"):
    """Reduces the operands of all processes of the group by `computation`; each process gets its part of the result
    along `scatter_dimension`."""

    operand: Operand
    scatter_dimension: int
    computation: Region
    result: Result

    SIZE_LABEL = "C4"

    def check(operand, scatter_dimension, replica_groups, channel_handle, use_global_device_ids, computation, result):
        expect_tensor("I1", "operand", operand)
        expect_within("C2", "scatter_dimension", (scatter_dimension,), operand.rank)
        check_groups("C3", "C5", replica_groups, even=True)
        check_global("C6", channel_handle, use_global_device_ids)
        check_reducer("C7", "computation", computation, [operand.element_type])
        expect_tensor("C8", "result", result, rank=operand.rank)
        whole, part = operand.shape[scatter_dimension], result.shape[scatter_dimension]
        count = _group_size(replica_groups, channel_handle, use_global_device_ids)
        if whole == 0 or not _is_multiple(whole, part if count is None else count):
            expected = f"the result's {part}" if count is None else f"the {count} processes of a group"
            fail("C1", f"operand has extent {whole} to scatter, expected a multiple of {expected}")
        shape = list(operand.shape)
        shape[scatter_dimension] = None if count is None or whole is None else whole // count
        expect_shape("C8", "result", result, shape)
        expect_same_element("C9", computed=outputs_of(computation)[0], result=result)

    def evaluate(op, operand, scatter_dimension, computation, result, context):
        group = group_of(op, context)
        members = meet(op, group, promoted((operand,), op.operand_types, (result,)), context)
        parts = _split(_fold_all(computation, members)[0], len(group), scatter_dimension)
        return parts[group.index(context.process.id)]


class AllToAll(Collective, name="stablehlo.all_to_all"):
    """Splits each operand into parts along `split_dimension`, one for each process of the group, and joins the parts
    that it receives along `concat_dimension`."""

    operands: Operands
    split_dimension: int
    concat_dimension: int
    split_count: int
    results: Results

    SIZE_LABEL = "C6"

    def infer(operands, split_dimension, concat_dimension, split_count):
        return [_exchanged(kind, split_dimension, concat_dimension, split_count) for kind in operands]

    def check(operands, split_dimension, concat_dimension, split_count, replica_groups, results):
        check_groups("C5", "C7", replica_groups, even=True)
        rows = known_rows(replica_groups)
        if any(len(row) != split_count for row in rows) or (not rows and not isinstance(replica_groups, Struct)):
            fail("C8", f"replica_groups has {listed_rows(rows)}, expected groups of split_count, {split_count}")
        _check_count("C9", operands, results)
        for operand, result in zip(operands, results, strict=True):
            expected = _exchanged(operand, split_dimension, concat_dimension, split_count)
            expect_compatible("C9", expected=expected, result=result)

    def evaluate(op, operands, split_dimension, concat_dimension, split_count, context):
        group = one_kind_group(op, context)
        parts = tuple(_split(array, split_count, split_dimension) for array in operands)
        place = group.index(context.process.id)
        members = meet(op, group, parts, context)
        mine = [[member[index][place] for member in members] for index in range(len(operands))]
        return tuple(np.concatenate(arrays, concat_dimension) for arrays in mine)


class RootedCollective(Collective):
    """A collective in which one process of the group, the root, sends or receives. It is the first one; with
    `has_dynamic_root`, the last operand has the root's index in the group for each of the other operands."""

    has_dynamic_root: Unit | None = None

    RANGE_LABEL = "C2"


class CollectiveBroadcast(RootedCollective, name="stablehlo.collective_broadcast"):
    """The operands of the group's root; zeros in processes outside of all groups."""

    operands: Operands
    results: Results

    def infer(operands, has_dynamic_root):
        return _data(operands, has_dynamic_root)

    def check(operands, replica_groups, has_dynamic_root, results):
        check_members("C1", "C2", replica_groups)
        data = _data(operands, has_dynamic_root)
        if not data:
            fail("C3", "has no operands to broadcast, expected at least one")
        if has_dynamic_root:
            expect_compatible("C4", expected=tensor(len(data), of=I32), root=operands[-1])
        _check_count("C5", data, results)
        for index, (operand, result) in enumerate(zip(data, results, strict=True)):
            expect_tensor("I1", f"operands[{index}]", operand)
            expect_compatible("C3", operand=operand, result=result)

    def evaluate(op, operands, has_dynamic_root, results, context):
        data = _data(operands, has_dynamic_root)
        group = own_group(one_kind_groups(op, rows_of(op), context), context)
        if group is None:
            return tuple(map(zeros, results, map(np.shape, data)))
        roots = _roots("C6", operands, has_dynamic_root, group)
        members = meet(op, group, data, context)
        return tuple(members[root][index] for index, root in enumerate(roots))


class CollectiveReduce(RootedCollective, name="stablehlo.collective_reduce"):
    """The operands of all processes of the group, reduced by `computation`, in the group's root; zeros in all
    others."""

    operands: Operands
    use_global_device_ids: Unit | None = None
    computation: Region
    results: Results

    def infer(operands, has_dynamic_root, computation):
        return _reduced(_data(operands, has_dynamic_root), computation)

    def check(operands, replica_groups, channel_handle, use_global_device_ids, has_dynamic_root, computation, results):
        check_members("C1", "C2", replica_groups)
        check_global("", channel_handle, use_global_device_ids)
        data = _data(operands, has_dynamic_root)
        if not data:
            fail("C3", "has no operands to reduce, expected at least one")
        _check_computation("C4", computation, data)
        if has_dynamic_root:
            expect_compatible("C3", expected=tensor(len(data), of=I32), root=operands[-1])
        _check_count("C3", data, results)
        for expected, result in zip(_reduced(data, computation), results, strict=True):
            expect_compatible("C3", expected=expected, result=result)

    def evaluate(op, operands, has_dynamic_root, use_global_device_ids, computation, results, context):
        rows = rows_of(op)
        found = context.process.flattened(rows) if use_global_device_ids else one_kind_groups(op, rows, context)
        group = own_group(found, context)
        if group is None:
            return tuple(zeros(kind, array.shape) for array, kind in zip(operands, results, strict=False))
        roots = _roots("", operands, has_dynamic_root, group)
        data = promoted(_data(operands, has_dynamic_root), _data(op.operand_types, has_dynamic_root), results)
        folded = _fold_all(computation, meet(op, group, data, context))
        place = group.index(context.process.id)
        return tuple(
            array if place == root else zeros(kind, array.shape)
            for array, root, kind in zip(folded, roots, results, strict=True)
        )


class CollectivePermute(Op, name="stablehlo.collective_permute"):
    """The operand of the process that `source_target_pairs` names as this process's source; zeros if there is none."""

    operand: Operand
    source_target_pairs: Pairs
    channel_handle: ChannelHandle | None = None
    result: Result

    def infer(operand):
        return operand

    def check(operand, source_target_pairs, result):
        expect_tensor("I1", "operand", operand)
        check_pairs(source_target_pairs)
        expect_compatible("C5", operand=operand, result=result)

    def check_symbols(op, symbols):
        replicas, partitions = symbols.processes(op)
        numbers = [number for pair in op.source_target_pairs for number in pair]
        check_range("C4", "source_target_pairs", numbers, partitions if channel_of(op) > 0 else replicas)

    def evaluate(op, operand, source_target_pairs, result, context):
        pairs = one_kind_groups(op, source_target_pairs, context) if source_target_pairs else []
        group = sorted({member for pair in pairs for member in pair})
        if context.process.id not in group:
            return zeros(result, operand.shape)
        values = dict(zip(group, meet(op, group, operand, context), strict=True))
        source = next((source for source, target in pairs if target == context.process.id), None)
        return zeros(result, operand.shape) if source is None else values[source]


class CrossReplicaSum(Op, name="stablehlo.cross-replica-sum", traits={EXPRESSED}):
    """The sum of the operands of all processes of the group."""

    operand: Operand
    replica_groups: IntMatrix
    result: Result

    def infer(operand):
        return operand

    def check(operand, replica_groups, result):
        expect_tensor("I1", "operand", operand)
        check_groups("C1", "C2", replica_groups)
        expect_compatible_baseline("C3", operand=operand, result=result)

    def evaluate(op, operand, replica_groups, context):
        process = context.process
        group = process.group(process.cross_replica(replica_groups), op.short_name())
        return reduce(np.add, process.meet(op.short_name(), 0, group, operand)).astype(operand.dtype)


# Roots


def _data(operands: Sequence[np.ndarray], has_dynamic_root: Unit | None) -> list[np.ndarray]:
    """Returns the operands without the one for the roots."""
    return list(operands[:-1] if has_dynamic_root else operands)


def _roots(label: str, operands: Sequence[np.ndarray], has_dynamic_root: Unit | None, group: Group) -> list[int]:
    """Returns the index of each operand's root in the group."""
    if not has_dynamic_root:
        return [0] * len(operands)
    roots = operands[-1].tolist()
    if any(not 0 <= root < len(group) for root in roots):
        expected = f"expected indices into a group of {len(group)}"
        fail(label, f"the roots have indices {roots}, {expected}", ConstraintKind.RUN_TIME)
    return roots


# Arrays


def _split(array: np.ndarray, count: int, dimension: int) -> list[np.ndarray]:
    if array.shape[dimension] % count:
        raise ValueError(f"extent {array.shape[dimension]} does not divide into {count} parts")
    return np.split(array, count, dimension)


def _fold_all(computation: RegionCallable, members: Sequence[Sequence[np.ndarray]]) -> tuple[np.ndarray, ...]:
    """Reduces the operands of all members, element by element."""
    return tuple(reduce(lambda x, y: computation.map(x, y)[0], arrays) for arrays in zip(*members, strict=True))


# Checks


def _tensor(kind: Type) -> TensorType:
    expect_tensor("I1", "an operand", kind)
    return kind


def _reduced(operands: Sequence[TensorType], computation: Region) -> list[TensorType]:
    outputs = outputs_of(computation)
    if len(outputs) != 1:
        fail("", f"computation returns {len(outputs)} values, expected one")
    return [_tensor(kind).with_element(getattr(outputs[0], "element_type", outputs[0])) for kind in operands]


def _exchanged(operand: TensorType, split_dimension: int, concat_dimension: int, split_count: int) -> TensorType:
    expect_tensor("I1", "an operand", operand)
    expect_within("C1", "split_dimension", (split_dimension,), operand.rank)
    expect_within("C3", "concat_dimension", (concat_dimension,), operand.rank)
    if split_count <= 0:
        fail("C4", f"split_count has {split_count}, expected a positive number")
    shape = list(operand.shape)
    if shape[split_dimension] is not None:
        if shape[split_dimension] % split_count:
            fail("C2", f"an operand has type {operand}, expected an extent that divides into {split_count} parts")
        shape[split_dimension] //= split_count
    if shape[concat_dimension] is not None:
        shape[concat_dimension] *= split_count
    return shaped(shape, operand.element_type)


def _check_count(label: str, operands: Sequence[Type], results: Sequence[Type]) -> None:
    if len(operands) != len(results):
        fail(label, f"has {len(results)} results, expected {len(operands)}, one for each operand")


def _group_size(
    replica_groups: IntMatrix | Struct, channel_handle: ChannelHandle | None, use_global: Unit | None
) -> int | None:
    """Returns the number of processes in a group, or `None` if it depends on the number of partitions or on a mesh that
    another op declares."""
    rows = known_rows(replica_groups)
    takes_partitions_along = channel_handle is not None and channel_handle.handle > 0 and use_global is None
    return None if takes_partitions_along or not rows else len(rows[0])


def _is_multiple(whole: int | None, part: int | None) -> bool:
    """Whether an extent can be a multiple of the other, which is not zero."""
    return whole is None or part is None or (part > 0 and whole % part == 0)


def _check_computation(label: str, computation: Region, operands: Sequence[Type]) -> None:
    """Checks a computation that reduces each of the operands."""
    for kind in operands:
        check_reducer(label, "computation", computation, [_tensor(kind).element_type])
