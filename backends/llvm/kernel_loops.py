"""The loops of a kernel, as one thread runs them: plain counted loops, loops in vector lanes with a tail, and
reductions in lanes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.llvm import division, ends, memory
from trivium.backends.llvm.code import I1, I64, Code, is_true, literal
from trivium.backends.llvm.folds import Folding, extremes_of, fold, starts
from trivium.backends.llvm.interior import Interior, interior
from trivium.backends.llvm.jammed import emit_tile, emit_tiles
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import Int, Number, i64
from trivium.backends.llvm.running_folds import emit_running_fold
from trivium.backends.llvm.short_rows import emit_rows
from trivium.backends.llvm.squares import emit_in_squares
from trivium.compiler.kernel.affine import divisions, expressions, holds
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.structure import Apply, Block, Constant, If, Load, Loop, Position, Register, symbols, walk
from trivium.compiler.schedule import LoopSchedule, Unit

if TYPE_CHECKING:
    from trivium.backends.llvm.emitter import Emitter

Values = list[ll.Value]
Body = Callable[[ll.Value, Values], Values]

UNROLLED = 192
"""The number of instructions up to which a loop may be unrolled."""

SHORT = 8
"""The number of vectors up to which a loop may be written out."""

REPEATED = 64
"""The number of instructions up to which a body is emitted both for the interior of its loop and for the rest."""


def emit_loop(emitter: Emitter, loop: Loop) -> None:
    """Emits `loop` according to its schedule; its results become known."""
    schedule = emitter.schedule.loops[loop]
    if loop.kind == "parallel":
        _parallel(emitter, loop, schedule)
    elif loop.kind == "reduction" and schedule.vector is not None:
        _reduction_in_lanes(emitter, loop, schedule)
    elif schedule.vector is not None:
        emit_running_fold(emitter, loop, schedule)
    else:
        _in_order(emitter, loop, schedule)


def count(emitter: Emitter, begin: Number, end: Number, step: int, inits: Values, body: Body) -> Values:
    """for (i = begin; i < end; i += step), carrying values."""
    if isinstance(begin, int) and isinstance(end, int) and begin >= end:
        return inits
    with counted(emitter.code, begin, end, step, inits) as loop:
        loop.next = body(i64(loop.index), loop.carried)
    return loop.carried


def nest(
    emitter: Emitter,
    dimensions: Sequence[tuple[Register, int | Register]],
    inits: Values,
    body: Callable[[Values], Values],
    written_out: int = 0,
) -> Values:
    """Emits counted loops, the first outermost, each of which binds its index; for the last `written_out` of the
    dimensions no loops, but the body as often as they would run."""
    if not dimensions:
        return body(inits)
    (index, extent), *rest = dimensions

    def inner(position: ll.Value, carried: Values) -> Values:
        with emitter.scope():
            emitter.values[index] = position
            return nest(emitter, rest, carried, body, written_out)

    if written_out >= len(dimensions) and isinstance(extent, int):
        for position in range(extent):
            inits = inner(I64(position), inits)
        return inits
    return count(emitter, 0, emitter.extent(extent), 1, inits, inner)


def _short(emitter: Emitter, loop: Loop, dimensions: Sequence[tuple[Register, int | Register]]) -> int:
    """Returns how many of the last dimensions to unroll: the windows of pooling and convolutions, whose bounds checks
    then vanish, or a row of one."""
    size, count = _size(emitter, loop.body), 0
    if holds(loop.body, Loop):
        return 0
    for _, extent in reversed(dimensions):
        if not isinstance(extent, int) or extent * size > UNROLLED:
            break
        size, count = size * extent, count + 1
    return count


def _is_short(emitter: Emitter, loop: Loop, vectors: int) -> bool:
    """Whether to write out a loop over this number of vectors: counting its iterations would take as long as its
    work."""
    return 1 < vectors <= SHORT and not holds(loop.body, Loop) and vectors * _size(emitter, loop.body) <= UNROLLED


def _size(emitter: Emitter, block: Block) -> int:
    """Returns the number of instructions in a block whose results are not known, plus those of its distinct index
    expressions."""
    instructions = [i for i in walk(block) if not i.results or any(r not in emitter.values for r in i.results)]
    instructions = [i for i in instructions if not isinstance(i, Constant)]
    indices = {index for instruction in instructions for index in expressions(instruction) if index.sole is None}
    return len([i for i in instructions if not isinstance(i, Position)]) + sum(map(_arithmetic, indices))


def _arithmetic(index: Index) -> int:
    """Returns the number of operations and literals in an index expression."""
    factors = sum(factor != 1 for factor in index.terms.values())
    return 2 * factors + max(0, len(index.terms) - 1) + 2 * bool(index.offset)


def _dimensions(loop: Loop, schedule: LoopSchedule) -> list[tuple[Register, int | Register]]:
    """Returns the loop's dimensions that are neither in lanes nor in squares, in order."""
    return [(loop.indices[dimension], schedule.bodies[dimension]) for dimension in schedule.counted]


def _parallel(emitter: Emitter, loop: Loop, schedule: LoopSchedule) -> None:
    limits = ends.limits(emitter, loop, schedule)

    def inner(dimensions: Sequence[int]) -> None:
        if not dimensions:
            run_body(emitter, loop, schedule)
            return
        first, *rest = dimensions

        def iteration(position: ll.Value, _: Values) -> Values:
            with emitter.scope():
                emitter.values[loop.indices[first]] = position
                with ends.inside(emitter, loop, limits, [first]):
                    inner(rest)
            return []

        count(emitter, 0, emitter.extent(schedule.bodies[first]), 1, [], iteration)

    inner(schedule.counted)


def run_body(
    emitter: Emitter, loop: Loop, schedule: LoopSchedule, begin: Number = 0, end: Number | None = None
) -> None:
    """Emits the body of a parallel loop, once, or over [begin, end) of its vector dimension, which begins at a multiple
    of the lanes; the other indices are already bound."""
    emitter.before(loop, schedule)
    if schedule.vector is None:
        emitter.block(loop.body)
        return
    end = end if end is not None else emitter.extent(schedule.extents[schedule.vector])
    if schedule.turned is not None:
        emit_in_squares(emitter, loop, schedule, begin, end)
    elif schedule.mapping(Unit.REGISTERS):
        emit_tiles(emitter, loop, schedule, functools.partial(_vectors, emitter, loop, schedule, begin, end))
    else:
        _vectors(emitter, loop, schedule, begin, end)


def _vectors(emitter: Emitter, loop: Loop, schedule: LoopSchedule, begin: Number, end: Number) -> None:
    """Emits the iterations [begin, end) of a parallel loop's vector dimension."""
    assert schedule.vector is not None, "some dimension is in lanes"
    index, extent = loop.indices[schedule.vector], schedule.extents[schedule.vector]
    with emitter.scope():
        if not isinstance(extent, int):
            _lanes(emitter, loop, schedule, begin, end, whole=False)
            return
        _hoist(emitter, loop.body, index)
        branch = _only_branch(emitter, loop.body) if emitter.tile is None else None
        with nullcontext() if branch is None else _taken(emitter, branch, index):
            if extent >= division.LONG * schedule.lanes and emitter.is_awaited(loop):
                _hoist_reciprocals(emitter, loop)
            inside = _interior(emitter, loop, index, extent) if (begin, end) == (0, extent) else None
            if inside is not None:
                _apart(emitter, loop, schedule, extent, inside)
            else:
                _lanes(emitter, loop, schedule, begin, end, extent % schedule.lanes == 0)


def _only_branch(emitter: Emitter, block: Block) -> If | None:
    """Returns the branch that is all that a block does, if its condition is known, and the same for all lanes."""
    rest = [i for i in block.instructions if not emitter.is_known(i)]
    if len(rest) != 1 or not isinstance(rest[0], If) or rest[0].outcomes or rest[0].otherwise.instructions:
        return None
    condition = emitter.values.get(rest[0].condition)
    return None if condition is None or is_true(condition) else rest[0]


@contextmanager
def _taken(emitter: Emitter, branch: If, index: Register) -> Iterator[None]:
    """Decides once, before a vector loop over `index`, whether a branch inside it is taken; what follows is emitted for
    the case that it is."""
    with emitter.builder.if_then(emitter.values[branch.condition]), emitter.scope():
        emitter.values[branch.condition] = literal(I1, 1)
        _hoist(emitter, branch.then, index)
        yield


def _interior(emitter: Emitter, loop: Loop, index: Register, extent: int) -> Interior | None:
    """Returns the loop's interior, if its body is small enough to be emitted several times."""
    if _size(emitter, loop.body) > REPEATED:
        return None
    return interior(loop.body, index, extent, emitter.schedule, emitter.analysis, emitter.values, emitter.tile)


def _apart(emitter: Emitter, loop: Loop, schedule: LoopSchedule, extent: int, inside: Interior) -> None:
    """Emits the interior, in which all guards are true, separately from the rest. It begins and ends with whole
    vectors: those at the edges have constant positions, and constant masks. The guards around it are true if no margin
    is negative at run time."""
    lanes = schedule.lanes
    begin = min(extent, -(-inside.begin // lanes) * lanes)
    end = extent if inside.end == extent else max(begin, inside.end // lanes * lanes)

    def parts(around: Sequence[Register]) -> None:
        for first, last, guards in ((0, begin, ()), (begin, end, inside.guards), (end, extent, ())):
            with emitter.scope():
                emitter.values.update(dict.fromkeys((*around, *guards), literal(I1, 1)))
                _lanes(emitter, loop, schedule, first, last, whole=False)

    if not inside.margins:
        parts(inside.around)
        return
    builder = emitter.builder
    each = [builder.icmp_signed(">=", emitter.number(margin), I64(0)) for margin in inside.margins]
    with builder.if_else(functools.reduce(builder.and_, each)) as (then, otherwise):
        with then:
            parts(inside.around)
        with otherwise:
            parts(())


def _lanes(emitter: Emitter, loop: Loop, schedule: LoopSchedule, begin: Number, end: Number, whole: bool) -> None:
    """Emits full vectors, then the remainder: a power of two in narrower vectors, otherwise masked. Each begins at a
    multiple of the lanes."""
    assert schedule.vector is not None, "some dimension is in lanes"
    if schedule.row is not None:
        emit_rows(emitter, loop, schedule, begin, end)
        return
    index, lanes = loop.indices[schedule.vector], schedule.lanes
    multiple = lanes

    def chunk(position: ll.Value, lanes: int, mask: ll.Value | None = None) -> None:
        with emitter.scope(), emitter.in_lanes(index, lanes, mask, multiple):
            emitter.values[index] = position
            emitter.beside(loop)
            if emitter.tile is not None:
                emit_tile(emitter, emitter.tile, loop.body)
            else:
                emitter.block(loop.body)

    def full(position: ll.Value, _: Values) -> Values:
        chunk(position, lanes)
        return []

    if isinstance(begin, int) and isinstance(end, int) and _is_short(emitter, loop, (end - begin) // lanes):
        for position in range(begin, end - lanes + 1, lanes):
            full(I64(position), [])
        begin = end - (end - begin) % lanes
    if whole:
        count(emitter, begin, end, lanes, [], full)
    elif isinstance(begin, int) and isinstance(end, int):
        rest = (end - begin) % lanes
        count(emitter, begin, end - rest, lanes, [], full)
        if rest:
            narrow = 1 << (rest - 1).bit_length()
            chunk(I64(end - rest), narrow, None if narrow == rest else memory.leading_mask(narrow, rest))
    else:
        _dynamic_lanes(emitter, lanes, begin, end, full, chunk)


def _dynamic_lanes(
    emitter: Emitter, lanes: int, begin: Number, end: Number, full: Body, chunk: Callable[..., None]
) -> None:
    builder, start, stop = emitter.builder, i64(begin), i64(end)
    rest = builder.and_(builder.sub(stop, start), I64(lanes - 1))
    main_end = builder.sub(stop, rest)
    count(emitter, begin, Int(emitter.code, main_end), lanes, [], full)
    with builder.if_then(builder.icmp_signed(">", rest, I64(0))):
        left = emitter.code.splat(rest, lanes)
        chunk(main_end, lanes, builder.icmp_signed("<", memory.lane_numbers(lanes), left))


def _hoist(emitter: Emitter, block: Block, index: Register) -> None:
    """Emits, before a vector loop that certainly runs, the instructions of its body, or of a branch that is certainly
    taken, that do not depend on its index and have no effect."""
    analysis = emitter.analysis
    for instruction in block.instructions:
        movable = isinstance(instruction, Constant | Apply) or (
            isinstance(instruction, Load) and instruction.buffer.mode == "in"
        )
        for atom in divisions(instruction):
            if index not in analysis.depends(atom) and _available(emitter, *symbols(atom.dividend)):
                emitter.division(atom)
        if not movable or analysis.is_index(instruction):
            continue
        known = _available(emitter, *instruction.operands)
        if known and all(index not in analysis.depends(operand) for operand in instruction.operands):
            emitter.instruction(instruction)


def _hoist_reciprocals(emitter: Emitter, loop: Loop) -> None:
    """Computes, before a long vector loop, the reciprocals of what it divides by."""
    for instruction in filter(division.is_division, loop.body.instructions):
        divisor = emitter.values.get(instruction.arguments[1])
        if emitter.code.target.wide_products and divisor is not None and not division.is_power_of_two(divisor):
            emitter.reciprocals[instruction.arguments[1]] = division.reciprocal(emitter.code, divisor)


def available(emitter: Emitter, load: Load) -> bool:
    """Whether a load needs only values that are known."""
    return _available(emitter, *load.operands)


def _available(emitter: Emitter, *values: Register) -> bool:
    """Whether values are known, or can be computed from known values."""
    forms = (emitter.analysis.form(value) for value in values if value not in emitter.values)
    return all(symbol in emitter.values for form in forms for symbol in symbols(form))


def _in_order(emitter: Emitter, loop: Loop, schedule: LoopSchedule) -> None:
    """Emits sequential loops, and reductions that are not in lanes themselves (but possibly inside a loop that is)."""
    parameters = loop.body.parameters[len(loop.extents) :]
    dimensions = _dimensions(loop, schedule)
    folding = Folding(emitter, loop, _trips(dimensions)) if loop.kind == "reduction" else None

    def body(carried: Values) -> Values:
        with emitter.scope():
            emitter.values.update(zip(parameters, carried, strict=loop.kind == "sequential"))
            results = emitter.block(loop.body)
        return folding.add(carried, results) if folding else _splat(emitter, results)

    inits = folding.begin() if folding else _splat(emitter, [emitter.value(init) for init in loop.inits])
    results = nest(emitter, dimensions, inits, body, _short(emitter, loop, dimensions))
    emitter.values.update(zip(loop.carried, folding.end(results) if folding else results, strict=True))


def _splat(emitter: Emitter, values: Values) -> Values:
    return [emitter.code.splat(value, emitter.lanes) for value in values]


def _trips(dimensions: Sequence[tuple[Register, int | Register]]) -> int:
    """Returns the number of iterations; dimensions whose extent is not known count as one."""
    return math.prod(extent for _, extent in dimensions if isinstance(extent, int))


def _reduction_in_lanes(emitter: Emitter, loop: Loop, schedule: LoopSchedule) -> None:
    """Each lane folds its own share, then the lanes are folded together, then onto the inits."""
    assert schedule.vector is not None, "some dimension is in lanes"
    lanes, index = schedule.lanes, loop.indices[schedule.vector]
    extent = schedule.extents[schedule.vector]
    first = [emitter.code.splat(start, lanes) for start in starts(emitter, loop)]
    extremes = extremes_of(loop, together=True)

    def chunk(position: ll.Value, carried: Values, mask: ll.Value | None = None) -> Values:
        with emitter.scope(), emitter.in_lanes(index, lanes, mask, lanes):
            emitter.values[index] = position
            emitter.beside(loop)
            terms = [emitter.code.splat(value, lanes) for value in emitter.block(loop.body)]
            if extremes:
                if mask is not None:
                    terms = [emitter.builder.select(mask, *pair) for pair in zip(terms, first, strict=True)]
                return extremes.fold(emitter.code, carried, terms)
            folded = [emitter.code.splat(value, lanes) for value in fold(emitter, loop, carried, terms)]
        if mask is None:
            return folded
        return [emitter.builder.select(mask, new, old) for new, old in zip(folded, carried, strict=True)]

    def inner(carried: Values) -> Values:
        if not isinstance(extent, int):
            return _dynamic_fold(emitter, emitter.value(extent), lanes, carried, chunk)
        rest = extent % lanes
        carried = count(emitter, 0, extent - rest, lanes, carried, chunk)
        return chunk(I64(extent - rest), carried, memory.leading_mask(lanes, rest)) if rest else carried

    begin = extremes.begin(emitter.code, first) if extremes else first
    totals = nest(emitter, _dimensions(loop, schedule), begin, inner)
    if extremes:
        totals = extremes.end(emitter.code, extremes.across(emitter.code, totals))
    while totals and isinstance(totals[0].type, ll.VectorType):
        low, high = zip(*map(emitter.code.halves, totals), strict=True)
        lanes //= 2
        with emitter.in_lanes(index, lanes, None):
            totals = fold(emitter, loop, list(low), list(high))
    inits = [emitter.value(init) for init in loop.inits]
    results = fold(emitter, loop, inits, totals)
    emitter.values.update(zip(loop.carried, results, strict=True))


def _dynamic_fold(
    emitter: Emitter, extent: ll.Value, lanes: int, carried: Values, chunk: Callable[..., Values]
) -> Values:
    builder = emitter.builder
    rest = builder.and_(extent, I64(lanes - 1))
    main = builder.sub(extent, rest)
    carried = count(emitter, 0, Int(emitter.code, main), lanes, carried, chunk)
    mask = builder.icmp_signed("<", memory.lane_numbers(lanes), emitter.code.splat(rest, lanes))
    return chunk(main, carried, mask)


def divide_index(code: Code, op: str, value: ll.Value, divisor: int) -> ll.Value:
    """Returns value / divisor or value % divisor for a positive literal, which needs no guards."""
    operation = code.builder.sdiv if op == "divide" else code.builder.srem
    return operation(value, code.like(value, divisor))
