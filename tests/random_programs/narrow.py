"""Attention of narrow numbers, which are converted before the first product and sometimes after the last one, and of
f32 that may be rounded to tf32. GPUs have matrix instructions for both."""

from __future__ import annotations

import math

from tests.random_programs.arrays import values
from tests.random_programs.folds import fold, start
from tests.random_programs.generator import Generator
from trivium.compiler.fusion.forms.attention import SHORTEST
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import BF16, F16, F32, I32, Type, tensor


def attention(g: Generator) -> None:
    """A softmax of scores, which are scaled and masked in different ways, and the values that it weights."""
    _attention(g, g.pick((BF16, F16)))


def wide_attention(g: Generator) -> None:
    """The same of f32."""
    _attention(g, F32)


def _attention(g: Generator, element: Type) -> None:
    batch, rows, columns = (g.number(1, 2), g.number(1, 2)), g.number(SHORTEST, 70), g.number(SHORTEST, 70)
    depth, features = g.number(SHORTEST, 40), g.number(SHORTEST, 40)
    query = _wide(g, (*batch, rows, depth), element)
    gradients = g.chance(0.3)
    if g.chance(0.5):
        query = g.add(ops.Multiply(query, _number(g, (*batch, rows, depth))))
    if g.chance(0.5):
        key, where = _wide(g, (*batch, columns, depth), element), 3
    else:
        key, where = _wide(g, (*batch, depth, columns), element), 2
    product = _of_one_batch if rows % 3 == 0 else _product
    scores = product(g, query, key, 3, where)
    value = _wide(g, (*batch, columns, features), element)
    if gradients:
        _gradients(g, scores, query, value, element)
        return
    weights = _softmax(g, _masked(g, scores))
    result = product(g, weights, value, 3, 2)
    if element != F32 and g.chance(0.4):
        result = g.add(ops.Convert(result, result=result.type.with_element(element)))
    g.offer(result)


def _product(g: Generator, lhs: Value, rhs: Value, *contracted: int) -> Value:
    return g.add(ops.DotGeneral(lhs, rhs, ops.DotDimensionNumbers((0, 1), (0, 1), *((d,) for d in contracted))))


def _of_one_batch(g: Generator, lhs: Value, rhs: Value, *contracted: int) -> Value:
    """The same, but for the product both batching dimensions are one."""

    def reshaped(x: Value, *batch: int) -> Value:
        shape = (*batch, *x.type.static_shape[-2:])
        return g.add(ops.Reshape(x, result=x.type.with_shape(shape)))

    batch = lhs.type.static_shape[:2]
    factors = [reshaped(x, math.prod(batch)) for x in (lhs, rhs)]
    numbers = ops.DotDimensionNumbers((0,), (0,), *((d - 1,) for d in contracted))
    return reshaped(g.add(ops.DotGeneral(*factors, numbers)), *batch)


def _gradients(g: Generator, scores: Value, query: Value, value: Value, element: Type) -> None:
    """Some of the gradients of attention, whose weights are computed from scores and a number of each row."""
    b, kind = (0, 1), scores.type
    *batch, rows, _ = kind.static_shape

    def less(x: Value) -> Value:
        row = g.argument((*batch, rows), F32)
        return g.add(ops.Subtract(x, g.add(ops.BroadcastInDim(row, broadcast_dimensions=(0, 1, 2), result=kind))))

    def rounded(x: Value) -> Value:
        if element == F32 or g.chance(0.5):
            return x
        return g.add(ops.Convert(g.add(ops.Convert(x, result=kind.with_element(element))), result=kind))

    # Not greater than one.
    masked = _masked(g, scores)
    weights = g.add(ops.Exponential(less(g.add(ops.Negate(g.add(ops.Abs(masked)))))))
    of_result = _wide(g, (*batch, rows, value.type.static_shape[-1]), element)
    of_weights = g.add(ops.DotGeneral(of_result, value, ops.DotDimensionNumbers(b, b, (3,), (3,))))
    of_scores = rounded(g.add(ops.Multiply(weights, less(of_weights))))
    key = _wide(g, (*batch, kind.static_shape[-1], g.number(SHORTEST, 40)), element)
    products = (
        (of_scores, key, (3,), (2,)),
        (of_scores, query, (2,), (2,)),
        (rounded(weights), of_result, (2,), (2,)),
    )
    for lhs, rhs, *contracted in products:
        if g.chance(0.8):
            g.offer(g.add(ops.DotGeneral(lhs, rhs, ops.DotDimensionNumbers(b, b, *contracted))))


def _wide(g: Generator, shape: tuple[int, ...], element: Type) -> Value:
    """Returns numbers of a type as f32."""
    kind = tensor(*shape, of=element)
    narrow = g.argument(shape, element) if g.chance(0.9) else g.of_type(kind)
    if element == F32:
        return narrow
    return g.add(ops.Convert(narrow, result=kind.with_element(F32)))


def _number(g: Generator, shape: tuple[int, ...]) -> Value:
    scalar = g.constant(values(g.number(0, 1 << 30), tensor(of=F32)))
    return g.add(ops.BroadcastInDim(scalar, broadcast_dimensions=(), result=tensor(*shape, of=F32)))


def _masked(g: Generator, scores: Value) -> Value:
    """Some of: a scale, a bias, a mask of positions."""
    kind = scores.type
    if g.chance(0.3):
        scores = g.add(ops.Multiply(scores, _number(g, kind.static_shape)))
    if g.chance(0.3):
        scores = g.add(ops.Add(scores, g.of_type(kind)))
    if g.chance(0.4):
        positions = tensor(*kind.static_shape, of=I32)
        row, column = (g.add(ops.Iota(iota_dimension=d, result=positions)) for d in (2, 3))
        mask = g.add(ops.Compare(row, column, comparison_direction="GE"))
        nothing = g.add(ops.BroadcastInDim(start(g, F32, -math.inf), broadcast_dimensions=(), result=kind))
        scores = g.add(ops.Select(mask, scores, nothing))
    return scores


def _softmax(g: Generator, scores: Value) -> Value:
    greatest = fold(g, scores, ops.Maximum, -math.inf, 3, scores)
    power = g.add(ops.Exponential(g.add(ops.Subtract(scores, greatest))))
    total = fold(g, power, ops.Add, 0.0, 3, power)
    for repeated in (greatest, total):
        if g.chance(0.2):
            # A training step keeps it, or its logarithm, for the gradients.
            g.offer(repeated.defining_op.operands[0])  # type: ignore[union-attr]
    return g.add(ops.Divide(power, total))
