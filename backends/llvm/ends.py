"""Where loops end at run time: an iteration that only writes what nothing reads is skipped."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.llvm.code import I64
from trivium.compiler.kernel.structure import End, Loop
from trivium.compiler.schedule import LoopSchedule, Unit

if TYPE_CHECKING:
    from trivium.backends.llvm.emitter import Emitter

Limits = Sequence[tuple[End, ll.Value]]
"""The ends of a loop, with the extents that have been read for them."""


def limits(emitter: Emitter, loop: Loop, schedule: LoopSchedule) -> Limits:
    """Reads the extents at which the dimensions of a loop end whose iterations run one after the other."""
    jammed = schedule.mapping(Unit.REGISTERS)
    apart = set(schedule.counted) - set(jammed.dimensions if jammed else ())
    builder = emitter.builder
    return [(end, builder.load(emitter.buffers[end.extent], typ=I64)) for end in loop.ends if end.dimension in apart]


@contextmanager
def inside(emitter: Emitter, loop: Loop, found: Limits, dimensions: Collection[int]) -> Iterator[None]:
    """Emits code that only runs for indices, which are bound, before the ends of some dimensions."""
    builder = emitter.builder
    here = [
        builder.icmp_unsigned("<", _digit(emitter, loop, end), limit)
        for end, limit in found
        if end.dimension in dimensions
    ]
    if not here:
        yield
        return
    with builder.if_then(functools.reduce(builder.and_, here)), emitter.scope():
        yield


def _digit(emitter: Emitter, loop: Loop, end: End) -> ll.Value:
    """Returns the digit of an index that decides."""
    builder, found = emitter.builder, emitter.values[loop.indices[end.dimension]]
    if end.step > 1:
        found = builder.udiv(found, I64(end.step))
    is_first = loop.extents[end.dimension] == end.step * end.count
    return found if is_first else builder.urem(found, I64(end.count))
