"""Running folds in vector lanes: cumulative sums, products, minima and maxima along neighbours in memory. The terms of
a vector are folded in steps that double in width, so that only one operation for each vector waits for the one before
it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.llvm.apply import combine
from trivium.backends.llvm.code import I32, I64, Code
from trivium.backends.llvm.extremes import as_ordered, of_ordered
from trivium.backends.llvm.folds import identity
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.memory import leading_mask
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.dtypes import FLOATS, bit_width
from trivium.compiler.kernel.running import parts, running_fold
from trivium.compiler.kernel.structure import Apply, Loop
from trivium.compiler.schedule import LoopSchedule

if TYPE_CHECKING:
    from trivium.backends.llvm.emitter import Emitter


def emit_running_fold(emitter: Emitter, loop: Loop, schedule: LoopSchedule) -> None:
    """Emits a running fold whose only dimension, which is at least one vector long, is in lanes."""
    found, lanes, extent = running_fold(loop), schedule.lanes, schedule.extents[0]
    assert found is not None, "the loop is a running fold"
    assert isinstance(extent, int), "its extent is known"
    made, term = found
    early, late = parts(loop, made)
    code, builder, (index,), form = emitter.code, emitter.builder, loop.indices, _form(emitter.code, made)
    neutral = identity(made.op, made.result.dtype)
    assert neutral is not None, "the fold has an identity"
    nothing = form.of(code.splat(neutral, lanes))

    def chunk(position: ll.Value, before: ll.Value, mask: ll.Value | None) -> ll.Value:
        """Emits one vector; returns the fold up to its end, in every lane."""
        with emitter.scope(), emitter.in_lanes(index, lanes, mask, lanes):
            emitter.values[index] = position
            for instruction in early:
                emitter.emit(instruction)
            folded = form.of(code.splat(emitter.value(term), lanes))
            if mask is not None:
                folded = builder.select(mask, folded, nothing)
            for width in (1 << step for step in range(lanes.bit_length() - 1)):
                folded = form.join(_moved(code, folded, nothing, width), folded)
            emitter.values[made.result] = form.value(form.join(before, folded))
            for instruction in late:
                emitter.emit(instruction)
        return form.join(before, code.shuffle(folded, (lanes - 1,) * lanes))

    rest = extent % lanes
    carried = form.of(code.splat(emitter.value(loop.inits[0]), lanes))
    with counted(code, 0, extent - rest, lanes, [carried], nonempty=True) as each:
        each.next = [chunk(i64(each.index), each.carried[0], None)]
    (carried,) = each.carried
    if rest:
        carried = chunk(I64(extent - rest), carried, leading_mask(lanes, rest))
    emitter.values[loop.carried[0]] = builder.extract_element(form.value(carried), I32(0))


@dataclass(frozen=True)
class _Form:
    """How numbers are folded."""

    of: Callable[[ll.Value], ll.Value]
    join: Callable[[ll.Value, ll.Value], ll.Value]
    value: Callable[[ll.Value], ll.Value]


def _form(code: Code, made: Apply) -> _Form:
    """Returns the form in which an operation folds numbers: that of values, or, for the largest or smallest floats,
    integers in the same order, of which one instruction finds it."""
    op, dtype = made.op, made.result.dtype
    if dtype in FLOATS and op in ("maximum", "minimum"):
        return _Form(
            lambda value: as_ordered(code, op, dtype, value),
            lambda a, b: combine(code, op, f"i{bit_width(dtype)}", a, b),
            lambda ordered: of_ordered(code, dtype, ordered),
        )
    return _Form(lambda value: value, lambda a, b: combine(code, op, dtype, a, b), lambda folded: folded)


def _moved(code: Code, vector: ll.Value, nothing: ll.Value, distance: int) -> ll.Value:
    """Returns the elements of a vector `distance` lanes further on, and `nothing` in the lanes before them."""
    lanes = vector.type.count
    return code.shuffle(vector, tuple(lanes if n < distance else n - distance for n in range(lanes)), nothing)
