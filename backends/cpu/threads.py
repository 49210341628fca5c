"""Splits a parallel loop over threads: its body becomes a function of a range of iterations, which the native runtime
calls from its workers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.llvm import ends, kernel_loops
from trivium.backends.llvm.code import I32, I64, POINTER, Code, stack_slot
from trivium.backends.llvm.numbers import Int, Number
from trivium.compiler.kernel.index import Atom
from trivium.compiler.kernel.structure import Buffer, Loop, Register
from trivium.compiler.schedule import LoopSchedule, Unit

if TYPE_CHECKING:
    from trivium.backends.llvm.emitter import Emitter

PARALLEL_FOR = "trivium_parallel_for"


def emit_split(emitter: Emitter, loop: Loop) -> None:
    """Calls the runtime with the loop's body over all iterations of the dimensions that are not in lanes, counted as
    one dimension; if there are none, over ranges of the vector dimension."""
    schedule = emitter.schedule.loops[loop]
    bodies, split = schedule.static_bodies, schedule.mapping(Unit.THREADS)
    assert bodies is not None, "only loops of known extents are split"
    assert split is not None, "the schedule says over what"
    outer = [(loop.indices[d], bodies[d]) for d in schedule.counted]
    total, ranges = math.prod(bodies[d] for d in split.dimensions), schedule.vector in split.dimensions
    context, captured = _capture(emitter)

    def part(code: Code, context: ll.Value, begin: Int, end: Int, participant: ll.Value) -> None:
        inner = _inside(emitter, code, captured, context, participant)
        if ranges:
            inner.values.update((index, I64(0)) for index, _ in outer)
            kernel_loops.run_body(inner, loop, schedule, begin, end)
        else:
            _rows(inner, loop, schedule, outer, begin, end)

    builder = emitter.builder
    name = builder.module.get_unique_name(f"{builder.function.name}.part")
    function = range_function(emitter.code, name, part)
    call_parallel(emitter.code, function, context, (total, split.size), schedule.brief)


Ranged = Callable[[Code, ll.Value, Int, Int, ll.Value], None]
"""Emits what a function of ranges does, given its arguments."""


def range_function(code: Code, name: str, emit: Ranged) -> ll.Function:
    """Returns the module's `void name(ptr context, i64 begin, i64 end, i64 participant)`, which runs a range of
    iterations in one thread. It is emitted on first use."""
    module = code.builder.module
    if name in module.globals:
        return module.globals[name]
    function = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER, I64, I64, I64]), name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    inner = Code(ll.IRBuilder(function.append_basic_block("entry")), code.target, bool(code.flags))
    context, begin, end, participant = function.args
    emit(inner, context, Int(inner, begin), Int(inner, end), participant)
    inner.builder.ret_void()
    return function


def call_parallel(
    code: Code, function: ll.Function, context: ll.Value, counts: tuple[int, int], brief: bool = False
) -> None:
    """Calls the runtime with a function of ranges, and the numbers of all iterations and of those of a piece. `brief`
    work wakes no threads."""
    limit = -code.target.threads if brief else code.target.threads
    code.call(PARALLEL_FOR, ll.VoidType(), function, context, *map(I64, counts), I32(limit))


Captured = tuple[list[ll.Type], list[Buffer], list[Register | Atom]]


def _capture(emitter: Emitter) -> tuple[ll.Value, Captured]:
    """Stores everything that the body may use (workspace, buffers and values) in a table on the stack, eight bytes
    each."""
    builder = emitter.builder
    buffers = list(emitter.buffers)
    values = [value for value, known in emitter.values.items() if not isinstance(known, ll.Constant)]
    fields = [emitter.workspace.pointer]
    fields += [*(emitter.buffers[b] for b in buffers), *(emitter.values[v] for v in values)]
    context = stack_slot(builder, ll.ArrayType(I64, len(fields)))
    for position, field in enumerate(fields):
        builder.store(field, builder.gep(context, [I64(position)], source_etype=I64))
    return context, ([field.type for field in fields], buffers, values)


def _inside(emitter: Emitter, code: Code, captured: Captured, context: ll.Value, participant: ll.Value) -> Emitter:
    """Returns an emitter for the part function, in which the captured values are known."""
    types, buffers, values = captured
    builder = code.builder
    places = [builder.gep(context, [I64(n)], source_etype=I64) for n in range(len(types))]
    fields = [builder.load(place, typ=type_) for place, type_ in zip(places, types, strict=True)]
    workspace = emitter.workspace.shared(fields[0], code.target.threads, participant)
    pointers = dict(zip(buffers, fields[1:], strict=False))
    inner = type(emitter)(code, emitter.analysis, emitter.schedule, pointers, workspace)
    inner.values = {value: known for value, known in emitter.values.items() if isinstance(known, ll.Constant)}
    inner.values.update(zip(values, fields[len(buffers) + 1 :], strict=True))
    return inner


def _rows(
    emitter: Emitter, loop: Loop, schedule: LoopSchedule, outer: list[tuple[Register, int]], begin: Number, end: Number
) -> None:
    """Emits the iterations [begin, end) of all dimensions but the vector one, counted in row-major order."""
    builder = emitter.builder
    limits = ends.limits(emitter, loop, schedule)

    def body(position: ll.Value, _: list[ll.Value]) -> list[ll.Value]:
        rest = position
        for index, extent in reversed(outer[1:]):
            emitter.values[index] = builder.urem(rest, I64(extent)) if extent != 1 else I64(0)
            rest = builder.udiv(rest, I64(extent)) if extent != 1 else rest
        emitter.values[outer[0][0]] = rest
        with ends.inside(emitter, loop, limits, schedule.counted):
            kernel_loops.run_body(emitter, loop, schedule)
        return []

    kernel_loops.count(emitter, begin, end, 1, [], body)
