"""The CPU's choice between forms of a kernel, which compute the same: the one whose schedule has the least estimated
cost, with several rows side by side where measurements show that this is faster."""

from __future__ import annotations

from trivium.backends.cpu.schedule import PIECES, choose
from trivium.backends.cpu.target import CpuTarget
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.side_by_side import side_by_side
from trivium.compiler.kernel.tiled_stores import tiled_stores
from trivium.compiler.kernel.whole_numbers import moved_whole
from trivium.compiler.kernel.written_out import written_out
from trivium.compiler.schedule import Schedule


def prepared(kernel: Kernel, target: CpuTarget) -> tuple[Kernel, Analysis, Schedule]:
    """Returns the kernel, or one that does the same in less time, with its short loops written out, with whole complex
    numbers, in tiles, or with rows side by side; what is known about it, and its schedule."""
    analysis = Analysis(kernel)
    tiled = tiled_stores(kernel, analysis, target.vector_bytes)
    others = [form for form in (written_out(kernel, target.fma), moved_whole(kernel), tiled) if form is not None]
    forms = (kernel, analysis), *((form, Analysis(form)) for form in others)
    best = min(((f, a, choose(f, target, a)) for f, a in forms), key=lambda found: found[2].cost)
    pieces = target.threads * PIECES if target.threads > 1 and best[2].cost >= target.split_cost else 1
    if not _runs_along_rows(best[2]):
        return best
    jammed = side_by_side(best[0], target.vector_registers, target.prefetch_bytes, pieces)
    if jammed is None:
        return best
    analysis = Analysis(jammed)
    return jammed, analysis, choose(jammed, target, analysis)


def _runs_along_rows(schedule: Schedule) -> bool:
    """Whether a loop contains loops that are all in lanes."""
    vectors = [each.vector for each in schedule.loops.values()]
    return len(vectors) > 1 and vectors[0] is None and None not in vectors[1:]
