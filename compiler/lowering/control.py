"""Control flow, as steps of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.program_builder import ProgramBuilder
from trivium.compiler.lowering.reduction import flat, grouped
from trivium.compiler.lowering.rules import scalar, step
from trivium.compiler.lowering.scalars import Scalar
from trivium.compiler.lowering.small_loops import small_loop, turns
from trivium.compiler.program import Array, Copy, Step, Switch, While
from trivium.ir import ops
from trivium.ir.core import Region, Value
from trivium.ir.errors import CompileError


@step(ops.While)
def while_(lowering: ProgramBuilder, op: ops.While) -> None:
    """Each carried value has one array, which the body's result is copied to. Values that the body returns unchanged
    keep their original array."""
    returned = op.body.terminator.operands
    carried: list[Array] = []
    for number, (init, result) in enumerate(zip(op.operand, op.results, strict=True)):
        array = lowering.array(init)
        if returned[number] is not op.body.arguments[number]:
            source, array = array, lowering.temporary(result, "carried")
            lowering.copy(source, array)
        for value in (op.cond.arguments[number], op.body.arguments[number], result):
            lowering.bind(value, array)
        carried.append(array)
    condition = lowering.block(op.cond.block)
    predicate = lowering.array(op.cond.terminator.operands[0])
    small = small_loop(op)
    if small is not None:
        lowering.steps.append(While(condition, predicate, [turns(lowering, small)]))
        return
    body = lowering.block(op.body.block)
    body += _assign([lowering.array(value) for value in returned], carried, lowering, returned)
    lowering.steps.append(While(condition, predicate, body))


def _assign(
    sources: Sequence[Array], targets: Sequence[Array], lowering: ProgramBuilder, values: Sequence[Value]
) -> list[Step]:
    """Returns the steps that copy all values as if at once: a source that is also a target is saved first."""
    first: list[Step] = []
    then: list[Step] = []
    for source, target, value in zip(sources, targets, values, strict=True):
        if source is target:
            continue
        if source in targets:
            saved = lowering.temporary(value, "saved")
            first.append(Copy(source, saved))
            source = saved
        then.append(Copy(source, target))
    return first + then


@step(ops.Tuple, ops.GetTupleElement)
def tuples(lowering: ProgramBuilder, op: ops.Tuple | ops.GetTupleElement) -> None:
    """Tuples have no array: their elements are the values that they were made from."""
    if isinstance(op, ops.GetTupleElement):
        made = op.operand.defining_op
        if not isinstance(made, ops.Tuple):
            raise CompileError("get_tuple_element of a tuple that no tuple op made cannot be compiled")
        lowering.bind(op.result, lowering.array(made.val[op.index]))


@step(ops.If)
def if_(lowering: ProgramBuilder, op: ops.If) -> None:
    _switch(lowering, op, op.pred, [op.false_branch, op.true_branch])


@step(ops.Case)
def case(lowering: ProgramBuilder, op: ops.Case) -> None:
    _switch(lowering, op, op.index, op.branches)


def _switch(lowering: ProgramBuilder, op: Any, index: Value, regions: Sequence[Region]) -> None:
    results = [lowering.temporary(result) for result in op.results]
    branches = []
    for region in regions:
        steps = lowering.block(region.block)
        sources = [lowering.array(value) for value in region.terminator.operands]
        steps += [Copy(source, result) for source, result in zip(sources, results, strict=True)]
        branches.append(steps)
    for result, array in zip(op.results, results, strict=True):
        lowering.bind(result, array)
    lowering.steps.append(Switch(lowering.array(index), branches))


# Inside a region of scalars


@scalar(ops.While)
def scalar_while(ctx: LoweringContext, op: ops.While) -> list[Scalar]:
    kinds = [value.type.element_type for value in op.operand]
    with ctx.block(ctx.b.while_(*flat([ctx.element(init) for init in op.operand]))) as frame:
        carried = grouped(frame.carried, kinds)
        frame.condition(ctx.region(op.cond, carried)[0])
        frame.yield_(*flat(ctx.region(op.body, carried)))
    return grouped(frame.results, kinds)


@scalar(ops.If)
def scalar_if(ctx: LoweringContext, op: ops.If) -> list[Scalar]:
    return _branches(ctx, op, ctx.element(op.pred), [op.true_branch, op.false_branch])


@scalar(ops.Case)
def scalar_case(ctx: LoweringContext, op: ops.Case) -> list[Scalar]:
    """Runs the first branch if the index is 0, else chooses among the others; the last one if it is out of range."""
    index = ctx.real(op.index)

    def rest(number: int) -> list[Scalar]:
        if number == len(op.branches) - 1:
            return ctx.region(op.branches[number], [])
        return _either(ctx, op, ctx.b.compare("EQ", index, number), op.branches[number], lambda: rest(number + 1))

    return rest(0)


def _branches(ctx: LoweringContext, op: Any, condition: Any, regions: Sequence[Region]) -> list[Scalar]:
    return _either(ctx, op, condition, regions[0], lambda: ctx.region(regions[1], []))


def _either(ctx: LoweringContext, op: Any, condition: Any, region: Region, otherwise: Any) -> list[Scalar]:
    with ctx.block(ctx.b.if_(condition)) as branch:
        branch.yield_(*flat(ctx.region(region, [])))
    with ctx.block(branch.otherwise()):
        branch.yield_(*flat(otherwise()))
    return grouped(branch.results, [value.type.element_type for value in op.results])
