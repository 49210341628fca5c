"""Whole programs for several sizes, also random ones: the results are those of the program with open sizes."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import trivium
from tests.compiler.bounded.programs import as_list, combinations, drawn, require_equal, require_text, shape_at
from trivium.compiler.bounded import Unbounded, bounded, bounded_where_valid
from trivium.compiler.pipeline import inline_used
from trivium.importers.dynamic import DynamicEmitter
from trivium.ir import ops
from trivium.ir.core import Block, Region, Value
from trivium.ir.func import FuncReturn, Function, Module
from trivium.ir.types import F32, I64, FunctionType, TensorType, tensor

SIZES = combinations(n=(2, 3, 5), m=(3, 4))


class Draw:
    """A random program over matrices whose sizes are `n`, `m`, what follows from them, and numbers."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.block = Block()
        self.emit = DynamicEmitter(self.block)
        kinds = [(None, None), (None, 3), (2, None), (None, None)]
        self.pool: list[Value] = [self.block.add_argument(TensorType(kind, F32)) for kind in kinds]
        self.shapes = ["n m", "n 3", "2 m", "m n"]

    def module(self, steps: int) -> Module:
        while len(self.pool) < len(self.shapes) + steps:
            found = self.random.choice(STEPS)(self, self.random.choice(self.pool[-4:]))
            if found is not None:
                self.pool.append(found)
        returned = self.pool[-3:]
        self.emit.add(FuncReturn(returned))
        kinds = [argument.type for argument in self.block.arguments], [value.type for value in returned]
        return Module.build(functions=[Function("main", FunctionType(*map(tuple, kinds)), Region([self.block]))])

    def dimension(self, x: Value) -> int:
        return self.random.randrange(x.type.rank)

    def other(self, x: Value, *but: int) -> Value | None:
        """Another value of the same rank and, as far as is known, of the same extents but along some dimensions."""
        extents = self.emit.extents(x)

        def fits(y: Value) -> bool:
            pairs = enumerate(zip(self.emit.extents(y), extents, strict=True))
            return all(d in but or a == b for d, (a, b) in pairs)

        found = [y for y in self.pool if y.type.rank == x.type.rank and fits(y)]
        return self.random.choice(found) if found else None


def _combined(draw: Draw, x: Value) -> Value | None:
    y = draw.other(x)
    return None if y is None else draw.emit.add(ops.Add(x, y))


def _joined(draw: Draw, x: Value) -> Value | None:
    d = draw.dimension(x)
    pieces = [x, *(y for _ in range(2) if (y := draw.other(x, d)) is not None)]
    extents = draw.emit.extents(x)
    extents[d] = sum(draw.emit.extent(y, d) for y in pieces)  # type: ignore[assignment]
    kind = x.type.with_shape([e if isinstance(e, int) else None for e in extents])
    return draw.emit.add(ops.Concatenate(pieces, d, result=kind))


def _softmax(draw: Draw, x: Value) -> Value:
    d, emit = draw.dimension(x), draw.emit
    shifted = emit.binary(ops.Subtract, x, emit.reduce(ops.Maximum, x, [d], keep=True))
    exp = emit.add(ops.Exponential(shifted))
    return emit.binary(ops.Divide, exp, emit.reduce(ops.Add, exp, [d], keep=True))


def _product(draw: Draw, x: Value) -> Value | None:
    if x.type.rank != 2:
        return None
    y = draw.other(x, 0)
    return None if y is None else draw.emit.dot(x, y, ([1], [1]), ([], []))


def _regrouped(draw: Draw, x: Value) -> Value:
    emit, extents = draw.emit, draw.emit.extents(x)
    if x.type.rank > 1:
        d = draw.random.randrange(x.type.rank - 1)
        return emit.reshape(x, [*extents[:d], extents[d] * extents[d + 1], *extents[d + 2 :]])
    return emit.reshape(emit.concatenate([x, x], 0), [2, *extents])


def _moved(draw: Draw, x: Value) -> Value:
    order = list(range(x.type.rank))
    draw.random.shuffle(order)
    return draw.emit.transpose(x, order)


def _part(draw: Draw, x: Value) -> Value:
    d = draw.dimension(x)
    extent = draw.emit.extent(x, d)
    return draw.emit.slice(x, d, draw.random.choice([0, 1, extent - 1]), extent, draw.random.choice([1, 2]))


def _padded(draw: Draw, x: Value) -> Value:
    edges = [[draw.random.randrange(3) for _ in range(x.type.rank)] for _ in range(2)]
    return draw.emit.pad(x, *edges, value=draw.random.choice([0.0, 1.5]))


def _picked(draw: Draw, x: Value) -> Value:
    d = draw.dimension(x)
    places = draw.emit.iota([draw.random.choice([draw.emit.extent(x, d), 3])], 0)
    return draw.emit.take(x, places, d)


def _summed(draw: Draw, x: Value) -> Value | None:
    kind = draw.random.choice([ops.Add, ops.Maximum, ops.Multiply])
    return draw.emit.reduce(kind, x, [draw.dimension(x)]) if x.type.rank > 1 else None


def _running(draw: Draw, x: Value) -> Value:
    return draw.emit.cumulative(ops.Add, x, draw.dimension(x))


def _turned(draw: Draw, x: Value) -> Value:
    return draw.emit.add(ops.Reverse(x, (draw.dimension(x),)))


def _sorted(draw: Draw, x: Value) -> Value:
    d = draw.dimension(x)
    places = draw.emit.iota_like(x, d)
    return draw.emit.sort([x, places], d, descending=draw.random.random() < 0.5)[0]


def _added_up(draw: Draw, x: Value) -> Value:
    """Rows at places that are computed, of which some do not exist."""
    d = draw.dimension(x)
    total = draw.emit.reduce(ops.Add, x, [d], keep=True)
    return draw.emit.binary(ops.Multiply, x, draw.emit.add(ops.Tanh(total)))


STEPS: list[Callable[[Draw, Value], Value | None]] = [
    *(_combined, _joined, _softmax, _product, _regrouped, _moved, _part, _padded, _picked, _summed, _running, _turned),
    *(_added_up, _combined, _joined, _product, _regrouped, _sorted),
]


@pytest.mark.parametrize("seed", range(120))
def test_random_programs(seed: int) -> None:
    draw = Draw(seed)
    module = draw.module(3 + seed % 6)
    numbers = np.random.default_rng(seed)
    given = [[drawn(shape_at(shape, each), np.dtype(np.float32), numbers) for shape in draw.shapes] for each in SIZES]
    program = require_equal(module, given)
    if seed % 10 == 0:
        require_equal(module, given, trivium.compile(program.module))


def test_sizes_may_be_arguments() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %n: tensor<i64>) -> tensor<?xf32> {
    %s = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
    %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>
    %r = stablehlo.add %x, %i : tensor<?xf32>
    return %r : tensor<?xf32> }"""
    module = trivium.parse(text)
    shapes = [[(n,), ()] for n in (2, 3, 4)]
    program = bounded(module, shapes, {1: (2, 3, 4)})
    assert program.results == (((2, 3, 4),),)
    assert program.module.main.function_type.inputs == (tensor(4), tensor(of=I64), tensor(of=I64))
    assert program.extents == ((2, 3, 4),)
    for number, n in enumerate((2, 3, 4)):
        padded = np.float32([1, 2, 3, 4])
        (found,) = as_list(trivium.evaluate(program.module, padded, np.int64(n), *program.extents_of(number)))
        np.testing.assert_array_equal(found[:n], padded[:n] + np.arange(n))
    with pytest.raises(Unbounded, match="dynamic_iota: a shape does not follow from the sizes of inputs"):
        bounded(module, shapes, {})


def test_ops_that_only_know_one_size_are_refused() -> None:
    text = """func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %r = stablehlo.cholesky %x, lower = true : tensor<?x?xf32>
    return %r : tensor<?x?xf32> }"""
    with pytest.raises(Unbounded, match="cholesky: it cannot compute with several sizes at once"):
        require_text(text, ["n n"], SIZES)
    require_text(text.replace("?", "2"), ["2 2"], [{"n": 2}])


def test_calls_are_left_to_the_program() -> None:
    """What they compute may differ from run to run."""
    text = """func.func @main(%x: tensor<?xf32>) -> (tensor<i64>, tensor<?xf32>) {
    %c = stablehlo.constant dense<3> : tensor<i64>
    %r = stablehlo.custom_call @counter(%c) : (tensor<i64>) -> tensor<i64>
    return %r, %x : tensor<i64>, tensor<?xf32> }"""
    program = bounded(trivium.parse(text), [[(2,)], [(3,)]], {})
    assert "custom_call @counter(%c)" in str(program.module)


PRODUCTS = """func.func @main(%x: tensor<?x?x3xf32>) -> (tensor<?x3xf32>, tensor<i64>) {{
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?x3xf32>) -> tensor<i32>
    %m = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?x3xf32>) -> tensor<i32>
    %a = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %b = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
    %sizes = stablehlo.concatenate %a, %b, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %all = stablehlo.reduce(%sizes init: %one) applies stablehlo.multiply across dimensions = [0]
      : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
    %sum = stablehlo.reduce(%sizes init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
    %rows = stablehlo.reshape %{rows} : (tensor<i32>) -> tensor<1xi32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %shape = stablehlo.concatenate %rows, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %r = stablehlo.dynamic_reshape %x, %shape : (tensor<?x?x3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %wide = stablehlo.convert %sum : (tensor<i32>) -> tensor<i64>
    return %r, %wide : tensor<?x3xf32>, tensor<i64> }}"""


def test_sizes_may_be_products_of_sizes() -> None:
    """Two reductions of the same sizes, by different functions."""
    require_text(PRODUCTS.format(rows="all"), ["n m 3"], SIZES, compiled=True)


def test_sizes_for_which_a_program_is_not_valid_are_left_out() -> None:
    """As many rows as the sum of two sizes, which is their product for 2 and 2 alone."""
    module = inline_used(trivium.parse(PRODUCTS.format(rows="sum")))
    shapes = [[(n, m, 3)] for n in (2, 3) for m in (2, 3)]
    valid, program = bounded_where_valid(module, shapes, {}, 0)
    assert valid == [0]
    assert program.results[0] == ((4,), (3,))
    with pytest.raises(Unbounded, match="a reshape has another number of elements in some combinations") as caught:
        bounded_where_valid(module, shapes, {}, 1)
    assert caught.value.combinations == {1, 2, 3}


@pytest.mark.parametrize("op", ["add", "maximum"])
def test_sizes_that_do_not_fit_each_other_are_left_out(op: str) -> None:
    text = f"""func.func @main(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32> {{
    %r = stablehlo.{op} %x, %y : tensor<?x2xf32>
    return %r : tensor<?x2xf32> }}"""
    shapes = [[(n, 2), (m, 2)] for n in (3, 4, 5) for m in (4, 5)]
    valid, program = bounded_where_valid(trivium.parse(text), shapes, {}, 2)
    assert valid == [2, 5]
    assert program.results == (((4, 5), (2, 2)),)
