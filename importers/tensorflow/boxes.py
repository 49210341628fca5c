"""Boxes in images: the best ones, without those that overlap them. How many these are depends on data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from trivium.importers.extents import Extent, larger
from trivium.importers.loops import with_row
from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.counted import existing_rows
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32, ElementType

Shared = Callable[[Context, Value], Value]
"""Returns how much each box overlaps one of them."""


class Chosen(NamedTuple):
    """The chosen boxes and their scores, then zeros; and how many there are."""

    boxes: Value
    scores: Value
    number: Value


@rule("NonMaxSuppressionV4")
def non_max_suppression_padded(
    ctx: Context,
    boxes: Value,
    scores: Value,
    max_output_size: Tensor,
    iou_threshold: Tensor,
    score_threshold: Value,
    *,
    pad_to_max_output_size: bool,
) -> list[Operand]:
    """NonMaxSuppressionV4(boxes, scores, max_output_size, iou_threshold, score_threshold;
    pad_to_max_output_size=false) -> selected_indices, valid_outputs"""
    found = _of_boxes(ctx, boxes, scores, max_output_size, iou_threshold, score_threshold)
    indices = found.boxes if pad_to_max_output_size else existing_rows(ctx, found.boxes, found.number)
    return [indices, found.number]


@rule("NonMaxSuppressionV5")
def non_max_suppression_soft(
    ctx: Context,
    boxes: Value,
    scores: Value,
    max_output_size: Tensor,
    iou_threshold: Tensor,
    score_threshold: Value,
    soft_nms_sigma: Tensor,
    *,
    pad_to_max_output_size: bool,
) -> list[Operand]:
    """NonMaxSuppressionV5(boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma;
    pad_to_max_output_size=false) -> selected_indices, selected_scores, valid_outputs"""
    given = (max_output_size, iou_threshold, score_threshold)
    sigma = ctx.known_if_possible(soft_nms_sigma)
    if sigma is not None and not sigma > 0:
        found = _of_boxes(ctx, boxes, scores, *given)
    else:
        found = _softly_chosen(ctx, boxes, scores, *given, ctx.value(soft_nms_sigma))
    pair = [found.boxes, found.scores]
    return [*(pair if pad_to_max_output_size else (existing_rows(ctx, x, found.number) for x in pair)), found.number]


@rule("NonMaxSuppression")
def non_max_suppression_attribute(
    ctx: Context, boxes: Tensor, scores: Tensor, max_output_size: Tensor, *, iou_threshold: float
) -> Operand:
    """NonMaxSuppression(boxes, scores, max_output_size; iou_threshold=0.5) -> selected_indices"""
    return non_max_suppression_all(ctx, boxes, scores, max_output_size, np.array(iou_threshold, np.float32))


@rule("NonMaxSuppressionV2")
def non_max_suppression_all(
    ctx: Context, boxes: Tensor, scores: Tensor, max_output_size: Tensor, iou_threshold: Tensor
) -> Operand:
    """NonMaxSuppressionV2(boxes, scores, max_output_size, iou_threshold) -> selected_indices"""
    kind = scores.dtype if isinstance(scores, np.ndarray) else scores.type.element_type.dtype
    least = np.array(_lowest(kind), kind)
    return non_max_suppression(ctx, boxes, scores, max_output_size, iou_threshold, least)


def _lowest(kind: np.dtype) -> float:
    return -65504.0 if kind.itemsize == 2 else float(np.finfo(np.float32).min)


@rule("NonMaxSuppressionV3")
def non_max_suppression(
    ctx: Context,
    boxes: Tensor,
    scores: Tensor,
    max_output_size: Tensor,
    iou_threshold: Tensor,
    score_threshold: Tensor,
) -> Operand:
    """NonMaxSuppressionV3(boxes, scores, max_output_size, iou_threshold, score_threshold) -> selected_indices"""
    given = (boxes, scores, max_output_size, iou_threshold, score_threshold)
    known = [number for x in given if (number := ctx.known_if_possible(x)) is not None]
    if len(known) == len(given):
        return _chosen_among(*known)
    boxes, scores, least = (ctx.value(x) for x in (boxes, scores, score_threshold))
    found = _of_boxes(ctx, boxes, scores, max_output_size, iou_threshold, least)
    return existing_rows(ctx, found.boxes, found.number)


@rule("NonMaxSuppressionWithOverlaps")
def non_max_suppression_with_overlaps(
    ctx: Context,
    overlaps: Value,
    scores: Value,
    max_output_size: Tensor,
    overlap_threshold: Value,
    score_threshold: Value,
) -> Operand:
    """NonMaxSuppressionWithOverlaps(overlaps, scores, max_output_size, overlap_threshold, score_threshold) ->
    selected_indices"""
    shape = ctx.extents(ctx.not_empty(scores))
    low = [0, 0]
    table = ctx.pad(overlaps, low, [shape[0] - extent for extent in ctx.extents(overlaps)])
    found = _chosen(
        ctx, lambda emit, at: emit.take(table, at, 1), scores, max_output_size, overlap_threshold, score_threshold
    )
    return existing_rows(ctx, found.boxes, found.number)


def _of_boxes(ctx: Context, boxes: Value, scores: Value, size: Tensor, most_shared: Tensor, least: Value) -> Chosen:
    _require_fraction(ctx, most_shared)
    sides = _sides(ctx, ctx.not_empty(boxes))
    return _chosen(ctx, lambda emit, at: _shared(emit, sides, at), scores, size, ctx.value(most_shared), least)


def _require_fraction(ctx: Context, most_shared: Tensor) -> None:
    known = ctx.known_if_possible(most_shared)
    if known is not None and not 0 <= known <= 1:
        ctx.unsupported("iou_threshold", known, "a number from 0 to 1")


class _Start(NamedTuple):
    """What a search begins with: the scores of boxes that it may choose, and minus infinity for others."""

    limit: Value
    none_chosen: Value
    no_scores: Value
    rest: Value
    least: Value


def _started(ctx: Context, scores: Value, size: Tensor, least: Value) -> tuple[_Start, Extent]:
    kind = scores.type.element_type
    (most,) = ctx.given_sizes(size, "max_output_size")
    room = larger(ctx, most, 1)
    scores, least = (_rounded(ctx, x, kind) for x in (ctx.not_empty(scores, -math.inf), least))
    rest = ctx.select(ctx.compare("GT", scores, least), scores, ctx.scalar(-math.inf, F32))
    limit = ctx.number_as(most, I32)
    return _Start(limit, ctx.full((room,), 0, I32), ctx.full((room,), 0, F32), rest, least), most


def _goes_on(emit: Context, start: _Start, count: Value, rest: Value) -> Value:
    remains = emit.reduce(ops.Or, emit.compare("GT", rest, emit.scalar(-math.inf, F32)), [0])
    return emit.add(ops.And(emit.compare("LT", count, start.limit), remains))


def _chosen(ctx: Context, shared: Shared, scores: Value, size: Tensor, most_shared: Value, least: Value) -> Chosen:
    """Chooses the box with the highest score, again and again, and leaves out those that overlap it."""
    kind = scores.type.element_type
    start, most = _started(ctx, scores, size, least)
    most_shared = _rounded(ctx, most_shared, kind)
    carried = [ctx.scalar(0, I32), start.none_chosen, start.no_scores, start.rest]
    types = [x.type for x in carried]

    def goes_on(emit: Context, count: Value, chosen: Value, values: Value, rest: Value) -> Value:
        return _goes_on(emit, start, count, rest)

    def step(emit: Context, count: Value, chosen: Value, values: Value, rest: Value) -> list[Value]:
        best, at = emit.arg_reduce("GT", rest, 0)
        is_best = emit.compare("EQ", emit.iota_like(rest, 0), at)
        overlaps = emit.compare("GT", _rounded(emit, shared(emit, at), kind), most_shared)
        gone = emit.add(ops.Or(is_best, overlaps))
        chosen, values = with_row(emit, chosen, emit.convert(at, I32), count), with_row(emit, values, best, count)
        rest = emit.select(gone, emit.scalar(-math.inf, F32), rest)
        return [emit.plus(count, emit.scalar(1, I32)), chosen, values, rest]

    loop = ops.While(carried, cond=ctx.region(types, goes_on), body=ctx.region(types, step))
    count, chosen, values, _ = ctx.add(loop)
    return Chosen(ctx.slice(chosen, 0, 0, most), ctx.convert(ctx.slice(values, 0, 0, most), kind), count)


def _rounded(ctx: Context, x: Value, kind: ElementType) -> Value:
    """Returns numbers of 32 bits as others can hold them."""
    return ctx.convert(ctx.convert(x, kind), F32)


def _softly_chosen(
    ctx: Context, boxes: Value, scores: Value, size: Tensor, most_shared: Tensor, least: Value, sigma: Value
) -> Chosen:
    """Lowers scores by how much boxes overlap the chosen ones. As in TensorFlow, a score is lowered when it is the
    highest, by the boxes that have been chosen since it was lowered before, and competes again."""
    _require_fraction(ctx, most_shared)
    kind = scores.type.element_type
    start, most = _started(ctx, scores, size, least)
    sides = _sides(ctx, ctx.not_empty(boxes))
    limit, sigma = ctx.convert(ctx.value(most_shared), kind), ctx.convert(sigma, kind)
    is_soft = ctx.compare("GT", sigma, ctx.scalar(0, kind))
    scale = ctx.select(is_soft, ctx.over(ctx.scalar(-0.5, kind), sigma), ctx.scalar(0, kind))
    begins = ctx.convert(ctx.full_like(start.rest, 0), I32)
    carried = [ctx.scalar(0, I32), start.none_chosen, start.no_scores, start.rest, begins]
    types = [x.type for x in carried]

    def goes_on(emit: Context, count: Value, chosen: Value, values: Value, rest: Value, begins: Value) -> Value:
        return _goes_on(emit, start, count, rest)

    def step(emit: Context, count: Value, chosen: Value, values: Value, rest: Value, begins: Value) -> list[Value]:
        best, at = emit.arg_reduce("GT", rest, 0)
        place = emit.convert(emit.iota_like(chosen, 0), I32)
        is_new = emit.binary(
            ops.And, emit.compare("GE", place, emit.take(begins, at)), emit.compare("LT", place, count)
        )
        overlaps = emit.convert(_shared_with(emit, sides, at, chosen), kind)
        weights = emit.add(ops.Exponential(emit.times(emit.times(scale, overlaps), overlaps)))
        is_much = emit.compare("GT", overlaps, limit)
        is_gone = emit.reduce(ops.Or, emit.add(ops.And(is_new, is_much)), [0])
        is_gone = emit.add(ops.And(is_gone, emit.add(ops.Not(is_soft))))
        factor = emit.reduce(ops.Multiply, emit.select(is_new, weights, emit.scalar(1, kind)), [0])
        lowered = _rounded(emit, emit.times(emit.convert(best, kind), factor), kind)
        is_same = emit.add(ops.And(emit.compare("EQ", lowered, best), emit.add(ops.Not(is_gone))))
        stays = emit.add(ops.And(emit.compare("GT", lowered, start.least), emit.add(ops.Not(is_gone))))
        stays = emit.add(ops.And(stays, emit.add(ops.Not(is_same))))
        following = emit.select(stays, lowered, emit.scalar(-math.inf, F32))
        chosen = emit.select(is_same, with_row(emit, chosen, emit.convert(at, I32), count), chosen)
        values = emit.select(is_same, with_row(emit, values, best, count), values)
        rest, begins = with_row(emit, rest, following, at), with_row(emit, begins, count, at)
        return [emit.plus(count, emit.convert(is_same, I32)), chosen, values, rest, begins]

    loop = ops.While(carried, cond=ctx.region(types, goes_on), body=ctx.region(types, step))
    count, chosen, values, *_ = ctx.add(loop)
    return Chosen(ctx.slice(chosen, 0, 0, most), ctx.convert(ctx.slice(values, 0, 0, most), kind), count)


def _sides(ctx: Context, boxes: Value) -> list[Value]:
    return sides_of(ctx, ctx.convert(boxes, F32), 1)


def sides_of(ctx: Context, boxes: Value, dimension: int) -> list[Value]:
    """Returns the top, left, bottom and right of each box: two opposite corners, whichever, are along a dimension."""
    columns = [ctx.squeeze(ctx.slice(boxes, dimension, i, i + 1), [dimension]) for i in range(4)]
    return [ctx.binary(op, columns[i], columns[i + 2]) for op in (ops.Minimum, ops.Maximum) for i in range(2)]


def _shared(ctx: Context, sides: Sequence[Value], at: Value) -> Value:
    return shared_part(ctx, sides, [ctx.take(side, at) for side in sides])


def _shared_with(ctx: Context, sides: Sequence[Value], at: Value, others: Value) -> Value:
    return shared_part(ctx, [ctx.take(side, others) for side in sides], [ctx.take(side, at) for side in sides])


def shared_part(ctx: Context, sides: Sequence[Value], own: Sequence[Value]) -> Value:
    """Returns the area that each box shares with one of them, as a part of the area that the two cover."""
    nothing = ctx.scalar(0, F32)

    def extent(low: Value, high: Value) -> Value:
        return ctx.binary(ops.Maximum, ctx.minus(high, low), nothing)

    def area(top: Value, left: Value, bottom: Value, right: Value) -> Value:
        return ctx.times(extent(top, bottom), extent(left, right))

    starts = [ctx.binary(ops.Maximum, mine, theirs) for mine, theirs in zip(own[:2], sides[:2], strict=True)]
    ends = [ctx.binary(ops.Minimum, mine, theirs) for mine, theirs in zip(own[2:], sides[2:], strict=True)]
    common, mine, theirs = area(*starts, *ends), area(*own), area(*sides)
    part = ctx.over(common, ctx.minus(ctx.plus(mine, theirs), common))
    smaller = ctx.binary(ops.Minimum, mine, theirs)
    return ctx.select(ctx.compare("GT", smaller, nothing), part, nothing)


def _chosen_among(
    boxes: Known, scores: Known, max_output_size: Known, iou_threshold: Known, score_threshold: Known
) -> np.ndarray:
    """The same for known boxes, so that the number of chosen ones is known, too."""
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
