"""What the classifiers and regressors of `ai.onnx.ml` have in common: rows of features, the transforms of scores, and
labels. Where the specification is vague, results are those of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.onnx.context import Context
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import F32, ElementType

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""The values of `post_transform`, in the order of their numbers."""

NEAR_ZERO = 1e-7
"""The size up to which SOFTMAX_ZERO leaves out a score."""


def require_transform(transform: str) -> None:
    """Rejects a `post_transform` that does not exist."""
    if transform not in TRANSFORMS:
        raise Error(f"post_transform has {transform}, expected one of {', '.join(TRANSFORMS)}")


def require_each(name: str, values: Sequence[object], count: int, of: str) -> None:
    """Rejects an attribute that has another number of entries than there are things of some kind."""
    if len(values) != count:
        raise Error(f"{name} has {len(values)} entries, expected {count}: one for each of {of}")


def rows_of(ctx: Context, x: Value, kind: ElementType = F32) -> Value:
    """Returns features as rows of an element type; one dimension is a single row."""
    if x.type.rank not in (1, 2):
        raise Error(f"X has type {x.type}, expected one or two dimensions")
    return ctx.convert(ctx.unsqueeze(x, [0]) if x.type.rank == 1 else x, kind)


def matrix(values: Sequence[float], rows: int, argument: str, columns: int | None = None) -> np.ndarray:
    """Returns the numbers of an attribute as a matrix of `rows` rows and, if that is given, `columns` columns."""
    if columns is not None and len(values) != rows * columns:
        raise Error(f"{argument} has {len(values)} entries, expected {rows} times {columns}")
    if rows < 1 or not values or len(values) % rows:
        raise Error(f"{argument} has {len(values)} entries, expected a positive multiple of {rows}")
    return np.array(values, np.float32).reshape(rows, -1)


def require_no_text(ctx: Context, **attributes: Sequence[str] | None) -> None:
    """Rejects attributes that consist of text, which has no tensor type."""
    for name, values in attributes.items():
        if values:
            ctx.unsupported(
                name, f"{len(values)} strings", "integers: strings have no tensor type, so encode them first"
            )


def labels_of(ctx: Context, argument: str, numbers: Sequence[int], strings: Sequence[str]) -> np.ndarray:
    """Returns the labels of classes, which are integers."""
    require_no_text(ctx, classlabels_strings=strings)
    if not numbers:
        raise Error(f"{ctx.op} has no attribute {argument}, expected a label for each class")
    return np.array(numbers, np.int64)


def label_at(ctx: Context, labels: np.ndarray, index: Value) -> Value:
    """Returns the labels at indices."""
    return ctx.take(ctx.elements(labels), index)


def chosen_label(ctx: Context, is_positive: Value, labels: Sequence[int] | np.ndarray) -> Value:
    """Returns the second label where a condition holds, otherwise the first."""
    negative, positive = (ctx.elements(np.array(label, np.int64)) for label in labels)
    return ctx.select(is_positive, positive, negative)


def transformed(ctx: Context, scores: Value, transform: str) -> Value:
    """Applies `post_transform` to rows of scores. ONNX Runtime applies only PROBIT to a single one."""
    if transform == "PROBIT":
        return _probit(ctx, scores)
    if transform == "NONE" or scores.type.shape[1] == 1:
        return scores
    return ctx.add(ops.Logistic(scores)) if transform == "LOGISTIC" else _softmax(ctx, scores, transform)


def _softmax(ctx: Context, scores: Value, transform: str) -> Value:
    """SOFTMAX, or SOFTMAX_ZERO, in which scores near zero are not exponentiated."""
    most = ctx.reduce(ops.Maximum, scores, [1], keep=True)
    powers = ctx.add(ops.Exponential(ctx.minus(scores, most)))
    if transform == "SOFTMAX":
        return ctx.over(powers, ctx.reduce(ops.Add, powers, [1], keep=True))
    near = ctx.compare("LE", ctx.add(ops.Abs(scores)), ctx.scalar(NEAR_ZERO, scores.type.element_type))
    total = ctx.reduce(ops.Add, ctx.select(near, ctx.scalar(0, scores.type.element_type), powers), [1], keep=True)
    small = ctx.times(scores, ctx.add(ops.Exponential(ctx.add(ops.Negate(most)))))
    return ctx.over(ctx.select(near, small, powers), total)


def _probit(ctx: Context, scores: Value) -> Value:
    """The inverse of the normal distribution, by Winitzki's approximation of the inverse error function, which ONNX
    Runtime uses."""
    number = lambda value: ctx.scalar(value, scores.type.element_type)  # noqa: E731
    x = ctx.minus(ctx.scaled(scores, 2), number(1))
    log = ctx.add(ops.Log(ctx.times(ctx.minus(number(1), x), ctx.plus(number(1), x))))
    half = ctx.plus(ctx.scaled(log, 0.5), number(2 / (np.pi * 0.147)))
    inner = ctx.minus(ctx.times(half, half), ctx.scaled(log, 1 / 0.147))
    size = ctx.add(ops.Sqrt(ctx.minus(ctx.add(ops.Sqrt(inner)), half)))
    sign = ctx.select(ctx.compare("LT", x, number(0)), number(-1), number(1))
    return ctx.scaled(ctx.times(sign, size), 2**0.5)


def pair(ctx: Context, first: Value, second: Value) -> Value:
    """Returns two columns of scores side by side."""
    return ctx.concatenate([ctx.unsqueeze(first, [1]), ctx.unsqueeze(second, [1])], 1)


def of_both(ctx: Context, score: Value, transform: str, is_probability: bool) -> Value:
    """Returns the scores of two classes, given that of the positive one: its complement, if it `is_probability`, or its
    negative, beside it. Of the transforms, ONNX Runtime applies only LOGISTIC."""
    if transform == "PROBIT":
        ctx.unsupported("post_transform", "PROBIT for one score and two classes", "another transform, or two scores")
    negative = ctx.add(ops.Negate(score))
    if transform == "LOGISTIC":
        return ctx.add(ops.Logistic(pair(ctx, negative, score)))
    return pair(ctx, ctx.minus(ctx.full_like(score, 1), score) if is_probability else negative, score)
