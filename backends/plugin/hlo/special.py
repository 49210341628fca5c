"""Ops that need more than one instruction, or computations with operands from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trivium.backends.plugin.hlo.blocks import bind, channel_of, results_shape, unpack, value_of, write_block, writes
from trivium.backends.plugin.hlo.computation import DIMENSIONS, Computation
from trivium.backends.plugin.hlo.instructions import ROWS
from trivium.backends.plugin.hlo.shapes import array_shape, shape_of, tuple_shape
from trivium.backends.plugin.hlo.wire import messages, number, numbers, text
from trivium.compiler.costs import free_values
from trivium.ir import ops
from trivium.ir.attributes import Dictionary
from trivium.ir.core import Region, Value
from trivium.ir.text.attributes import attribute_text


@writes(ops.Constant)
def _constant(computation: Computation, op: ops.Constant) -> None:
    """A constant, or the broadcast of one number."""
    array, element = op.value.array, op.result.type.element_type
    if array.ndim and array.size and op.value.is_uniform:
        number = computation.constant(array[(0,) * array.ndim], element, op.location)
        found = computation.add("broadcast", shape_of(op.result.type), [number], location=op.location)
    else:
        found = computation.constant(array, element, op.location)
    computation.known[op.result] = found


@writes(ops.BroadcastInDim)
def _broadcast(computation: Computation, op: ops.BroadcastInDim) -> None:
    """A broadcast, after a reshape that removes the dimensions that it extends: HLO repeats whole values only."""
    kind, result = op.operand.type, op.result.type.static_shape
    extents = kind.static_shape
    kept = [d for d, to in enumerate(op.broadcast_dimensions) if extents[d] == result[to]]
    operand = value_of(computation, op.operand)
    if len(kept) < len(extents):
        shape = array_shape([extents[d] for d in kept], kind.element_type)
        operand = computation.add("reshape", shape, [operand], location=op.location)
    places = numbers(DIMENSIONS, [op.broadcast_dimensions[d] for d in kept])
    bind(computation, op, computation.add("broadcast", results_shape(op), [operand], places, location=op.location))


@writes(ops.OptimizationBarrier)
def _barrier(computation: Computation, op: ops.OptimizationBarrier) -> None:
    for operand, result in zip(op.operands, op.results, strict=True):
        given = [value_of(computation, operand)]
        computation.known[result] = computation.add("opt-barrier", shape_of(result.type), given, location=op.location)


@writes(ops.CustomCall)
def _custom_call(computation: Computation, op: ops.CustomCall) -> None:
    operands = [value_of(computation, value) for value in op.operands]
    config = op.backend_config
    written = attribute_text(config) if isinstance(config, Dictionary) else str(config or "")
    fields = text(28, op.call_target_name) + text(43, written) + number(65, op.has_side_effect)
    aliases = (
        numbers(1, each.output_tuple_indices) + number(2, each.operand_index) + numbers(3, each.operand_tuple_indices)
        for each in op.output_operand_aliases
    )
    fields += messages(74, aliases) + number(77, op.api_version)
    bind(computation, op, computation.add("custom-call", results_shape(op), operands, fields, location=op.location))


@writes(ops.AllToAll)
def _all_to_all(computation: Computation, op: ops.AllToAll) -> None:
    """Exchanges of one array each: HLO exchanges parts along a dimension, and a transpose moves what comes from each
    device to another one."""
    split, concat, count = op.split_dimension, op.concat_dimension, op.split_count
    for value, result in zip(op.operands, op.results, strict=True):
        kind = value.type
        fields = ROWS[ops.AllToAll].fields(op) + channel_of(computation, op)
        given = [value_of(computation, value)]
        found = computation.add("all-to-all", shape_of(kind), given, fields, location=op.location)
        if split != concat:
            found = _moved(computation, found, value, split, concat, count)
        computation.known[result] = found


def _moved(computation: Computation, found: int, value: Value, split: int, concat: int, count: int) -> int:
    """Moves the parts along dimension `split` to dimension `concat`."""
    extents, element = list(value.type.static_shape), value.type.element_type
    divided = [*extents[:split], count, extents[split] // count, *extents[split + 1 :]]
    found = computation.add("reshape", array_shape(divided, element), [found])
    # The dimension of the parts moves in front of `concat`, which is one further if it follows `split`.
    order = [d for d in range(len(divided)) if d != split]
    place = order.index(concat + 1 if concat > split else concat)
    order.insert(place, split)
    turned = [divided[d] for d in order]
    found = computation.add("transpose", array_shape(turned, element), [found], numbers(DIMENSIONS, order))
    joined = [*turned[:place], turned[place] * turned[place + 1], *turned[place + 2 :]]
    return computation.add("reshape", array_shape(joined, element), [found])


# Loops and branches


@writes(ops.While)
def _while(computation: Computation, op: ops.While) -> None:
    """A loop, whose state also has what it reads from outside."""
    outside = _outside(free_values(op))
    state = computation.tuple([value_of(computation, value) for value in (*op.operands, *outside)])
    condition, _ = _entered(computation, "condition", op.cond, outside)
    (again,) = write_block(condition, op.cond.block)
    body, given = _entered(computation, "body", op.body, outside)
    kept = [_kept(body, value, given, index) for index, value in enumerate(outside, len(op.operands))]
    next_state = [*write_block(body, op.body.block), *kept]
    called = [body.finish(body.tuple(next_state)), condition.finish(again)]
    found = computation.add("while", computation.shape(state), [state], called=called, location=op.location)
    unpack(computation, found, op.results)


@writes(ops.If, ops.Case)
def _branches(computation: Computation, op: ops.If | ops.Case) -> None:
    """A choice of computations, each with a tuple of what it reads."""
    called, operands = [], [value_of(computation, op.operands[0])]
    for region in op.regions:
        outside = _outside(region.free_values())
        inner, _ = _entered(computation, "branch", region, outside)
        called.append(inner.finish(inner.tuple(write_block(inner, region.block))))
        operands.append(computation.tuple([value_of(computation, value) for value in outside]))
    shape = tuple_shape([shape_of(value.type) for value in op.results])
    found = computation.add("conditional", shape, operands, called=called, location=op.location)
    unpack(computation, found, op.results)


def _kept(body: Computation, value: Value, state: int, index: int) -> int:
    """Returns a value from outside for the next iteration."""
    return body.known[value] if value in body.known else body.element(state, index, shape_of(value.type))


def _outside(values: Iterable[Value]) -> list[Value]:
    """Returns what regions read from outside, except constants, of which computations have copies."""
    return [value for value in values if not isinstance(value.defining_op, ops.Constant)]


def _entered(computation: Computation, name: str, region: Region, outside: Sequence[Value]) -> tuple[Computation, int]:
    """Returns a computation with one parameter, and this: a tuple of the region's arguments and of values from
    outside."""
    inner = Computation(computation.program, name, computation.fuses)
    values = (*region.arguments, *outside)
    shapes = [shape_of(value.type) for value in values]
    state = inner.parameter(tuple_shape(shapes), "arg_tuple")
    used = {*region.arguments, *region.free_values()}
    for index, (value, shape) in enumerate(zip(values, shapes, strict=True)):
        if value in used and value.uses:
            inner.known[value] = inner.element(state, index, shape)
    return inner, state
