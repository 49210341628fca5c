"""A kernel: a small SSA loop program over buffers. It says what is computed and which loops may run in any order, and
nothing about CPU or GPU: vector widths, tiles and threads belong to the schedule, which is separate. Blocks contain
instructions; loops, ifs and whiles are instructions that contain blocks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from trivium.compiler.kernel.dtypes import DType, storage_bytes
from trivium.compiler.kernel.index import Index, Indices

Mode = Literal["in", "out", "inout", "scratch"]
Kind = Literal["parallel", "reduction", "sequential"]


@dataclass(eq=False)
class Buffer:
    """A memory region of a static shape. Row-major, unless `strides` (in elements, one per dimension) or `offset` make
    it a view."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    mode: Mode
    strides: tuple[int, ...] | None = None
    offset: int = 0

    @property
    def layout(self) -> tuple[int, ...]:
        """The number of elements between neighbours, per dimension."""
        return self.strides if self.strides is not None else row_major(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * storage_bytes(self.dtype)


@dataclass(eq=False, slots=True)
class Register:
    """One scalar: the result of an instruction or the parameter of a block. Assigned once. The symbols of index
    expressions are values of type i64."""

    dtype: DType

    @property
    def range(self) -> tuple[int, int]:
        """The range of an i64 value in an index expression: nothing is known about it."""
        return -(1 << 63), (1 << 63) - 1


@dataclass(eq=False)
class Block:
    """Instructions in order. `parameters` are values passed from outside; `yields` are the values that it returns."""

    parameters: list[Register] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    yields: list[Register] = field(default_factory=list)


class Instruction:
    """Base of all instructions: it reads `operands`, defines `results`, and contains `blocks`."""

    origins: tuple[Hashable, ...] = ()
    """The ops of the graph that it computes a part of, as far as they are known: for people."""
    copied: Instruction | None = None
    """The instruction that it was copied from, if any: for people as well."""

    @property
    def operands(self) -> tuple[Register, ...]:
        return ()

    @property
    def results(self) -> tuple[Register, ...]:
        return ()

    @property
    def blocks(self) -> tuple[Block, ...]:
        return ()


@dataclass(eq=False)
class Constant(Instruction):
    """A literal. `literal` is a Python bool, int or float (floats as the value of their own type)."""

    literal: bool | int | float
    result: Register

    @property
    def results(self) -> tuple[Register, ...]:
        return (self.result,)


@dataclass(eq=False)
class Apply(Instruction):
    """A scalar operation (see `ops`): its name, operands, and attributes such as a compare's direction."""

    op: str
    arguments: tuple[Register, ...]
    attributes: dict[str, object]
    result: Register

    @property
    def operands(self) -> tuple[Register, ...]:
        return self.arguments

    @property
    def results(self) -> tuple[Register, ...]:
        return (self.result,)


@dataclass(eq=False)
class Position(Instruction):
    """Computes the value of an index expression as an i64."""

    index: Index
    result: Register

    @property
    def operands(self) -> tuple[Register, ...]:
        return symbols(self.index)

    @property
    def results(self) -> tuple[Register, ...]:
        return (self.result,)


@dataclass(eq=False)
class Load(Instruction):
    """Reads `buffer[indices]`. Indices must be in bounds: the code that builds the kernel clamps them."""

    buffer: Buffer
    indices: Indices
    result: Register

    @property
    def operands(self) -> tuple[Register, ...]:
        return symbols(*self.indices)

    @property
    def results(self) -> tuple[Register, ...]:
        return (self.result,)


@dataclass(eq=False)
class Store(Instruction):
    """Writes `value` to `buffer[indices]`."""

    buffer: Buffer
    value: Register
    indices: Indices

    @property
    def operands(self) -> tuple[Register, ...]:
        return (self.value, *symbols(*self.indices))


@dataclass(frozen=True, eq=False)
class Target:
    """An element of a buffer that an update changes."""

    buffer: Buffer
    indices: Indices


@dataclass(eq=False)
class Update(Instruction):
    """Combines `values` into the elements at `targets`, one value for each: `combiner` is the name of an associative
    operation on one element, or a block of 2n parameters (the old elements, then the values) that yields the n new
    elements. Iterations of parallel loops may update the same elements, but two of them must share either all of their
    targets or none. Each update is atomic; updates of one element happen in the order of the iterations, as far as the
    combiner can observe it. A backend chooses how: one after the other, by atomic operations, or in copies that are
    combined at the end."""

    targets: tuple[Target, ...]
    values: tuple[Register, ...]
    combiner: str | Block

    @property
    def operands(self) -> tuple[Register, ...]:
        return (*self.values, *symbols(*(index for target in self.targets for index in target.indices)))

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.combiner,) if isinstance(self.combiner, Block) else ()


@dataclass(eq=False)
class SortKeys(Instruction):
    """Sorts `count` neighbours of `buffer`, from `indices` on along its last dimension, in ascending order. They are
    i32 or i64: keys, of which equal ones cannot be told apart."""

    buffer: Buffer
    indices: Indices
    count: int

    @property
    def operands(self) -> tuple[Register, ...]:
        return symbols(*self.indices)


MemoryAccess = Load | Store | SortKeys | Target
"""What reads or writes elements of a buffer at indices."""


@dataclass(eq=False)
class Scratch(Instruction):
    """Creates `buffer` (mode "scratch", contents undefined) for the enclosing block; inside a parallel loop each
    iteration has its own."""

    buffer: Buffer


@dataclass(frozen=True)
class End:
    """Where a dimension of a parallel loop ends at run time: iterations whose index i along it has a digit
    `i // step % count` that is not less than `extent`, a 0-d i64, write only what nothing reads, and need not run."""

    dimension: int
    step: int
    count: int
    extent: Buffer


@dataclass(eq=False)
class Loop(Instruction):
    """Runs `body` for every index in the box `extents`, each from 0 in steps of 1, in row-major order if order matters.

    - parallel: iterations are independent and may run in any order or at once. There are no inits, and nothing is
    yielded.
    - sequential: in order. The body's parameters are the indices, then the carried values; it yields their next values.
    With a `combiner`, the name of an associative operation, the loop is a running fold: its only use of the one carried
    value is to combine it with a term, and it yields the result. Terms may be grouped in any way.
    - reduction: any order, any grouping. The body's parameters are only the indices; it yields *terms*, and the result
    is the fold of all terms onto `inits` with `combiner`: the name of an associative operation, or a block of
    2n parameters (accumulated values, then terms) that yields n. With a block, `inits` may be folded in more than
    once, as StableHLO allows."""

    kind: Kind
    extents: tuple[int | Register, ...]
    body: Block
    inits: tuple[Register, ...] = ()
    combiner: str | Block | None = None
    carried: tuple[Register, ...] = ()
    ends: tuple[End, ...] = ()

    @property
    def indices(self) -> list[Register]:
        return self.body.parameters[: len(self.extents)]

    @property
    def operands(self) -> tuple[Register, ...]:
        return (*(extent for extent in self.extents if isinstance(extent, Register)), *self.inits)

    @property
    def results(self) -> tuple[Register, ...]:
        return self.carried

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.body, self.combiner) if isinstance(self.combiner, Block) else (self.body,)


@dataclass(eq=False)
class If(Instruction):
    """Runs one of two blocks; both yield values of the results' types."""

    condition: Register
    then: Block
    otherwise: Block
    outcomes: tuple[Register, ...] = ()

    @property
    def operands(self) -> tuple[Register, ...]:
        return (self.condition,)

    @property
    def results(self) -> tuple[Register, ...]:
        return self.outcomes

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.then, self.otherwise)


@dataclass(eq=False)
class While(Instruction):
    """Carries values through `body` as long as `condition` yields true. The condition's parameters are the carried
    values; the body has none of its own and may use the condition's values, which are computed just before it. The
    results are the carried values at the end."""

    inits: tuple[Register, ...]
    condition: Block
    body: Block
    outcomes: tuple[Register, ...] = ()

    @property
    def operands(self) -> tuple[Register, ...]:
        return self.inits

    @property
    def results(self) -> tuple[Register, ...]:
        return self.outcomes

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.condition, self.body)


def symbols(*indices: Index) -> tuple[Register, ...]:
    """Returns the values that the index expressions of an instruction depend on. Loop variables of the lowering were
    replaced by values when the instruction was built."""
    return tuple(symbol for index in indices for symbol in index.symbols)  # type: ignore[misc]


def walk(block: Block) -> Iterator[Instruction]:
    """Yields all instructions of `block` and of the blocks nested in it, outer ones before inner ones."""
    following = block.instructions[::-1]
    while following:
        instruction = following.pop()
        yield instruction
        for nested in reversed(instruction.blocks):
            following += reversed(nested.instructions)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides, in elements, of a dense row-major buffer."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
