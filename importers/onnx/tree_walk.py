"""How trees are evaluated: all of them go one step at a time, for all rows at once. A leaf leads to itself, so that
after as many steps as the deepest tree has, each tree is at the leaf that it leads to."""

from __future__ import annotations

import numpy as np

from trivium.importers.emit import neutral
from trivium.importers.onnx.context import Context
from trivium.importers.onnx.forests import MEMBER, MODES, Forest
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import I32

UNROLLED = 64
"""The depth up to which steps are written out; deeper trees are evaluated in a loop."""


def reached_leaves(ctx: Context, rows: Value, forest: Forest) -> Value:
    """Returns the leaf that each tree leads to for each row: `[rows, trees]`."""
    width = rows.type.shape[1]
    if width is not None and forest.features.max(initial=0) >= width:
        raise Error(
            f"nodes_featureids has {forest.features.max()}, X has type {rows.type}, expected one of its features"
        )
    at = ctx.broadcast(ctx.elements(forest.roots[None]), [ctx.extent(rows, 0), len(forest.roots)])
    if forest.depth <= UNROLLED:
        for _ in range(forest.depth):
            at = _step(ctx, rows, forest, at)
        return at
    types = [at.type, ctx.scalar(0, I32).type]
    goes_on = ctx.region(types, lambda emit, _, turn: emit.compare("LT", turn, emit.scalar(forest.depth, I32)))
    turned = ctx.region(
        types, lambda emit, at, turn: (_step(emit, rows, forest, at), emit.plus(turn, emit.scalar(1, I32)))
    )
    return ctx.add(ops.While([at, ctx.scalar(0, I32)], goes_on, turned))[0]


def _step(ctx: Context, rows: Value, forest: Forest, at: Value) -> Value:
    value = _feature(ctx, rows, ctx.take(ctx.elements(forest.features), at))
    holds = _holds(ctx, value, forest, at)
    if forest.tracks.any():
        tracks = ctx.take(ctx.elements(forest.tracks), at)
        holds = ctx.binary(ops.Or, holds, ctx.binary(ops.And, tracks, ctx.compare("NE", value, value)))
    way = ctx.plus(ctx.scaled(at, 2), ctx.convert(holds, I32))
    return ctx.take(ctx.elements(forest.leads.reshape(-1)), way)


def _feature(ctx: Context, rows: Value, feature: Value) -> Value:
    """Returns the feature of each row that each tree asks for."""
    numbers = ops.GatherDimensionNumbers(
        collapsed_slice_dims=(1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,), start_index_map=(1,),
        index_vector_dim=2,
    )  # fmt: skip
    return ctx.gather(rows, ctx.unsqueeze(feature, [2]), numbers, [1, 1])


def _holds(ctx: Context, value: Value, forest: Forest, at: Value) -> Value:
    """Whether the condition of each node holds."""
    split = ctx.take(ctx.elements(forest.splits), at)
    first, *others = (
        (mode, _is_member(ctx, value, forest, at) if mode == MEMBER else ctx.compare(MODES[mode], value, split))
        for mode in forest.used_modes
    )
    holds = first[1]
    for mode, found in others:
        here = ctx.take(ctx.elements(forest.modes), at)
        holds = ctx.select(ctx.compare("EQ", here, ctx.scalar(mode, I32)), found, holds)
    return holds


def _is_member(ctx: Context, value: Value, forest: Forest, at: Value) -> Value:
    same = ctx.compare("EQ", ctx.take(ctx.elements(forest.members), at), ctx.unsqueeze(value, [2]))
    return ctx.reduce(ops.Or, same, [2])


def combined(ctx: Context, leaf: Value, forest: Forest, aggregation: str = "SUM") -> Value:
    """Returns the weights of all trees for each target: their sum, mean, least or largest one, 0 if there are none."""
    op = {"MIN": ops.Minimum, "MAX": ops.Maximum}.get(aggregation, ops.Add)
    none = forest.weights.dtype.type(neutral(op, ctx.elements(forest.weights[:0]).type.element_type))
    found = ctx.reduce(op, ctx.take(ctx.elements(np.where(forest.has_weight, forest.weights, none)), leaf), [1])
    if aggregation == "AVERAGE":
        return ctx.scaled(found, 1 / len(forest.roots))
    if op is ops.Add or all(map(forest.always_has, range(forest.weights.shape[1]))):
        return found
    return ctx.select(with_weight(ctx, leaf, forest), found, ctx.scalar(0, found.type.element_type))


def with_weight(ctx: Context, leaf: Value, forest: Forest) -> Value:
    """Returns which targets have a weight in a leaf that a tree leads to."""
    return ctx.reduce(ops.Or, ctx.take(ctx.elements(forest.has_weight), leaf), [1])
