"""Sums of segments of rows: products of groups, `chlo.ragged_dot`, whose rows are added up, each times a number. A sum
stays in registers, and each row is read once."""

from __future__ import annotations

from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.contraction import sum_loop, times, zero_of
from trivium.compiler.lowering.elementwise import converted
from trivium.compiler.lowering.index import RunTimeIndex, Variable, constant, fresh, indices_of, variable
from trivium.compiler.lowering.launches import Launches, Temporary
from trivium.compiler.lowering.reduction import flat, grouped
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.rules import kernel
from trivium.compiler.lowering.scalars import register_of
from trivium.ir import ops
from trivium.ir.types import I64, accumulation_type, tensor


@kernel(ops.RaggedDot)
def segment_sums(launches: Launches, op: ops.RaggedDot) -> None:
    """The first launch finds where segments begin, the second one adds up their rows."""
    (count,), rows = op.group_sizes.type.static_shape, op.lhs.type.size
    begins = Row(Temporary(tensor(count + 1, of=I64), op))
    with launches.kernel("_begin") as ctx, ctx.nest([]):
        _store_begins(ctx, op, begins)
    kind, ones = accumulation_type(op.result.type.element_type), (constant(0),) * (op.lhs.type.rank - 1)
    variables = fresh((count, *op.rhs.type.static_shape[1:]))
    (segment, *column), number = indices_of(variables), op.ragged_dot_dimension_numbers.ragged
    with launches.kernel() as ctx, ctx.nest(variables):
        begin, end = (register_of(begins.load(ctx, segment + step)) for step in range(2))
        with sum_loop(ctx, kind, zero_of(ctx, kind), ctx.b.subtract(end, begin)) as loop, ctx.scope():
            row = variable(RunTimeIndex(begin, rows - 1)) + variable(RunTimeIndex(loop.index, rows - 1))
            weight = converted(ctx, ctx.element(op.lhs, (*ones[:number], row, *ones[number:])), kind)
            x = converted(ctx, ctx.element(op.rhs, (row, *column)), kind)
            loop.yield_(*flat([times(ctx, weight, x)]))
        (total,) = grouped(loop.results, [kind])
        total = converted(ctx, total, op.result.type.element_type)
        ctx.store(op.result, (segment, *ones, *column), total)


def _store_begins(ctx: LoweringContext, op: ops.RaggedDot, begins: Row) -> None:
    """Stores where each segment begins, and where the last one ends: within the rows, whatever the lengths are."""
    (count,), b = op.group_sizes.type.static_shape, ctx.b
    each = Variable(count)
    begins.store(ctx, constant(0), b.index(0))
    with ctx.inside(b.sequential(count, inits=[b.index(0)]), [each]) as loop:
        at = variable(each)
        end = b.add(loop.carried[0], b.convert(ctx.real(op.group_sizes, (at,)), "i64"))
        begins.store(ctx, at + 1, b.clamp(0, end, op.lhs.type.size))
        loop.yield_(end)
