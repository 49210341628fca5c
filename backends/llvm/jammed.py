"""Unroll and jam: several neighbouring iterations of a parallel loop run in one body. They are unrolled, and the loops
over their windows are jammed into one, which is written out in the order of the elements that it reads. So an element
that several of the windows contain is loaded once, while the sums of all iterations stay in registers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.llvm.code import I64
from trivium.backends.llvm.folds import Folding, Values
from trivium.compiler.kernel.affine import Analysis, expressions
from trivium.compiler.kernel.dtypes import INDEX
from trivium.compiler.kernel.index import Atom, Index, Symbol, constant, variable
from trivium.compiler.kernel.overlap import Term, overlap
from trivium.compiler.kernel.structure import Block, Instruction, Load, Loop, Register, walk
from trivium.compiler.schedule import LoopSchedule, Unit

if TYPE_CHECKING:
    from trivium.backends.llvm.emitter import Emitter


Known = dict[Register | Atom, ll.Value]


@dataclass(frozen=True)
class Tile:
    """`size` neighbouring iterations of `index` from `first` on, which is one of `firsts`, and the terms of the windows
    in the loop's body."""

    index: Register
    first: Register
    firsts: range
    size: int
    terms: dict[Loop, list[list[Term]]]

    def places(self, number: Index) -> dict[Symbol, Index]:
        """Returns the value of the index in the iteration with a number."""
        return {self.index: variable(self.first) + number}


def emit_tiles(emitter: Emitter, loop: Loop, schedule: LoopSchedule, body: Callable[[], None]) -> None:
    """Emits `body` for the tile whose number the jammed index has. The last tile may be smaller."""
    jammed = schedule.mapping(Unit.REGISTERS)
    assert jammed is not None, "some iterations are jammed"
    assert schedule.vector is not None, "tiles consist of vectors"
    (dimension,), size = jammed.dimensions, jammed.size
    extent, index, first = schedule.extents[dimension], loop.indices[dimension], Register(INDEX)
    assert isinstance(extent, int), "the size of the last tile is known"
    along = loop.indices[schedule.vector]

    def tiles(firsts: range, size: int) -> None:
        windows = [i for i in loop.body.instructions if isinstance(i, Loop)]
        extents = {window: emitter.schedule.loops[window].static_extents or () for window in windows}
        terms = {w: overlap(w, extents[w], index, size, along, emitter.analysis) for w in windows}
        emitter.tile = Tile(index, first, firsts, size, terms)
        body()
        emitter.tile = None

    builder, rest = emitter.builder, extent % size
    whole = range(0, extent - rest, size)
    with emitter.scope():
        number = emitter.values.pop(index)
        emitter.values[first] = builder.mul(number, I64(size))
        if not rest:
            tiles(whole, size)
            return
        with builder.if_else(builder.icmp_signed("<", number, I64(len(whole)))) as (then, otherwise):
            with then:
                tiles(whole, size)
            with otherwise:
                tiles(range(extent - rest, extent), rest)


def emit_tile(emitter: Emitter, tile: Tile, block: Block) -> None:
    """Emits the body of a parallel loop for a tile, in lanes."""
    iterations = _Iterations(emitter, tile)
    for are_windows, group in itertools.groupby(block.instructions, lambda i: isinstance(i, Loop)):
        if are_windows:
            for window in group:
                iterations.window(window)  # type: ignore[arg-type]
        else:
            iterations.straight(Block(instructions=list(group)))


class _Iterations:
    """Emits code for the iterations of a tile, each with the values that are known in it."""

    def __init__(self, emitter: Emitter, tile: Tile) -> None:
        self._emitter, self._tile = emitter, tile
        self._known: list[Known] = [emitter.values] * tile.size

    @contextmanager
    def _at(self, number: int, places: dict[Symbol, Index] | None = None) -> Iterator[None]:
        """Emits code for one iteration, with indices at `places`."""
        with self._emitter.scope():
            self._emitter.values = dict(self._known[number])
            self._emitter.unrolled = places or self._tile.places(constant(number))
            yield

    def straight(self, block: Block) -> None:
        """Emits instructions for one iteration after the other."""
        for number in range(self._tile.size):
            with self._at(number):
                self._emitter.inline(block)
                self._known[number] = self._emitter.values

    def window(self, window: Loop) -> None:
        """Emits the window of each iteration, jammed."""
        tile, carried = self._tile, list[Values]()
        folding = Folding(self._emitter, window, sum(map(len, tile.terms[window])) // tile.size)
        for number in range(tile.size):
            with self._at(number):
                carried.append(folding.begin())
        with self._emitter.scope():
            self._locate(window)
            body = _Repeated(self._emitter, window.body)
            for group in tile.terms[window]:
                body.forget_values()
                for term in group:
                    with self._at(term.iteration, term.places(window, tile.index, tile.first)):
                        carried[term.iteration] = folding.add(carried[term.iteration], body.emit())
        for number, values in enumerate(carried):
            results = zip(window.carried, folding.end(values), strict=True)
            self._known[number] = {**self._known[number], **dict(results)}

    def _locate(self, window: Loop) -> None:
        """Computes where the elements are that windows read, but for the constants in which their places differ."""
        emitter, tile = self._emitter, self._tile
        places = tile.terms[window][0][0].places(window, tile.index, tile.first)
        loads = [i for i in walk(window.body) if isinstance(i, Load)]
        addresses = [emitter.analysis.address(load.buffer, load.indices).replace(places.get) for load in loads]
        sums = {Index(address.terms) for address in addresses}
        known = {each: emitter.split(each) for each in sums if emitter.values.keys() >= each.terms.keys()}
        emitter.sums = {each: base for each, (base, _, scattered) in known.items() if scattered is None}


class _Repeated:
    """A block that is emitted at several places. What is the same at two of them is emitted once: conditions at all
    places, and other values, so that few of them are in registers, until they are forgotten."""

    def __init__(self, emitter: Emitter, block: Block) -> None:
        self._emitter, self._block = emitter, block
        every = [i for i in block.instructions if not emitter.analysis.is_index(i)]
        self._inputs = {instruction: _inputs(instruction, emitter.analysis) for instruction in every}
        self._indices = {index for _, indices in self._inputs.values() for index in indices}
        self._conditions: dict[tuple[Hashable, ...], Known] = {}
        self._values: dict[tuple[Hashable, ...], Known] = {}

    def forget_values(self) -> None:
        self._values.clear()

    def emit(self) -> Values:
        """Returns what the block yields at the emitter's place."""
        known, unrolled = self._emitter.values, self._emitter.unrolled
        places = {index: index.replace(unrolled.get) for index in self._indices}
        for instruction, (operands, indices) in self._inputs.items():
            key = instruction, *map(known.get, operands), *map(places.get, indices)
            found = self._conditions if all(r.dtype == "i1" for r in instruction.results) else self._values
            if key not in found:
                self._emitter.emit(instruction)
                found[key] = {result: known[result] for result in instruction.results}
            known.update(found[key])
        return [self._emitter.value(value) for value in self._block.yields]


def _inputs(instruction: Instruction, analysis: Analysis) -> tuple[list[Register], list[Index]]:
    """Returns all that the results of an instruction depend on: values, and index expressions."""
    every = [instruction, *(inner for block in instruction.blocks for inner in walk(block))]
    yielded = [value for inner in every for block in inner.blocks for value in block.yields]
    operands = [operand for inner in every for operand in inner.operands]
    numbers = [operand for inner in every if not expressions(inner) for operand in inner.operands]
    places = [index for inner in every for index in expressions(inner)]
    return operands + yielded, places + [analysis.form(number) for number in numbers + yielded]
