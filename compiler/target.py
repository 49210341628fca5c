"""What a device is, in numbers: what passes, fusion, schedules and tilings ask before they decide. A backend fills it
in; nothing else in the compiler states a fact of one device. Costs are in units of one operation on one vector
register, an addition for example: some 0.3 ns on a processor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, TypeVar

T = TypeVar("T", bound="Target")


@dataclass(frozen=True)
class FusionLimits:
    """Bounds of a kernel, where the device has them."""

    reads: int
    """Values that one kernel loads. Each needs an address in a register, and a stream that the device prefetches."""

    serial_row: int
    """Elements up to which elementwise work may be tied to a reduction to a scalar, which has no parallel loop."""

    scratch_row: int
    """Elements of a row up to which its intermediates are stored in scratch rather than computed again."""

    scratch_bytes: int
    """Scratch that one iteration of a kernel's parallel nest may have in all: the memory that a group of threads
    shares, or of a processor what stays in the caches of one."""


@dataclass(frozen=True)
class MatrixInstruction:
    """An instruction that multiplies tiles: `rows` x `depth` by `depth` x `columns`, of `operands`, added up in
    `accumulate`."""

    rows: int
    columns: int
    depth: int
    operands: str
    accumulate: str


@dataclass(frozen=True, kw_only=True)
class Target:
    """A device."""

    vector_bytes: int
    """Of a register that holds several elements."""

    vector_registers: int
    """How many of them a piece of code can use at once."""

    divides_integers_in_lanes: bool
    """Whether division of integers has a vector form."""

    threads: int = 1
    """How many run at once: cores of a processor."""

    cache_bytes: tuple[int, ...]
    """Caches that belong to one thread, the nearest first."""

    shared_memory_bytes: int = 0
    """Scratch memory that the threads of a group share; 0 where a thread's scratch is its own."""

    alignment: int
    """Bytes at a multiple of which values in the arena begin: a line of the caches, so that no vector spans two."""

    matrix_instructions: tuple[MatrixInstruction, ...] = ()

    launch_cost: float
    """What it costs to begin a kernel."""

    split_cost: float
    """Work from which a loop is worth spreading over threads: waking them must cost little beside it."""

    piece_cost: float
    """The least work of one thread's piece of a loop."""

    multiply_adds: int = 1
    """Fused multiply-adds on vector registers in the time of one unit of cost."""

    recompute_cost: float
    """What storing an element in scratch and loading it again costs: what is cheaper is computed again instead."""

    fusion: FusionLimits

    def product_cost(self, flops: int, element_bytes: int) -> float:
        """Of sums of products, whose multiplications and additions are `flops`, at the full speed of the device."""
        return flops / (2 * self.multiply_adds * (self.vector_bytes // element_bytes))

    def with_threads(self, threads: int) -> Self:
        """The same device, with `threads` as the number of threads that a program may use."""
        return replace(self, threads=threads)
