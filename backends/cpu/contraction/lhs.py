"""Reads lhs in place: computes the addresses of a tile's rows for each tap of a window. Padding is never copied: rows
in the padding point to zeros."""

from __future__ import annotations

import functools
from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.cpu.contraction.tiling import Tiling
from trivium.backends.llvm.code import I64, mangle
from trivium.backends.llvm.displacement import Displacement, displacement, resolve, unflatten
from trivium.backends.llvm.numbers import Number
from trivium.backends.llvm.vectors import Vectors
from trivium.compiler.contraction.problem import AxisGroup, Problem

RowPointers = Callable[[Number], list[ll.Value]]
"""The addresses of the rows at a tap."""
TapTest = Callable[[Number], ll.Value]
"""Whether something is true of a tap."""


class Lhs:
    """The operand `lhs` of `problem`, at `base`; `e` reads it."""

    def __init__(self, e: Vectors, problem: Problem, tiling: Tiling, base: ll.Value) -> None:
        self.e, self.problem, self.tiling, self.base = e, problem, tiling, base
        self.access = problem.lhs
        self.taps = self._tap_group()

    @property
    def stride(self) -> int:
        """The distance from one step of a run to the next."""
        axes = self.problem.reduction.axes
        return self.access.stride(axes[-1]) if axes else 0

    def pointers(self, outer: Displacement, row: Number, rows: int) -> RowPointers:
        """Returns the addresses of `rows` rows from `row` on. Rows on one plain axis are a constant distance apart,
        which instructions can hold; others are placed one by one."""
        e = self.e
        if self.access.windows or len(self.problem.rows.axes) > 1:
            places = [outer + self.row(row + r) for r in range(rows)]
            return lambda tap: [self.pointer(one + self._tap(tap)) for one in places]
        step = self.access.stride(self.problem.rows.axes[0]) if self.problem.rows.axes else 0
        first = outer + Displacement(row * step)

        def evenly(tap: Number) -> list[ll.Value]:
            start = e.at(self.base, (first + self._tap(tap)).offset)
            return [e.at(start, r * step) for r in range(rows)]

        return evenly

    def reached(self, outer: Displacement, row: Number, rows: int) -> TapTest:
        """Returns whether any of `rows` rows from `row` on is outside the padding at a tap."""
        places = [outer + self.row(row + r) for r in range(rows)]

        def test(tap: Number) -> ll.Value:
            inside = [resolve(self.e, self.access, one + self._tap(tap))[1] for one in places]
            return functools.reduce(self.e.builder.or_, inside)

        return test

    def row(self, number: Number) -> Displacement:
        """Returns the contribution of a row to the address."""
        return displacement(self.access, unflatten(self.problem.rows, number))

    def shifted(self, outer: Displacement, offset: Number) -> Displacement:
        return outer + Displacement(offset, (0,) * len(self.access.windows))

    def pointer(self, here: Displacement) -> ll.Value:
        """Returns the address of an element, or of zeros if the element is padding."""
        offset, valid = resolve(self.e, self.access, here)
        pointer = self.e.at(self.base, offset)
        return pointer if valid is None else self.e.builder.select(valid, pointer, self._zeros())

    def _tap(self, tap: Number) -> Displacement:
        return displacement(self.access, unflatten(self.taps, tap) if self.taps.axes else {})

    def _tap_group(self) -> AxisGroup:
        """The axes of the reduction outside the run."""
        axes, run = list(self.problem.reduction.axes), self.tiling.reduction.run
        while run > 1:
            run //= axes.pop().extent
        return AxisGroup(tuple(axes))

    def _zeros(self) -> ll.Value:
        """Returns zeros for the length of one run of one panel."""
        e = self.e
        count = (self.tiling.reduction.run - 1) * abs(self.stride) + 1
        if self.problem.elementwise:
            count += self.tiling.panels.size * e.lanes
        name, module = f"contraction.zeros.{count}.{mangle(e.stored)}", e.builder.module
        if name not in module.globals:
            kind = ll.ArrayType(e.stored, count)
            zeros = ll.GlobalVariable(module, kind, name)
            zeros.initializer, zeros.global_constant, zeros.linkage = ll.Constant(kind, None), True, "internal"
        return module.globals[name].gep([ll.Constant(I64, 0), ll.Constant(I64, 0)])
