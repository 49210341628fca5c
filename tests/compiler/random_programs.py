"""Random small programs, the same for the same seed: a pool of values grows by one op after another, and those
that nobody reads are the results. Numbers stay small, so that a wrong answer shows and rounding does not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trivium.ir import ops
from trivium.ir.builder import Builder, region
from trivium.ir.core import Region, Value
from trivium.ir.func import Function, Module
from trivium.ir.types import F32, I32, tensor

EXTENTS = (1, 2, 3, 4, 7, 16)
UNARY = (ops.Tanh, ops.Exponential, ops.Negate, ops.Abs, ops.Logistic, ops.Sine)
BINARY = (ops.Add, ops.Subtract, ops.Multiply, ops.Maximum, ops.Minimum)
FOLDS = (ops.Add, ops.Maximum, ops.Minimum)


def scalar_region(op: type, element=F32, arguments: int = 2) -> Region:
    """A region that applies `op` to its two arguments."""
    scalars = [tensor(of=element)] * arguments
    return region(scalars, lambda b, *values: b.add(op(*values)))


class Generator:
    """Adds random ops to a program. `values` is the pool of f32 tensors that ops draw from."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.values: list[Value] = []

    def module(self, steps: int) -> Module:
        """A program of about so many ops."""
        types = [tensor(*self.shape()) for _ in range(self.rng.integers(1, 4))]
        return Module.build(functions=[Function.build("main", types, lambda b, *given: self.body(b, given, steps))])

    def body(self, b: Builder, given: tuple[Value, ...], steps: int) -> list[Value]:
        self.values = list(given)
        for _ in range(steps):
            rule = self.pick(RULES)
            for value in rule(self, b) or ():
                # Small numbers only: the next op may multiply, or sum.
                self.values.append(value if self.rng.random() < 0.5 else b.add(ops.Tanh(value)))
        unread = [value for value in self.values if not value.uses and value not in given]
        return unread or self.values[-1:]

    def pick(self, choices):
        return choices[self.rng.integers(len(choices))]

    def shape(self) -> tuple[int, ...]:
        return tuple(int(self.pick(EXTENTS)) for _ in range(self.pick((0, 1, 2, 2, 3, 3, 3))))

    def value(self, rank: int = 0) -> Value | None:
        """A value of at least that rank, mostly of a higher one; None where the pool has none."""
        for least in (max(rank, int(self.pick((0, 1, 2, 2, 2)))), rank):
            fitting = [value for value in self.values if value.type.rank >= least]
            if fitting:
                return self.pick(fitting)
        return None

    def constant(self, b: Builder, shape: tuple[int, ...]) -> Value:
        return b.add(ops.Constant(self.rng.uniform(-1, 1, shape).astype(np.float32)))

    def like(self, b: Builder, value: Value) -> Value:
        """Another value of that shape: of the pool, broadcast, or a constant."""
        same = [other for other in self.values if other.type is value.type]
        if same and self.rng.random() < 0.6:
            return self.pick(same)
        if self.rng.random() < 0.5:
            return self.constant(b, value.type.shape)
        return self.broadcast_to(b, value.type.shape)

    def broadcast_to(self, b: Builder, shape: tuple[int, ...]) -> Value:
        kept = [d for d in range(len(shape)) if self.rng.random() < 0.5]
        small = tuple(1 if self.rng.random() < 0.2 else shape[d] for d in kept)
        matching = [value for value in self.values if value.type.shape == small]
        operand = self.pick(matching) if matching else self.constant(b, small)
        return b.add(ops.BroadcastInDim(operand, broadcast_dimensions=tuple(kept), result=tensor(*shape)))

    def index(self, b: Builder, high: int = 20) -> Value:
        return b.add(ops.Constant(np.int32(self.rng.integers(-2, high))))


def unary(g: Generator, b: Builder):
    return [b.add(g.pick(UNARY)(g.value()))]


def binary(g: Generator, b: Builder):
    lhs = g.value()
    return [b.add(g.pick(BINARY)(lhs, g.like(b, lhs)))]


def choice(g: Generator, b: Builder):
    lhs = g.value()
    rhs = g.like(b, lhs)
    pred = b.add(ops.Compare(lhs, rhs, g.pick(list(ops.ComparisonDirection))))
    return [b.add(ops.Select(pred, rhs, g.like(b, lhs)))]


def rounded(g: Generator, b: Builder):
    """Of arguments alone: what is computed may lie on either side of a whole number."""
    value = g.values[0]
    scaled = b.add(ops.Multiply(value, b.add(ops.Constant(np.full(value.type.shape, 8, np.float32)))))
    whole = b.add(ops.Convert(scaled, result=value.type.with_element(I32)))
    whole = b.add(ops.And(whole, b.add(ops.Constant(np.full(value.type.shape, 7, np.int32)))))
    return [b.add(ops.Convert(whole, result=value.type))]


def reshape(g: Generator, b: Builder):
    value = g.value()
    size = math.prod(value.type.shape)
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    first = int(g.pick(divisors))
    rest = size // first
    second = int(g.pick([d for d in divisors if rest % d == 0]))
    return [b.add(ops.Reshape(value, result=tensor(first, second, rest // second)))]


def broadcast(g: Generator, b: Builder):
    return [g.broadcast_to(b, g.shape())]


def transpose(g: Generator, b: Builder):
    value = g.value()
    return [b.add(ops.Transpose(value, tuple(int(d) for d in g.rng.permutation(value.type.rank))))]


def reverse(g: Generator, b: Builder):
    value = g.value()
    return [b.add(ops.Reverse(value, [d for d in range(value.type.rank) if g.rng.random() < 0.5]))]


def cut(g: Generator, b: Builder):
    value = g.value()
    starts = [int(g.rng.integers(0, extent)) for extent in value.type.shape]
    limits = [int(g.rng.integers(s + 1, e + 1)) for s, e in zip(starts, value.type.shape, strict=True)]
    return [b.add(ops.Slice(value, starts, limits, [int(g.rng.integers(1, 3)) for _ in starts]))]


def pad(g: Generator, b: Builder):
    value = g.value()
    low, high = ([int(n) for n in g.rng.integers(0, 3, value.type.rank)] for _ in range(2))
    low = [n if extent < 3 else n - 1 for n, extent in zip(low, value.type.shape, strict=True)]
    interior = [int(n) for n in g.rng.integers(0, 2, value.type.rank)]
    return [b.add(ops.Pad(value, b.add(ops.Constant(np.float32(0.5))), low, high, interior))]


def concatenate(g: Generator, b: Builder):
    value = g.value(1)
    if value is None:
        return []
    return [b.add(ops.Concatenate([value, g.like(b, value), value], int(g.rng.integers(value.type.rank))))]


def dynamic_slice(g: Generator, b: Builder):
    value = g.value(1)
    if value is None:
        return []
    sizes = [int(g.rng.integers(1, extent + 1)) for extent in value.type.shape]
    return [b.add(ops.DynamicSlice(value, [g.index(b) for _ in sizes], sizes))]


def dynamic_update_slice(g: Generator, b: Builder):
    value = g.value(1)
    if value is None:
        return []
    update = g.constant(b, tuple(int(g.rng.integers(1, extent + 1)) for extent in value.type.shape))
    return [b.add(ops.DynamicUpdateSlice(value, update, [g.index(b) for _ in value.type.shape]))]


def gather(g: Generator, b: Builder):
    """Rows at some places."""
    value = g.value(1)
    if value is None:
        return []
    places = b.add(ops.Constant(g.rng.integers(-1, 8, (5, 1)).astype(np.int32)))
    rank = value.type.rank
    numbers = ops.GatherDimensionNumbers(tuple(range(1, rank)), (0,), (), (), (0,), 1)
    return [b.add(ops.Gather(value, places, numbers, (1, *value.type.shape[1:])))]


def scatter(g: Generator, b: Builder):
    """Adds rows at some places, of which some are the same."""
    value = g.value(1)
    if value is None:
        return []
    places = b.add(ops.Constant(g.rng.integers(-1, 6, (5, 1)).astype(np.int32)))
    updates = g.constant(b, (5, *value.type.shape[1:]))
    numbers = ops.ScatterDimensionNumbers(tuple(range(1, value.type.rank)), (0,), (), (), (0,), 1)
    return b.add(ops.Scatter([value], places, [updates], numbers, update_computation=scalar_region(ops.Add)))


def reduce(g: Generator, b: Builder):
    value = g.value(1)
    if value is None:
        return []
    dimensions = [d for d in range(value.type.rank) if g.rng.random() < 0.6] or [value.type.rank - 1]
    init = b.add(ops.Constant(np.float32(0)))
    return b.add(ops.Reduce([value], [init], dimensions, scalar_region(g.pick(FOLDS))))


def softmax(g: Generator, b: Builder):
    """A reduction, then work on what it was folded from."""
    value = g.value(1)
    if value is None:
        return []
    dimension = int(g.rng.integers(value.type.rank))
    kept = tuple(d for d in range(value.type.rank) if d != dimension)

    def fold(operand: Value, op: type, init: float) -> Value:
        start = b.add(ops.Constant(np.float32(init)))
        (folded,) = b.add(ops.Reduce([operand], [start], [dimension], scalar_region(op)))
        return b.add(ops.BroadcastInDim(folded, broadcast_dimensions=kept, result=value.type))

    power = b.add(ops.Exponential(b.add(ops.Subtract(value, fold(value, ops.Maximum, -np.inf)))))
    result = b.add(ops.Divide(power, fold(power, ops.Add, 0)))
    return [result, power] if g.rng.random() < 0.3 else [result]


def reduce_window(g: Generator, b: Builder):
    value = g.value(1)
    if value is None:
        return []
    sizes = [int(g.rng.integers(1, min(3, extent) + 1)) for extent in value.type.shape]
    strides = [int(g.rng.integers(1, 3)) for _ in sizes]
    padding = [[int(n) for n in g.rng.integers(0, 2, 2)] for _ in sizes]
    init = b.add(ops.Constant(np.float32(0)))
    op = ops.ReduceWindow(
        [value], [init], sizes, window_strides=strides, padding=padding, body=scalar_region(g.pick(FOLDS))
    )
    return b.add(op)


def dot(g: Generator, b: Builder):
    lhs = g.value(1)
    if lhs is None:
        return []
    contracted = int(g.rng.integers(lhs.type.rank))
    rhs = g.constant(b, (int(g.pick(EXTENTS)), lhs.type.shape[contracted]))
    if g.rng.random() < 0.5:
        rhs = b.add(ops.Transpose(rhs, (1, 0)))
    numbers = ops.DotDimensionNumbers((), (), (contracted,), (rhs.type.shape.index(lhs.type.shape[contracted]),))
    return [b.add(ops.DotGeneral(lhs, rhs, numbers))]


def convolution(g: Generator, b: Builder):
    """Over the last dimension of a value of rank 3, with its features first or last."""
    fitting = [value for value in g.values if value.type.rank == 3]
    if not fitting:
        return []
    image = g.pick(fitting)
    first = g.rng.random() < 0.5
    batch, space, feature = (0, 2, 1) if first else (0, 1, 2)
    features, size = image.type.shape[feature], int(g.rng.integers(1, 4))
    groups = int(g.pick([n for n in (1, 2, 4) if features % n == 0]))
    kernel = g.constant(b, (size, features // groups, groups * int(g.rng.integers(1, 4))))
    numbers = ops.ConvDimensionNumbers(batch, feature, (space,), 1, 2, (0,), batch, feature, (space,))
    padding = [[int(n) for n in g.rng.integers(0, 3, 2)]]
    padding[0][1] += size + 2
    options = {
        "window_strides": [int(g.rng.integers(1, 3))],
        "padding": padding,
        "lhs_dilation": [int(g.rng.integers(1, 3))],
        "rhs_dilation": [int(g.rng.integers(1, 3))],
        "window_reversal": [bool(g.rng.random() < 0.3)],
    }
    result = b.add(
        ops.Convolution(
            image, kernel, dimension_numbers=numbers, feature_group_count=groups, batch_group_count=1, **options
        )
    )
    bias = g.constant(b, (result.type.shape[feature],))
    spread = b.add(ops.BroadcastInDim(bias, broadcast_dimensions=(feature,), result=result.type))
    return [b.add(ops.Add(result, spread))]


def sort(g: Generator, b: Builder):
    value = g.value(1)
    if value is None:
        return []
    less = region([tensor(of=F32)] * 2, lambda b, x, y: b.add(ops.Compare(x, y, ops.ComparisonDirection.LT)))
    return b.add(ops.Sort([value], dimension=int(g.rng.integers(value.type.rank)), comparator=less))


def branch(g: Generator, b: Builder):
    value = g.value()
    start = b.add(ops.Constant(np.float32(0)))
    dimensions = tuple(range(value.type.rank))
    (total,) = b.add(ops.Reduce([value], [start], dimensions, scalar_region(ops.Add)))
    pred = b.add(ops.Compare(total, start, ops.ComparisonDirection.GT))
    true = region([], lambda b: b.add(ops.Tanh(value)))
    false = region([], lambda b: value if g.rng.random() < 0.3 else b.add(ops.Negate(value)))
    return b.add(ops.If(pred, true, false))


def loop(g: Generator, b: Builder):
    """A counted loop that carries two values, swaps them now and then, and updates one in place."""
    value = g.value(1)
    if value is None:
        return []
    other, swaps = g.like(b, value), g.rng.random() < 0.5
    limit = int(g.rng.integers(0, 4))
    count = b.add(ops.Constant(np.int32(0)))
    types = [count.type, value.type, other.type]

    def cond(b: Builder, i: Value, x: Value, y: Value) -> Value:
        return b.add(ops.Compare(i, b.add(ops.Constant(np.int32(limit))), ops.ComparisonDirection.LT))

    def body(b: Builder, i: Value, x: Value, y: Value) -> list[Value]:
        following = b.add(ops.Add(i, b.add(ops.Constant(np.int32(1)))))
        total = b.add(ops.Tanh(b.add(ops.Add(x, y))))
        row = b.add(ops.Slice(total, [0] * value.type.rank, [1, *value.type.shape[1:]], [1] * value.type.rank))
        zeros = [b.add(ops.Constant(np.int32(0))) for _ in value.type.shape[1:]]
        updated = b.add(ops.DynamicUpdateSlice(y, row, [i, *zeros]))
        return [following, *((updated, x) if swaps else (total, updated))]

    return b.add(ops.While([count, value, other], region(types, cond), region(types, body)))[1:]


RULES: tuple[Callable, ...] = (
    unary, unary, binary, binary, binary, choice, rounded, reshape, broadcast, transpose, reverse, cut, pad,
    concatenate, dynamic_slice, dynamic_update_slice, gather, scatter, reduce, reduce, softmax, reduce_window, dot, dot,
    convolution, sort, branch, loop,
)  # fmt: skip


def random_program(seed: int, steps: int = 12) -> tuple[Module, list[np.ndarray]]:
    """A program, and arguments for it."""
    generator = Generator(seed)
    module = generator.module(steps)
    shapes = [kind.shape for kind in module.main.function_type.inputs]
    return module, [generator.rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
