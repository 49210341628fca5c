"""A device, described in numbers that passes, fusion, schedules and tilings base their decisions on. A backend fills
them in; nothing else in the compiler states a fact about one device. Costs are in units of one operation on one vector
register, such as an addition: some 0.3 ns on a processor."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Self, TypeVar

T = TypeVar("T", bound="Target")


@dataclass(frozen=True)
class FusionLimits:
    """Limits for a kernel on the device."""

    reads: int
    """The number of values that one kernel loads. Each needs an address in a register and a stream that the device
    prefetches."""

    serial_row: int
    """The maximum number of elements for which elementwise work may be fused with a reduction to a scalar, which has no
    parallel loop."""

    scratch_row: int
    """The maximum number of elements of a row whose intermediates are stored in scratch rather than computed again."""

    scratch_bytes: int
    """The total scratch memory of one iteration of a kernel's parallel nest: the memory that a group of threads shares
    or, on a processor, the memory that stays in the caches of one core."""

    across: int = 0
    """The maximum number of elements of an array whose rows run across memory, for which one kernel of rows is better
    than one for the reduction and another one for what uses its results: slower access costs less than a launch."""


@dataclass(frozen=True)
class TileSizes:
    """How values that are too large for the caches are computed in tiles (`passes/tile.py`)."""

    largest: int
    """Values of at most this many bytes are computed as wholes by one thread."""

    tile: int
    """The number of bytes of one tile that is aimed at, for one thread."""

    rows: int
    """The least number of rows of a product's left or right factor in one tile, so that packing the other factor costs
    little in comparison."""

    threads: int = 1
    """The number of threads up to which sizes grow, because each of them has its own cache."""

    def shared(self, threads: int) -> TileSizes:
        """Returns the sizes for a program that runs on `threads` threads."""
        share = min(threads, self.threads)
        return TileSizes(share * self.largest, share * self.tile, self.rows)


MASKED_BYTES = 32
"""The size of vectors from which processors load some lanes of one, under a mask, in one instruction."""


@dataclass(frozen=True)
class LayoutCosts:
    """What it costs to bring a vector's worth of elements into the order in which a convolution reads them."""

    windows: float
    """Of windows whose neighbours are neighbours in memory: a load for each run of memory that the vector touches,
    their masks, a store."""

    squares: float
    """Of a transpose: the vector's share of loading, exchanging and storing a square of elements."""

    rows: float
    """Of the same windows whose neighbours are features: a load and a store."""


@dataclass(frozen=True)
class MatrixInstruction:
    """An instruction that multiplies tiles, `rows` x `depth` by `depth` x `columns`, with elements of type `operands`,
    and adds up in type `accumulate`."""

    rows: int
    columns: int
    depth: int
    operands: str
    accumulate: str
    speed: int = 1
    """How many times the rate of products of vectors of f32 is reached, at least."""
    widens: bool = False
    """Whether it multiplies numbers of twice the width, to which the operands are extended: lhs when it is packed, rhs
    when it is read."""

    @property
    def in_vectors(self) -> bool:
        """Whether the tiles are vectors: the instruction multiplies one row, which is repeated in every lane."""
        return self.rows == 1


@dataclass(frozen=True, kw_only=True)
class Target:
    """A device."""

    vector_bytes: int
    """The size of a vector register."""

    vector_registers: int
    """The number of vector registers that code can use at once."""

    divides_integers_in_lanes: bool
    """Whether division of integers has a vector form."""

    threads: int = 1
    """The number of threads that run at once, such as the cores of a processor."""

    cache_bytes: tuple[int, ...]
    """The sizes of the caches that belong to one thread, the nearest first."""

    memory_bytes: int | None = None
    """The memory of the device; None if it is the host's."""

    shared_memory_bytes: int = 0
    """Scratch memory that the threads of a group share; 0 where a thread's scratch is its own."""

    scans: bool = False
    """Whether the threads of a group share a running fold, or the lanes of a vector where they do not share memory."""

    alignment: int
    """Values in the arena begin at a multiple of this many bytes: a cache line, so that no vector spans two lines."""

    shared_result_bytes: int = 1 << 16
    """The number of bytes from which on the memory of a result, before it is computed, is used for temporaries of this
    size. Smaller temporaries are in the arena, where their memory is more likely to be in a cache."""

    donation: bool = False
    """Whether a result may be in the memory of an argument that the caller gives away."""

    sections: bool = False
    """Whether a launch may read a section of an array whose place is computed at run time."""

    loops_in_order: bool = False
    """Whether each loop inside an iteration of a parallel loop ends before the next one begins, so that a row may be
    overwritten by what is computed from it. Where several threads share an iteration, they only wait for one another
    where they exchange values."""

    ends: bool = False
    """Whether loops end at run time where what they write has no use (`kernel.structure.End`)."""

    sorts_keys: bool = False
    """Whether keys can be sorted by vectors (`kernel.SortKeys`)."""

    matrix_instructions: tuple[MatrixInstruction, ...] = ()
    """The fastest first."""

    attention: bool = False
    """Whether attention in f32 may be one kernel (`kernel/attention.py`), which the backend has a template for."""

    def widest_chain(self, dtype: str) -> int:
        """Returns the most features, and products that a sum has, with which the chained products of factors of a type
        may be one kernel (`kernel/chained.py`)."""
        return 0

    launch_kind: Callable[..., Hashable] | None = None
    """Called with a kernel and the target, returns what kernels that may share a launch have in common, or None for one
    that shares with no other. Not set on devices where launches are not shared."""

    launch_cost: float
    """The cost of launching a kernel."""

    split_cost: float
    """The least work for which a loop is spread over threads."""

    wake_cost: float = 0.0
    """The least work that threads are woken for; less is shared with those that are awake."""

    piece_cost: float
    """The least work of one thread's piece of a loop."""

    multiply_adds: int = 1
    """Fused multiply-adds on vector registers in the time of one unit of cost."""

    read_bytes: float = 32.0
    """The bytes that a thread reads from the caches that it shares with others in the time of one unit of cost."""

    recompute_cost: float
    """The cost of storing an element in scratch and loading it again: cheaper elements are computed again instead."""

    fusion: FusionLimits

    tiles: TileSizes | None = None
    """None on devices where loops over tiles cost more than they save."""

    turned_constants: bool = False
    """Whether the kernels of convolutions that are constants are transposed when a program is compiled, since they are
    not packed when it is loaded."""

    layouts: LayoutCosts | None = None
    """None on devices where transposes are always part of the kernels that use their results."""

    @property
    def group_scratch_bytes(self) -> int:
        """The scratch memory of one group of threads, so that there is room for another group."""
        return self.shared_memory_bytes // 2

    def copies_terms(self, dtype: str) -> bool:
        """Whether the device itself copies rows of terms of products, whose factors have a type, to memory that matrix
        instructions read."""
        return False

    def instructions_for(self, lhs: str, rhs: str, accumulate: str) -> tuple[MatrixInstruction, ...]:
        """Returns the instructions for operands of two types; those of bytes take both kinds of integers."""
        operands = "i8" if {lhs, rhs} <= {"i8", "ui8"} else lhs if lhs == rhs else None
        wanted = operands, accumulate
        return tuple(one for one in self.matrix_instructions if (one.operands, one.accumulate) == wanted)

    def matrix_instruction(self, lhs: str, rhs: str, accumulate: str) -> MatrixInstruction | None:
        """Returns the first of the instructions for operands of two types."""
        return next(iter(self.instructions_for(lhs, rhs, accumulate)), None)

    def product_cost(self, flops: int, element_bytes: int, nbytes: int = 0) -> float:
        """Returns the cost of sums of products at the full speed of the device. `flops` counts their multiplications
        and additions, `nbytes` the bytes of their factors, which take longer to read if there are few products."""
        return max(flops / (2 * self.multiply_adds * (self.vector_bytes // element_bytes)), nbytes / self.read_bytes)

    def with_threads(self, threads: int) -> Self:
        """Returns the same device with a different number of threads that a program may use."""
        return replace(self, threads=threads)
