"""The labels and scores of classifiers that consist of trees, as ONNX Runtime computes them: the specification says
nothing about classes without a weight, and about two classes with one score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trivium.importers.onnx.context import Context
from trivium.importers.onnx.forests import Forest
from trivium.importers.onnx.scores import chosen_label, label_at, of_both, pair, transformed
from trivium.importers.onnx.tree_walk import combined, with_weight
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error


def classified(
    ctx: Context, leaf: Value, forest: Forest, base: np.ndarray, labels: np.ndarray, transform: str
) -> tuple[Value, Value]:
    """Returns the label, and the scores of all classes, of each row."""
    count = len(labels)
    if len(base) not in ((0, count) if count > 2 else range(count + 1)):
        raise Error(f"base_values has {len(base)} entries, expected none or {count}, as many as classes")
    scores = combined(ctx, leaf, forest)
    if count > 2:
        return _of_many(ctx, leaf, forest, scores, base, labels, transform)
    if count == 1:
        scores = ctx.plus(scores, ctx.elements(base)) if len(base) else scores
        return _sign_label(ctx, ctx.squeeze(scores, [1])), transformed(ctx, scores, transform)
    two = _TwoClasses(ctx, forest, leaf, scores, base, labels, transform)
    if not forest.has_weight[:, 1].any():
        return two.without_second()
    if forest.always_has(1):
        return two.with_second()
    cases = zip(two.with_second(), two.without_second(), strict=True)
    label, scores = (
        ctx.select(ctx.reshape(two.has(1), [*ctx.extents(two.has(1)), *[1] * (a.type.rank - 1)]), a, b)
        for a, b in cases
    )
    return label, scores


def _of_many(
    ctx: Context, leaf: Value, forest: Forest, scores: Value, base: np.ndarray, labels: np.ndarray, transform: str
) -> tuple[Value, Value]:
    """Returns the label with the highest score, the first of several, among those that have a weight or base value."""
    competing = scores = ctx.plus(scores, ctx.elements(base)) if len(base) else scores
    if not len(base) and not all(map(forest.always_has, range(len(labels)))):
        none = ctx.full_like(scores, -np.inf)
        competing = ctx.select(with_weight(ctx, leaf, forest), scores, none)
    _, best = ctx.arg_reduce("GT", competing, 1)
    return label_at(ctx, labels, best), transformed(ctx, scores, transform)


def _sign_label(ctx: Context, score: Value) -> Value:
    """Returns 1 for a positive score, otherwise 0, whatever the labels are."""
    return chosen_label(ctx, ctx.compare("GT", score, ctx.full_like(score, 0)), (0, 1))


@dataclass(frozen=True)
class _TwoClasses:
    """The scores of two classes, and their base values."""

    ctx: Context
    forest: Forest
    leaf: Value
    scores: Value
    base: np.ndarray
    labels: np.ndarray
    transform: str

    def column(self, target: int) -> Value:
        return self.ctx.squeeze(self.ctx.slice(self.scores, 1, target, target + 1), [1])

    def plus(self, score: Value, base: int) -> Value:
        return self.ctx.plus(score, self.ctx.elements(self.base[base])) if len(self.base) > base else score

    def has(self, target: int) -> Value:
        """Returns for which rows a tree leads to a leaf with a weight for a class."""
        found = with_weight(self.ctx, self.leaf, self.forest)
        return self.ctx.squeeze(self.ctx.slice(found, 1, target, target + 1), [1])

    def with_second(self) -> tuple[Value, Value]:
        """Returns label and scores of rows that have a weight for the second class: with two base values, the second
        score is that of the first class plus the second base value."""
        ctx, first, second = self.ctx, self.column(0), self.column(1)
        if len(self.base) == 2:
            second = self.plus(first, 1)
            first = ctx.add(ops.Negate(second))
        else:
            first = self.plus(first, 0)
        if not self.forest.always_has(0):
            first = ctx.select(self.has(0), first, ctx.full_like(first, 0))
        return self.label(second), transformed(ctx, pair(ctx, first, second), self.transform)

    def without_second(self) -> tuple[Value, Value]:
        """Returns label and scores of rows that have a weight for the first class alone."""
        ctx, score = self.ctx, self.plus(self.column(0), 0)
        if len(self.base) == 2:
            both = pair(ctx, score, ctx.full_like(score, 0))
            return self.label(score), transformed(ctx, both, self.transform)
        if len(self.base) == 1 and self.threshold is None:
            ctx.unsupported("base_values", "one entry for two classes with weights", "none or two entries")
        return self.label(score), of_both(ctx, score, self.transform, is_probability=self.threshold == 0.5)

    @property
    def threshold(self) -> float | None:
        """The score above which the second label is chosen, if all weights are for the same class."""
        if self.forest.has_weight.any(0).all():
            return None
        return 0.5 if (self.forest.weights >= 0).all() else 0.0

    def label(self, score: Value) -> Value:
        """Returns the label for the score of the class that decides: 1 or 0 where both classes have weights."""
        if self.threshold is None:
            return _sign_label(self.ctx, score)
        is_second = self.ctx.compare("GT", score, self.ctx.full_like(score, self.threshold))
        return chosen_label(self.ctx, is_second, self.labels)
