"""Sorting: a merge sort from the bottom up, of an index for each element of a row, by any comparator. It is stable, and
the comparator sees the elements where they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trivium.compiler.kernel import Buffer, expression
from trivium.compiler.kernel import Value as Register
from trivium.compiler.lowering.context import Context
from trivium.compiler.lowering.index import Known, Variable, fresh, places, variable
from trivium.compiler.lowering.rules import kernel
from trivium.compiler.lowering.scalars import Scalar
from trivium.ir import ops
from trivium.ir.core import Value

Less = Callable[[Register, Register], Register]
"""Whether the element at one place of the row comes before that at another."""


@kernel(ops.Sort)
def sort(ctx: Context, op: ops.Sort) -> None:
    shape = op.inputs[0].type.shape
    dimension = op.dimension % len(shape)
    variables = fresh(shape)
    outer = [v for d, v in enumerate(variables) if d != dimension]
    with ctx.parallel(outer):
        rows = [_row(ctx, operand, variables, dimension) for operand in op.inputs]

        def less(one: Register, other: Register) -> Register:
            pairs = [ctx.read(row, (variable(Known(at, shape[dimension] - 1)),)) for row in rows for at in (one, other)]
            return ctx.region(op.comparator, pairs)[0]  # type: ignore[return-value]

        order = merge_sort(ctx, shape[dimension], less)
        with ctx.parallel([variables[dimension]]):
            along = places([variables[dimension]])
            source = variable(Known(ctx.read(order, along), shape[dimension] - 1))  # type: ignore[arg-type]
            for row, result in zip(rows, op.results, strict=True):
                ctx.store(result, places(variables), ctx.read(row, (source,)))


def _row(ctx: Context, operand: Value, variables: Sequence[Variable], dimension: int) -> Buffer:
    """A copy of a row, computed once."""
    row = ctx.scratch(operand.type.element_type, [variables[dimension].extent])
    with ctx.parallel([variables[dimension]]):
        ctx.write(row, places([variables[dimension]]), ctx.element(operand, places(variables)))
    return row


def merge_sort(ctx: Context, extent: int, less: Less) -> Buffer:
    """The places of a row's elements, in order: a buffer of i64."""
    source, target = ctx.b.scratch("i64", (extent,)), ctx.b.scratch("i64", (extent,))
    along = fresh([extent])
    with ctx.parallel(along):
        ctx.write(source, places(along), ctx.position(places(along)[0]))
    width = 1
    while width < extent:
        runs = [Variable(-(-extent // (2 * width)))]
        with ctx.parallel(runs):
            start = ctx.position(places(runs)[0] * (2 * width))
            _merge(ctx, source, target, start, width, extent, less)
        source, target, width = target, source, 2 * width
    return source


def _merge(ctx: Context, source: Buffer, target: Buffer, start: Register, width: int, extent: int, less: Less) -> None:
    """Merges the runs of `width` elements at `start` and behind it. At equal elements the left one goes first."""
    b = ctx.b
    middle = b.apply("minimum", b.add(start, width), extent)
    end = b.apply("minimum", b.add(start, 2 * width), extent)
    frame = b.sequential(b.subtract(end, start), inits=[start, middle])
    with frame, ctx.scope():
        left, right = frame.carried
        one = b.load(source, b.apply("minimum", left, extent - 1))
        other = b.load(source, b.apply("minimum", right, extent - 1))
        more_left, more_right = b.compare("LT", left, middle), b.compare("LT", right, end)
        takes_right = b.apply("and", more_right, b.apply("or", b.apply("not", more_left), less(other, one)))
        b.store(target, b.select(takes_right, other, one), expression([(start, 1), (frame.index, 1)]))
        step = b.convert(takes_right, "i64")
        frame.yield_(b.add(left, b.subtract(b.index(1), step)), b.add(right, step))


@kernel(ops.TopK)
def top_k(ctx: Context, op: ops.TopK) -> None:
    """The first `k` of a stable sort from the greatest on; NaN is greater than all numbers."""
    shape = op.operand.type.shape
    variables = fresh(shape)
    with ctx.parallel(variables[:-1]):
        row = _row(ctx, op.operand, variables, len(shape) - 1)

        def greater(one: Register, other: Register) -> Register:
            return _is_greater(ctx, ctx.b.load(row, one), ctx.b.load(row, other))

        order = merge_sort(ctx, shape[-1], greater)
        first = Variable(op.k)
        with ctx.parallel([first]):
            at = (*places(variables[:-1]), *places([first]))
            source = ctx.b.load(order, ctx.position(at[-1]))
            value: Scalar = ctx.b.load(row, source)
            ctx.store(op.values, at, value)
            ctx.store(op.indices, at, ctx.b.convert(source, "i32"))


def _is_greater(ctx: Context, one: Register, other: Register) -> Register:
    total = one.dtype.startswith(("f", "bf"))
    return ctx.b.compare("GT", one, other, total_order=total)
