"""Many rows of few elements: points, colors, small matrices, and the scores of a few classes."""

from __future__ import annotations

from tests.random_programs.folds import combiner, start
from tests.random_programs.generator import Generator
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


FAMILIES = (combined, normalized, turned, small_products)
