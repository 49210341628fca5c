"""Emits launches that several kernels share: for each kernel, a function that does the work of one block, and one
kernel in which each block calls the function of the kernel that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import llvmlite.ir as ll

from trivium.backends.gpu.dialect import SHARED_ALIGNMENT, Body, Dialect, Entry
from trivium.backends.gpu.plan import Launched, TensorMap
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.llvm.code import I8, I32, I64, Code
from trivium.backends.llvm.workspace import ALIGNMENT


@dataclass(frozen=True)
class Bodies:
    """The functions of one kernel, one for each launch that it takes, with the blocks of each, and the bytes of
    workspace, the counters and the descriptions of arrays that they need."""

    launches: tuple[tuple[Body, int], ...]
    workspace: int
    counters: int
    maps: tuple[TensorMap, ...] = ()


@dataclass(frozen=True)
class Group:
    """Equal kernels of a launch: for each one, the numbers of its arguments among those of the launch."""

    bodies: Bodies
    arguments: tuple[tuple[int, ...], ...]

    def maps(self) -> Iterator[tuple[TensorMap, ...]]:
        """Yields each description of an array for all kernels."""
        for one in self.bodies.maps:
            yield tuple(replace(one, argument=numbers[one.argument]) for numbers in self.arguments)


def emit_shared(
    module: ll.Module,
    name: str,
    groups: Sequence[Group],
    pointers: int,
    threads: int,
    dialect: Dialect,
    target: GpuTarget,
) -> tuple[tuple[Launched, ...], int, int]:
    """Defines the kernels of a launch that groups share, with `pointers` arguments, the workspace and the counters: two
    if one of the groups takes two. Returns them, the bytes of workspace, and the number of counters."""
    sizes = [-(-group.bodies.workspace // ALIGNMENT) * ALIGNMENT for group in groups]
    rooms, size = _rooms(groups, sizes)
    places, counters = _rooms(groups, [4 * group.bodies.counters for group in groups])
    launched = []
    for number in range(max(len(group.bodies.launches) for group in groups)):
        maps = tuple(dict.fromkeys(one for group in _in(groups, number) for members in group.maps() for one in members))
        function = dialect.define(module, f"{name}_{number}", pointers + 2, threads, len(maps))
        builder = ll.IRBuilder(function.append_basic_block("entry"))
        launch = _Launch(Code(builder, target), dialect, function, number, pointers, maps)
        for group, *memories in zip(groups, rooms, places, strict=True):
            if group in _in(groups, number):
                launch.group(group, memories)
        launch.end()
        launched.append(Launched(function.name, launch.blocks, threads, function.granted, maps))
    return tuple(launched), size, counters // 4


def _in(groups: Sequence[Group], number: int) -> list[Group]:
    """Returns the groups that have work in the launch of that number."""
    return [group for group in groups if len(group.bodies.launches) > number]


@dataclass(frozen=True)
class _Room:
    """Where a group has memory: from the byte `begin` on, `each` bytes for each member."""

    begin: int
    each: int


def _rooms(groups: Sequence[Group], sizes: Sequence[int]) -> tuple[list[_Room], int]:
    """Returns rooms that do not overlap, with these sizes for each member of the groups, and the bytes of all."""
    rooms, end = [], 0
    for group, each in zip(groups, sizes, strict=True):
        rooms.append(_Room(end, each))
        end += each * len(group.arguments)
    return rooms, end


class _Launch:
    """A kernel under construction. `blocks`: those of the groups so far."""

    def __init__(
        self, code: Code, dialect: Dialect, function: Entry, number: int, pointers: int, maps: Sequence[TensorMap]
    ):
        self._code, self._builder, self._function = code, code.builder, function
        self._dialect, self._number = dialect, number
        arguments = function.args
        self._pointers, self._memories = arguments[:pointers], arguments[pointers:][:2]
        self._maps = dict(zip(maps, arguments[pointers + 2 :], strict=True))
        self._block = dialect.block(code)
        self._memory = dialect.shared(code, 1)
        self._shared, self._alignment = 1, SHARED_ALIGNMENT
        self._resident: set[int] = set()
        self.blocks = 0

    def group(self, group: Group, rooms: Sequence[_Room]) -> None:
        """Emits the work of the blocks that are a group's, with `rooms` in the workspace and among the counters."""
        body, blocks = group.bodies.launches[self._number]
        count, builder = len(group.arguments), self._builder
        own = builder.sub(self._block, I32(self.blocks))
        with builder.if_then(builder.icmp_unsigned("<", own, I32(blocks * count))):
            member = builder.udiv(own, I32(blocks)) if count > 1 else I32(0)
            block = builder.urem(own, I32(blocks)) if count > 1 else own
            arguments = [[self._pointers[n] for n in numbers] for numbers in zip(*group.arguments, strict=True)]
            chosen = [self._chosen(pointers, member) for pointers in arguments]
            chosen += [self._own(*pair, member) for pair in zip(self._memories, rooms, strict=True)]
            chosen += [self._chosen([self._maps[one] for one in members], member) for members in group.maps()]
            builder.call(body, [*chosen, block, self._memory], cconv=body.calling_convention or None)
        self._shared, self._alignment = max(self._shared, body.nbytes), max(self._alignment, body.alignment)
        self._resident.add(body.resident)
        self.blocks += blocks * count

    def _own(self, memory: ll.Value, room: _Room, member: ll.Value) -> ll.Value:
        """Returns the memory of a member of a group."""
        builder = self._builder
        offset = builder.add(builder.mul(builder.zext(member, I64), I64(room.each)), I64(room.begin))
        return builder.gep(memory, [offset], source_etype=I8)

    def end(self) -> None:
        """Ends the kernel. Its blocks have as much memory of their own as any of the functions needs, and as many
        registers."""
        if blocks := min(self._resident):
            self._dialect.resident(self._code, blocks)
        self._dialect.resize(self._function, self._memory, self._shared, self._alignment)
        self._builder.ret_void()

    def _chosen(self, pointers: Sequence[ll.Value], member: ll.Value) -> ll.Value:
        """Returns the argument of the member that the block belongs to."""
        builder, chosen = self._builder, pointers[0]
        for position, pointer in enumerate(pointers):
            if pointer is not pointers[0]:
                chosen = builder.select(builder.icmp_unsigned("==", member, I32(position)), pointer, chosen)
        return chosen
