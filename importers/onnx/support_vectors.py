"""Support vector machines of `ai.onnx.ml`, with the coefficients and probabilities of LIBSVM. Without support vectors,
they are linear models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations

import numpy as np

from trivium.importers.onnx.context import Context, require_same_length, require_shape, rule
from trivium.importers.onnx.linear_models import linear_scores
from trivium.importers.onnx.scores import (
    label_at,
    labels_of,
    matrix,
    of_both,
    require_each,
    require_transform,
    rows_of,
    transformed,
)
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import F32, F64, I32

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


@dataclass(frozen=True)
class Kernel:
    """The function that compares rows with support vectors."""

    kind: str
    gamma: float = 0.0
    coef0: float = 0.0
    degree: float = 0.0

    def values(self, ctx: Context, rows: Value, vectors: np.ndarray) -> Value:
        """Returns the kernel of each row and each vector."""
        if self.kind == "RBF":
            return self._radial(ctx, rows, vectors)
        product = linear_scores(ctx, rows, vectors)
        if self.kind == "LINEAR":
            return product
        inner = ctx.plus(ctx.scaled(product, self.gamma), ctx.scalar(self.coef0, F32))
        if self.kind == "SIGMOID":
            return ctx.add(ops.Tanh(inner))
        return ctx.binary(ops.Power, inner, ctx.scalar(self.degree, F32))

    def _radial(self, ctx: Context, rows: Value, vectors: np.ndarray) -> Value:
        require_shape(rows, "X", [None, vectors.shape[1]])
        apart = ctx.minus(ctx.unsqueeze(rows, [1]), ctx.elements(vectors[None]))
        distance = ctx.reduce(ops.Add, ctx.times(apart, apart), [2])
        return ctx.add(ops.Exponential(ctx.scaled(distance, -self.gamma)))


def _kernel(kind: str, parameters: Sequence[float]) -> Kernel:
    if kind not in KERNELS:
        raise Error(f"kernel_type has {kind}, expected one of {', '.join(KERNELS)}")
    if len(parameters) not in (0, 3) or not (parameters or kind == "LINEAR"):
        raise Error(f"kernel_params has {len(parameters)} entries, expected gamma, coef0 and degree")
    return Kernel(kind, *parameters)


@rule("ai.onnx.ml::SVMRegressor")
def svm_regressor(
    ctx: Context, x: Value, coefficients: Sequence[float] = (), support_vectors: Sequence[float] = (),
    n_supports: int = 0, rho: Sequence[float] = (), kernel_type: str = "LINEAR", kernel_params: Sequence[float] = (),
    one_class: int = 0, post_transform: str = "NONE",
) -> Value:  # fmt: skip
    """SVMRegressor(X, ...): a sum of the kernels of all support vectors, or, for one class, its sign. ONNX Runtime
    ignores `post_transform`"""
    require_transform(post_transform)
    require_each("rho", rho, 1, "the results")
    kernel, rows = _kernel(kernel_type, kernel_params), rows_of(ctx, x)
    if n_supports > 0:
        require_each("coefficients", coefficients, n_supports, "the support vectors")
        rows = kernel.values(ctx, rows, matrix(support_vectors, n_supports, "support_vectors"))
    total = linear_scores(ctx, rows, matrix(coefficients, 1, "coefficients"))
    total = ctx.plus(total, ctx.elements(np.array(rho, np.float32)))
    if not one_class:
        return total
    return ctx.select(ctx.compare("GT", total, ctx.full_like(total, 0)), ctx.scalar(1, F32), ctx.scalar(-1, F32))


@rule("ai.onnx.ml::SVMClassifier")
def svm_classifier(
    ctx: Context, x: Value, coefficients: Sequence[float] = (), support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (), rho: Sequence[float] = (), prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (), kernel_type: str = "LINEAR", kernel_params: Sequence[float] = (),
    classlabels_ints: Sequence[int] = (), classlabels_strings: Sequence[str] = (), post_transform: str = "NONE",
) -> tuple[Value, Value]:  # fmt: skip
    """SVMClassifier(X, ...): the label with the most votes of pairs of classes, and probabilities or pairs' scores"""
    require_transform(post_transform)
    labels = labels_of(ctx, "classlabels_ints", classlabels_ints, classlabels_strings)
    kernel, rows = _kernel(kernel_type, kernel_params), rows_of(ctx, x)
    if not sum(vectors_per_class):
        return _linear(ctx, rows, matrix(coefficients, len(labels), "coefficients"), rho, labels, post_transform)
    require_same_length(classlabels_ints=labels, vectors_per_class=vectors_per_class)
    pairs = list(combinations(range(len(labels)), 2))
    if not pairs or min(vectors_per_class) < 0:
        raise Error(f"vectors_per_class has {list(vectors_per_class)}, expected two classes or more")
    require_each("rho", rho, len(pairs), "the pairs of classes")
    count = sum(vectors_per_class)
    weights = _pair_weights(matrix(coefficients, len(labels) - 1, "coefficients", count), vectors_per_class, pairs)
    kernels = kernel.values(ctx, rows, matrix(support_vectors, count, "support_vectors"))
    sums = ctx.dot(ctx.convert(kernels, F64), ctx.elements(weights), ([1], [0]))
    sums = ctx.plus(sums, ctx.elements(np.array(rho, np.float32).astype(np.float64)))
    label = label_at(ctx, labels, _most_votes(ctx, sums, pairs, len(labels)))
    scores = ctx.convert(sums, F32)
    if prob_a or prob_b:
        require_each("prob_a", prob_a, len(pairs), "the pairs of classes")
        require_each("prob_b", prob_b, len(pairs), "the pairs of classes")
        chances = _chances(ctx, scores, np.array(prob_a, np.float32), np.array(prob_b, np.float32))
        return label, transformed(ctx, _coupled(ctx, chances, pairs, len(labels)), post_transform)
    if len(labels) > 2:
        return label, transformed(ctx, scores, post_transform)
    score = ctx.squeeze(scores, [1])
    return label, of_both(ctx, score, post_transform, is_probability=post_transform != "NONE")


def _linear(
    ctx: Context, rows: Value, weights: np.ndarray, rho: Sequence[float], labels: np.ndarray, transform: str
) -> tuple[Value, Value]:
    """A linear model: the label with the highest score. The second of two labels also wins if the highest one is
    positive, or at least 1/2 where no coefficient is negative."""
    if not rho:
        raise Error("SVMClassifier has no attribute rho, expected a number")
    scores = ctx.plus(linear_scores(ctx, rows, weights), ctx.elements(np.float32(rho[0])))
    most, best = ctx.arg_reduce("GT", scores, 1)
    label = label_at(ctx, labels, best)
    if len(labels) == 2:
        direction, bound = ("GE", 0.5) if (weights >= 0).all() else ("GT", 0)
        label = ctx.select(ctx.compare(direction, most, ctx.full_like(most, bound)), ctx.elements(labels[1]), label)
    return label, transformed(ctx, scores, transform)


def _pair_weights(coefficients: np.ndarray, counts: Sequence[int], pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Returns the weight of each support vector in the sum of each pair of classes. A class has no coefficients against
    itself: its row against a later class is one further up."""
    weights = np.zeros((coefficients.shape[1], len(pairs)))
    ends = list(accumulate(counts))
    spans = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    for column, (i, j) in enumerate(pairs):
        weights[spans[i], column] = coefficients[j - 1, spans[i]]
        weights[spans[j], column] = coefficients[i, spans[j]]
    return weights


def _most_votes(ctx: Context, sums: Value, pairs: Sequence[tuple[int, int]], count: int) -> Value:
    """Returns the class with the most votes, the first of several: a pair votes for its first class if its sum is
    positive, otherwise for its second."""
    first, second = (np.eye(count, dtype=np.float32)[list(chosen)] for chosen in zip(*pairs, strict=True))
    is_first = ctx.convert(ctx.compare("GT", sums, ctx.full_like(sums, 0)), F32)
    votes = ctx.plus(ctx.dot(is_first, ctx.elements(first - second), ([1], [0])), ctx.elements(second.sum(0)))
    return ctx.arg_reduce("GT", votes, 1)[1]


# Probabilities

LEAST = 1e-7
"""The least chance that a class has against another one."""

MOST_TURNS = 100


def _chances(ctx: Context, scores: Value, a: np.ndarray, b: np.ndarray) -> Value:
    """Returns the chance of the first class of each pair, by Platt's sigmoid."""
    inner = ctx.plus(ctx.times(scores, ctx.elements(a)), ctx.elements(b))
    chance = ctx.minus(ctx.scalar(1, F32), ctx.add(ops.Logistic(inner)))
    chance = ctx.binary(ops.Maximum, chance, ctx.scalar(LEAST, F32))
    return ctx.binary(ops.Minimum, chance, ctx.scalar(np.float32(1 - LEAST), F32))


def _coupled(ctx: Context, chances: Value, pairs: Sequence[tuple[int, int]], count: int) -> Value:
    """Returns the probabilities of classes from the chances of pairs: the second method of Wu, Lin and Weng, as in
    LIBSVM, which improves those of each row until they are good enough."""
    squares = _quadratic(ctx, chances, pairs, count)
    columns = [ctx.squeeze(ctx.slice(squares, 1, at, at + 1), [1]) for at in range(count)]
    start = ctx.full([ctx.extent(chances, 0), count], 1 / count, F32)

    def goes_on(emit: Context, turn: Value, p: Value) -> Value:
        is_open = emit.reduce(ops.Or, _is_open(emit, squares, p), [0, 1])
        return emit.binary(ops.And, is_open, emit.compare("LT", turn, emit.scalar(MOST_TURNS, I32)))

    def improved(emit: Context, turn: Value, p: Value) -> tuple[Value, Value]:
        better = _improved(emit, squares, columns, p)
        return emit.plus(turn, emit.scalar(1, I32)), emit.select(_is_open(emit, squares, p), better, p)

    state = [ctx.scalar(0, I32), start]
    types = [value.type for value in state]
    return ctx.add(ops.While(state, ctx.region(types, goes_on), ctx.region(types, improved)))[1]


def _quadratic(ctx: Context, chances: Value, pairs: Sequence[tuple[int, int]], count: int) -> Value:
    """Returns the matrix whose quadratic form the probabilities make least: `[rows, count, count]`."""
    chance = {}
    for at, (i, j) in enumerate(pairs):
        chance[i, j] = ctx.squeeze(ctx.slice(chances, 1, at, at + 1), [1])
        chance[j, i] = ctx.minus(ctx.scalar(1, F32), chance[i, j])
    rows = []
    for i in range(count):
        entries = []
        for j in range(count):
            if i != j:
                entries.append(ctx.add(ops.Negate(ctx.times(chance[j, i], chance[i, j]))))
                continue
            total = ctx.full([ctx.extent(chances, 0)], 0, F32)
            for k in range(count):
                total = total if k == i else ctx.plus(total, ctx.times(chance[k, i], chance[k, i]))
            entries.append(total)
        rows.append(ctx.concatenate([ctx.unsqueeze(x, [1]) for x in entries], 1))
    return ctx.concatenate([ctx.unsqueeze(x, [1]) for x in rows], 1)


def _gradient(ctx: Context, squares: Value, p: Value) -> tuple[Value, Value]:
    """Returns the product of the matrix with the probabilities, and the quadratic form."""
    product = ctx.reduce(ops.Add, ctx.times(squares, ctx.unsqueeze(p, [1])), [2])
    return product, ctx.reduce(ops.Add, ctx.times(p, product), [1], keep=True)


def _is_open(ctx: Context, squares: Value, p: Value) -> Value:
    """Returns which rows are not good enough yet."""
    product, form = _gradient(ctx, squares, p)
    error = ctx.reduce(ops.Maximum, ctx.add(ops.Abs(ctx.minus(product, form))), [1], keep=True)
    return ctx.compare("GE", error, ctx.scalar(0.005 / int(p.type.shape[1]), F32))


def _improved(ctx: Context, squares: Value, columns: Sequence[Value], p: Value) -> Value:
    """Returns the probabilities after one turn, which changes one class after the other."""
    product, form = _gradient(ctx, squares, p)
    one = ctx.scalar(1, F32)
    for at, row in enumerate(columns):
        diagonal, here = ctx.slice(row, 1, at, at + 1), ctx.slice(product, 1, at, at + 1)
        change = ctx.over(ctx.minus(form, here), diagonal)
        total = ctx.plus(one, change)
        inner = ctx.plus(ctx.times(change, diagonal), ctx.scaled(here, 2))
        form = ctx.over(ctx.over(ctx.plus(form, ctx.times(change, inner)), total), total)
        product = ctx.over(ctx.plus(product, ctx.times(change, row)), total)
        is_here = ctx.elements(np.arange(len(columns)) == at)
        p = ctx.over(ctx.plus(p, ctx.select(is_here, change, ctx.full_like(change, 0))), total)
    return p
