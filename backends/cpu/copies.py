"""Copies of values from one place to another. Threads share large ones: a processor's core alone does not use all of
the memory's speed."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.cpu.threads import call_parallel
from trivium.backends.llvm.code import I8, I64, POINTER, Code, stack_slot

SHARED = 1 << 20
"""The bytes from which on threads are woken: about 50 us, and waking one takes 5 to 20."""
PIECE = 1 << 17
"""The bytes of a thread's piece: about 5 us."""


def emit(code: Code, target: ll.Value, source: ll.Value, nbytes: int, apart: bool) -> None:
    """Copies so many bytes. Threads share them only if the two places are `apart`: otherwise a thread would overwrite
    what another one has not read."""
    if code.target.threads == 1 or nbytes < SHARED or not apart:
        _move(code, target, source, I64(nbytes))
        return
    context = stack_slot(code.builder, ll.ArrayType(POINTER, 2))
    for number, pointer in enumerate((target, source)):
        code.builder.store(pointer, code.builder.gep(context, [I64(number)], source_etype=POINTER))
    call_parallel(code, _part(code), context, (nbytes, PIECE))


def _part(code: Code) -> ll.Function:
    """Returns the module's `void copy.part(ptr ends, i64 begin, i64 end, i64 participant)`, which copies a range of the
    bytes from the second of two places to the first."""
    module, name = code.builder.module, "copy.part"
    if name in module.globals:
        return module.globals[name]
    function = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER, I64, I64, I64]), name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    inner = Code(ll.IRBuilder(function.append_basic_block("entry")), code.target)
    builder, (ends, begin, end, _) = inner.builder, function.args
    places = (builder.load(builder.gep(ends, [I64(n)], source_etype=POINTER), typ=POINTER) for n in range(2))
    target, source = (builder.gep(place, [begin], source_etype=I8) for place in places)
    _move(inner, target, source, builder.sub(end, begin))
    builder.ret_void()
    return function


def _move(code: Code, target: ll.Value, source: ll.Value, nbytes: ll.Value) -> None:
    code.call("memmove", POINTER, target, source, nbytes)
