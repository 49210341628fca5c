"""A contraction's plan: the problem, reoriented and simplified, its schedule, and the packed form of a constant
operand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trivium.backends.cpu.contraction import dot_tiling, image_tiling, matrix_tiling
from trivium.backends.cpu.contraction.tiling import AS_STORED, ESTIMATED, Knobs, Reading, Rhs, Tiling, choose
from trivium.backends.cpu.target import CpuTarget
from trivium.compiler import artifact
from trivium.compiler.contraction.problem import Access, Axis, Problem, canonicalize, orient
from trivium.compiler.kernel.index import Index


@dataclass(frozen=True)
class Plan:
    """A contraction that is ready to emit: as given, but with the result's contiguous side as columns; in canonical
    form; and its schedule."""

    oriented: Problem
    problem: Problem
    tiling: Tiling

    @property
    def units(self) -> int:
        """Independent pieces of work."""
        return self.problem.batch.extent * self.tiling.chunks.count * self.tiling.groups.count

    @property
    def packed_operand(self) -> str | None:
        """The operand of the original problem that must be passed packed as `packing` says: "lhs", "rhs" or None."""
        if self.tiling.rhs is not Rhs.CONSTANT:
            return None
        return "lhs" if self.oriented.swapped else "rhs"

    def packing(self, element_bytes: int) -> artifact.Packing:
        """Returns how the constant operand is put into panels; `element_bytes` is the size of an element in memory. It
        has no windows."""
        rhs = self.problem.rhs
        groups = self._packed_batch(), self.problem.columns.axes, self.problem.reduction.axes
        batch, columns, reduction = (
            tuple(artifact.Axis(axis.extent, rhs.stride(axis)) for axis in group) for group in groups
        )
        widths = tuple(size * self.tiling.lanes for size in self.tiling.panels.sizes)
        packing = artifact.Packing(element_bytes, rhs.index.offset, batch, columns, reduction, widths)
        matrix = self.tiling.matrix
        return packing if matrix is None else matrix_tiling.interleaved(packing, matrix_tiling.together(matrix))

    def packed_access(self) -> Access:
        """Returns how the batch locates a packed rhs."""
        step = self.problem.reduction.extent * self.tiling.panels.extent * self.tiling.lanes
        terms = {}
        for axis in reversed(self._packed_batch()):
            terms[axis] = step
            step *= axis.extent
        return Access(Index(terms))

    def _packed_batch(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.problem.batch.axes if self.problem.rhs.stride(axis))


def plan(
    problem: Problem,
    element_bytes: int,
    target: CpuTarget,
    constant: frozenset[str] = frozenset(),
    knobs: Knobs = ESTIMATED,
    finite: bool = False,
    reading: Reading = AS_STORED,
) -> Plan:
    """Chooses how to compute `problem`; `constant` names the operands ("lhs", "rhs") that are known when the code is
    loaded, `finite` says that the elements of the packed one are finite, and `reading` how both are read."""
    oriented = orient(problem)
    canonical = canonicalize(oriented)
    # Packed windows would repeat their elements, and hold the zeros of padding.
    known = ("lhs" if oriented.swapped else "rhs") in constant and not canonical.rhs.windows
    if oriented.swapped != problem.swapped:
        reading = replace(reading, lhs=reading.rhs, rhs=reading.lhs)
    tiling = _with_instructions(canonical, target, known, knobs, reading)
    if tiling is None and not known:
        in_lines = image_tiling.ordered(canonical)
        tiling = image_tiling.choose(in_lines, element_bytes, target, knobs, reading)
        if tiling is not None:
            return Plan(oriented, in_lines, tiling)
    if tiling is None:
        tiling = choose(canonical, element_bytes, target, known, knobs, known and finite, reading)
    return Plan(oriented, canonical, tiling)


def _with_instructions(
    problem: Problem, target: CpuTarget, known: bool, knobs: Knobs, reading: Reading
) -> Tiling | None:
    """Returns the schedule for the first instruction that is worthwhile; None if there is none."""
    for matrix in () if problem.elementwise else reading.matrices:
        if matrix.in_vectors:
            tiling = dot_tiling.choose(problem, target, known, knobs, matrix, reading.alike)
        else:
            tiling = matrix_tiling.choose(problem, target, known, knobs, matrix)
        if tiling is not None:
            return tiling
    return None
