"""Which ops become one kernel, and which must not; each program also computes the right results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import expect_same, program_of, some
from tests.compiler.targets import BATCHING, TARGET
from tests.random_programs.generator import scalar_region
from trivium.compiler.interpreter import interpret
from trivium.compiler.lower import lower
from trivium.compiler.program import Launch, Program, walk
from trivium.ir import ops
from trivium.ir.builder import Builder, region
from trivium.ir.core import Value
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse
from trivium.ir.types import I32, tensor

LESS = ops.ComparisonDirection.LT


def launches(program: Program) -> list[str]:
    """Returns the kernels' names in the order in which they run, without their numbers."""
    return [
        step.kernel.name.rstrip("0123456789").rstrip("_") for step in walk(program.steps) if isinstance(step, Launch)
    ]


def number(b: Builder, value: float) -> Value:
    return b.add(ops.Constant(np.float32(value)))


def fold(b: Builder, operand: Value, op: type, init: float, dimensions: list[int]) -> Value:
    return b.add(ops.Reduce([operand], [number(b, init)], dimensions, scalar_region(op)))[0]


def spread(b: Builder, operand: Value, like: Value, dimensions: list[int]) -> Value:
    return b.add(ops.BroadcastInDim(operand, broadcast_dimensions=dimensions, result=like.type))


def softmax(b: Builder, x: Value) -> Value:
    top = spread(b, fold(b, x, ops.Maximum, -np.inf, [1]), x, [0])
    power = b.add(ops.Exponential(b.add(ops.Subtract(x, top))))
    return b.add(ops.Divide(power, spread(b, fold(b, power, ops.Add, 0, [1]), x, [0])))


def layer_norm(b: Builder, x: Value, scale: Value) -> Value:
    count = spread(b, number(b, 1 / x.type.shape[1]), fold(b, x, ops.Add, 0, [1]), [])
    mean = b.add(ops.Multiply(fold(b, x, ops.Add, 0, [1]), count))
    centred = b.add(ops.Subtract(x, spread(b, mean, x, [0])))
    variance = b.add(ops.Multiply(fold(b, b.add(ops.Multiply(centred, centred)), ops.Add, 0, [1]), count))
    factor = b.add(ops.Rsqrt(variance))
    normal = b.add(ops.Multiply(centred, spread(b, factor, x, [0])))
    return b.add(ops.Multiply(normal, spread(b, scale, x, [1])))


def test_constants_of_a_long_formula_are_no_reads():
    """A value that several polynomials read has no buffer, however many coefficients these have."""

    def polynomial(b: Builder, x: Value, first: int) -> Value:
        """Nested products and sums, whose coefficients come first in the block."""
        coefficients = [spread(b, number(b, 1 / n), x, []) for n in range(first, first + 13)]
        result = x
        for coefficient in coefficients:
            result = b.add(ops.Add(b.add(ops.Multiply(result, x)), coefficient))
        return result

    def program(b: Builder, x: Value) -> Value:
        x = b.add(ops.Exponential(x))
        quotient = b.add(ops.Divide(polynomial(b, x, 2), polynomial(b, x, 30)))
        return b.add(ops.Add(quotient, polynomial(b, x, 60)))

    x = some(4, 5) / 10 - 1
    assert len(launches(expect_same(program_of([tensor(4, 5)], program), [x]))) == 1


def test_a_batch_norm_and_its_statistics_are_one_kernel():
    """Where launches cost much: though features come last, and although means are results and become new ones."""

    def program(b: Builder, x: Value, means: Value) -> list[Value]:
        mean = b.add(ops.Divide(fold(b, x, ops.Add, 0, [0]), spread(b, number(b, 1000), means, [])))
        new = b.add(ops.Add(means, mean))
        centred = b.add(ops.Subtract(x, spread(b, mean, x, [1])))
        variance = fold(b, b.add(ops.Multiply(centred, centred)), ops.Add, 0, [0])
        return [b.add(ops.Multiply(centred, spread(b, variance, x, [1]))), new, mean]

    module, arguments = program_of([tensor(1000, 6), tensor(6)], program), [some(1000, 6), some(6, seed=1)]
    across = replace(BATCHING, fusion=replace(TARGET.fusion, across=6000))
    names = launches(lower(module, across))
    assert names == ["fused_reduce_divide_subtract_multiply", "add"]
    assert len(launches(lower(module, TARGET))) == 3
    compiled = interpret(lower(module, across), *arguments)
    for result, expected in zip(compiled, evaluate(module, *arguments), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_sums_of_a_gradient_and_of_its_products_read_it_once():
    """As in the gradient of a group norm, whose images become rows."""

    def body(b: Builder, gradient: Value, x: Value) -> list[Value]:
        rows = tensor(6, 20)
        products = b.add(ops.Reshape(b.add(ops.Multiply(gradient, x)), result=rows))
        sums = [fold(b, products, ops.Add, 0, [1])]
        alone = b.add(ops.Reshape(gradient, result=rows))
        sums.append(fold(b, alone, ops.Add, 0, [1]))
        return [*sums, fold(b, b.add(ops.Multiply(alone, alone)), ops.Add, 0, [1])]

    shape = (2, 3, 4, 5)
    program = expect_same(program_of([tensor(*shape)] * 2, body), [some(*shape), some(*shape, seed=1)])
    assert launches(program) == ["fused_multiply_reduce"]


def test_what_follows_a_reduction_that_runs_before_has_a_kernel_of_its_own():
    """The sums are sorted before the products are computed, so that these are not one kernel with the sums. What is one
    value for each column is then not stored for each element."""

    def program(b: Builder, x: Value) -> list[Value]:
        total = fold(b, x, ops.Add, 0, [0])
        less = region([tensor()] * 2, lambda b, x, y: b.add(ops.Compare(x, y, LESS)))
        (ordered,) = b.add(ops.Sort([total], dimension=0, is_stable=True, comparator=less))
        factor = b.add(ops.Tanh(total))
        return [b.add(ops.Multiply(x, spread(b, factor, x, [1]))), factor, ordered]

    module, x = program_of([tensor(1000, 6)], program), some(1000, 6)
    across = replace(TARGET, fusion=replace(TARGET.fusion, across=6000))
    lowered = lower(module, across)
    assert launches(lowered)[-2:] == ["fused_tanh_multiply", "fused_tanh_multiply_0_points"]
    for result, expected in zip(interpret(lowered, x), evaluate(module, x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_chain_of_elementwise_ops_is_one_kernel():
    module = program_of([tensor(4, 5)] * 2, lambda b, x, y: b.add(ops.Tanh(b.add(ops.Add(x, y)))))
    assert launches(expect_same(module, [some(4, 5), some(4, 5, seed=1)])) == ["fused_add_tanh"]


def test_softmax_is_one_kernel():
    program = expect_same(program_of([tensor(6, 33)], softmax), [some(6, 33)])
    assert len(launches(program)) == 1
    assert str(program.kernels()[0]).count("= exponential") == 1


def test_layer_norm_is_one_kernel():
    program = expect_same(program_of([tensor(6, 33), tensor(33)], layer_norm), [some(6, 33), some(33, seed=1)])
    assert len(launches(program)) == 1
    assert program.arena_size == 0


@pytest.mark.parametrize("kept", [True, False])
def test_statistics_of_rows_may_be_results(kept: bool):
    """As where a gradient needs them, with the reduced dimension or without it."""

    def body(b: Builder, x: Value) -> list[Value]:
        points, dimensions = (tensor(4, 1), [0, 1]) if kept else (tensor(4), [0])

        def average(terms: Value) -> Value:
            total = b.add(ops.Reshape(fold(b, terms, ops.Add, 0, [1]), result=points))
            return b.add(ops.Divide(total, spread(b, number(b, 6), total, [])))

        mean = average(x)
        centred = b.add(ops.Subtract(x, spread(b, mean, x, dimensions)))
        scale = b.add(ops.Sqrt(average(b.add(ops.Multiply(centred, centred)))))
        return [b.add(ops.Divide(centred, spread(b, scale, x, dimensions))), mean, scale]

    program = expect_same(program_of([tensor(4, 6)], body), [some(4, 6)])
    assert launches(program) == ["fused_reduce_divide_subtract_multiply"]


def test_column_sums_take_their_elementwise_operands():
    def body(b, x, y):
        product = b.add(ops.Multiply(x, y))
        return fold(b, product, ops.Add, 0, [0]), fold(b, x, ops.Add, 0, [0])

    program = expect_same(program_of([tensor(9, 17)] * 2, body), [some(9, 17), some(9, 17, seed=1)])
    assert len(launches(program)) == 1
    assert str(program.kernels()[0]).count("reduction") == 1


def test_contraction_takes_bias_and_activation():
    def body(b, x, w, bias):
        dot = b.add(ops.DotGeneral(x, w, ops.DotDimensionNumbers((), (), (1,), (0,))))
        return b.add(ops.Tanh(b.add(ops.Add(dot, spread(b, bias, dot, [1])))))

    program = expect_same(
        program_of([tensor(4, 8), tensor(8, 16), tensor(16)], body), [some(4, 8), some(8, 16), some(16)]
    )
    assert launches(program) == ["fused_dot_add_tanh"]
    assert program.kernels()[0].contraction is not None


@pytest.mark.parametrize("channels", [1, 3, 8, 13, 32])
@pytest.mark.parametrize(("op", "init"), [(ops.Maximum, -np.inf), (ops.Add, 0)])
def test_contraction_takes_a_window_beside_it(channels: int, op: type, init: float):
    """The sums are already in lanes when the epilogue's loop runs, so the loop gets no lanes of its own."""

    def body(b, x, kernel):
        numbers = ops.ConvDimensionNumbers(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))
        options = {"dimension_numbers": numbers, "feature_group_count": 1, "batch_group_count": 1}
        convolved = b.add(ops.Convolution(x, kernel, window_strides=[2, 2], **options))
        window = {"window_dimensions": [1, 3, 3, 1], "window_strides": [1, 2, 2, 1]}
        padding = [[0, 0], [0, 1], [0, 1], [0, 0]]
        (pooled,) = b.add(ops.ReduceWindow([x], [number(b, init)], **window, padding=padding, body=scalar_region(op)))
        return b.add(ops.Add(pooled, convolved))

    types = [tensor(1, 8, 8, channels), tensor(1, 1, channels, channels)]
    program = expect_same(program_of(types, body), [some(*kind.shape, seed=n) for n, kind in enumerate(types)])
    (kernel,) = program.kernels()
    assert kernel.contraction is not None


def test_transposed_operands_are_strides():
    def body(b, x, w):
        w = b.add(ops.Transpose(w, (1, 0)))
        return b.add(ops.DotGeneral(x, w, ops.DotDimensionNumbers((), (), (1,), (0,))))

    program = expect_same(program_of([tensor(4, 8), tensor(16, 8)], body), [some(4, 8), some(16, 8)])
    assert launches(program) == ["dot"]


def test_two_readers_share_an_expensive_value():
    def body(b, x):
        power = b.add(ops.Exponential(x))
        return b.add(ops.Add(power, x)), b.add(ops.Transpose(power, (1, 0)))

    program = expect_same(program_of([tensor(4, 5)], body), [some(4, 5)])
    assert sum(str(kernel).count("= exponential") for kernel in program.kernels()) == 1


def test_fusion_makes_no_cycle():
    """The sum feeds a value that is folded, and the fold feeds an op that also reads the sum."""

    def body(b, x):
        power = b.add(ops.Exponential(x))
        total = fold(b, b.add(ops.Transpose(power, (1, 0))), ops.Add, 0, [0])
        scaled = b.add(ops.Multiply(power, spread(b, total, power, [0])))
        return b.add(ops.Add(power, scaled)), fold(b, scaled, ops.Maximum, -9, [0, 1])

    expect_same(program_of([tensor(4, 5)], body), [some(4, 5)])


def test_concatenation_has_no_branches():
    def body(b, x, y):
        return b.add(ops.Concatenate([b.add(ops.Tanh(x)), y, x], 1))

    program = expect_same(program_of([tensor(4, 5), tensor(4, 2)], body), [some(4, 5), some(4, 2)])
    assert [kernel.name for kernel in program.kernels()] == [f"fused_tanh_concatenate_0_piece{n}" for n in range(3)]
    assert not any("if" in str(kernel).split() for kernel in program.kernels())


def test_many_pieces_are_computed_apart_from_the_reduction_of_their_concatenation():
    """Else the reduction's kernel would have the code of each piece, such as that of a hyperbolic tangent."""

    def largest(b: Builder, *pieces: Value) -> Value:
        made = [b.add(ops.Tanh(piece)) for piece in pieces]
        return fold(b, b.add(ops.Concatenate(made, dimension=0)), ops.Maximum, -np.inf, [0])

    def lowered(count: int) -> Program:
        return expect_same(program_of([tensor(5)] * count, largest), [some(5, seed=n) for n in range(count)])

    assert len(launches(lowered(4))) == 1
    assert launches(lowered(40)) == ["tanh"] * 40 + ["fused_concatenate_reduce"]


@pytest.mark.parametrize(("count", "size", "fused"), [(8, 1000, True), (9, 1000, False), (9, 100, True)])
def test_large_arrays_of_many_pieces_are_put_together(count: int, size: int, fused: bool):
    """Else each of many elements is chosen from the pieces, such as the steps of an unrolled recurrence."""

    def scaled(b: Builder, x: Value, *pieces: Value) -> Value:
        return b.add(ops.Multiply(x, b.add(ops.Concatenate(pieces, dimension=1))))

    types = [tensor(size, count), *[tensor(size, 1)] * count]
    program = expect_same(program_of(types, scaled), [some(*kind.static_shape, seed=n) for n, kind in enumerate(types)])
    assert (launches(program) == ["fused_concatenate_multiply"]) == fused
    assert any("if" in str(kernel).split() for kernel in program.kernels()) == fused


@pytest.mark.parametrize(("length", "count"), [(30, 1), (200, 1), (700, 3)])
def test_long_chains_are_cut(length: int, count: int):
    def body(b, x):
        for _ in range(length):
            x = b.add(ops.Tanh(x))
        return x

    assert len(launches(expect_same(program_of([tensor(3)], body), [some(3)]))) == count


def test_long_chains_with_branches_are_cut_sooner():
    def body(b, x):
        for _ in range(60):
            x = b.add(ops.Tanh(x))
        y = b.add(ops.Concatenate([x, x], 0))
        for _ in range(60):
            y = b.add(ops.Tanh(y))
        return y

    assert len(launches(expect_same(program_of([tensor(3)], body), [some(3)]))) > 1


@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("dimension", [0, 1])
def test_running_sums_take_one_pass(dimension: int, low: int):
    """Forwards and backwards along either dimension."""

    def body(b, x):
        sizes, padding = [1, 1], [[0, 0], [0, 0]]
        sizes[dimension] = x.type.shape[dimension]
        padding[dimension][low] = sizes[dimension] - 1
        return b.add(ops.ReduceWindow([x], [number(b, 0)], sizes, padding=padding, body=scalar_region(ops.Add)))

    program = expect_same(program_of([tensor(5, 7)], body), [some(5, 7)])
    assert "reduction" not in str(program.kernels()[0])


def test_padding_has_no_branches():
    def body(b, x):
        return b.add(ops.Pad(b.add(ops.Tanh(x)), number(b, 2), [1, 0], [2, 1], [0, 2]))

    program = expect_same(program_of([tensor(4, 5)], body), [some(4, 5)])
    assert [kernel.name for kernel in program.kernels()] == ["fused_tanh_pad_0_padding", "fused_tanh_pad_0_operand"]
    assert not any("if" in str(kernel).split() for kernel in program.kernels())


def test_a_reduction_read_in_one_place_is_written_whole():
    """One group reads element 0 of a reduction, another the whole of it."""

    def body(b, x, y):
        largest = fold(b, x, ops.Maximum, -np.inf, [1, 2])
        first, second = (
            b.add(ops.Reshape(b.add(ops.Slice(value, [at], [at + 1], [1])), result=tensor()))
            for value, at in ((largest, 0), (y, 1))
        )
        less = b.add(ops.Compare(first, second, comparison_direction=LESS))
        before = region([tensor()] * 2, lambda b, p, q: b.add(ops.Compare(p, q, comparison_direction=LESS)))
        return less, b.add(ops.Sort([largest], dimension=0, comparator=before))[0]

    expect_same(program_of([tensor(2, 4, 4), tensor(2)], body), [some(2, 4, 4), some(2)])


def test_launches_know_where_their_ops_come_from() -> None:
    module = parse("""
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %two = stablehlo.constant dense<2.0> : tensor<4xf32> loc("model.py":1:1)
  %0 = stablehlo.tanh %x : tensor<4xf32> loc("model.py":2:1)
  %1 = stablehlo.multiply %0, %two : tensor<4xf32> loc("model.py":3:1)
  %2 = stablehlo.tanh %y : tensor<4xf32> loc("model.py":4:1)
  %3 = stablehlo.multiply %2, %two : tensor<4xf32> loc("model.py":5:1)
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}""")
    program = lower(module, TARGET)
    first, second = (step for step in walk(program.steps) if isinstance(step, Launch))
    assert first.kernel.digest() == second.kernel.digest()
    assert [origin.describe() for origin in first.origins] == ["model.py:2:1", "model.py:3:1"]
    assert "(arg1, result1)  // model.py:4:1; model.py:5:1" in str(program)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3)])
def test_what_follows_a_product_may_divide_its_dimensions(order: tuple[int, ...]) -> None:
    """As layers of models do, which multiply all rows of a batch at once."""

    def body(b: Builder, x: Value, y: Value, z: Value) -> Value:
        numbers = ops.DotDimensionNumbers((), (), (1,), (0,))
        dot = b.add(ops.DotGeneral(x, y, numbers))
        total = b.add(ops.Add(dot, spread(b, z, dot, [1])))
        divided = b.add(ops.Transpose(b.add(ops.Reshape(total, result=tensor(3, 4, 2, 8))), order))
        return b.add(ops.Tanh(divided))

    module = program_of([tensor(12, 5), tensor(5, 16), tensor(16)], body)
    program = expect_same(module, [some(12, 5), some(5, 16, seed=1), some(16, seed=2)])
    assert launches(program) == ["fused_dot_add_tanh"]


def test_gathered_rows_are_added_without_being_stored():
    """Also those of the very array that they are added to."""
    at, to = (np.random.default_rng(seed).integers(-1, 9, (20, 1)).astype(np.int32) for seed in (0, 1))

    def added(b: Builder, x: Value, rows: Value, at: Value, to: Value) -> Value:
        listed = ops.GatherDimensionNumbers((1,), (0,), (), (), (0,), 1)
        gathered = b.add(ops.Negate(b.add(ops.Gather(rows, at, listed, (1, 6)))))
        places = ops.ScatterDimensionNumbers((1,), (0,), (), (), (0,), 1)
        total = scalar_region(ops.Add)
        return b.add(ops.Scatter([x], to, [gathered], places, update_computation=total))[0]

    kinds = [tensor(8, 6), tensor(8, 6), tensor(20, 1, of=I32), tensor(20, 1, of=I32)]
    program = expect_same(program_of(kinds, added), [some(8, 6), some(8, 6, seed=1), at, to])
    assert len(launches(program)) == 1
    kinds = [tensor(8, 6), *kinds[2:]]
    program = expect_same(program_of(kinds, lambda b, x, *places: added(b, x, x, *places)), [some(8, 6), at, to])
    assert len(launches(program)) == 1
