"""Linear models of `ai.onnx.ml`. They compute in 32 bits, whatever the type of their features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.onnx.context import Context, require_shape, rule
from trivium.importers.onnx.scores import (
    chosen_label,
    label_at,
    labels_of,
    matrix,
    of_both,
    require_each,
    require_transform,
    rows_of,
    transformed,
)
from trivium.ir.core import Value
from trivium.ir.errors import Error


def linear_scores(ctx: Context, rows: Value, weights: np.ndarray) -> Value:
    """Returns the product of rows of features with the weights of each score, a row each."""
    require_shape(rows, "X", [None, weights.shape[1]])
    return ctx.dot(rows, ctx.elements(weights), ([1], [1]))


@rule("ai.onnx.ml::LinearRegressor")
def linear_regressor(
    ctx: Context, x: Value, coefficients: Sequence[float] = (), intercepts: Sequence[float] = (), targets: int = 1,
    post_transform: str = "NONE",
) -> Value:  # fmt: skip
    """LinearRegressor(X, ...): a linear combination of the features for each target"""
    require_transform(post_transform)
    scores = linear_scores(ctx, rows_of(ctx, x), matrix(coefficients, targets, "coefficients"))
    if intercepts:
        require_each("intercepts", intercepts, targets, "the targets")
        scores = ctx.plus(scores, ctx.elements(np.array(intercepts, np.float32)))
    return transformed(ctx, scores, post_transform)


@rule("ai.onnx.ml::LinearClassifier")
def linear_classifier(
    ctx: Context, x: Value, coefficients: Sequence[float], intercepts: Sequence[float] = (),
    classlabels_ints: Sequence[int] = (), classlabels_strings: Sequence[str] = (), multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Value, Value]:  # fmt: skip
    """LinearClassifier(X, ...): the label with the highest score, and all scores; `multi_class` says nothing about
    results"""
    require_transform(post_transform)
    labels = labels_of(ctx, "classlabels_ints", classlabels_ints, classlabels_strings)
    count = len(intercepts) or len(labels)
    if count != len(labels) and (count, len(labels)) != (1, 2):
        raise Error(f"intercepts has {count} entries, expected {len(labels)}, as many as classlabels_ints")
    scores = linear_scores(ctx, rows_of(ctx, x), matrix(coefficients, count, "coefficients"))
    scores = ctx.plus(scores, ctx.elements(np.array(intercepts or [0] * count, np.float32)))
    if count > 1:
        _, best = ctx.arg_reduce("GT", scores, 1)
        return label_at(ctx, labels, best), transformed(ctx, scores, post_transform)
    score = ctx.squeeze(scores, [1])
    is_positive = ctx.compare("GT", score, ctx.full_like(score, 0))
    label = chosen_label(ctx, is_positive, labels if len(labels) == 2 else (0, 1))
    if len(labels) == 1:
        return label, transformed(ctx, scores, post_transform)
    return label, of_both(ctx, score, post_transform, is_probability=True)
