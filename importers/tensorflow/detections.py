"""The best boxes of many classes and images at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.extents import Extent, larger, smaller
from trivium.importers.tensorflow.boxes import shared_part, sides_of
from trivium.importers.tensorflow.context import Context, Tensor, rule
from trivium.importers.tensorflow.indexing import gathered_nd
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32


@rule("CombinedNonMaxSuppression")
def combined_non_max_suppression(
    ctx: Context,
    boxes: Value,
    scores: Value,
    max_output_size_per_class: Tensor,
    max_total_size: Tensor,
    iou_threshold: Value,
    score_threshold: Value,
    *,
    pad_per_class: bool,
    clip_boxes: bool,
) -> list[Value]:
    """CombinedNonMaxSuppression(boxes, scores, max_output_size_per_class, max_total_size, iou_threshold,
    score_threshold; pad_per_class=false, clip_boxes=true) -> nmsed_boxes, nmsed_scores, nmsed_classes,
    valid_detections: of equal scores, the first one; TensorFlow's kernel takes any"""
    (each,) = ctx.given_sizes(max_output_size_per_class, "max_output_size_per_class")
    (total,) = ctx.given_sizes(max_total_size, "max_total_size")
    batch, count, classes = ctx.extents(scores)
    total = smaller(ctx, total, each * classes) if pad_per_class else total
    each = smaller(ctx, each, count)
    given = ctx.transpose(scores, [0, 2, 1])
    chosen, values = _of_classes(ctx, boxes, given, each, iou_threshold, score_threshold)
    shape = [batch, classes * each]
    # Classes are in the order of their numbers, and in each class, boxes are in the order of their scores.
    numbers = ctx.broadcast(ctx.reshape(ctx.iota([classes], 0, I32), [classes, 1]), [batch, classes, each])
    flat = [ctx.reshape(x, shape) for x in (values, chosen, numbers)]
    values, chosen, numbers = (
        ctx.slice(ctx.pad(x, [0, 0], [0, larger(ctx, total - shape[1], 0)], fill), 1, 0, total)
        for x, fill in zip(ctx.sort(flat, 1, descending=True), (-math.inf, 0, 0), strict=True)
    )
    exists = ctx.compare("GT", values, ctx.scalar(-math.inf, F32))
    valid = ctx.reduce(ops.Add, ctx.convert(exists, I32), [1])
    corners = _corners(ctx, boxes, chosen, numbers, clip_boxes)
    nothing = ctx.scalar(0, F32)
    corners = ctx.select(ctx.broadcast_in_dim(exists, ctx.extents(corners), [0, 1]), corners, nothing)
    return [
        corners,
        ctx.select(exists, values, nothing),
        ctx.select(exists, ctx.convert(numbers, F32), nothing),
        valid,
    ]


def _corners(ctx: Context, boxes: Value, chosen: Value, numbers: Value, clips: bool) -> Value:
    """Returns the corners of chosen boxes, each of which may be another one in each class."""
    shape = ctx.extents(chosen)
    which = numbers if boxes.type.shape[2] != 1 else ctx.full_like(numbers, 0)
    places = [ctx.unsqueeze(x, [2]) for x in (ctx.iota(shape, 0, I32), chosen, which)]
    found = gathered_nd(ctx, boxes, ctx.concatenate(places, 2))
    if clips:
        found = ctx.binary(ops.Maximum, ctx.binary(ops.Minimum, found, ctx.scalar(1, F32)), ctx.scalar(0, F32))
    return found


def _of_classes(
    ctx: Context, boxes: Value, scores: Value, size: Extent, most_shared: Value, least: Value
) -> Sequence[Value]:
    """Returns the best boxes for each class, and their scores: minus infinity where there are no more."""
    batch, classes, count = ctx.extents(scores)
    out = ctx.scalar(-math.inf, F32)
    rest = ctx.select(ctx.compare("GT", scores, least), scores, out)
    sides = [ctx.broadcast(side, [batch, classes, count]) for side in _sides(ctx, boxes)]
    room = [batch, classes, size]
    start = [ctx.scalar(0, I32), ctx.full(room, 0, I32), ctx.full(room, -math.inf, F32), rest]
    types = [x.type for x in start]
    limit = ctx.number_as(size, I32)

    def goes_on(emit: Context, turn: Value, chosen: Value, values: Value, rest: Value) -> Value:
        remains = emit.reduce(ops.Or, emit.compare("GT", rest, out), [0, 1, 2])
        return emit.add(ops.And(emit.compare("LT", turn, limit), remains))

    def step(emit: Context, turn: Value, chosen: Value, values: Value, rest: Value) -> list[Value]:
        best, at = (emit.unsqueeze(x, [2]) for x in emit.arg_reduce("GT", rest, 2))
        is_best = emit.compare("EQ", emit.iota_like(rest, 2), at)
        own = [emit.reduce(ops.Maximum, emit.select(is_best, side, out), [2], keep=True) for side in sides]
        overlaps = emit.compare("GT", shared_part(emit, sides, own), most_shared)
        is_here = emit.compare("EQ", emit.convert(emit.iota_like(chosen, 2), I32), turn)
        chosen = emit.select(is_here, emit.convert(at, I32), chosen)
        values = emit.select(is_here, best, values)
        rest = emit.select(emit.add(ops.Or(is_best, overlaps)), out, rest)
        return [emit.plus(turn, emit.scalar(1, I32)), chosen, values, rest]

    loop = ops.While(start, cond=ctx.region(types, goes_on), body=ctx.region(types, step))
    return ctx.add(loop)[1:3]


def _sides(ctx: Context, boxes: Value) -> list[Value]:
    """Returns the top, left, bottom and right of the boxes of each class, or of all classes."""
    return sides_of(ctx, ctx.transpose(boxes, [3, 0, 2, 1]), 0)
