"""A process of a program, and the state that it shares with the processes that run next to it: they meet in
collectives, and pass values through channels and queues. A deadlock between processes is an error."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from trivium.ir.arrays import Datum
from trivium.ir.errors import Error, ExecutionError

Message = Datum | Sequence[Datum]
"""What processes exchange: a value, or a list of values."""

Id = tuple[int, int]
"""A process: its replica, and its partition."""


@dataclass
class Grid:
    """The state that the processes share. A lock guards all of it."""

    replicas: int = 1
    partitions: int = 1
    infeed: deque[Sequence[Datum]] = field(default_factory=deque)
    outfeed: list[tuple[Datum, ...]] = field(default_factory=list)
    error: Error | None = None

    def __post_init__(self) -> None:
        self.ids = [(replica, partition) for replica in range(self.replicas) for partition in range(self.partitions)]
        self.changed = threading.Condition()
        self.running = set(self.ids)
        self.waiting: dict[Id, Callable[[], bool]] = {}
        self.meetings: defaultdict[Hashable, dict[Id, Message]] = defaultdict(dict)
        self.channels: defaultdict[Hashable, deque[Message]] = defaultdict(deque)

    def wait(self, identity: Id, what: str, ready: Callable[[], bool]) -> None:
        """Waits until `ready`; the caller holds the lock. Raises an error if every process that still runs waits, and
        none of them is ready."""
        self.waiting[identity] = ready
        self.changed.notify_all()
        while not ready() and self.error is None:
            if self.running == self.waiting.keys() and not any(other() for other in self.waiting.values()):
                self.error = ExecutionError(f"process {identity} waits for {what}, and no process is left to act")
                self.changed.notify_all()
                break
            self.changed.wait()
        del self.waiting[identity]
        if self.error is not None and not ready():
            raise self.error

    def fail(self, error: Error) -> None:
        """Keeps the first error, and wakes all waiting processes."""
        with self.changed:
            self.error = self.error or error
            self.changed.notify_all()

    def leave(self, identity: Id) -> None:
        with self.changed:
            self.running.discard(identity)
            self.changed.notify_all()


class Process:
    """One process of a grid, as its ops see it."""

    def __init__(self, grid: Grid | None = None, replica: int = 0, partition: int = 0):
        self.grid = grid or Grid()
        self.replica, self.partition = replica, partition
        self.id = (replica, partition)
        self._count: defaultdict[Hashable, int] = defaultdict(int)

    def meet(self, kind: str, channel: int, group: Sequence[Id], value: Message) -> list[Message]:
        """Passes `value` to the group, and returns the values of all members in the group's order."""
        grid = self.grid
        strangers = [member for member in group if member not in grid.ids]
        if strangers:
            raise ExecutionError(f"{kind} needs process {strangers[0]}, but only {len(grid.ids)} run; see run_parallel")
        meeting = (kind, channel, tuple(group))
        key = (*meeting, self._count[meeting])
        self._count[meeting] += 1
        with grid.changed:
            values = grid.meetings[key]
            values[self.id] = value
            grid.wait(self.id, f"{kind} of {list(group)}", lambda: len(values) == len(group))
            grid.changed.notify_all()
            return [values[member] for member in group]

    def send(self, channel: Hashable, value: Message) -> None:
        with self.grid.changed:
            self.grid.channels[channel].append(value)
            self.grid.changed.notify_all()

    def receive(self, channel: Hashable) -> Message:
        with self.grid.changed:
            queue = self.grid.channels[channel]
            self.grid.wait(self.id, f"a value of channel {channel}", lambda: bool(queue))
            return queue.popleft()

    def feed(self) -> Sequence[Datum]:
        """Returns the next values of the infeed."""
        with self.grid.changed:
            if not self.grid.infeed:
                raise ExecutionError("the infeed has no values left; pass them to run_parallel")
            return self.grid.infeed.popleft()

    def feed_out(self, values: tuple[Datum, ...]) -> None:
        with self.grid.changed:
            self.grid.outfeed.append(values)

    # Groups

    def cross_replica(self, rows: Sequence[Sequence[int]]) -> list[list[Id]]:
        """Returns groups of replicas, for this process's partition. No rows mean one group of all."""
        rows = rows or [range(self.grid.replicas)]
        return [[(replica, self.partition) for replica in row if replica >= 0] for row in rows]

    def cross_partition(self, rows: Sequence[Sequence[int]]) -> list[list[Id]]:
        """Returns groups of partitions, for this process's replica."""
        rows = rows or [range(self.grid.partitions)]
        return [[(self.replica, partition) for partition in row if partition >= 0] for row in rows]

    def cross_replica_and_partition(self, rows: Sequence[Sequence[int]]) -> list[list[Id]]:
        """Returns groups of replicas, with all their partitions."""
        partitions = range(self.grid.partitions)
        rows = rows or [range(self.grid.replicas)]
        return [[(replica, partition) for partition in partitions for replica in row if replica >= 0] for row in rows]

    def flattened(self, rows: Sequence[Sequence[int]]) -> list[list[Id]]:
        """Returns groups of processes, from rows of process numbers."""
        rows = rows or [range(len(self.grid.ids))]
        return [[divmod(number, self.grid.partitions) for number in row if number >= 0] for row in rows]

    def group(self, groups: list[list[Id]], kind: str) -> list[Id]:
        """Returns the group that this process is in."""
        for group in groups:
            if self.id in group:
                return group
        raise ExecutionError(f"{kind}: process {self.id} is in no group of {groups}")
