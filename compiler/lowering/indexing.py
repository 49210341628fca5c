"""Boxes and windows at computed places: `dynamic_slice`, `gather`, and the in-place updates `dynamic_update_slice` and
`scatter`."""

from __future__ import annotations

from trivium.compiler.kernel import Buffer, Register
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, Indices, constant, fresh, indices_of, variable
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.reduction import combine_into, widened
from trivium.compiler.lowering.rules import element, kernel
from trivium.compiler.lowering.scalars import Scalar
from trivium.ir import ops
from trivium.ir.core import Value


@element(ops.DynamicSlice)
def dynamic_slice(ctx: LoweringContext, op: ops.DynamicSlice, indices: Indices) -> Scalar:
    starts = box(ctx, op.start_indices, op.operand.type.shape, op.slice_sizes)
    return ctx.element(op.operand, tuple(map(Index.__add__, starts, indices)))


@kernel(ops.DynamicUpdateSlice, in_place="operand")
def dynamic_update_slice(launches: Launches, op: ops.DynamicUpdateSlice) -> None:
    """Writes the box; the rest of the operand is already in place."""
    shape = op.update.type.shape
    with launches.kernel() as ctx:
        target = ctx.buffer(op.result, op.result.type.shape, "inout")
        starts = box(ctx, op.start_indices, op.operand.type.shape, shape)
        variables = fresh(shape)
        with ctx.nest(variables):
            at = indices_of(variables)
            ctx.write(target, tuple(map(Index.__add__, starts, at)), ctx.element(op.update, at))


def box(
    ctx: LoweringContext, start_indices: tuple[Value, ...], shape: tuple[int, ...], sizes: tuple[int, ...]
) -> list[Index]:
    """Returns where a box of these sizes starts, moved so that it is inside."""
    starts = []
    for start, extent, size in zip(start_indices, shape, sizes, strict=True):
        starts.append(constant(0) if extent == size else ctx.known(ctx.real(start), extent, size))
    return starts


@element(ops.Gather, repeats=True)
def gather(ctx: LoweringContext, op: ops.Gather, indices: Indices) -> Scalar:
    numbers = op.dimension_numbers
    batch = [index for dimension, index in enumerate(indices) if dimension not in numbers.offset_dims]
    offsets = iter([indices[dimension] for dimension in numbers.offset_dims])
    fixed = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    shape, at = op.operand.type.shape, []
    for dimension, (extent, size) in enumerate(zip(shape, op.slice_sizes, strict=True)):
        place = constant(0)
        if dimension in numbers.start_index_map and extent != size:
            component = numbers.start_index_map.index(dimension)
            start = _coordinate(ctx, op.start_indices, batch, numbers.index_vector_dim, component)
            place = ctx.known(start, extent, size)
        if dimension in numbers.operand_batching_dims:
            along = numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(dimension)]
            place = batch[along - (along > numbers.index_vector_dim)]
        at.append(place if dimension in fixed else place + next(offsets))
    return ctx.element(op.operand, tuple(at))


def _coordinate(
    ctx: LoweringContext, listed: Value, batch: list[Index], vector_dimension: int, component: int
) -> Register:
    """Returns one coordinate of a place that a tensor of indices lists."""
    if vector_dimension == listed.type.rank:
        return ctx.real(listed, tuple(batch))
    at = (*batch[:vector_dimension], constant(component), *batch[vector_dimension:])
    return ctx.real(listed, at)


@kernel(ops.Scatter, in_place="inputs")
def scatter(launches: Launches, op: ops.Scatter) -> None:
    """Each listed place is an iteration, and each element of its window updates an element of the operand. A program
    may promise that no two places are the same (`unique_indices`); if it breaks the promise, the result is that of
    other compilers, not a race."""
    for operand, result in zip(op.inputs, op.results, strict=True):
        if operand.type.element_type is not result.type.element_type:
            _convert(launches, operand, result)
    if not op.updates[0].type.size:
        return
    numbers = op.scatter_dimension_numbers
    variables = fresh(op.updates[0].type.shape)
    listed = [v for d, v in enumerate(variables) if d not in numbers.update_window_dims]
    window = [v for d, v in enumerate(variables) if d in numbers.update_window_dims]
    with launches.kernel() as ctx:
        targets = [ctx.buffer(result, result.type.shape, "inout") for result in op.results]
        if all(v.extent == 1 for v in listed):
            starts = _starts(ctx, op, indices_of(variables))
            with ctx.nest(window):
                _scatter_element(ctx, op, targets, starts, indices_of(variables))
            return
        with ctx.nest(listed):
            starts = _starts(ctx, op, indices_of(variables))
            with ctx.parallel(window):
                _scatter_element(ctx, op, targets, starts, indices_of(variables))


def _convert(launches: Launches, operand: Value, result: Value) -> None:
    """Writes the operand to the result, which has a different element type."""
    variables = fresh(result.type.shape)
    with launches.kernel("_operand") as ctx, ctx.nest(variables):
        at = indices_of(variables)
        ctx.store(result, at, widened(ctx, ctx.element(operand, at), result.type.element_type))


def _listed(op: ops.Scatter, at: Indices) -> list[Index]:
    return [index for d, index in enumerate(at) if d not in op.scatter_dimension_numbers.update_window_dims]


def _starts(ctx: LoweringContext, op: ops.Scatter, at: Indices) -> dict[int, Register]:
    """Returns where a window starts along each listed dimension."""
    numbers, shape, listed = op.scatter_dimension_numbers, op.inputs[0].type.shape, _listed(op, at)
    starts: dict[int, Register] = {}
    for component, dimension in enumerate(numbers.scatter_dims_to_operand_dims):
        start = _coordinate(ctx, op.scatter_indices, listed, numbers.index_vector_dim, component)
        if start.dtype == "ui64":  # starts beyond the extent are outside, and must not become negative
            start = ctx.b.apply("minimum", start, ctx.b.constant(shape[dimension], "ui64"))
        starts[dimension] = ctx.b.convert(start, "i64")
    return starts


def _scatter_element(
    ctx: LoweringContext, op: ops.Scatter, targets: list[Buffer], starts: dict[int, Register], at: Indices
) -> None:
    """Updates the element that corresponds to the update at `at`, if there is one."""
    numbers, listed = op.scatter_dimension_numbers, _listed(op, at)
    inside: Register | None = None
    offsets = iter([at[dimension] for dimension in numbers.update_window_dims])
    place: list[Index] = []
    for dimension, extent in enumerate(op.inputs[0].type.shape):
        inserted = dimension in numbers.inserted_window_dims
        if dimension in numbers.input_batching_dims:
            along = numbers.scatter_indices_batching_dims[numbers.input_batching_dims.index(dimension)]
            place.append(listed[along - (along > numbers.index_vector_dim)])
            continue
        offset = constant(0) if inserted else next(offsets)
        if dimension in starts:
            moved = variable(starts[dimension]) + offset
            register = ctx.position(moved)
            test = ctx.b.apply("and", ctx.b.compare("GE", register, 0), ctx.b.compare("LT", register, extent))
            inside = test if inside is None else ctx.b.apply("and", inside, test)
            place.append(moved)
        else:
            place.append(offset)

    def update() -> None:
        values = [ctx.element(value, at) for value in op.updates]
        pairs = [(target, tuple(place)) for target in targets]
        combine_into(ctx, op.update_computation, pairs, values)

    if inside is None:
        update()
        return
    with ctx.block(ctx.b.if_(inside)):
        update()
