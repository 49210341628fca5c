"""Collectives: how the devices that run one program exchange values. Each kind is data, and `exchange` defines its
meaning: from the source of every member of a group to the destination of every member."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeVar

import numpy as np

from trivium.compiler.kernel.dtypes import DType
from trivium.compiler.kernel.evaluation import named
from trivium.ir.errors import ExecutionError


@dataclass(frozen=True)
class AllReduce:
    """Every member gets the sources of all members, combined element by element in the order of the group. `combiner`
    names a scalar operation of kernels."""

    combiner: str


@dataclass(frozen=True)
class AllGather:
    """Every member gets the sources of all members, joined along `dimension`."""

    dimension: int


@dataclass(frozen=True)
class ReduceScatter:
    """The sources of all members are combined as by `AllReduce`; each member gets its part along `dimension`."""

    combiner: str
    dimension: int


@dataclass(frozen=True)
class AllToAll:
    """Each source is split along `split_dimension` into one part per member, and the parts that a member receives are
    joined along `concat_dimension`."""

    split_dimension: int
    concat_dimension: int


@dataclass(frozen=True)
class CollectivePermute:
    """Each group is a pair of a source and a target; the target gets the source's value. A device that is not a target
    gets zeros."""


CollectiveKind = AllReduce | AllGather | ReduceScatter | AllToAll | CollectivePermute
Groups = tuple[tuple[int, ...], ...]

NAMES: dict[type[CollectiveKind], str] = {
    AllReduce: "all_reduce",
    AllGather: "all_gather",
    ReduceScatter: "reduce_scatter",
    AllToAll: "all_to_all",
    CollectivePermute: "collective_permute",
}
"""Their names in StableHLO."""


def group_of(kind: CollectiveKind, groups: Groups, device: int) -> tuple[int, ...]:
    """Returns the devices that `device` exchanges values with, including itself; empty if it takes no part. A
    permutation is one exchange between all devices that appear in its pairs."""
    if isinstance(kind, CollectivePermute):
        members = tuple(sorted({member for pair in groups for member in pair}))
        return members if device in members else ()
    return next((group for group in groups if device in group), ())


def result_shape(kind: CollectiveKind, shape: tuple[int, ...], size: int) -> tuple[int, ...] | None:
    """Returns the shape of the destination for a source in a group of `size`; None if the source cannot be divided."""
    extents = list(shape)
    if isinstance(kind, ReduceScatter | AllToAll):
        dimension = kind.dimension if isinstance(kind, ReduceScatter) else kind.split_dimension
        if extents[dimension] % size:
            return None
        extents[dimension] //= size
    if isinstance(kind, AllGather | AllToAll):
        dimension = kind.dimension if isinstance(kind, AllGather) else kind.concat_dimension
        extents[dimension] *= size
    return tuple(extents)


def exchange(
    kind: CollectiveKind, groups: Groups, members: Sequence[int], sources: Sequence[np.ndarray], dtype: DType
) -> list[np.ndarray]:
    """Returns the destinations of `members`, given their sources, both in the order of the group."""
    count = len(members)
    match kind:
        case AllReduce(combiner):
            return [_combined(combiner, sources, dtype)] * count
        case AllGather(dimension):
            return [np.concatenate(sources, dimension)] * count
        case ReduceScatter(combiner, dimension):
            return np.split(_combined(combiner, sources, dtype), count, dimension)
        case AllToAll(split_dimension, concat_dimension):
            parts = [np.split(source, count, split_dimension) for source in sources]
            return [np.concatenate([each[place] for each in parts], concat_dimension) for place in range(count)]
        case CollectivePermute():
            given = dict(zip(members, sources, strict=True))
            source_of = {target: source for source, target in groups}
            return [
                given[source_of[member]] if member in source_of else np.zeros_like(given[member]) for member in members
            ]


def _combined(combiner: str, sources: Sequence[np.ndarray], dtype: DType) -> np.ndarray:
    return reduce(lambda one, other: named(combiner, dtype, [one, other]), sources)


class Exchange(Protocol):
    """A step of a program in which devices exchange values."""

    @property
    def kind(self) -> CollectiveKind: ...
    @property
    def groups(self) -> Groups: ...


E = TypeVar("E", bound=Exchange)


def run_together(name: str, runs: Sequence[Iterator[E]], meet: Callable[[E, Sequence[int]], None]) -> None:
    """Runs the program `name` on several devices, to the end. Each of `runs` is a device's, and yields the steps in
    which it exchanges values: it waits there for its group, whose members then `meet`."""
    running, waiting = dict(enumerate(runs)), dict[int, E]()
    while running:
        for device in [device for device in running if device not in waiting]:
            if (step := next(running[device], None)) is None:
                del running[device]
            else:
                waiting[device] = step
        met = [_meet(len(runs), waiting, device, meet) for device in list(waiting)]
        if waiting and not any(met):
            device, step = next(iter(waiting.items()))
            raise ExecutionError(
                f"{name}: device {device} waits in {NAMES[type(step.kind)]} for others of its group, "
                "which have ended or wait elsewhere"
            )


def _meet(count: int, waiting: dict[int, E], device: int, meet: Callable[[E, Sequence[int]], None]) -> bool:
    """Runs the collective that `device` waits in, if its whole group waits in the same one, and lets them continue.
    Returns whether it has run."""
    step = waiting.get(device)
    if step is None:  # already released together with another device
        return True
    name = NAMES[type(step.kind)]
    members = group_of(step.kind, step.groups, device)
    if any(member >= count for member in members):
        raise ExecutionError(f"{name} needs device {max(members)}, but only {count} run")
    if not members and not isinstance(step.kind, CollectivePermute):
        raise ExecutionError(f"{name}: device {device} is in no group of {list(map(list, step.groups))}")
    if any(waiting.get(member) is not step for member in members):
        return False
    members = members or (device,)
    meet(step, members)
    for member in members:
        del waiting[member]
    return True
