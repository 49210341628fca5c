"""Decides which steps of a program share a launch: steps that do not access bytes that another one writes, and whose
blocks have the same size. Each block of such a launch does the work of one step. A copy in it becomes a kernel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from trivium.backends.gpu.schedule import Grid, choose
from trivium.backends.gpu.schedule import grid as grid_of
from trivium.backends.gpu.target import GpuTarget
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.kernel.affine import Analysis, holds
from trivium.compiler.kernel.structure import Update
from trivium.compiler.program import Array, Copy, Launch, Step, nested, operands, reads, writes
from trivium.compiler.verifier import overlap, region

MOST_POINTERS = 120
"""The most arguments of a launch. OpenCL promises 1024 bytes."""

MOST_MAPS = 16
"""The most descriptions of arrays, of 128 bytes each: all arguments of a launch have 4096 bytes."""

LARGE = 128
"""The least threads of blocks among which some compute elements."""

MOST_THREADS = 1 << 18
"""The most threads of a kernel whose rows get more of them than they need: what a large device runs at a time."""

WINDOW = 8
"""The number of launches that a step may still join."""

Batch = tuple[Launch, ...]


@dataclass(frozen=True)
class Company:
    """What kernels that share a launch have in common: the threads of a block, and whether they compute tiles, which
    take many registers and much shared memory. Blocks for rows can be larger than they need to be, up to `most`
    threads; those of elements have any size. `rows`: whether there are rows. `producers`: the threads of a block that
    only start copies."""

    tiles: bool
    threads: int
    most: int
    rows: bool = False
    producers: int = 0

    def joined(self, other: Company) -> Company | None:
        """Returns the company of the kernels of both; None if they cannot share a launch."""
        if self.tiles or other.tiles:
            return self if self == other else None
        most = min(self.most, other.most)
        if self.rows == other.rows:
            threads = max(self.threads, other.threads)
        else:
            threads = max(LARGE, self.threads if self.rows else other.threads)
        return Company(False, threads, most, self.rows or other.rows) if threads <= most else None


def company(kernel: Kernel, grid: Grid, target: GpuTarget) -> Company | None:
    """Returns what a kernel can share a launch with; None if it needs a separate launch."""
    if holds(kernel.body, Update) or grid.owners > 1 or grid.atomic or grid.copies:
        return None
    if grid.tile:
        return Company(True, grid.threads, grid.threads, producers=grid.producers)
    if not grid.shared:
        return Company(False, max(target.warp, grid.threads), target.largest_block)
    most = min(target.largest_block, MOST_THREADS // grid.blocks)
    return Company(False, grid.threads, max(grid.threads, most), rows=True)


def launch_kind(kernel: Kernel, target: GpuTarget) -> Hashable:
    """Returns what kernels have in common that may share a launch (`Target.launch_kind`): those that compute tiles have
    the same company; all others are of one kind."""
    if holds(kernel.body, Update):
        return None
    if kernel.contraction is None and kernel.attention is None:
        return "without tiles"
    found = company(kernel, grid_of(kernel, choose(kernel, target, Analysis(kernel))), target)
    return found if found is None or found.tiles else "without tiles"


@dataclass
class _Sharing:
    """Steps that share a launch, as kernels, and the values that they use."""

    company: Company | None
    maps: int = 0
    launches: dict[Step, Launch] = field(default_factory=dict)
    values: set[Array] = field(default_factory=set)

    def with_step(self, step: Step, company: Company | None, maps: int) -> Company | None:
        """Returns the company with another step; None if that cannot join."""
        if self.company is None or company is None or len(self.values | set(operands(step))) > MOST_POINTERS:
            return None
        if self.maps + maps > MOST_MAPS:
            return None
        return self.company.joined(company)

    def add(self, step: Step, launch: Launch) -> None:
        self.launches[step] = launch
        self.values.update(operands(step))


def batches(
    steps: Sequence[Step], grid: Callable[[Kernel], Grid], target: GpuTarget
) -> Iterator[tuple[tuple[Step, ...], Batch, int]]:
    """Yields the steps, here and inside loops and branches, that share a launch, two or more of them, the launches that
    they are as kernels, and the threads of a block. All can run in the place of the first one of them."""
    for step in steps:
        for inner in nested(step):
            yield from batches(inner, grid, target)
    for sharing in _sharings(steps, grid, target):
        if len(sharing.launches) > 1 and sharing.company is not None:
            yield tuple(sharing.launches), tuple(sharing.launches.values()), sharing.company.threads


def _sharings(steps: Sequence[Step], grid: Callable[[Kernel], Grid], target: GpuTarget) -> Iterator[_Sharing]:
    """Yields the launches. A step joins the first one that it can run in, after everything that it depends on."""
    last: deque[_Sharing] = deque()
    for step in steps:
        if not isinstance(step, Launch | Copy):
            yield from last
            last.clear()
            continue
        launch = _as_launch(step)
        threads = grid(launch.kernel)
        kind = company(launch.kernel, threads, target)
        for sharing in _later(step, last):
            if (both := sharing.with_step(step, kind, threads.maps)) is not None:
                sharing.company = both
                break
        else:
            sharing = _Sharing(kind)
            last.append(sharing)
        sharing.add(step, launch)
        sharing.maps += threads.maps
        if len(last) > WINDOW:
            yield last.popleft()
    yield from last


def _later(step: Step, sharings: Sequence[_Sharing]) -> list[_Sharing]:
    """Returns the launches that come after all with which a step must not change places."""
    later: list[_Sharing] = []
    for sharing in sharings:
        later = [] if any(_meet(step, other) for other in sharing.launches) else [*later, sharing]
    return later


def _meet(one: Step, other: Step) -> bool:
    """Whether one step writes bytes that the other one touches, and not just another part of the same result."""
    pairs = ((writes(one), operands(other)), (writes(other), reads(one)))
    parts = isinstance(one, Launch) and isinstance(other, Launch) and one.whole is not None and one.whole is other.whole
    return any(
        overlap(region(a), region(b)) for left, right in pairs for a in left for b in right if not (parts and a is b)
    )


def _as_launch(step: Step) -> Launch:
    """Returns a launch or a copy as a launch."""
    if isinstance(step, Launch):
        return step
    assert isinstance(step, Copy), "only launches and copies share a launch"
    return Launch(_copy(step.source.nbytes), (step.source, step.destination))


def _copy(nbytes: int) -> Kernel:
    """Returns the kernel that copies bytes."""
    dtype, size = next((dtype, size) for dtype, size in (("ui32", 4), ("ui16", 2), ("ui8", 1)) if nbytes % size == 0)
    b = KernelBuilder("copy")
    source, target = b.input("x", dtype, (nbytes // size,)), b.output("y", dtype, (nbytes // size,))
    with b.parallel(nbytes // size) as (index,):
        b.store(target, b.load(source, index), index)
    return b.build()
