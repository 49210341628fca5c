"""How a kernel's loops run on a device: which dimensions are merged into one, and which are spread over the units of
the device (vector lanes, threads, a grid of blocks). A schedule is data beside the kernel, can be printed, and never
changes the meaning of the kernel. Backends choose it; the analyses that every choice needs are here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from trivium.compiler.kernel.affine import Analysis, accesses, holds
from trivium.compiler.kernel.structure import Block, Load, Loop, Register, Scratch, SortKeys, While, symbols, walk


class Unit(StrEnum):
    """The units that iterations can be spread over. Dimensions without a mapping run serially."""

    LANES = "lanes"
    SQUARES = "squares"
    ROWS = "rows"
    REGISTERS = "registers"
    THREADS = "threads"
    BLOCK = "block"
    GRID = "grid"
    BESIDE = "beside"
    ATOMIC = "atomic"
    OWNERS = "owners"
    MATRIX = "matrix"
    BULK = "bulk"
    COPIED = "copied"
    PRODUCER = "producer"
    PIECE = "piece"
    STAGES = "stages"
    SLICES = "slices"


@dataclass(frozen=True)
class Mapping:
    """Dimensions of a loop, treated as one in row-major order, that are spread over a unit. `size` is the number of
    lanes of a vector, the side of a square of elements (its other side are the lanes), the number of threads of a
    block, the number of iterations that one block of a grid computes, or the minimum number of iterations of a thread's
    piece.

    `ROWS`: all iterations of a short dimension follow one another in the lanes, for one iteration of the dimension in
    lanes after the other; `size` is their number.

    `REGISTERS`: `size` neighbouring iterations of a dimension run in one body, each with its own sums, and share what
    they read ("unroll and jam"). The last of these tiles may be smaller.

    `BESIDE`: of the iterations that a block computes, each shared by some of its threads, neighbouring threads have
    different ones.

    Two units are about updates. Iterations along `ATOMIC` dimensions may update one element at once, so each update is
    an atomic operation. Iterations along `OWNERS` dimensions are run, in order, by each of `size` threads, of which
    each does the updates of the elements that it owns.

    `MATRIX`: groups of `size` threads compute with matrix instructions. `BULK`: the device itself copies the operand
    which these dimensions belong to, in lines of `size` bytes. `COPIED`: before that, the operand is copied as a whole,
    to rows that begin at multiples of `size` bytes. `PRODUCER`: `size` of a block's threads only start copies of lines,
    and compute nothing. `PIECE`, `STAGES`: iterations of a sum over these dimensions come in pieces of `size`, and
    `size` pieces are in fast memory or on the way there. `SLICES`: `size` groups of threads share a piece."""

    unit: Unit
    dimensions: tuple[int, ...]
    size: int

    def __str__(self) -> str:
        return f"{self.unit}({', '.join(map(str, self.dimensions))})={self.size}"


@dataclass(frozen=True)
class LoopSchedule:
    """One loop's schedule. `extents` are the loop's extents after merging: a dimension that was merged into a later one
    has extent 1. A dimension may have several mappings, the outer ones first. `brief` work is shared only with threads
    that are awake."""

    extents: tuple[int | Register, ...]
    mappings: tuple[Mapping, ...] = ()
    brief: bool = False

    def mapping(self, unit: Unit) -> Mapping | None:
        """Returns the mapping to `unit`, or None."""
        return next((mapping for mapping in self.mappings if mapping.unit is unit), None)

    @property
    def vector(self) -> int | None:
        """The dimension that runs in vector lanes, innermost."""
        lanes = self.mapping(Unit.LANES)
        return lanes.dimensions[0] if lanes else None

    @property
    def lanes(self) -> int:
        """The number of lanes; 1 if no dimension runs in lanes."""
        lanes = self.mapping(Unit.LANES)
        return lanes.size if lanes else 1

    @property
    def in_vectors(self) -> tuple[int | Register, ...]:
        """The extents, with the number of vectors along the dimension that runs in lanes."""
        lanes, pairs = self.lanes, enumerate(self.extents)
        return tuple(-(-e // lanes) if d == self.vector and isinstance(e, int) else e for d, e in pairs)

    @property
    def turned(self) -> int | None:
        """The dimension along which squares of elements are read, to be transposed into lanes."""
        squares = self.mapping(Unit.SQUARES)
        return squares.dimensions[0] if squares else None

    @property
    def row(self) -> int | None:
        """The short dimension all of whose iterations follow one another in the lanes."""
        rows = self.mapping(Unit.ROWS)
        return rows.dimensions[0] if rows else None

    @property
    def counted(self) -> tuple[int, ...]:
        """The dimensions whose iterations run one after the other."""
        together = self.vector, self.turned, self.row
        return tuple(d for d in range(len(self.extents)) if d not in together)

    @property
    def bodies(self) -> tuple[int | Register, ...]:
        """The extents, with the number of tiles along the dimension of which several iterations run in one body."""
        jammed = self.mapping(Unit.REGISTERS)
        dimensions, size = (jammed.dimensions, jammed.size) if jammed else ((), 1)
        pairs = enumerate(self.extents)
        return tuple(-(-e // size) if d in dimensions and isinstance(e, int) else e for d, e in pairs)

    @property
    def static_extents(self) -> tuple[int, ...] | None:
        """The extents if all of them are numbers, else None."""
        return _numbers(self.extents)

    @property
    def static_bodies(self) -> tuple[int, ...] | None:
        """The numbers of bodies if all of them are known, else None."""
        return _numbers(self.bodies)

    def __str__(self) -> str:
        extents = "x".join("?" if isinstance(e, Register) else str(e) for e in self.extents)
        return " ".join([extents, *map(str, self.mappings), *(["brief"] if self.brief else [])])


def _numbers(extents: Sequence[int | Register]) -> tuple[int, ...] | None:
    known = tuple(extent for extent in extents if isinstance(extent, int))
    return known if len(known) == len(extents) else None


@dataclass(frozen=True, eq=False)
class Schedule:
    """The schedules of a kernel's loops, in the order in which they appear."""

    loops: dict[Loop, LoopSchedule] = field(default_factory=dict)
    cost: float = 0.0

    def __str__(self) -> str:
        lines = (f"  {loop.kind} {schedule}" for loop, schedule in self.loops.items())
        return "\n".join([f"schedule (cost {self.cost:.0f}) {{", *lines, "}"])


def serial(block: Block, analysis: Analysis) -> Schedule:
    """Returns the schedule without mappings, for blocks that run in vector lanes as a whole (`fits_lanes`)."""
    loops = [i for i in walk(block) if isinstance(i, Loop)]
    return Schedule({loop: LoopSchedule(merged_extents(loop, analysis)) for loop in loops})


def fits_lanes(block: Block, indices: Iterable[Register], analysis: Analysis) -> bool:
    """Whether `block` can run for several values of `indices` at once: it has no while loops, which would end at
    different times, no scratch, which would be shared, no sorts, which use lanes themselves, and no extents that depend
    on `indices`."""
    if holds(block, While, Scratch, SortKeys):
        return False
    own = set(indices)
    extents = [e for i in walk(block) if isinstance(i, Loop) for e in i.extents if isinstance(e, Register)]
    return not any(own & analysis.depends(extent) for extent in extents)


def turned_loads(loop: Loop, index: Register, other: Register, analysis: Analysis) -> list[Load]:
    """Returns the loads in a loop that are far apart along `index`, but neighbours along `other`, in either direction,
    at places that depend on nothing that the loop computes, and that are regular along both."""
    found, own = [], {result for i in loop.body.instructions for result in i.results}
    for load in loop.body.instructions:
        if isinstance(load, Load):
            address = analysis.address(load.buffer, load.indices)
            regular = not any({index, other} & set(symbols(division.dividend)) for division in address.divisions())
            known = not any(symbol in own for symbol in address.symbols)
            apart, near = (abs(address.terms.get(one, 0)) for one in (index, other))
            if regular and known and apart > 1 == near:
                found.append(load)
    return found


def merged_extents(loop: Loop, analysis: Analysis) -> tuple[int | Register, ...]:
    """Returns the extents after merging neighbouring dimensions. Two dimensions are merged if both are static and used
    only in addresses, and if in every access one step of the outer one equals a whole run of the inner one. Those that
    end at run time stay as they are."""
    extents = list(loop.extents)
    addresses = [analysis.address(access.buffer, access.indices) for access in accesses(loop.body)]
    inner = len(extents) - 1
    for outer in range(len(extents) - 2, -1, -1):
        runs, length = extents[outer], extents[inner]
        if length == 1:
            inner = outer
            continue
        a, b = loop.indices[outer], loop.indices[inner]
        if (
            isinstance(runs, int)
            and isinstance(length, int)
            and runs != 1
            and not {a, b} & analysis.escaping
            and not any(end.dimension in (outer, inner) for end in loop.ends)
            and all(t.terms.get(a, 0) == t.terms.get(b, 0) * length for t in addresses)
        ):
            extents[inner], extents[outer] = runs * length, 1
        elif runs != 1:
            inner = outer
    return tuple(extents)
