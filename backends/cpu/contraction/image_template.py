"""The template of a contraction whose rhs is an image (`Rhs.IMAGE`): each line of the image begins with a vector, so
that vectors are runs of memory, and a mask leaves out what is beyond the line's end or outside the image. Nothing is
copied."""

from __future__ import annotations

import functools
from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.cpu.contraction.microkernel import RunReader, StepReader, Stream, TapReader
from trivium.backends.cpu.contraction.template import Block, Operand, Panel, Template, Tile, Unit
from trivium.backends.llvm.code import I64
from trivium.backends.llvm.displacement import Displacement, displacement, unflatten
from trivium.backends.llvm.numbers import Int, Number, below
from trivium.compiler.contraction.problem import Access, Axis


class ImageTemplate(Template):
    """A template whose panels are read in place."""

    def _panel_data(self, unit: Unit, block: Block, width: int, column: Number, pitch: int) -> ll.Value:
        return self.rhs.base

    def _stream(self, unit: Unit, block: Block, panel: Panel, data: ll.Value, tile: Tile) -> Stream:
        rows = self.lhs.pointers(unit.lhs, tile.row, tile.count)
        readers = self.lhs.e, self.rhs.e, rows
        steps = (0, self.reduction.taps), self.reduction.run, self.lhs.stride
        return Stream(*readers, *steps, data, panel.pitch, vectors=self._reader(unit, panel))

    def _column(self, vector: Number) -> Number:
        line, place = divmod(vector, self.tiling.line)
        return line * self._line + place * self.e.lanes

    @property
    def _line(self) -> int:
        return self.problem.columns.axes[-1].extent

    def _left(self, panel: Panel, vector: int) -> Number | None:
        return None if self._line % self.e.lanes == 0 else self._pixels(panel.first + vector)

    def _pixels(self, vector: Number) -> Number:
        """Returns the number of pixels from lane 0 of a vector to the end of its line."""
        return self._line - divmod(vector, self.tiling.line)[1] * self.e.lanes

    def _reader(self, unit: Unit, panel: Panel) -> TapReader:
        """Returns what reads the vectors of a panel."""
        e, access, columns = self.e, self.problem.rhs, self.problem.columns
        numbers = [panel.first + v for v in range(panel.width)]
        starts = [unit.rhs + displacement(access, unflatten(columns, self._column(number))) for number in numbers]
        vectors = [
            Pixels(self.rhs, access, columns.axes[-1], start, self._pixels(number))
            for start, number in zip(starts, numbers, strict=True)
        ]
        stride = access.stride(self.problem.reduction.axes[-1])

        def at(tap: Number) -> RunReader:
            shift = displacement(access, unflatten(self.lhs.taps, tap))

            def reader(masks: list[Masks]) -> StepReader:
                readers = [vector.reader(shift, own) for vector, own in zip(vectors, masks, strict=True)]
                return lambda step: [read(step * stride) for read in readers]

            def masked() -> StepReader:
                return reader([vector.masks(shift) for vector in vectors])

            def whole() -> StepReader:
                return reader([[None] * len(vector.parts) for vector in vectors])

            if e.target.masks_apart:
                return RunReader(masked)
            return RunReader(masked, functools.reduce(e.builder.and_, [v.inside(shift) for v in vectors]), whole)

        return at


Masks = list[ll.Value | None]
"""The lanes of each of a vector's parts that may be read; None for all of them."""


class Pixels:
    """A vector of neighbouring pixels of the image `operand`, along its axis `line`, or of every second one. The one in
    lane 0 is at `start`, and `left` is the number from there to the last one whose window is computed. What does not
    depend on taps is computed once."""

    def __init__(self, operand: Operand, access: Access, line: Axis, start: Displacement, left: Number) -> None:
        e = operand.e
        self.operand, self.access, self.start, self.left = operand, access, start, left
        every = access.stride(line)
        self.parts = [part * e.lanes for part in range(every)]
        """The elements, counted from the first, at which the vectors of memory begin that have the pixels."""
        self.window = next((number for number, one in enumerate(access.windows) if one.uses(line)), None)
        if self.window is None:
            # The element after that of the last pixel may be beyond the end of memory.
            self.present = [e.lanes_below(every * left - (every - 1) - part) for part in self.parts]
        else:
            self.places = [e.spread(start.positions[self.window] + part) for part in self.parts]

    def reader(self, tap: Displacement, masks: Masks) -> Callable[[Number], ll.Value]:
        """Returns what reads the vector at a tap, at an offset from there, under the masks of its parts."""
        e = self.operand.e
        base = e.at(self.operand.base, (self.start + tap).offset)

        def read(offset: Number) -> ll.Value:
            first = e.at(base, offset)
            found = [e.load(e.at(first, part), mask) for part, mask in zip(self.parts, masks, strict=True)]
            return found[0] if len(found) == 1 else e.every_second(found[0], found[1])

        return read

    def inside(self, tap: Displacement) -> ll.Value:
        """Whether all lanes of all parts are in the image at a tap."""
        e, here, reach = self.operand.e, self.start + tap, len(self.parts) * self.operand.e.lanes - 1
        found = []
        for number, (window, position) in enumerate(zip(self.access.windows, here.positions, strict=True)):
            more = reach if number == self.window else 0
            found.append(below(e, position, max(0, window.size - more)))
        if self.window is None:
            # The last element that is read may be beyond that of the last pixel.
            found.append(below(e, reach, len(self.parts) * self.left - (len(self.parts) - 1)))
        return functools.reduce(e.builder.and_, found)

    def masks(self, tap: Displacement) -> Masks:
        """Returns the lanes of each part that are in the image. Those beyond the last pixel may hold others of the
        line, whose sums are not used."""
        e, exists = self.operand.e, None
        here = self.start + tap
        for number, (window, position) in enumerate(zip(self.access.windows, here.positions, strict=True)):
            if number != self.window:
                exists = e.conjunction(exists, below(e, position, window.size))
        if self.window is None:
            return [e.conjunction(mask, exists) for mask in self.present]
        size: Number = self.access.windows[self.window].size
        if exists is not None:
            size = Int(e, e.builder.select(exists, I64(size), I64(0)))
        return [below(e, place + tap.positions[self.window], size) for place in self.places]
