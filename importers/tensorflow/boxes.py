"""Boxes in images: the best ones, without those that overlap them."""

from __future__ import annotations

import math

import numpy as np

from trivium.importers.tensorflow.context import Context, Known, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32


@rule("NonMaxSuppressionV4")
def non_max_suppression(
    ctx: Context,
    boxes: Value,
    scores: Value,
    max_output_size: Known,
    iou_threshold: Value,
    score_threshold: Value,
    *,
    pad_to_max_output_size: bool,
) -> tuple[Value, Value]:
    """NonMaxSuppressionV4(boxes, scores, max_output_size, iou_threshold, score_threshold;
    pad_to_max_output_size=false) -> selected_indices, valid_outputs"""
    if not pad_to_max_output_size:
        ctx.unsupported("pad_to_max_output_size", False, "true: the number of boxes depends on their values")
    boxes, scores, most_shared, least = (ctx.convert(x, F32) for x in (boxes, scores, iou_threshold, score_threshold))
    size = int(max_output_size)
    sides = _sides(ctx, boxes)
    out = ctx.scalar(-math.inf, F32)
    rest = ctx.select(ctx.compare("GT", scores, least), scores, out)
    start = [ctx.scalar(0, I32), ctx.full((size,), 0, I32), rest]
    types = [x.type for x in start]

    def goes_on(emit: Context, count: Value, chosen: Value, rest: Value) -> Value:
        remains = emit.reduce(ops.Or, emit.compare("GT", rest, out), [0])
        return emit.add(ops.And(emit.compare("LT", count, emit.scalar(size, I32)), remains))

    def step(emit: Context, count: Value, chosen: Value, rest: Value) -> list[Value]:
        _, at = emit.arg_reduce("GT", rest, 0)
        is_best = emit.compare("EQ", emit.iota(rest.type.static_shape, 0), at)
        overlaps = emit.compare("GT", _shared(emit, sides, at), most_shared)
        gone = emit.add(ops.Or(is_best, overlaps))
        index = emit.reshape(emit.convert(at, I32), (1,))
        chosen = emit.add(ops.DynamicUpdateSlice(chosen, index, [count]))
        return [emit.plus(count, emit.scalar(1, I32)), chosen, emit.select(gone, out, rest)]

    loop = ops.While(start, cond=ctx.region(types, goes_on), body=ctx.region(types, step))
    count, chosen, _ = ctx.add(loop)
    return chosen, count


def _sides(ctx: Context, boxes: Value) -> list[Value]:
    """Returns the top, left, bottom and right of each box, whose corners may be any two opposite ones."""
    columns = [ctx.squeeze(ctx.slice(boxes, 1, i, i + 1), [1]) for i in range(4)]
    return [ctx.binary(op, columns[i], columns[i + 2]) for op in (ops.Minimum, ops.Maximum) for i in range(2)]


def _shared(ctx: Context, sides: list[Value], at: Value) -> Value:
    """Returns the area that each box shares with one of them, as a part of the area that the two cover."""
    top, left, bottom, right = sides
    own = [ctx.add(ops.DynamicSlice(side, [at], slice_sizes=(1,))) for side in sides]
    nothing = ctx.scalar(0, F32)

    def extent(low: Value, high: Value) -> Value:
        return ctx.binary(ops.Maximum, ctx.minus(high, low), nothing)

    def area(top: Value, left: Value, bottom: Value, right: Value) -> Value:
        return ctx.times(extent(top, bottom), extent(left, right))

    starts = [ctx.binary(ops.Maximum, mine, theirs) for mine, theirs in zip(own[:2], (top, left), strict=True)]
    ends = [ctx.binary(ops.Minimum, mine, theirs) for mine, theirs in zip(own[2:], (bottom, right), strict=True)]
    common, mine, theirs = area(*starts, *ends), area(*own), area(*sides)
    part = ctx.over(common, ctx.minus(ctx.plus(mine, theirs), common))
    smaller = ctx.binary(ops.Minimum, mine, theirs)
    return ctx.select(ctx.compare("GT", smaller, nothing), part, nothing)


@rule("NonMaxSuppressionV3")
def non_max_suppression_known(
    ctx: Context, boxes: Known, scores: Known, max_output_size: Known, iou_threshold: Known, score_threshold: Known
) -> np.ndarray:
    """NonMaxSuppressionV3(boxes, scores, max_output_size, iou_threshold, score_threshold) -> selected_indices: as many
    as there are, so their number must be known"""
    wide = boxes.astype(np.float32)
    low, high = np.minimum(wide[:, :2], wide[:, 2:]), np.maximum(wide[:, :2], wide[:, 2:])
    area = (high - low).prod(1)
    chosen: list[int] = []
    for at in np.argsort(-scores.astype(np.float32), kind="stable"):
        if len(chosen) >= max_output_size or not scores[at] > score_threshold:
            break
        shared = np.maximum(np.minimum(high[at], high[chosen]) - np.maximum(low[at], low[chosen]), 0).prod(1)
        is_solid = (area[at] > 0) & (area[chosen] > 0)
        parts = np.where(is_solid, shared / np.maximum(area[at] + area[chosen] - shared, 1e-38), 0)
        if not (parts > np.float32(iou_threshold)).any():
            chosen.append(int(at))
    return np.array(chosen, np.int32)
