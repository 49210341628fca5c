"""Sorts of many keys, which threads share: the keys are split (`llvm.key_sort`) until each thread has several parts,
all parts of one size at once, and then each part is sorted."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.cpu.threads import call_parallel, range_function
from trivium.backends.llvm.code import I1, I8, I64, Code, stack_slot
from trivium.backends.llvm.key_sort import FIELD, FIELDS, key_sort, key_split, load_state, store_state
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import Int, i64

PARTS = 4
"""Parts for each thread: they are not of one size."""
MOST = 256
"""The most parts, whose states are on the stack."""

STATE = FIELD * len(FIELDS)


def emit(code: Code, bits: int, keys: ll.Value, spare: ll.Value, count: int) -> None:
    """Calls the runtime for each turn of splits, and for the sorts of the parts."""
    target = code.target
    turns = (min(MOST, PARTS * target.threads) - 1).bit_length()
    states = stack_slot(code.builder, ll.ArrayType(I8, STATE << turns))
    store_state(code, states, (keys, spare, I64(count), I1(0), I1(0)))
    for turn in range(turns):
        call_parallel(code, _splits(code, bits, 1 << (turns - turn)), states, (1 << turn, 1))
    call_parallel(code, _sorts(code, bits), states, (1 << turns, 1))


def _splits(code: Code, bits: int, distance: int) -> ll.Function:
    """Returns the function that splits every part of a range; they are so far apart, with room for halves between."""
    split = key_split(code.builder.module, bits, code.target)

    def each(inner: Code, states: ll.Value, number: ll.Value) -> None:
        part, other = (_state(inner, states, number, distance, offset) for offset in (0, distance // 2))
        inner.builder.call(split, [part, other])

    return _function(code, f"{split.name}.{distance}", each)


def _sorts(code: Code, bits: int) -> ll.Function:
    """Returns the function that sorts the parts of a range."""
    sort = key_sort(code.builder.module, bits, code.target)

    def each(inner: Code, states: ll.Value, number: ll.Value) -> None:
        inner.builder.call(sort, load_state(inner, _state(inner, states, number, 1, 0)))

    return _function(code, f"{sort.name}.parts", each)


def _state(code: Code, states: ll.Value, number: ll.Value, distance: int, offset: int) -> ll.Value:
    index = code.iadd(code.builder.mul(number, I64(distance)), offset)
    return code.builder.gep(states, [code.builder.mul(index, I64(STATE))], source_etype=I8)


def _function(code: Code, name: str, each: Callable[[Code, ll.Value, ll.Value], None]) -> ll.Function:
    """Returns the function that emits `each` for a range of parts."""

    def parts(inner: Code, states: ll.Value, begin: Int, end: Int, _: ll.Value) -> None:
        with counted(inner, begin, end) as loop:
            each(inner, states, i64(loop.index))

    return range_function(code, name, parts)
