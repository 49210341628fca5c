"""Copies of values. Threads share large ones: a single core cannot use the full memory bandwidth."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.cpu.threads import call_parallel, range_function
from trivium.backends.llvm.code import I8, I64, POINTER, Code, stack_slot
from trivium.backends.llvm.numbers import Int, i64

SHARED = 1 << 20
"""The bytes from which on threads are woken: about 50 us, and waking one takes 5 to 20."""
PIECE = 1 << 17
"""The bytes of a thread's piece: about 5 us."""


def emit(code: Code, target: ll.Value, source: ll.Value, nbytes: int, apart: bool) -> None:
    """Copies `nbytes` bytes from `source` to `target`. Threads share them only if the two places are `apart`: otherwise
    a thread would overwrite what another one has not read."""
    if code.target.threads == 1 or nbytes < SHARED or not apart:
        _move(code, target, source, I64(nbytes))
        return
    context = stack_slot(code.builder, ll.ArrayType(POINTER, 2))
    for number, pointer in enumerate((target, source)):
        code.builder.store(pointer, code.builder.gep(context, [I64(number)], source_etype=POINTER))
    call_parallel(code, _part(code), context, (nbytes, PIECE))


def _part(code: Code) -> ll.Function:
    """Returns the function that copies a range of the bytes from the second of two places to the first."""

    def move(inner: Code, ends: ll.Value, begin: Int, end: Int, _: ll.Value) -> None:
        builder = inner.builder
        places = (builder.load(builder.gep(ends, [I64(n)], source_etype=POINTER), typ=POINTER) for n in range(2))
        target, source = (builder.gep(place, [i64(begin)], source_etype=I8) for place in places)
        _move(inner, target, source, i64(end - begin))

    return range_function(code, "copy.part", move)


def _move(code: Code, target: ll.Value, source: ll.Value, nbytes: ll.Value) -> None:
    code.call("memmove", POINTER, target, source, nbytes)
