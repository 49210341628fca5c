"""Branches and loops; their graphs can use the values around them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import onnx

from trivium.importers.extents import Extent, Size, larger, scalar_of
from trivium.importers.onnx.context import Context, Listed, Operand, axis_of, require_same_length, rule
from trivium.importers.onnx.files import array_of
from trivium.ir import ops
from trivium.ir.core import Region, Value
from trivium.ir.errors import Error
from trivium.ir.known import evaluate_known
from trivium.ir.types import I1, I64, TensorType


@rule("If")
def if_(
    ctx: Context, condition: Value, then_branch: onnx.GraphProto, else_branch: onnx.GraphProto
) -> Sequence[Operand]:
    """If(cond, then_branch, else_branch): a condition that is known while importing chooses the graph"""
    known = evaluate_known(condition)
    if known is not None:
        return ctx.inline(then_branch if known.item() else else_branch)
    lengths: list[list[int | None]] = []  # of each result: how many tensors a sequence has, or that it is a tensor

    def converted(emit: Context, graph: onnx.GraphProto) -> list[Value]:
        results = emit.inline(graph)
        lengths.append([len(x) if isinstance(x, Listed) else None for x in results])
        flat = [x for entry in results for x in (entry if isinstance(entry, Listed) else (entry,))]
        return emit.tensors(flat, "then_branch or else_branch")

    branches = [
        ctx.region([], lambda emit, graph=graph: converted(emit, graph)) for graph in (then_branch, else_branch)
    ]
    if lengths[0] != lengths[1]:
        ctx.unsupported("else_branch", "other sequences than then_branch", "sequences of the same lengths")
    _open_extents(ctx, branches)
    results = iter(ctx.add(ops.If(ctx.reshape(condition, ()), *branches)))
    return [next(results) if length is None else Listed(islice(results, length)) for length in lengths[0]]


def _open_extents(ctx: Context, branches: Sequence[Region]) -> None:
    """Makes the extents in which the results of branches differ dynamic."""
    results = [[value.type for value in branch.terminator.operands] for branch in branches]
    if len(set(map(len, results))) > 1:
        return  # which the op rejects
    common = [_common(ctx, *kinds) for kinds in zip(*results, strict=True)]
    for branch in branches:
        end = branch.terminator
        emit = ctx.within(branch.block)
        emit.before = end
        values = [
            x if x.type is kind else emit.add(ops.DynamicReshape(x, emit.vector(emit.extents(x)), result=kind))
            for x, kind in zip(end.operands, common, strict=True)
        ]
        end.erase()
        emit.before = None
        emit.add(ops.Return(values))


def _common(ctx: Context, a: TensorType, b: TensorType) -> TensorType:
    """Returns a type that includes two, which differ in extents alone."""
    if a.rank != b.rank or a.element_type is not b.element_type:
        has = f"a result of type {b}"
        ctx.unsupported("else_branch", has, f"the element type and the number of dimensions of then_branch's, {a}")
    return a.with_shape([x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)])


@rule("Loop")
def loop(
    ctx: Context, trips: Value | None = None, condition: Value | None = None, *carried: Operand, body: onnx.GraphProto
) -> Sequence[Operand]:
    """Loop(M, cond, v_initial, body): what the body returns beyond the carried values is collected, a row each turn"""
    limit = ctx.scalar(np.iinfo(np.int64).max, I64) if trips is None else ctx.convert(ctx.reshape(trips, ()), I64)
    going = ctx.scalar(True, I1) if condition is None else ctx.reshape(condition, ())
    count = len(body.output) - 1 - len(carried)
    if (unrolled := _unrolled(ctx, body, limit, going, carried)) is not None:
        return unrolled
    initial = ctx.tensors(carried, "v_initial without a small number of iterations that is known while importing")
    state = [ctx.scalar(0, I64), going, *initial]
    turns = _most_turns(ctx, limit if trips is not None else None) if count else 0
    state += _collected(ctx, body, turns, state, count) if count else []
    types = [value.type for value in state]

    def goes_on(emit: Context, turn: Value, going: Value, *values: Value) -> Value:
        return emit.add(ops.And(emit.compare("LT", turn, limit), going))

    def turn_body(emit: Context, turn: Value, going: Value, *values: Value) -> list[Value]:
        old, full = values[: len(carried)], values[len(carried) :]
        again, *results = emit.turn(body, turn, turn, going, *old)
        results, made = results[: len(carried)], results[len(carried) :]
        for index, (result, kind) in enumerate(zip(results, types[2:], strict=False)):
            if result.type is not kind:
                emit.unsupported(
                    "body", f"{result.type} for value {index}, which was {kind}", "shapes that do not change"
                )
        written = [_written(emit, rows, row, turn) for rows, row in zip(full, made, strict=True)]
        return [emit.plus(turn, emit.scalar(1, I64)), emit.reshape(again, ()), *results, *written]

    final = ctx.add(ops.While(state, ctx.region(types, goes_on), ctx.region(types, turn_body)))
    turns = turns if _runs_to_the_end(ctx, body, going) else Size(ctx, final[0], is_extent=True)
    results = final[2:]
    return [*results[: len(carried)], *(ctx.slice(x, 0, 0, turns) for x in results[len(carried) :])]


MOST_TURNS = 64
"""The largest number of iterations of a loop that is unrolled, if its iterations differ."""

SELECTIONS = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Unique"})
"""Operators with results whose sizes depend on data."""


def _unrolled(
    ctx: Context, body: onnx.GraphProto, limit: Value, going: Value, carried: Sequence[Operand]
) -> list[Operand] | None:
    """Unrolls a loop whose iterations have values of different sizes. Returns its results; `None` if all iterations are
    alike, or if their number is not known while importing."""
    trips, again = evaluate_known(limit), evaluate_known(going)
    if trips is not None and trips <= 0 and len(body.output) == 1 + len(carried):
        return list(carried)
    if trips is None or not 0 < trips <= MOST_TURNS or again is None or not again:
        return None
    count = len(carried)
    if not _has_selections(body) and _stay_alike(ctx, body, going, carried):
        return None
    values, made = list(carried), []
    for turn in range(int(trips)):
        at = ctx.scalar(turn, I64)
        goes_on, *results = ctx.turned(at).inline(body, at, ctx.scalar(True, I1), *values)
        values = results[:count]
        made.append(ctx.tensors(results[count:], "body"))
        assert isinstance(goes_on, Value)
        if (again := evaluate_known(goes_on)) is None:
            return None
        if not again:
            break
    return [*values, *_stacked(ctx, made)]


def _stay_alike(ctx: Context, body: onnx.GraphProto, going: Value, carried: Sequence[Operand]) -> bool:
    """Whether carried values are tensors whose types no iteration changes."""
    values = [x for x in carried if isinstance(x, Value)]
    if len(values) < len(carried):
        return False
    types = _row_types(ctx, body, [ctx.scalar(0, I64), going, *values])[1 : len(values) + 1]
    return all(x.type is kind for x, kind in zip(values, types, strict=True))


def _stacked(ctx: Context, made: Sequence[Sequence[Value]]) -> list[Value]:
    """Returns what iterations have collected, a row each."""
    return [ctx.concatenate([ctx.unsqueeze(x, [0]) for x in rows], 0) for rows in zip(*made, strict=True)]


def _has_selections(graph: onnx.GraphProto) -> bool:
    inner = (attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g"))
    return any(node.op_type in SELECTIONS for node in graph.node) or any(map(_has_selections, inner))


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


def _most_turns(ctx: Context, limit: Value | None) -> Extent:
    """Returns the number of iterations that a loop has at most."""
    if limit is None:
        ctx.unsupported("M", "no trip count", "one, for outputs that grow by a row in each iteration")
    known = evaluate_known(limit)
    return max(int(known), 0) if known is not None else larger(ctx, Size(ctx, limit), 0)


def _collected(ctx: Context, body: onnx.GraphProto, turns: Extent, state: Sequence[Value], count: int) -> list[Value]:
    """Returns room for the rows that a loop collects, of which there is at least one."""
    types = _row_types(ctx, body, state)[-count:]
    if all(kind.is_static for kind in types):
        shapes = [kind.static_shape for kind in types]
    else:  # the sizes of a first iteration, of which nothing else is needed
        shapes = [ctx.extents(x) for x in ctx.values(body, *state)[-count:]]
    return [
        ctx.full((larger(ctx, turns, 1), *shape), 0, kind.element_type)
        for shape, kind in zip(shapes, types, strict=True)
    ]


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
    if not 0 < num_scan_inputs <= len(values):
        raise Error(f"num_scan_inputs has {num_scan_inputs}, expected a number from 1 to {len(values)}")
    axes, backward = scan_input_axes or [0] * num_scan_inputs, scan_input_directions or [0] * num_scan_inputs
    require_same_length(scan_inputs=values[count:], scan_input_axes=axes, scan_input_directions=backward)
    rows = [
        _rows_first(ctx, x, axis_of(axis, x.type.rank), bool(turned))
        for x, axis, turned in zip(values[count:], axes, backward, strict=True)
    ]
    results = scanned(ctx, body, values[:count], rows)
    collected = results[count:]
    axes, backward = scan_output_axes or [0] * len(collected), scan_output_directions or [0] * len(collected)
    require_same_length(scan_outputs=collected, scan_output_axes=axes, scan_output_directions=backward)
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
    if isinstance(turns, int) and 0 < turns <= MOST_TURNS and _has_selections(body):
        return _unrolled_scan(ctx, body, state, rows, turns)
    firsts = [ctx.full(ctx.extents(x)[1:], 0, x.type.element_type) for x in rows]
    count = len(body.output) - len(state)
    room = _collected(ctx, body, turns, [*state, *firsts], count) if count else []
    full = [ctx.not_empty(x) for x in rows]
    carried = [ctx.scalar(0, I64), *state, *room]
    types = [value.type for value in carried]

    def goes_on(emit: Context, turn: Value, *values: Value) -> Value:
        return emit.compare("LT", turn, scalar_of(ctx, turns))

    def turn_body(emit: Context, turn: Value, *values: Value) -> list[Value]:
        taken = [emit.take(x, turn, 0) for x in full]
        results = emit.turn(body, turn, *values[: len(state)], *taken)
        written = [
            _written(emit, old, row, turn) for old, row in zip(values[len(state) :], results[len(state) :], strict=True)
        ]
        return [emit.plus(turn, emit.scalar(1, I64)), *results[: len(state)], *written]

    scalar_of(ctx, turns)
    final = ctx.add(ops.While(carried, ctx.region(types, goes_on), ctx.region(types, turn_body)))[1:]
    return [*final[: len(state)], *(ctx.slice(x, 0, 0, turns) for x in final[len(state) :])]


def _unrolled_scan(
    ctx: Context, body: onnx.GraphProto, state: Sequence[Value], rows: Sequence[Value], turns: int
) -> list[Value]:
    values, made = list(state), []
    for turn in range(turns):
        at = ctx.scalar(turn, I64)
        results = ctx.turn(body, at, *values, *(ctx.take(x, at, 0) for x in rows))
        values = results[: len(state)]
        made.append(results[len(state) :])
    return [*values, *_stacked(ctx, made)]


def _rows_first(ctx: Context, x: Value, axis: int, backward: bool) -> Value:
    x = ctx.add(ops.Reverse(x, dimensions=(axis,))) if backward else x
    return ctx.transpose(x, [axis, *(d for d in range(x.type.rank) if d != axis)])


def _rows_back(ctx: Context, x: Value, axis: int, backward: bool) -> Value:
    order = list(range(1, x.type.rank))
    order.insert(axis, 0)
    x = ctx.transpose(x, order)
    return ctx.add(ops.Reverse(x, dimensions=(axis,))) if backward else x
