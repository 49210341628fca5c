"""Emits running folds that the threads of a block share. In each round, every thread has a few neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.gpu import rows
from trivium.backends.gpu.thread_emitter import Values, wide
from trivium.backends.llvm import folds
from trivium.backends.llvm.apply import combine
from trivium.backends.llvm.code import I32, I64, undefined
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.running import parts, running_fold
from trivium.compiler.kernel.structure import Instruction, Loop

if TYPE_CHECKING:
    from trivium.backends.gpu.row_emitter import RowEmitter


def emit(emitter: RowEmitter, loop: Loop) -> None:
    """Emits a running fold: in each round, every thread folds neighbours, and then what all threads before it
    have."""
    plan, size, builder = emitter.schedule.loops[loop], emitter.team.size, emitter.builder
    total = math.prod(extent for extent in plan.in_vectors if isinstance(extent, int))
    rounds, carried = -(-total // size), [emitter.value(loop.inits[0])]
    together = min(rounds, rows.at_once(loop, plan.lanes))
    own = wide(emitter.code, emitter.team.thread)
    if rounds <= together:
        carried = _rounds(emitter, loop, own, rounds, total, carried, False)
    else:
        with counted(emitter.code, 0, total, together * size, carried) as each:
            first = builder.add(own, i64(each.index))
            each.next = _rounds(emitter, loop, first, together, total, each.carried, True)
        carried = each.carried
    emitter.values.update(zip(loop.carried, carried, strict=True))


def _rounds(
    emitter: RowEmitter, loop: Loop, first: ll.Value, rounds: int, total: int, carried: list[ll.Value], again: bool
) -> list[ll.Value]:
    builder, size, each = emitter.builder, emitter.team.size, []
    for number in range(rounds):
        place, valid = builder.add(first, I64(number * size)), None
        if total % (size * rounds) if again else (number + 1) * size > total:
            valid = builder.icmp_signed("<", place, I64(total))
            place = builder.select(valid, place, I64(total - 1))
        each.append((emitter.bound(loop, place, None), valid))
    for values, valid in each:
        # Each round has its own memory: before it is written again, threads have met in another one.
        carried = _round(emitter, loop, values, valid, carried, again and rounds == 1)
    return carried


def _round(
    emitter: RowEmitter, loop: Loop, values: Values, valid: ll.Value | None, carried: list[ll.Value], again: bool
) -> list[ll.Value]:
    """Emits one round of a running fold. Threads beyond the end fold nothing."""
    found, lanes, builder = running_fold(loop), emitter.schedule.loops[loop].lanes, emitter.builder
    assert found is not None, "the loop is a running fold"
    made, term = found
    early, late = parts(loop, made)
    dtype = made.result.dtype

    def fold(a: list[ll.Value], b: list[ll.Value]) -> list[ll.Value]:
        return [combine(emitter.code, made.op, dtype, *pair) for pair in zip(a, b, strict=True)]

    with emitter.scope(), emitter.in_lanes(emitter.vector_index(loop), lanes, None):
        emitter.values.update(values)
        for instruction in early:
            emitter.instruction(instruction)
        terms = _elements(builder, emitter.code.splat(emitter.value(term), lanes))
        for lane in range(1, lanes):
            (terms[lane],) = fold([terms[lane - 1]], [terms[lane]])
        last = terms[-1]
        if valid is not None:
            neutral = folds.identity(made.op, dtype)
            assert neutral is not None, "the fold has an identity"
            last = builder.select(valid, last, neutral)
        before, carried = emitter.team.scanned([last], carried, fold, again)
        results = [fold(before, [one])[0] for one in terms]
        emitter.values[made.result] = _vector_of(builder, results)
        if (valid := emitter.if_valid(valid)) is None:
            _all(emitter, late)
        else:
            with builder.if_then(valid):
                _all(emitter, late)
    return carried


def _all(emitter: RowEmitter, instructions: Sequence[Instruction]) -> None:
    with emitter.scope():
        for instruction in instructions:
            emitter.instruction(instruction)


def _elements(builder: ll.IRBuilder, value: ll.Value) -> list[ll.Value]:
    if not isinstance(value.type, ll.VectorType):
        return [value]
    return [builder.extract_element(value, I32(lane)) for lane in range(value.type.count)]


def _vector_of(builder: ll.IRBuilder, values: list[ll.Value]) -> ll.Value:
    if len(values) == 1:
        return values[0]
    vector = undefined(ll.VectorType(values[0].type, len(values)))
    for lane, value in enumerate(values):
        vector = builder.insert_element(vector, value, I32(lane))
    return vector
