"""Boxes and windows at computed places: `dynamic_slice`, `gather`, and the updates in place, `dynamic_update_slice` and
`scatter`."""

from __future__ import annotations

from trivium.compiler.kernel import Buffer
from trivium.compiler.kernel import Value as Register
from trivium.compiler.lowering.context import Context
from trivium.compiler.lowering.index import Index, Indices, constant, fresh, places, variable
from trivium.compiler.lowering.reduction import widened
from trivium.compiler.lowering.rules import element, kernel
from trivium.compiler.lowering.scalars import Scalar
from trivium.ir import ops
from trivium.ir.core import Value


@element(ops.DynamicSlice)
def dynamic_slice(ctx: Context, op: ops.DynamicSlice, indices: Indices) -> Scalar:
    starts = _box(ctx, op.start_indices, op.operand.type.shape, op.slice_sizes)
    return ctx.element(op.operand, tuple(map(Index.__add__, starts, indices)))


@kernel(ops.DynamicUpdateSlice, in_place="operand")
def dynamic_update_slice(ctx: Context, op: ops.DynamicUpdateSlice) -> None:
    """Writes the box; the rest of the operand is there already."""
    shape = op.update.type.shape
    target = ctx.buffer(op.result, op.result.type.shape, "inout")
    starts = _box(ctx, op.start_indices, op.operand.type.shape, shape)
    variables = fresh(shape)
    with ctx.parallel(variables):
        at = places(variables)
        ctx.write(target, tuple(map(Index.__add__, starts, at)), ctx.element(op.update, at))


def _box(ctx: Context, start_indices: tuple[Value, ...], shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[Index]:
    """Where a box of these sizes starts, moved so that it lies inside."""
    starts = []
    for start, extent, size in zip(start_indices, shape, sizes, strict=True):
        starts.append(constant(0) if extent == size else ctx.known(ctx.real(start), extent, size))
    return starts


@element(ops.Gather, repeats=True)
def gather(ctx: Context, op: ops.Gather, indices: Indices) -> Scalar:
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


def _coordinate(ctx: Context, listed: Value, batch: list[Index], vector_dimension: int, component: int) -> Register:
    """One coordinate of a place that a tensor of indices lists."""
    if vector_dimension == listed.type.rank:
        return ctx.real(listed, tuple(batch))
    at = (*batch[:vector_dimension], constant(component), *batch[vector_dimension:])
    return ctx.real(listed, at)


@kernel(ops.Scatter, in_place="inputs")
def scatter(ctx: Context, op: ops.Scatter) -> None:
    """Places one after the other, since two may be the same; the elements of a window at once. A program may promise
    that no two are (`unique_indices`); one that breaks it shall get what other compilers give, not a race."""
    numbers = op.scatter_dimension_numbers
    shape = op.updates[0].type.shape
    targets = [_target(ctx, *pair) for pair in zip(op.inputs, op.results, strict=True)]
    variables = fresh(shape)
    listed = [v for d, v in enumerate(variables) if d not in numbers.update_window_dims]
    window = [v for d, v in enumerate(variables) if d in numbers.update_window_dims]
    order = [v for v in listed if v.extent != 1]
    at = places(variables)
    if not order:
        _scatter_window(ctx, op, targets, at, window)
        return
    with ctx.inside(ctx.b.sequential(*[v.extent for v in order]), order):
        _scatter_window(ctx, op, targets, at, window)


def _target(ctx: Context, operand: Value, result: Value) -> Buffer:
    """The buffer to update: it holds the operand already, unless that has another type."""
    if operand.type.element_type is result.type.element_type:
        return ctx.buffer(result, result.type.shape, "inout")
    target = ctx.buffer(result, result.type.shape, "out")
    variables = fresh(result.type.shape)
    with ctx.parallel(variables):
        at = places(variables)
        ctx.write(target, at, widened(ctx, ctx.element(operand, at), result.type.element_type))
    return target


def _scatter_window(ctx: Context, op: ops.Scatter, targets: list, at: Indices, window: list) -> None:
    numbers = op.scatter_dimension_numbers
    shape = op.inputs[0].type.shape
    listed = [index for d, index in enumerate(at) if d not in numbers.update_window_dims]
    starts: dict[int, Register] = {}
    for component, dimension in enumerate(numbers.scatter_dims_to_operand_dims):
        start = _coordinate(ctx, op.scatter_indices, listed, numbers.index_vector_dim, component)
        if start.dtype == "ui64":  # beyond the extent is outside, and must not become negative
            start = ctx.b.apply("minimum", start, ctx.b.constant(shape[dimension], "ui64"))
        starts[dimension] = ctx.b.convert(start, "i64")
    with ctx.parallel(window):
        inside: Register | None = None
        offsets = iter([at[dimension] for dimension in numbers.update_window_dims])
        place: list[Index] = []
        for dimension, extent in enumerate(shape):
            inserted = dimension in numbers.inserted_window_dims
            if dimension in numbers.input_batching_dims:
                listed_along = numbers.scatter_indices_batching_dims[numbers.input_batching_dims.index(dimension)]
                place.append(listed[listed_along - (listed_along > numbers.index_vector_dim)])
                continue
            offset = constant(0) if inserted else next(offsets)
            if dimension in starts:
                along = variable(starts[dimension]) + offset
                register = ctx.position(along)
                test = ctx.b.apply("and", ctx.b.compare("GE", register, 0), ctx.b.compare("LT", register, extent))
                inside = test if inside is None else ctx.b.apply("and", inside, test)
                place.append(along)
            else:
                place.append(offset)
        if inside is None:
            _update(ctx, op, targets, tuple(place), at)
            return
        with ctx.block(ctx.b.if_(inside)):
            _update(ctx, op, targets, tuple(place), at)


def _update(ctx: Context, op: ops.Scatter, targets: list, place: Indices, at: Indices) -> None:
    updates = [ctx.element(update, at) for update in op.updates]
    old = [ctx.read(target, place) for target in targets]
    arguments = op.update_computation.arguments
    scalars = [
        widened(ctx, scalar, argument.type.element_type)
        for scalar, argument in zip([*old, *updates], arguments, strict=True)
    ]
    results = ctx.region(op.update_computation, scalars)
    for target, result, scalar in zip(targets, op.results, results, strict=True):
        ctx.write(target, place, widened(ctx, scalar, result.type.element_type))
