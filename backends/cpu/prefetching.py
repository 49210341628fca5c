"""Software prefetching. The processor cannot predict the addresses of the rows of a gather or a scatter, and while it
waits for one row, it does not look far enough ahead to start loading the next ones. So a loop over such rows computes
the address of a later row, and prefetches it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.cpu.target import CACHE_LINE, CpuTarget
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I8, I64
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.narrow import memory_type
from trivium.compiler.kernel.affine import accesses
from trivium.compiler.kernel.dtypes import storage_bytes
from trivium.compiler.kernel.index import Index, Indices, Symbol, Variable, variable
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Buffer,
    Constant,
    Instruction,
    Load,
    Loop,
    MemoryAccess,
    Position,
    Register,
    symbols,
    walk,
)
from trivium.compiler.schedule import LoopSchedule

AHEAD = 8
"""The number of iterations between a request and its use."""
REQUESTED = 8192
"""The most bytes that are requested and not yet used: a quarter of the first-level cache. In a row that is longer than
half of it, the processor itself notices, from its beginning, that it is read in order."""
LONGEST = 12
"""The most instructions that compute the place of a row."""


@dataclass(frozen=True)
class Row:
    """Neighbours in `buffer` from `place` on, which depends on a number that the loop reads."""

    buffer: Buffer
    place: Index
    nbytes: int


def emit(emitter: Emitter, loop: Loop, schedule: LoopSchedule) -> None:
    """Requests the rows of a later iteration of the innermost dimension that is not in lanes; those of the last one if
    there is none so late, so that nothing is read which the loop does not read anyway."""
    outer = [d for d in schedule.counted if schedule.extents[d] != 1]
    extent = schedule.extents[outer[-1]] if outer else 1
    if schedule.turned is not None or not isinstance(extent, int) or extent == 1:
        return
    index = loop.indices[outer[-1]]
    target = emitter.code.target
    assert isinstance(target, CpuTarget), "a processor"
    search = _Search(emitter, loop, index)
    rows = search.rows(target.prefetch_bytes)
    ahead = min(AHEAD, REQUESTED // max(1, sum(row.nbytes for row in rows)))
    if not rows or ahead < 2:
        return
    builder, later = emitter.builder, emitter.code.iadd(emitter.values[index], ahead)
    later = builder.select(builder.icmp_signed("<", later, I64(extent)), later, I64(extent - 1))
    with emitter.scope():
        emitter.values = {**search.known, index: later}
        for instruction in search.chain:
            emitter.instruction(instruction)
        for row in rows:
            request(emitter, row.buffer, emitter.number(row.place), row.nbytes)


def request(emitter: Emitter, buffer: Buffer, place: ll.Value, nbytes: int) -> None:
    """Requests the bytes from an element on."""
    builder = emitter.builder
    first = builder.gep(emitter.buffers[buffer], [place], source_etype=memory_type(buffer.dtype))
    for offset in range(0, nbytes, CACHE_LINE):
        line = builder.gep(first, [I64(offset)], source_etype=I8)
        memory.prefetch(emitter.code, line, writes=buffer.mode != "in")


class _Search:
    """Finds the rows that an iteration of `loop` uses whose position depends on a number that is read at `index`.
    `chain` are the instructions that compute the places, `known` the values that do not depend on `index`."""

    def __init__(self, emitter: Emitter, loop: Loop, index: Register) -> None:
        self.analysis, self.loop, self.index = emitter.analysis, loop, index
        depends = self.analysis.depends
        self.known = {value: number for value, number in emitter.values.items() if index not in depends(value)}
        certain = list(_certain(loop.body))
        self.certain = set(certain)
        self.inner: dict[Register, int | Register] = {}
        for each in (loop, *(i for i in certain if isinstance(i, Loop))):
            pairs = zip(each.indices, emitter.schedule.loops[each].extents, strict=True)
            self.inner |= {i: extent for i, extent in pairs if i is not index and i not in self.known}
        self.made = {result: i for i in walk(loop.body) for result in i.results}
        self.chain: dict[Instruction, None] = {}

    def rows(self, least: int) -> list[Row]:
        """Returns the rows in arrays of more than `least` bytes; not in scratch memory, of which a later iteration may
        have its own."""
        used = (access for access in accesses(self.loop.body) if access.buffer.mode != "scratch")
        found = (self._row(access) for access in used if access.buffer.nbytes > least)
        return list(dict.fromkeys(row for row in found if row is not None))

    def _row(self, access: MemoryAccess) -> Row | None:
        """Returns the row that an access uses: the elements along an inner index, which are neighbours."""
        address = self.analysis.address(access.buffer, access.indices)
        along = {atom: factor for atom, factor in address.terms.items() if atom in self.inner}
        place = Index({atom: factor for atom, factor in address.terms.items() if atom not in along}, address.offset)
        if list(along.values()) != [1]:
            return None
        (extent,) = (self.inner[atom] for atom in along)  # type: ignore[index]
        chain = dict[Instruction, None]()
        if not isinstance(extent, int) or not all(self._follow(s, chain) for s in symbols(place)):
            return None
        if len(chain) > LONGEST or not any(isinstance(instruction, Load) for instruction in chain):
            return None
        self.chain |= chain
        return Row(access.buffer, place, extent * storage_bytes(access.buffer.dtype))

    def _follow(self, value: Register, chain: dict[Instruction, None]) -> bool:
        """Whether a value can be computed, by instructions that are added to `chain`, for any `index` without an effect
        and without a load whose own place was read: what is read for later iterations could be overwritten before."""
        if value is self.index or value in self.known:
            return True
        instruction = self.made.get(value)
        match instruction:
            case Constant():
                possible = True
            case Position(place):
                return all(self._follow(symbol, chain) for symbol in symbols(place))
            case Apply(_, arguments):
                possible = all(self._follow(argument, chain) for argument in arguments)
            case Load(buffer, indices):
                places = symbols(*indices)
                possible = buffer.mode == "in" and all(s is self.index or s in self.known for s in places)
                possible &= instruction in self.certain or self._is_inside(buffer, indices)
            case _:
                return False
        if possible:
            chain[instruction] = None
        return possible

    def _is_inside(self, buffer: Buffer, indices: Indices) -> bool:
        """Whether a load that only some iterations need is inside of its array in all of them."""
        pairs = zip(self.loop.indices, self.loop.extents, strict=True)
        within: dict[Symbol, Index] = {i: variable(Variable(extent)) for i, extent in pairs if isinstance(extent, int)}
        ranges = [index.replace(lambda symbol: within.get(symbol)).range for index in indices]
        return all(low >= 0 and high < extent for (low, high), extent in zip(ranges, buffer.shape, strict=True))


def _certain(block: Block) -> Iterator[Instruction]:
    """Yields the instructions of a block, and of the loops in it, that run whenever it runs."""
    for instruction in block.instructions:
        yield instruction
        if isinstance(instruction, Loop) and all(isinstance(e, int) and e > 0 for e in instruction.extents):
            yield from _certain(instruction.body)
