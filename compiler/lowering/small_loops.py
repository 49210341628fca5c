"""Loops that change little: numbers, small arrays, and a few elements of arrays of any size. Such a loop is one kernel.
Its numbers and the elements of its small arrays stay in registers, which have no run-time index: what the body does
with them is written out, element by element."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trivium.compiler.kernel.ops import OPERATIONS
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.contraction import dot_loops
from trivium.compiler.lowering.index import Index, Indices, every_place
from trivium.compiler.lowering.indexing import box
from trivium.compiler.lowering.program_builder import ProgramBuilder, static_shape, static_size
from trivium.compiler.lowering.reduction import flat, grouped
from trivium.compiler.lowering.rules import INDEXING, is_elementwise
from trivium.compiler.lowering.scalars import Scalar
from trivium.compiler.program import Launch
from trivium.ir import ops
from trivium.ir.core import BlockArgument, Operation, Region, Value

TURNS = 1 << 12
"""Iterations in one launch, after which the program may be interrupted."""

LARGEST = 16
"""Elements of a value that stays in registers."""

LAUNCH = 48
"""The number of operations on single elements that take as long as a launch."""


@dataclass(frozen=True)
class SmallLoop:
    """A loop that is one kernel. Of the arguments of its body that change, some are held in `registers`; the others are
    changed `in_place`, and listed with the results of the updates."""

    op: ops.While
    registers: tuple[BlockArgument, ...]
    in_place: dict[BlockArgument, list[Value]]


def small_loop(op: ops.While) -> SmallLoop | None:
    """Returns how a loop becomes one kernel; None if it computes too much for that, or something else."""
    in_place, registers = dict[BlockArgument, list[Value]](), list[BlockArgument]()
    order = {inner: number for number, inner in enumerate(op.body.block)}
    for argument, result in zip(op.body.arguments, op.body.terminator.operands, strict=True):
        if updates := _updates(argument, result, order):
            in_place[argument] = updates
        elif argument is not result:
            registers.append(argument)
    inside = [inner for region in op.regions for inner in region.block if inner is not region.block.last]
    loop = SmallLoop(op, tuple(registers), in_place)
    fits = all(0 < static_size(value) <= LARGEST for value in registers)
    return loop if fits and _is_known(loop, inside) and _is_little(inside) else None


def _updates(argument: BlockArgument, result: Value, order: dict[Operation, int]) -> list[Value]:
    """Returns the results of the updates that lead from an argument to what the body returns for it, if each may
    overwrite what the one before left: nothing reads that later."""
    values: list[Value] = [argument]
    while (value := values[-1]) is not result:
        last = max(value.users, key=lambda user: order.get(user, math.inf), default=None)
        uses = [user for user, _ in value.uses]
        if not isinstance(last, ops.DynamicUpdateSlice) or last.operand is not value or uses.count(last) != 1:
            return []
        values.append(last.result)
    returned = [user for user, _ in result.uses if isinstance(user, ops.Return)]
    return values[1:] if len(returned) == 1 and all(user in order for user in result.users) else []


def _is_known(loop: SmallLoop, inside: Sequence[Operation]) -> bool:
    """Whether every op can be written out: it computes few elements, and selects them by run-time indices only from
    arrays in memory."""
    updated = {value for values in loop.in_place.values() for value in values}
    numbers = [loop.op.body.arguments.index(value) for value in loop.registers]
    held = {region.block.arguments[number] for region in loop.op.regions for number in numbers}
    held |= {value for op in inside if not isinstance(op, ops.Constant) for value in op.results} - updated

    def known(op: Operation) -> bool:
        if isinstance(op, ops.DynamicUpdateSlice):
            return op.result in updated and 0 < static_size(op.update) <= LARGEST
        if any(not 0 < static_size(value) <= LARGEST for value in op.results):
            return isinstance(op, ops.Constant)
        if isinstance(op, ops.DynamicSlice | ops.Gather):
            return op.operand not in held
        kinds = ops.Constant, ops.Iota, ops.Concatenate, ops.DotGeneral, ops.Reduce
        return is_elementwise(op) or type(op) in INDEXING or isinstance(op, kinds)

    return all(map(known, inside))


def _is_little(inside: Iterable[Operation]) -> bool:
    """Whether the operations on elements of arrays take less time than launches would, one for the condition, one for
    the body and one for each op that is seldom fused."""
    kinds = ops.DotGeneral, ops.Reduce, ops.DynamicUpdateSlice
    launches = 2 + sum(isinstance(op, kinds) for op in inside)
    return sum(map(_work, inside)) <= LAUNCH * launches


def _work(op: Operation) -> float:
    """Returns the number of operations, in units of an addition; 0 if the op moves elements, or has only one, which
    costs the same in any loop."""
    size = static_size(op.results[0])
    if isinstance(op, ops.DotGeneral):
        loops = dot_loops(op).loops.values()
        return 2 * math.prod(loop.extent for loop in loops)
    if isinstance(op, ops.Reduce):
        return sum(static_size(operand) for operand in op.inputs)
    if size == 1 or not is_elementwise(op):
        return 0
    operation = OPERATIONS.get(op.NAME.rpartition(".")[2])
    return size * (operation.cost if operation is not None else 1)


def turns(lowering: ProgramBuilder, loop: SmallLoop) -> Launch:
    """Returns the launch of a kernel that runs a number of iterations, as long as the condition holds."""
    op, ctx = loop.op, LoweringContext(lowering.name("while_"))
    ctx.written_out = True
    places = [(value, at) for value in loop.registers for at in every_place(static_shape(value))]
    kinds = [value.type.element_type for value, _ in places]
    targets = {value: ctx.buffer(value, static_shape(value), "inout") for value in loop.registers}
    with ctx.nest([]):
        _hold_arrays(ctx, loop)
        given = _read_once(ctx, loop)
        start = flat([ctx.read(targets[value], at) for value, at in places])
        with ctx.block(ctx.b.while_(*start, ctx.b.index(0))) as frame:
            *state, count = frame.carried
            given |= dict(zip(places, grouped(state, kinds), strict=True))
            (going,) = _computed(ctx, loop, op.cond, given, [(op.cond.terminator.operands[0], ())])
            frame.condition(ctx.b.apply("and", going, ctx.b.compare("LT", count, TURNS)))  # type: ignore[arg-type]
            returned = dict(zip(op.body.arguments, op.body.terminator.operands, strict=True))
            results = _computed(ctx, loop, op.body, given, [(returned[value], at) for value, at in places])
            frame.yield_(*flat(results), ctx.b.add(count, 1))
        for (value, at), scalar in zip(places, grouped(frame.results[:-1], kinds), strict=True):
            ctx.write(targets[value], at, scalar)
    return Launch(ctx.b.build(), tuple(lowering.array(value) for value in ctx.arguments), (op,))


Elements = dict[tuple[BlockArgument, Indices], Scalar]


def _hold_arrays(ctx: LoweringContext, loop: SmallLoop) -> None:
    """Lets an array that is changed in place, and what its updates return, have one buffer."""
    for argument, updates in loop.in_place.items():
        buffer = ctx.buffer(argument, static_shape(argument), "inout")
        tested = loop.op.cond.arguments[loop.op.body.arguments.index(argument)]
        for value in (argument, tested, *updates):
            ctx.hold(value, buffer)


def _read_once(ctx: LoweringContext, loop: SmallLoop) -> Elements:
    """Reads, before the loop, what is small and does not change. Returns the elements of the body's arguments."""
    for value in dict.fromkeys(value for region in loop.op.regions for value in region.free_values()):
        if static_size(value) <= LARGEST:
            for at in every_place(static_shape(value)):
                ctx.element(value, at)
    changed = {*loop.registers, *loop.in_place}
    same = (value for value in loop.op.body.arguments if value not in changed and static_size(value) <= LARGEST)
    return {(value, at): ctx.element(value, at) for value in same for at in every_place(static_shape(value))}


def _computed(
    ctx: LoweringContext, loop: SmallLoop, region: Region, given: Elements, wanted: Iterable[tuple[Value, Indices]]
) -> list[Scalar]:
    """Computes a region in its own order, because it reads and changes arrays. `given` are elements of the arguments of
    the loop's body."""
    arguments = dict(zip(loop.op.body.arguments, region.block.arguments, strict=True))
    with ctx.opened(region) as block:
        for (value, at), scalar in given.items():
            ctx.know(arguments[value], at, scalar)
        for op in block:
            if isinstance(op, ops.DynamicUpdateSlice):
                _update(ctx, op)
            elif op is not block.last and not isinstance(op, ops.Constant):
                for at in every_place(static_shape(op.results[0])):
                    ctx.element(op.results[0], at)
        return [ctx.element(value, at) for value, at in wanted]


def _update(ctx: LoweringContext, op: ops.DynamicUpdateSlice) -> None:
    """Writes the elements of an update to the array, which is held by a buffer."""
    start = box(ctx, op.start_indices, op.operand.type.shape, op.update.type.shape)
    buffer = ctx.held(op.result)
    for at in every_place(static_shape(op.update)):
        ctx.write(buffer, tuple(map(Index.__add__, start, at)), ctx.element(op.update, at))
