"""Branches and loops; their graphs can use the values around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from trivium.importers.context import evaluate_known
from trivium.importers.dynamic import Extent, Size, larger, scalar_of
from trivium.importers.onnx.context import Context, Operand, axis_of, rule
from trivium.importers.onnx.files import array_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1, I64, TensorType


@rule("If")
def if_(
    ctx: Context, condition: Value, then_branch: onnx.GraphProto, else_branch: onnx.GraphProto
) -> Sequence[Operand]:
    """If(cond, then_branch, else_branch): a condition that is known while importing chooses the graph"""
    known = evaluate_known(condition)
    if known is not None:
        return ctx.inline(then_branch if known.item() else else_branch)
    branches = [ctx.region([], lambda emit, graph=graph: emit.values(graph)) for graph in (then_branch, else_branch)]
    return ctx.add(ops.If(ctx.reshape(condition, ()), *branches))


@rule("Loop")
def loop(
    ctx: Context, trips: Value | None, condition: Value | None, *carried: Value, body: onnx.GraphProto
) -> Sequence[Value]:
    """Loop(M, cond, v_initial, body): what the body returns beyond the carried values is collected, a row each turn"""
    limit = ctx.scalar(np.iinfo(np.int64).max, I64) if trips is None else ctx.convert(ctx.reshape(trips, ()), I64)
    going = ctx.scalar(True, I1) if condition is None else ctx.reshape(condition, ())
    count = len(body.output) - 1 - len(carried)
    state = [ctx.scalar(0, I64), going, *carried]
    rows = _collected(ctx, body, limit if trips is not None else None, state, count) if count else []
    state += rows
    types = [value.type for value in state]

    def goes_on(emit: Context, turn: Value, going: Value, *values: Value) -> Value:
        return emit.add(ops.And(emit.compare("LT", turn, limit), going))

    def turn_body(emit: Context, turn: Value, going: Value, *values: Value) -> list[Value]:
        old, full = values[: len(carried)], values[len(carried) :]
        again, *results = emit.values(body, turn, going, *old)
        results, made = results[: len(carried)], results[len(carried) :]
        for index, (result, kind) in enumerate(zip(results, types[2:], strict=False)):
            if result.type is not kind:
                emit.unsupported(
                    "body", f"{result.type} for value {index}, which was {kind}", "shapes that do not change"
                )
        written = [_written(emit, rows, row, turn) for rows, row in zip(full, made, strict=True)]
        return [emit.plus(turn, emit.scalar(1, I64)), emit.reshape(again, ()), *results, *written]

    final = ctx.add(ops.While(state, ctx.region(types, goes_on), ctx.region(types, turn_body)))
    turns = Size(ctx, final[0], is_extent=True)
    if not _runs_to_the_end(ctx, body, going):
        final = [*final[: 2 + len(carried)], *(ctx.slice(x, 0, 0, turns) for x in final[2 + len(carried) :])]
    return list(final[2:])


def _runs_to_the_end(ctx: Context, body: onnx.GraphProto, going: Value) -> bool:
    """Whether a loop has as many iterations as its limit: its condition is true, and the body passes it on."""
    sources = {node.output[0]: node.input[0] for node in body.node if node.op_type == "Identity"}
    known = evaluate_known(going)
    name = body.output[0].name
    while name in sources:
        name = sources[name]
    made = [node for node in body.node if name in node.output and node.op_type == "Constant"]
    always = name == body.input[1].name or any(_is_true(node, ctx.folder) for node in made)
    return known is not None and bool(known) and always


def _is_true(constant: onnx.NodeProto, folder: str) -> bool:
    tensors = [attribute.t for attribute in constant.attribute if attribute.name == "value"]
    return any(bool(array_of(tensor, folder).all()) for tensor in tensors)


def _collected(
    ctx: Context, body: onnx.GraphProto, limit: Value | None, state: Sequence[Value], count: int
) -> list[Value]:
    """Returns room for the rows that a loop collects."""
    if limit is None:
        ctx.unsupported("M", "no trip count", "one, for outputs that grow by a row in each iteration")
    known = evaluate_known(limit)
    turns: Extent = max(int(known), 0) if known is not None else larger(ctx, Size(ctx, limit), 0)
    types = _row_types(ctx, body, state)[-count:]
    return [ctx.full((turns, *kind.static_shape), 0, kind.element_type) for kind in types]


def _row_types(ctx: Context, body: onnx.GraphProto, state: Sequence[Value]) -> list[TensorType]:
    """Returns the types of what a body returns for values of these types, by a conversion that is dropped."""
    found: list[TensorType] = []

    def tried(emit: Context, *values: Value) -> list[Value]:
        results = emit.values(body, *values)
        found.extend(result.type for result in results)
        return results

    ctx.region([value.type for value in state], tried)
    return found


def _written(emit: Context, rows: Value, row: Value, at: Value) -> Value:
    """Returns rows of which one is replaced."""
    zero = emit.scalar(0, I64)
    starts = [at, *[zero] * row.type.rank]
    return emit.add(ops.DynamicUpdateSlice(rows, emit.unsqueeze(row, [0]), starts))


@rule("Scan", since=9)
def scan(
    ctx: Context, *values: Value, body: onnx.GraphProto, num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None, scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None, scan_output_directions: Sequence[int] | None = None,
) -> Sequence[Value]:  # fmt: skip
    """Scan(initial_state_and_scan_inputs, body, ...): over the rows of some inputs, which collects rows of outputs"""
    count = len(values) - num_scan_inputs
    axes = scan_input_axes or [0] * num_scan_inputs
    rows = [
        _rows_first(ctx, x, axis_of(axis, x.type.rank), bool(backward))
        for x, axis, backward in zip(values[count:], axes, scan_input_directions or [0] * num_scan_inputs, strict=True)
    ]
    results = scanned(ctx, body, values[:count], rows)
    collected = results[count:]
    axes, backward = scan_output_axes or [0] * len(collected), scan_output_directions or [0] * len(collected)
    moved = [
        _rows_back(ctx, x, axis_of(axis, x.type.rank), bool(turned))
        for x, axis, turned in zip(collected, axes, backward, strict=True)
    ]
    return [*results[:count], *moved]


@rule("Scan", since=8)
def first_scan(
    ctx: Context, lengths: Value | None, *values: Value, body: onnx.GraphProto, num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> Sequence[Value]:  # fmt: skip
    """Scan(sequence_lens, initial_state_and_scan_inputs, body, directions): each entry of a batch by itself"""
    if lengths is not None:
        ctx.unsupported("sequence_lens", "lengths", "none")
    entries = []
    for entry in range(values[0].type.static_shape[0]):
        mine = [ctx.squeeze(ctx.slice(x, 0, entry, entry + 1), [0]) for x in values]
        entries.append(
            scan(ctx, *mine, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions)
        )  # fmt: skip
    return [ctx.concatenate([ctx.unsqueeze(x, [0]) for x in same], 0) for same in zip(*entries, strict=True)]


def scanned(ctx: Context, body: onnx.GraphProto, state: Sequence[Value], rows: Sequence[Value]) -> list[Value]:
    """Returns the last state, and the collected outputs, of a body that is run for each row."""
    turns = ctx.extent(rows[0], 0)
    row_types = [TensorType(x.type.shape[1:], x.type.element_type) for x in rows]
    firsts = [ctx.full(kind.static_shape, 0, kind.element_type) for kind in row_types]
    made = _row_types(ctx, body, [*state, *firsts])[len(state) :]
    room = [ctx.full((turns, *kind.static_shape), 0, kind.element_type) for kind in made]
    carried = [ctx.scalar(0, I64), *state, *room]
    types = [value.type for value in carried]

    def goes_on(emit: Context, turn: Value, *values: Value) -> Value:
        return emit.compare("LT", turn, scalar_of(ctx, turns))

    def turn_body(emit: Context, turn: Value, *values: Value) -> list[Value]:
        taken = [emit.take(x, turn, 0) for x in rows]
        results = emit.values(body, *values[: len(state)], *taken)
        written = [
            _written(emit, old, row, turn) for old, row in zip(values[len(state) :], results[len(state) :], strict=True)
        ]
        return [emit.plus(turn, emit.scalar(1, I64)), *results[: len(state)], *written]

    scalar_of(ctx, turns)
    return list(ctx.add(ops.While(carried, ctx.region(types, goes_on), ctx.region(types, turn_body)))[1:])


def _rows_first(ctx: Context, x: Value, axis: int, backward: bool) -> Value:
    x = ctx.add(ops.Reverse(x, dimensions=(axis,))) if backward else x
    return ctx.transpose(x, [axis, *(d for d in range(x.type.rank) if d != axis)])


def _rows_back(ctx: Context, x: Value, axis: int, backward: bool) -> Value:
    order = list(range(1, x.type.rank))
    order.insert(axis, 0)
    x = ctx.transpose(x, order)
    return ctx.add(ops.Reverse(x, dimensions=(axis,))) if backward else x
