"""The groups of processes of an op, and the constraints on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trivium.ir.attributes import Unit
from trivium.ir.codecs import IntMatrix, Pairs
from trivium.ir.core import Operation
from trivium.ir.declare import Op
from trivium.ir.errors import ConstraintKind, ExecutionError, VerificationError, fail
from trivium.ir.func import lookup
from trivium.ir.mesh import Mesh, ReplicaGroupMeshAxes, groups, mesh_of
from trivium.ir.ops.common import expect_unique
from trivium.ir.process import Message

if TYPE_CHECKING:
    from trivium.ir.interpreter import Interpreter
    from trivium.ir.ops.distribution import ChannelHandle

Group = list[tuple[int, int]]
"""Processes: the replica and the partition of each."""


def rows_of(op: Op) -> IntMatrix:
    """Returns the groups as a matrix. Groups along axes of a mesh need the mesh, which another op may declare."""
    if not isinstance(op.replica_groups, ReplicaGroupMeshAxes):
        return op.replica_groups
    mesh = op.replica_groups.mesh
    if not isinstance(mesh, Mesh):
        found = lookup(op, mesh)
        mesh = mesh_of(found.attributes | found.extra) if found is not None else None
    if mesh is None:
        raise ExecutionError(f"{op.NAME}: {op.replica_groups.mesh} is not a mesh, so its groups are unknown")
    try:
        return groups(mesh, op.replica_groups.axes)
    except VerificationError as error:
        raise ExecutionError(f"{op.NAME}: {error.message}") from None


def known_rows(replica_groups: IntMatrix | ReplicaGroupMeshAxes) -> IntMatrix:
    """Returns the groups as far as they follow from the attribute itself."""
    if not isinstance(replica_groups, ReplicaGroupMeshAxes):
        return replica_groups
    return groups(replica_groups.mesh, replica_groups.axes) if isinstance(replica_groups.mesh, Mesh) else ()


def channel_of(op: Op) -> int:
    return op.channel_handle.handle if op.channel_handle else 0


def group_of(op: Op, context: Interpreter) -> Group:
    """Returns the group of this process, depending on the channel and `use_global_device_ids`."""
    process, rows = context.process, rows_of(op)
    if channel_of(op) <= 0:
        found = process.cross_replica(rows)
    elif op.use_global_device_ids is None:
        found = process.cross_replica_and_partition(rows)
    else:
        found = process.flattened(rows)
    return process.group(found, op.short_name())


def one_kind_groups(op: Op, rows: IntMatrix | Pairs, context: Interpreter) -> list[Group]:
    """Returns groups of partitions if there is a channel, else of replicas."""
    return context.process.cross_partition(rows) if channel_of(op) > 0 else context.process.cross_replica(rows)


def one_kind_group(op: Op, context: Interpreter) -> Group:
    return context.process.group(one_kind_groups(op, rows_of(op), context), op.short_name())


def own_group(found: list[Group], context: Interpreter) -> Group | None:
    return next((group for group in found if context.process.id in group), None)


def meet(op: Op, group: Group, value: Message, context: Interpreter) -> list[Message]:
    return context.process.meet(op.short_name(), channel_of(op), group, value)


# Checks


def check_groups(
    unique_label: str, range_label: str, replica_groups: IntMatrix | ReplicaGroupMeshAxes, even: bool = False
) -> None:
    """Checks that each number from 0 on occurs once; -1 pads short groups, unless they must be `even`. Groups of a mesh
    that another op declares are unknown here."""
    rows = known_rows(replica_groups)
    numbers = [number for row in rows for number in row if even or number != -1]
    expect_unique(unique_label, "replica_groups", numbers)
    if numbers and not 0 <= min(numbers) <= max(numbers) < len(numbers):
        fail(range_label, f"replica_groups has {listed_rows(rows)}, expected numbers from 0 to {len(numbers) - 1}")


def check_members(unique_label: str, range_label: str, replica_groups: IntMatrix | ReplicaGroupMeshAxes) -> None:
    """Checks that no process is in two groups; some may be in none."""
    rows = known_rows(replica_groups)
    numbers = [number for row in rows for number in row]
    expect_unique(unique_label, "replica_groups", numbers)
    if min(numbers, default=0) < 0:
        fail(range_label, f"replica_groups has {listed_rows(rows)}, expected numbers of processes")


def check_mesh(replica_groups: ReplicaGroupMeshAxes, found: Operation | None) -> None:
    """Checks that the named mesh exists, and has the axes of the groups if its axes are known."""
    if found is None:
        has = f"replica_groups has mesh {replica_groups.mesh}"
        fail("", f"{has}, which the module does not have", ConstraintKind.SYMBOL)
    mesh = mesh_of(found.attributes | found.extra)
    if mesh is not None:
        groups(mesh, replica_groups.axes)


def check_processes(op: Op, replicas: int | None, partitions: int | None) -> None:
    """Checks the groups against the numbers of replicas and partitions."""
    numbers = [number for row in known_rows(op.replica_groups) for number in row if number >= 0]
    if channel_of(op) <= 0:
        count = replicas
    elif getattr(op, "use_global_device_ids", None) is not None:
        count = None if replicas is None or partitions is None else replicas * partitions
    else:
        count = replicas if op.TAKES_PARTITIONS_ALONG else partitions
    if op.SIZE_LABEL and numbers and count not in (None, len(numbers)):
        has = f"replica_groups has {len(numbers)} processes"
        fail(op.SIZE_LABEL, f"{has}, the module runs as {count}", ConstraintKind.CONFIGURATION)
    if op.RANGE_LABEL:
        check_range(op.RANGE_LABEL, "replica_groups", numbers, count)


def check_range(label: str, name: str, numbers: Sequence[int], count: int | None) -> None:
    if count is not None and max(numbers, default=0) >= count:
        fail(label, f"{name} has {max(numbers)}, the module runs as {count} processes", ConstraintKind.CONFIGURATION)


def check_global(label: str, channel_handle: ChannelHandle | None, use_global_device_ids: Unit | None) -> None:
    if use_global_device_ids is not None and (channel_handle is None or channel_handle.handle <= 0):
        fail(label, "use_global_device_ids is set without a channel, expected a positive channel handle")


def listed_rows(matrix: IntMatrix | Pairs) -> list[list[int]]:
    return [list(row) for row in matrix]
