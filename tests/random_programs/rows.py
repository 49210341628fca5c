"""Many rows of few elements: points, colors, small matrices, and the scores of a few classes; and fewer rows of more
elements, which are normalized."""

from __future__ import annotations

import numpy as np

from tests.random_programs.folds import combiner, start
from tests.random_programs.generator import Generator, scalar_region
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import Type, is_boolean, is_complex, is_float, tensor

COUNTS = (16, 17, 31, 32, 45, 64, 100)
LENGTHS = (2, 3, 3, 4, 4, 5, 6, 8, 9)


def _rows(g: Generator) -> Value:
    """Returns a value of the pool that has rows of few elements, or a new one."""
    found = [v for v in g.pool if v.type.rank >= 2 and v.type.shape[-1] in LENGTHS and v.type.shape[0] in COUNTS]
    found = [v for v in found if _is_number(v.type.element_type)]
    if found and g.chance(0.7):
        return g.pick(found)
    middle = (int(g.pick((2, 3))),) if g.chance(0.3) else ()
    return g.argument((int(g.pick(COUNTS)), *middle, int(g.pick(LENGTHS))), g.element(_is_number))


def _is_number(kind: Type) -> bool:
    return not is_boolean(kind)


def _columns(g: Generator, value: Value, width: int = 1) -> list[Value]:
    """Returns all pieces of rows that have `width` elements."""
    shape = value.type.static_shape
    firsts = range(shape[-1] + 1 - width)
    starts = [[*(0 for _ in shape[:-1]), first] for first in firsts]
    limits = [[*shape[:-1], first + width] for first in firsts]
    pairs = zip(starts, limits, strict=True)
    return [g.add(ops.Slice(value, first, last, [1] * len(shape))) for first, last in pairs]


def combined(g: Generator) -> None:
    """Rows whose elements are computed from several elements of other rows, as those of cross products are."""
    value = _rows(g)
    columns = _columns(g, value) + _columns(g, g.like(value))
    made = []
    for _ in range(g.number(2, 5)):
        op = ops.Multiply if g.chance(0.5) and is_float(value.type.element_type) else ops.Add
        first, second = g.pick(columns), g.pick(columns)
        made.append(g.add(op(first, second)) if g.chance(0.8) else first)
    if g.chance(0.4):
        made.insert(0, g.add(ops.Negate(g.pick(_columns(g, value, 2)))))
    g.offer(g.add(ops.Concatenate(made, value.type.rank - 1)))


def normalized(g: Generator) -> None:
    """Each row is folded, and combined with the result."""
    value = _rows(g)
    last = value.type.rank - 1
    for _ in range(g.number(1, 2)):
        body, neutral = combiner(g, value.type.element_type)
        (folded,) = g.add(ops.Reduce([value], [start(g, value.type.element_type, neutral)], [last], body))
        g.offer(folded)
        spread = g.add(ops.BroadcastInDim(folded, broadcast_dimensions=range(last), result=value.type))
        value = g.add(g.pick((ops.Add, ops.Subtract))(value, spread))
    g.offer(value)


def turned(g: Generator) -> None:
    """Rows that are columns in memory, reversed, or padded."""
    value = _rows(g)
    rank = value.type.rank
    if g.chance(0.4):
        value = g.add(ops.Transpose(value, (*range(1, rank), 0)))
        value = g.add(ops.Transpose(g.add(ops.Negate(value)), (rank - 1, *range(rank - 1))))
    if g.chance(0.4):
        value = g.add(ops.Reverse(value, (rank - 1,)))
    if g.chance(0.4):
        zero = start(g, value.type.element_type, 1)
        around = [0] * (rank - 1)
        value = g.add(ops.Pad(value, zero, [*around, g.number(-1, 1)], [*around, g.number(0, 2)], [0] * rank))
    g.offer(value)


def small_products(g: Generator) -> None:
    """A product of small matrices, or of one with a vector, for each row."""
    element = g.element(lambda kind: not is_boolean(kind) and not is_complex(kind))
    count, rows, terms = int(g.pick(COUNTS)), g.number(1, 4), g.number(2, 4)
    columns = (g.number(1, 4),) if g.chance(0.6) else ()
    lhs, rhs = g.of_type(tensor(count, rows, terms, of=element)), g.of_type(tensor(count, terms, *columns, of=element))
    g.offer(g.add(ops.DotGeneral(lhs, rhs, ops.DotDimensionNumbers((0,), (0,), (2,), (1,)))))


def folded_in_turn(g: Generator) -> None:
    """Longer rows that are folded several times, each time after what follows from the fold before; what belongs to a
    row is sometimes a result, too."""
    element = g.element(is_float)
    points = (int(g.pick((2, 3))),) if g.chance(0.3) else ()
    count, length = int(g.pick((3, 4, 5, 7, 8, 9, 12, 16, 21))), int(g.pick((33, 40, 64, 100, 130)))
    value = g.argument((*points, count, length), element)
    last = value.type.rank - 1
    shape, weights = value.type.static_shape, g.argument(value.type.static_shape[last:], element)
    for _ in range(g.number(2, 3)):
        op, neutral = g.pick(((ops.Add, 0.0), (ops.Add, 0.0), (ops.Maximum, -np.inf), (ops.Minimum, np.inf)))
        (folded,) = g.add(ops.Reduce([value], [start(g, element, neutral)], [last], scalar_region(op, element)))
        if g.chance(0.6):
            folded = g.add(g.pick((ops.Tanh, ops.Negate, ops.Abs))(folded))
        column = g.add(ops.Reshape(folded, result=tensor(*shape[:last], 1, of=element)))
        if g.chance(0.4):
            g.offer(g.pick((folded, column)))
        spread = g.add(ops.BroadcastInDim(column, broadcast_dimensions=range(last + 1), result=value.type))
        value = g.add(g.pick((ops.Add, ops.Subtract))(value, spread))
        if g.chance(0.4):
            value = g.add(g.pick((ops.Tanh, ops.Logistic, ops.Abs))(value))
    if g.chance(0.5):
        spread = g.add(ops.BroadcastInDim(weights, broadcast_dimensions=(last,), result=value.type))
        value = g.add(ops.Multiply(value, spread))
    g.offer(value)


def matrix_and_vector(g: Generator) -> None:
    """The product of a matrix of long rows, or of several, and a vector, with a bias or a residual."""
    element, length = g.element(is_float), int(g.pick((130, 150, 200, 256, 300)))
    points = (int(g.pick((2, 3))),) if g.chance(0.3) else ()
    shape = *points, int(g.pick((2, 3, 7, 8, 9, 15, 16, 17, 29, 40)))
    matrix, vector = g.argument((*shape, length), element), g.argument((length,), element)
    numbers = ops.DotDimensionNumbers((), (), (len(shape),), (0,))
    sides = (matrix, vector) if g.chance(0.5) else (vector, matrix)
    if sides[0] is vector:
        numbers = ops.DotDimensionNumbers((), (), (0,), (len(shape),))
    value = g.add(ops.DotGeneral(*sides, numbers))
    if g.chance(0.6):
        value = g.add(g.pick((ops.Add, ops.Multiply))(value, g.of_type(value.type)))
    if g.chance(0.3):
        value = g.add(g.pick((ops.Tanh, ops.Negate))(value))
    g.offer(value)


FAMILIES = (combined, normalized, turned, small_products, folded_in_turn, folded_in_turn, matrix_and_vector)
