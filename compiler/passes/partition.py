"""Partitioning: from a program over arrays that several devices hold in parts to a program that each of them runs. Ops
inside `manual_computation` are computed on parts, with collectives; all others on parts if a device needs nothing else
of them and nothing of other devices, or else on wholes, by each device. If devices would exchange nothing, and parts
would take more work, the program does not change: it runs once, for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from trivium.compiler.passes.dce import erase_dead
from trivium.compiler.passes.own_parts import OwnParts
from trivium.compiler.passes.propagate_sharding import propagate, shape_of
from trivium.compiler.passes.terms import contribution
from trivium.ir.attributes import UNIT, Dictionary
from trivium.ir.builder import Builder, Rewriter, inline_block, region
from trivium.ir.core import BlockArgument, Operation, Value
from trivium.ir.errors import CompileError
from trivium.ir.func import Function, Module
from trivium.ir.mesh import Mesh, groups, mesh_of
from trivium.ir.ops import (
    Add,
    AllGather,
    AllReduce,
    AllToAll,
    ChannelHandle,
    CollectiveBroadcast,
    CollectivePermute,
    Constant,
    CustomCall,
    ManualComputation,
    PartitionId,
    Recv,
    ReduceScatter,
    ReplicaId,
    Reshape,
    Reshard,
    Send,
    ShardingConstraint,
)
from trivium.ir.ops import Mesh as MeshOp
from trivium.ir.sharding import (
    Part,
    Sharding,
    find_mesh,
    part_of,
    part_of_tiles,
    read_axes,
    read_sharding,
    read_shardings,
    refined,
)
from trivium.ir.types import UI32, TensorType, Type, tensor

SHARDING, TILES = "sdy.sharding", "mhlo.sharding"
"""The attributes of an argument or a result that say how devices hold it: Shardy's and XLA's."""

_EXCHANGING = (AllGather, AllReduce, AllToAll, CollectiveBroadcast, CollectivePermute, ReduceScatter)
_ALONE = (ManualComputation, PartitionId, Recv, ReplicaId, Send, *_EXCHANGING)
"""Ops that require that each device runs the program."""

_WAITING = (CustomCall, Recv, Send, *_EXCHANGING)
"""Ops that may wait for other devices."""

LOCAL_CALLS = ("xla_ffi_partitioned_python_cpu_callback",)
"""Custom calls that each device makes on its parts. They have no results."""

INSPECTIONS = ("InspectSharding",)
"""Custom calls that ask, while the program is partitioned, how devices hold their operand."""

_CHANNEL = ChannelHandle(1, 1)


@dataclass(frozen=True)
class Held:
    """How the devices hold an argument or a result, and whether the program nevertheless has the whole of it."""

    part: Part
    is_whole: bool


@dataclass(frozen=True)
class Inspected:
    """The answer to an inspection: the operand's type, and its part, or None within `manual_computation`."""

    asker: object
    type: Type
    part: Part | None


@dataclass(frozen=True)
class Partitioned:
    """`module` is run by each device or, if `is_shared`, once for all. If it `exchanges`, devices wait for one another.
    With `has_device`, its last argument is the number of the device. `inspected` has the answers to the program's
    inspections, which it no longer contains."""

    module: Module
    arguments: tuple[Held, ...]
    results: tuple[Held, ...]
    is_shared: bool
    exchanges: bool
    has_device: bool
    inspected: tuple[Inspected, ...] = ()


def partition(module: Module, replicas: int, partitions: int) -> Partitioned:
    """Partitions `module`, which has no calls, in place."""
    if replicas > 1 and partitions > 1:
        raise CompileError(f"the program is for {replicas} replicas of {partitions} partitions, expected 1 of either")
    return _Partitioner(module, replicas, partitions).run()


def number_alone(module: Module) -> None:
    """Replaces ops that read the device's number by zero, in a module for one device. `shard_map` over a mesh of one
    device has them, also in functions that are called."""
    for op in [op for op in module.walk() if isinstance(op, PartitionId | ReplicaId)]:
        _replace_by_zero(op)


def _replace_by_zero(op: PartitionId | ReplicaId) -> None:
    rewriter = Rewriter(op)
    rewriter.replace(rewriter.add(Constant(np.zeros((), np.uint32))))


class _Partitioner:
    def __init__(self, module: Module, replicas: int, partitions: int):
        self._module, self._main = module, module.main
        self._replicas, self._devices = replicas, replicas * partitions
        found = ((op.sym_name, mesh_of(op.attributes)) for op in module.body.block if isinstance(op, MeshOp))
        self._meshes: Mapping[str, Mesh] = {name: mesh for name, mesh in found if mesh is not None}
        self._parts: set[Value] = set()
        """The arguments that the program takes in parts."""
        self._gathered: dict[Value, tuple[Value, Part]] = {}
        """Wholes, each with the value and part that it was made from."""
        self._gathers: list[Operation] = []
        self._cuts: dict[Operation, Part] = {}
        """Ops that cut parts out of wholes."""
        self._held: Mapping[Value, Part] = {}
        """How devices hold values of the program's own block, if they do not hold wholes."""
        self._known_parts: dict[Operation, tuple[list[Part], list[Part]]] = {}

    def run(self) -> Partitioned:
        main = self._main
        held = [self._part(main.argument_attributes(i), value) for i, value in enumerate(main.arguments)]
        arguments = list(main.arguments)
        returned = self._returned_parts(main, held)
        inspected = tuple(map(self._inspected, [op for op in main.walk() if _calls(op, INSPECTIONS)]))
        local = [op for op in main.body.block if _calls(op, LOCAL_CALLS)]
        exchanging = (
            bool(local)
            or any(isinstance(op, _ALONE) for op in main.walk())
            or any(part.terms for part in (*held, *returned))
        )
        is_shared = self._replicas == 1 and not exchanging
        for op in local:
            self._call_on_parts(op)
        self._take_terms(held)
        while (found := next((op for op in main.walk() if isinstance(op, ManualComputation)), None)) is not None:
            self._expand(found)
        is_shared &= not self._compute_parts(held, returned, is_shared)
        whole = self._return_parts(main, returned)
        erase_dead(main.body.block)
        has_device = self._number_devices(main)
        self._drop_shardings(main)
        return Partitioned(
            self._module,
            tuple(Held(part, value not in self._parts) for part, value in zip(held, arguments, strict=True)),
            tuple(Held(part, each) for part, each in zip(returned, whole, strict=True)),
            is_shared,
            any(isinstance(op, _WAITING) for op in main.walk()),
            has_device,
            inspected,
        )

    def _inspected(self, op: CustomCall) -> Inspected:
        (value,) = op.operands
        part = self._held.get(value, self._whole(value)) if op.parent_op is self._main else None
        answer = Inspected(op.backend_config, value.type, part)
        Rewriter(op).replace(value)
        return answer

    def _drop_shardings(self, main: Function) -> None:
        """Removes the shardings of arguments and results, which described wholes; their other attributes are kept."""
        for name, count in (("arg_attrs", len(main.arguments)), ("res_attrs", len(main.returned))):
            entries = [*(main.attributes.get(name) or ()), *([Dictionary()] * count)][:count]
            kept = [{key: each for key, each in entry.items() if key not in (SHARDING, TILES)} for entry in entries]
            main.attributes[name] = tuple(map(Dictionary, kept))
        main.refresh_type()

    # How devices hold arguments and results

    def _part(self, attributes: Mapping[str, object], value: Value) -> Part:
        shape = shape_of(value)
        if self._replicas == 1 and SHARDING in attributes:
            return self._part_of(read_sharding(attributes[SHARDING]), shape)
        if self._replicas == 1 and TILES in attributes:
            return part_of_tiles(str(attributes[TILES]), shape, self._devices)
        return Part.whole(shape, self._devices)

    def _part_of(self, sharding: Sharding, shape: tuple[int, ...]) -> Part:
        if not any(sharding.dimensions) and not sharding.unreduced:
            return Part.whole(shape, self._devices)
        return part_of(sharding, find_mesh(sharding, self._meshes), shape, self._devices)

    def _returned_parts(self, main: Function, held: list[Part]) -> list[Part]:
        """Returns how results are held: as their attributes say or, without these, as it follows from the values that
        they are computed from."""
        known: dict[Value, Part] = dict(zip(main.arguments, held, strict=True)) if self._replicas == 1 else {}
        divided = {value: part for value, part in known.items() if part.shape != shape_of(value)}
        found = self._held = propagate(main.body.block, divided, self._devices, self._stated)
        parts = []
        for index, value in enumerate(main.returned):
            attributes = main.result_attributes(index)
            fixed = SHARDING in attributes or TILES in attributes or self._replicas > 1
            if self._replicas == 1 and SHARDING in attributes:
                parts.append(self._opened(read_sharding(attributes[SHARDING]), value, found))
            else:
                parts.append(self._part(attributes, value) if fixed or value not in found else found[value])
        return parts

    def _opened(self, sharding: Sharding, value: Value, known: Mapping[Value, Part]) -> Part:
        """Returns how devices hold a value: as a sharding states and, where it is open, as the value is held so far."""
        part = self._part_of(sharding, shape_of(value))
        if value not in known or not sharding.open:
            return part
        return refined(part, known[value], sharding, find_mesh(sharding, self._meshes))

    def _stated(self, op: Operation, known: Mapping[Value, Part]) -> list[Part]:
        if isinstance(op, ManualComputation):
            return self._own_parts(op)[1]
        assert isinstance(op, ShardingConstraint | Reshard), "no other op states how devices hold its result"
        try:
            return [self._opened(read_sharding(op.sharding), op.operands[0], known)]
        except CompileError:
            return []  # a hint that would require parts of unequal size

    def _own_parts(self, op: ManualComputation) -> tuple[list[Part], list[Part]]:
        """Returns the parts of its operands and of its results. They are computed once, before arguments are taken in
        parts."""
        if op not in self._known_parts:
            self._known_parts[op] = self._find_parts(op)
        return self._known_parts[op]

    def _find_parts(self, op: ManualComputation) -> tuple[list[Part], list[Part]]:
        axes = read_axes(op.manual_axes)
        found = []
        for shardings, values in ((op.in_shardings, op.tensors), (op.out_shardings, op.results)):
            read = [sharding.along(axes) for sharding in read_shardings(shardings)]
            found.append([self._part_of(one, shape_of(value)) for one, value in zip(read, values, strict=True)])
        return found[0], found[1]

    # Arguments and results in parts

    def _take_terms(self, held: list[Part]) -> None:
        """Lets the program take the terms of an argument, and computes its whole where not only these are needed."""
        needed: dict[Value, set[Part | None]] = {}
        for op in self._main.walk():
            parts = self._own_parts(op)[0] if isinstance(op, ManualComputation) and op.parent_op is self._main else None
            for index, value in enumerate(op.operands):
                needed.setdefault(value, set()).add(parts[index] if parts else None)
        for index, (argument, part) in enumerate(zip(self._main.arguments, held, strict=True)):
            if part.terms and needed.get(argument) == {part}:
                argument.type = TensorType(part.shape, argument.type.element_type)
                self._parts.add(argument)
            elif part.terms:
                self._add_up(index, argument, part)

    def _add_up(self, index: int, argument: BlockArgument, part: Part) -> None:
        """Lets the program take an argument as the terms that the devices hold, and computes its whole first."""
        block = self._main.body.block
        assert block.first is not None, "a function ends in a return"
        builder = Builder.in_front_of(block.first)
        own = builder.add(Reshape(argument, result=argument.type))
        own.type = argument.type = TensorType(part.shape, argument.type.element_type)
        sharding = read_sharding(self._main.argument_attributes(index)[SHARDING])
        users = [op for op in argument.users if op is not own.defining_op]
        whole = self._joined(builder, own, sharding, part)
        for user in users:
            for place, operand in enumerate(user.operands):
                if operand is argument:
                    user.set_operand(place, whole)
        self._parts.add(argument)

    def _compute_parts(self, held: Sequence[Part], returned: Sequence[Part], is_shared: bool) -> bool:
        """Lets devices compute values in parts. Returns whether they do."""
        main = self._main
        arguments: dict[Value, Part] = {
            value: part
            for value, part in zip(main.arguments, held, strict=True)
            if value not in self._parts and not part.terms
        }
        own = OwnParts(main.body.block, returned, arguments, self._cuts, self._gathered, self._devices)
        if is_shared and not own.pay:
            return False
        self._parts.update(own.compute())
        return True

    def _return_parts(self, main: Function, returned: list[Part]) -> list[bool]:
        """Lets the program return parts instead of the wholes that were made from them, and drops unused wholes.
        Returns which results are wholes."""
        end = main.body.terminator
        whole = []
        for index, (value, part) in enumerate(zip(end.operands, returned, strict=True)):
            own, own_part = self._gathered.get(value, (value, None))
            is_part = own_part == part
            if part.terms and not is_part and value not in self._parts:
                own, is_part = contribution(Builder.in_front_of(end), value, part, self._held), True
            if is_part:
                end.set_operand(index, own)
            whole.append(not is_part and value not in self._parts)
        for op in reversed(self._gathers):
            if not op.is_used:
                op.erase()
        return whole

    def _call_on_parts(self, op: CustomCall) -> None:
        builder = Builder.in_front_of(op)
        for index, value in enumerate(op.operands):
            if value in self._held and not self._held[value].terms:
                op.set_operand(index, contribution(builder, value, self._held[value], {}))

    # Manual computations

    def _expand(self, op: ManualComputation) -> None:
        """Replaces the op by its body on parts of the operands, and its results by wholes."""
        axes = read_axes(op.manual_axes)
        shardings = [sharding.along(axes) for sharding in read_shardings(op.out_shardings)]
        before, after = self._own_parts(op)
        rewriter = Rewriter(op)
        taken = [self._taken(rewriter, *pair) for pair in zip(op.tensors, before, strict=True)]
        values = inline_block(op.body.block, taken, rewriter)
        results = [
            own if part == self._whole(result) else self._joined(rewriter, own, sharding, part)
            for own, result, sharding, part in zip(values, op.results, shardings, after, strict=True)
        ]
        now = dict(zip(op.results, results, strict=True))
        self._gathered = {whole: (now.get(own, own), part) for whole, (own, part) in self._gathered.items()}
        rewriter.replace(*results)

    def _taken(self, builder: Builder, value: Value, part: Part) -> Value:
        if value in self._parts:
            # A value of its own, since a computation inside this one divides the part further.
            return builder.add(Reshape(value, result=value.type))
        if part == self._whole(value):
            return value
        own = contribution(builder, value, part, self._held)
        if not part.terms:
            assert own.defining_op is not None, "a part is cut out by an op"
            self._cuts[own.defining_op] = part
        return own

    def _whole(self, value: Value) -> Part:
        return Part.whole(shape_of(value), self._devices)

    def _joined(self, builder: Builder, value: Value, sharding: Sharding, part: Part) -> Value:
        """Returns the whole of a value of which each device has a part."""
        own = value
        for dimension, axes in enumerate(sharding.dimensions):
            if not axes:
                continue
            rows = groups(find_mesh(sharding, self._meshes), axes)
            extents = list(value.type.static_shape)
            extents[dimension] *= len(rows[0])
            kind = TensorType(tuple(extents), value.type.element_type)
            together = {"replica_groups": rows, "channel_handle": _CHANNEL, "use_global_device_ids": UNIT}
            gather = AllGather([value], all_gather_dim=dimension, results=[kind], **together)
            (value,) = builder.add(gather)
            self._gathers.append(gather)
        if part.terms:
            scalar = TensorType((), value.type.element_type)
            add = region((scalar, scalar), lambda inner, x, y: inner.add(Add(x, y)))
            together = {"replica_groups": part.terms, "channel_handle": _CHANNEL, "use_global_device_ids": UNIT}
            total = AllReduce(operands=[value], computation=add, results=[value.type], **together)
            (value,) = builder.add(total)
            self._gathers.append(total)
        self._gathered[value] = own, part
        return value

    def _number_devices(self, main: Function) -> bool:
        """Replaces ops that read the device's number by a new argument. Returns whether there are any."""
        readers = [op for op in main.walk() if isinstance(op, PartitionId | ReplicaId)]
        mine = [op for op in readers if isinstance(op, ReplicaId) == (self._replicas > 1)]
        for op in readers:
            if op not in mine:
                _replace_by_zero(op)
        if mine:
            number = main.body.block.add_argument(tensor(of=UI32), "device")
            for op in mine:
                Rewriter(op).replace(number)
        return bool(mine)


def _calls(op: Operation, targets: Sequence[str]) -> TypeGuard[CustomCall]:
    return isinstance(op, CustomCall) and op.call_target_name in targets
