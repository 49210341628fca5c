"""Sorting: a bottom-up merge sort of the indices of a row's elements, by any comparator. It is stable, and the elements
themselves are not moved while they are compared. Rows that fit in scratch memory are sorted in one launch, each
separately; long rows in one launch per pass, in which the merges of all rows are independent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trivium.compiler.kernel import Buffer, Register
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, Indices, RunTimeIndex, Variable, fresh, indices_of, variable
from trivium.compiler.lowering.launches import Argument, Launches, Temporary
from trivium.compiler.lowering.rules import kernel
from trivium.compiler.lowering.scalars import Scalar, dtype_of
from trivium.ir import ops
from trivium.ir.core import Operation, Value
from trivium.ir.types import I32, I64, Type, tensor


@dataclass(frozen=True)
class Row:
    """The elements of a buffer, or of a value, along one dimension; the indices before and after it are fixed."""

    memory: Buffer | Argument
    before: Indices = ()
    after: Indices = ()

    def load(self, ctx: LoweringContext, index: Index) -> Scalar:
        at = (*self.before, index, *self.after)
        return ctx.read(self.memory, at) if isinstance(self.memory, Buffer) else ctx.load(self.memory, at)

    def store(self, ctx: LoweringContext, index: Index, scalar: Scalar) -> None:
        at = (*self.before, index, *self.after)
        if isinstance(self.memory, Buffer):
            ctx.write(self.memory, at, scalar)
        else:
            ctx.store(self.memory, at, scalar)


Less = Callable[[LoweringContext, list[Scalar], list[Scalar]], Register]
"""Whether the elements at one place of the rows come before those at another."""

Finish = Callable[[LoweringContext, Indices, list[Scalar], Register], None]
"""Stores the elements that belong at some indices of the result, given their original place in the rows."""


@dataclass(frozen=True)
class Sorting:
    """A sorting problem: the rows of `operands` along `dimension`, of which the first `count` elements are needed."""

    op: Operation
    operands: Sequence[Value]
    dimension: int
    count: int
    less: Less
    finish: Finish

    @property
    def extent(self) -> int:
        return self.operands[0].type.shape[self.dimension]

    @property
    def scratch_bytes(self) -> int:
        """The scratch memory of one row: its elements, and their places twice."""
        each = sum(operand.type.dtype.itemsize for operand in self.operands) + 2 * I64.dtype.itemsize
        return self.extent * each

    def variables(self) -> tuple[list[Variable], list[Variable]]:
        """Returns new loop variables for all dimensions, and those of the dimensions that are not sorted along."""
        variables = fresh(self.operands[0].type.shape)
        return variables, [v for d, v in enumerate(variables) if d != self.dimension]

    def at(self, variables: Sequence[Variable], along: Variable) -> Indices:
        """Returns the indices with `along` in place of the sorted dimension's variable."""
        return indices_of([along if d == self.dimension else v for d, v in enumerate(variables)])

    def known(self, place: Scalar) -> Index:
        """Returns a place in the row as an index."""
        assert isinstance(place, Register)
        return variable(RunTimeIndex(place, self.extent - 1))

    def end(self, ctx: LoweringContext, rows: Sequence[Row], order: Row, at: Indices) -> None:
        """Stores the elements that belong at the indices `at` of the result."""
        place = order.load(ctx, at[self.dimension])
        source = ctx.b.convert(place, "i64")  # type: ignore[arg-type]
        self.finish(ctx, at, [row.load(ctx, self.known(source)) for row in rows], place)  # type: ignore[arg-type]


@kernel(ops.Sort)
def sort(launches: Launches, op: ops.Sort) -> None:
    dimension = op.dimension % op.inputs[0].type.rank

    def less(ctx: LoweringContext, one: list[Scalar], other: list[Scalar]) -> Register:
        pairs = [scalar for pair in zip(one, other, strict=True) for scalar in pair]
        return ctx.region(op.comparator, pairs)[0]  # type: ignore[return-value]

    def finish(ctx: LoweringContext, at: Indices, elements: list[Scalar], _: Register) -> None:
        for result, element in zip(op.results, elements, strict=True):
            ctx.store(result, at, element)

    _sort(launches, Sorting(op, op.inputs, dimension, op.inputs[0].type.shape[dimension], less, finish))


@kernel(ops.TopK)
def top_k(launches: Launches, op: ops.TopK) -> None:
    """The first `k` elements of a stable sort in descending order; NaN is greater than all numbers."""

    def greater(ctx: LoweringContext, one: list[Scalar], other: list[Scalar]) -> Register:
        return _is_greater(ctx, one[0], other[0])  # type: ignore[arg-type]

    def finish(ctx: LoweringContext, at: Indices, elements: list[Scalar], place: Register) -> None:
        ctx.store(op.values, at, elements[0])
        ctx.store(op.indices, at, ctx.b.convert(place, "i32"))

    _sort(launches, Sorting(op, [op.operand], op.operand.type.rank - 1, op.k, greater, finish))


def _is_greater(ctx: LoweringContext, one: Register, other: Register) -> Register:
    total = one.dtype.startswith(("f", "bf"))
    return ctx.b.compare("GT", one, other, total_order=total)


def _sort(launches: Launches, sorting: Sorting) -> None:
    limits, (_, outer) = launches.target.fusion, sorting.variables()
    rows = math.prod(v.extent for v in outer)
    if sorting.scratch_bytes <= limits.scratch_bytes and (rows > 1 or sorting.extent <= limits.serial_row):
        _sort_in_scratch(launches, sorting)
    else:
        _sort_in_passes(launches, sorting)


def _sort_in_scratch(launches: Launches, sorting: Sorting) -> None:
    variables, outer = sorting.variables()
    with launches.kernel() as ctx, ctx.nest(outer):
        rows = [_copied_row(ctx, sorting, operand, variables) for operand in sorting.operands]
        source, target = (Row(ctx.scratch(I64, [sorting.extent])) for _ in range(2))
        along = variables[sorting.dimension]
        with ctx.parallel([along]):
            _begin(ctx, source, along, I64)
        for width in _widths(sorting.extent):
            runs = Variable(-(-sorting.extent // (2 * width)))
            with ctx.parallel([runs]):
                _merge(ctx, sorting, rows, (source, target), runs, width)
            source, target = target, source
        first = Variable(sorting.count)
        with ctx.parallel([first]):
            sorting.end(ctx, rows, source, sorting.at(variables, first))


def _copied_row(ctx: LoweringContext, sorting: Sorting, operand: Value, variables: Sequence[Variable]) -> Row:
    """Copies a row to scratch: its elements may be computed, and then are computed only once, or be far apart in
    memory."""
    along = variables[sorting.dimension]
    row = Row(ctx.scratch(operand.type.element_type, [along.extent]))
    with ctx.parallel([along]):
        row.store(ctx, indices_of([along])[0], ctx.element(operand, indices_of(variables)))
    return row


def _sort_in_passes(launches: Launches, sorting: Sorting) -> None:
    variables, outer = sorting.variables()
    around = indices_of(outer)
    before, after = around[: sorting.dimension], around[sorting.dimension :]
    rows = [Row(_stored(launches, sorting, n), before, after) for n in range(len(sorting.operands))]
    # Passes over less memory are faster.
    place = I32 if sorting.extent < 1 << 31 else I64
    kind = tensor(*(v.extent for v in outer), sorting.extent, of=place)
    source, target = (Row(Temporary(kind, sorting.op), around) for _ in range(2))
    along = variables[sorting.dimension]
    with launches.kernel("_begin") as ctx, ctx.nest([*outer, along]):
        _begin(ctx, source, along, place)
    for width in _widths(sorting.extent):
        runs = Variable(-(-sorting.extent // (2 * width)))
        with launches.kernel(f"_merge{width}") as ctx, ctx.nest([*outer, runs]):
            _merge(ctx, sorting, rows, (source, target), runs, width)
        source, target = target, source
    first = Variable(sorting.count)
    with launches.kernel("_end") as ctx, ctx.nest([first if v is along else v for v in variables]):
        sorting.end(ctx, rows, source, sorting.at(variables, first))


def _stored(launches: Launches, sorting: Sorting, number: int) -> Argument:
    """Returns an operand that is in memory; if it is computed in these launches, that is a temporary."""
    operand = sorting.operands[number]
    if operand.defining_op not in launches.members:
        return operand
    stored, variables = Temporary(operand.type, sorting.op), fresh(operand.type.shape)
    with launches.kernel(f"_operand{number}") as ctx, ctx.nest(variables):
        ctx.store(stored, indices_of(variables), ctx.element(operand, indices_of(variables)))
    return stored


def _widths(extent: int) -> list[int]:
    """Returns the widths of the runs that the passes merge."""
    return [1 << n for n in range((extent - 1).bit_length())]


def _begin(ctx: LoweringContext, order: Row, along: Variable, kind: Type) -> None:
    """Stores the initial order: every element at its original place."""
    (index,) = indices_of([along])
    order.store(ctx, index, ctx.b.convert(ctx.position(index), dtype_of(kind)))


def _merge(
    ctx: LoweringContext, sorting: Sorting, rows: Sequence[Row], order: tuple[Row, Row], runs: Variable, width: int
) -> None:
    """Merges a run of `width` elements with the next run, from the first of `order` to the second. Of equal elements,
    the left one goes first."""
    b, extent, (source, target) = ctx.b, sorting.extent, order
    start = ctx.position(indices_of([runs])[0] * (2 * width))
    middle = b.apply("minimum", b.add(start, width), extent)
    end = b.apply("minimum", b.add(start, 2 * width), extent)
    frame = b.sequential(b.subtract(end, start), inits=[start, middle])
    with frame, ctx.scope():
        left, right = frame.carried
        one, other = (source.load(ctx, sorting.known(b.apply("minimum", side, extent - 1))) for side in frame.carried)
        elements = [
            [row.load(ctx, sorting.known(b.convert(place, "i64"))) for row in rows]  # type: ignore[arg-type]
            for place in (other, one)
        ]
        more_left, more_right = b.compare("LT", left, middle), b.compare("LT", right, end)
        other_first = sorting.less(ctx, *elements)
        takes_right = b.apply("and", more_right, b.apply("or", b.apply("not", more_left), other_first))
        index = variable(RunTimeIndex(start, extent - 1)) + variable(RunTimeIndex(frame.index, extent - 1))
        target.store(ctx, index, b.select(takes_right, other, one))  # type: ignore[arg-type]
        step = b.convert(takes_right, "i64")
        frame.yield_(b.add(left, b.subtract(b.index(1), step)), b.add(right, step))
