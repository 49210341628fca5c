"""Convolutions with their features last: random networks compute the same as before, and transposes remain only where
other ops need the features in another dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import splat
from tests.random_programs.generator import scalar_region
from trivium.compiler.passes.layout import (
    LEAST_FEATURES,
    LEAST_POSITIONS,
    SMALL_KERNEL,
    ChannelsLast,
    to_first,
    to_last,
)
from trivium.compiler.passes.manager import run_passes
from trivium.compiler.pipeline import CLEAN_UP
from trivium.ir import ops
from trivium.ir.builder import Builder, region
from trivium.ir.core import Region, Value
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import C64, F32, I32, TensorType, tensor, type_of


def numbers(rank: int) -> ops.ConvDimensionNumbers:
    """Batch, feature and spatial dimensions; kernels have output features, input features and spatial dimensions."""
    space = tuple(range(2, rank))
    return ops.ConvDimensionNumbers(0, 1, space, 1, 0, space, 0, 1, space)


def convolve(b: Builder, x: Value, kernel: Value, **options) -> Value:
    given = {"feature_group_count": 1, "batch_group_count": 1, "dimension_numbers": numbers(x.type.rank)} | options
    return b.add(ops.Convolution(x, kernel, **given))


def convolution(b: Builder, x: Value, features: int, seed: int = 0, **options) -> Value:
    """With a constant kernel of extent 2 in each spatial dimension."""
    shape = (features, x.type.static_shape[1], *[2] * (x.type.rank - 2))
    kernel = np.random.default_rng(seed).integers(-3, 4, shape).astype(x.type.dtype)
    return convolve(b, x, b.add(ops.Constant(kernel)), **options)


def depthwise(b: Builder, x: Value) -> Value:
    channels = x.type.static_shape[1]
    kernel = b.add(ops.Constant(np.random.default_rng(0).integers(-3, 4, (channels, 1, 2, 2)).astype(x.type.dtype)))
    return convolve(b, x, kernel, feature_group_count=channels)


def given(kind: TensorType, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, kind.static_shape).astype(kind.dtype)


def laid_out(module: Module, *arrays: np.ndarray) -> Module:
    """With features last, and cleaned up. Small whole numbers are computed exactly in any type."""
    after = run_passes(module.clone(), (ChannelsLast(), CLEAN_UP), verify=True)
    for wanted, found in zip(evaluate(module, *arrays), evaluate(after, *arrays), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(found, wanted)
    return after


def kinds(module: Module, *kept: type) -> list[str]:
    """Returns the names of the ops of some classes, in order."""
    return [op.NAME.rpartition(".")[2] for op in module.walk() if isinstance(op, kept)]


def lines(b: Builder, x: Value, dimension: int, places: Sequence[int]) -> Value:
    """Slices along a dimension, chosen as where images are resized."""
    rank, sizes = x.type.rank, [1 if d == dimension else n for d, n in enumerate(x.type.static_shape)]
    others = tuple(d for d in range(rank) if d != dimension)
    numbers = ops.GatherDimensionNumbers(others, (dimension,), (), (), (dimension,), 1)
    return b.add(ops.Gather(x, b.add(ops.Constant(np.array(places, np.int64))), numbers, sizes))


def relu(b: Builder, x: Value) -> Value:
    return b.add(ops.Maximum(x, splat(b, 0, x.type)))


@pytest.mark.parametrize(
    "element", [I32, F32, C64, np.dtype(np.float64), np.dtype(np.int8), np.dtype(ml_dtypes.bfloat16)]
)
@pytest.mark.parametrize("space", [(9,), (5, 6), (4, 5, 3)], ids=len)
def test_a_chain_has_a_transpose_at_each_end(space: tuple[int, ...], element) -> None:
    kind = tensor(2, 1, *space, of=element)

    def body(b, x):
        y = b.add(ops.Negate(convolution(b, x, 3)))
        return convolution(b, b.add(ops.Add(y, splat(b, 1, y.type))), 2, seed=1)

    after = laid_out(program_of([kind], body), given(kind))
    # The first transpose only moves the one feature, so it is a reshape.
    assert kinds(after, ops.Transpose, ops.Convolution, ops.Add) == ["convolution", "add", "convolution", "transpose"]


KIND = tensor(2, 3, 6, 6, of=I32)


def step(b: Builder, values: list[Value], rng: np.random.Generator) -> Value | None:
    """An op, or a few, that depend on one or two of the values."""
    x = values[int(rng.integers(len(values)))]
    shape, rank = x.type.static_shape, x.type.rank
    at = int(rng.integers(rank)) if rank else 0
    same = [value for value in values if value.type is x.type]
    other = same[int(rng.integers(len(same)))]
    zeros = (0,) * rank
    add = scalar_region(ops.Add, I32)
    none = splat(b, 0, tensor(of=I32))
    choices: list[Callable[[], Value]] = [
        lambda: b.add(ops.Add(x, other)),
        lambda: b.add(ops.Select(b.add(ops.Compare(x, other, ops.ComparisonDirection.LT)), other, x)),
        lambda: b.add(ops.Clamp(splat(b, -20, tensor(of=I32)), x, splat(b, 20, tensor(of=I32)))),
        lambda: b.add(ops.Reverse(x, (at,))),
        lambda: b.add(ops.Concatenate([x, other], at)),
        lambda: b.add(ops.Transpose(x, tuple(rng.permutation(rank).tolist()))),
        lambda: b.add(ops.Slice(x, [int(d == at) for d in range(rank)], shape, [1 + (d == at) for d in range(rank)])),
        lambda: b.add(
            ops.Pad(x, none, [int(d == at) for d in range(rank)], zeros, [int(d != at) for d in range(rank)])
        ),
        lambda: b.add(ops.DynamicSlice(x, [none] * rank, [max(1, n - (d == at)) for d, n in enumerate(shape)])),
        lambda: b.add(ops.Reduce([x], [none], tuple(sorted({at, int(rng.integers(rank))})), add))[0],
        lambda: b.add(
            ops.ReduceWindow(
                [x], [none], [1 + (d == at) for d in range(rank)], body=add, padding=[(d, 1) for d in range(rank)]
            )
        )[0],
        lambda: relu(b, convolution(b, x, 2, seed=at)),
        lambda: lines(b, x, at, rng.integers(-1, shape[at] + 1, shape[at] + 1).tolist()),
    ]
    if not 2 < rank < 6 or min(shape[2:]) < 2 or x.type.size > 2000:
        return None
    return choices[int(rng.integers(len(choices)))]()


def network(seed: int) -> Module:
    rng = np.random.default_rng(seed)

    def body(b, x):
        values = [x, convolution(b, x, 3)]
        for _ in range(10):
            made = step(b, values, rng)
            values += [made] if made is not None and made.type.size else []
        return values[1:]

    return program_of([KIND], body)


@pytest.mark.parametrize("seed", range(40))
def test_random_networks(seed: int) -> None:
    module = network(seed)
    after = laid_out(module, given(KIND, seed))
    assert kinds(after, ops.Convolution) == kinds(module, ops.Convolution)


def test_images_that_are_given_with_features_last() -> None:
    """What a transposed argument, and a mean's gradient, are combined with before the first convolution."""
    kind, each = tensor(2, 6, 5, 3, of=F32), tensor(2, 3, of=F32)

    def body(b, x, gradient):
        image = b.add(ops.Transpose(x, to_first(4)))
        spread = b.add(ops.BroadcastInDim(gradient, broadcast_dimensions=(0, 1), result=tensor(2, 3, 6, 5, of=F32)))
        zero = splat(b, 0, image.type)
        positive = b.add(ops.Compare(image, zero, ops.ComparisonDirection.GT))
        chosen = b.add(ops.Select(positive, b.add(ops.Negate(spread)), zero))
        total = b.add(ops.Reduce([chosen], [splat(b, 0, tensor(of=F32))], (0, 2, 3), scalar_region(ops.Add, F32)))[0]
        return [total, b.add(ops.Transpose(convolution(b, chosen, 2), to_last(4)))]

    after = laid_out(program_of([kind, each], body), given(kind), given(each))
    moved = [op for op in after.walk() if isinstance(op, ops.Transpose)]
    # What is left is of what was spread, which is computed where it is used.
    assert [op.operand.type.static_shape for op in moved] in ([], [(2, 3, 6, 5)])


def test_images_that_are_resized() -> None:
    """Between two convolutions, and without any if the features come last in what is given and returned."""

    def resized(b, x):
        wider = b.add(ops.Multiply(*(lines(b, x, 3, places) for places in ([0, 0, 1, 2, 4], [0, 2, 2, 3, 4]))))
        return relu(b, lines(b, wider, 2, [4, 4, 0]))

    module = program_of([KIND], lambda b, x: convolution(b, resized(b, convolution(b, x, 4)), 2))
    assert kinds(laid_out(module, given(KIND)), ops.Transpose) == ["transpose"] * 2
    last = tensor(2, 5, 5, 3, of=F32)
    module = program_of(
        [last], lambda b, x: b.add(ops.Transpose(resized(b, b.add(ops.Transpose(x, to_first(4)))), to_last(4)))
    )
    assert kinds(laid_out(module, given(last)), ops.Transpose, ops.Gather) == ["gather"] * 3


def test_values_that_are_used_both_ways() -> None:
    """Their sum over a batch needs the features in their original dimension, the next convolution needs them last."""

    def body(b, x):
        y = convolution(b, x, 4)
        flat = b.add(ops.Reshape(y, result=tensor(2, 100, of=I32)))
        return flat, convolution(b, relu(b, y), 2), y

    after = laid_out(program_of([KIND], body), given(KIND))
    assert kinds(after, ops.Transpose, ops.Convolution, ops.Reshape, ops.Maximum) == [
        "transpose", "convolution", "transpose", "reshape", "maximum", "convolution", "transpose",
    ]  # fmt: skip


def test_a_residual_connection_of_an_argument_stays_first() -> None:
    """One of two operands is not a majority: the following ops are computed as before, from a transpose."""
    after = laid_out(
        program_of([KIND], lambda b, x: relu(b, b.add(ops.Add(convolution(b, x, 3, padding=[(0, 1)] * 2), x)))),
        given(KIND),
    )
    assert kinds(after, ops.Transpose, ops.Add) == ["transpose", "transpose", "add"]


def ascending() -> Region:
    return region([tensor(of=I32)] * 2, lambda b, *pair: b.add(ops.Compare(*pair, ops.ComparisonDirection.LT)))


OTHERS: dict[str, Callable[[Builder, Value], Value]] = {
    "reshape": lambda b, y: b.add(ops.Reshape(y, result=tensor(*y.type.static_shape, 1, of=I32))),
    "sort": lambda b, y: b.add(ops.Sort([y], dimension=1, is_stable=True, comparator=ascending()))[0],
    "broadcast": lambda b, y: b.add(ops.BroadcastInDim(y, (0, 1, 2, 3), result=tensor(2, 3, 5, 5, 4, of=I32))),
    "dynamic slice": lambda b, y: b.add(ops.DynamicSlice(y, [splat(b, 1, tensor(of=I32))] * 4, (1, 2, 3, 4))),
    "sum of the batch": lambda b, y: b.add(
        ops.Reduce([y], [splat(b, 0, tensor(of=I32))], (0,), scalar_region(ops.Add, I32))
    )[0],
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_transposes_do_not_sink_through(name: str) -> None:
    build = OTHERS[name]
    before = program_of([KIND], lambda b, x: build(b, b.add(ops.Negate(convolution(b, x, 3)))))
    ChannelsLast().run(after := before.clone())
    (last,) = (op for op in after.main.body.block if op.results and op.results[0] in after.main.returned)
    assert isinstance(last.operands[0].defining_op, ops.Transpose)
    assert last.operands[0].type is tensor(2, 3, 5, 5, of=I32)
    laid_out(before, given(KIND))


def training(b: Builder, x: Value, kernel: Value, cotangent: Value) -> list[Value]:
    """A layer, and the gradients of its kernel and its input."""
    y = relu(b, convolve(b, x, kernel))
    alive = b.add(ops.Compare(y, splat(b, 0, y.type), ops.ComparisonDirection.GT))
    slope = b.add(ops.Select(alive, cotangent, splat(b, 0, y.type)))
    space = (2, 3)
    of_kernel = ops.ConvDimensionNumbers(1, 0, space, 0, 1, space, 1, 0, space)
    of_input = ops.ConvDimensionNumbers(0, 1, space, 0, 1, space, 0, 1, space)
    whole = [(1, 1), (1, 1)]
    return [
        y,
        convolve(b, x, slope, dimension_numbers=of_kernel),
        convolve(b, slope, kernel, dimension_numbers=of_input, padding=whole, window_reversal=[True, True]),
    ]


@pytest.mark.parametrize("element", [I32, F32])
def test_gradients(element) -> None:
    """With enough positions that packing a kernel which is an argument pays off."""
    types = [tensor(4, 2, 14, 14, of=element), tensor(3, 2, 2, 2, of=element), tensor(4, 3, 13, 13, of=element)]
    after = laid_out(program_of(types, training), *[given(kind, seed) for seed, kind in enumerate(types)])
    layer, of_kernel, of_input = (op for op in after.walk() if isinstance(op, ops.Convolution))
    assert layer.dimension_numbers.input_dimensions == layer.dimension_numbers.output_dimensions == (0, 3, 1, 2)
    assert of_kernel.dimension_numbers.input_dimensions == (1, 0, 2, 3)
    assert of_input.dimension_numbers.input_dimensions == (0, 3, 1, 2)


@pytest.mark.parametrize(
    ("shape", "options", "changed"),
    [
        ((1, 1, LEAST_POSITIONS + 1), {}, True),
        ((1, 1, LEAST_POSITIONS), {}, False),
        ((2, 1, LEAST_POSITIONS + 1), {"batch_group_count": 2}, False),
        ((LEAST_POSITIONS, 1, 1), {}, False),
        ((0, 1, LEAST_POSITIONS + 1), {}, False),
    ],
)
def test_which_convolutions_gain(shape: tuple[int, ...], options: dict, changed: bool) -> None:
    """With a kernel of extent 2 from outside."""
    types = [tensor(*shape, of=I32), tensor(2, 1, 2, of=I32)]
    module = program_of(types, lambda b, x, kernel: convolve(b, x, kernel, **options))
    assert ChannelsLast().run(module.clone()) == changed
    laid_out(module, *map(given, types))


@pytest.mark.parametrize(
    ("kernel", "groups", "changed"),
    [
        ((LEAST_FEATURES, 3, 2), 1, True),
        ((LEAST_FEATURES - 1, 3, 2), 1, False),
        ((LEAST_FEATURES, SMALL_KERNEL // LEAST_FEATURES, 1), 1, False),
    ],
)
def test_small_kernels_gain_at_few_positions(kernel: tuple[int, ...], groups: int, changed: bool) -> None:
    types = [tensor(1, kernel[1] * groups, 7, of=I32), tensor(*kernel, of=I32)]
    module = program_of(types, lambda b, x, kernel: convolve(b, x, kernel, feature_group_count=groups))
    assert ChannelsLast().run(module.clone()) == changed
    laid_out(module, *map(given, types))


@pytest.mark.parametrize("after", ["argument", "convolution", "padded convolution"])
def test_depthwise_convolutions_have_their_features_where_their_images_have_them(after: str) -> None:
    """With few positions, too. Windows on an argument slide along its lines."""

    def body(b: Builder, x: Value) -> Value:
        if after != "argument":
            x = convolution(b, x, LEAST_FEATURES)
        if after == "padded convolution":
            x = b.add(ops.Pad(x, splat(b, 0, tensor(of=I32)), (0, 0, 1, 1), (0, 0, 1, 1), (0, 0, 0, 0)))
        return depthwise(b, x)

    kind = tensor(1, LEAST_FEATURES, 7, 7, of=I32)
    module = program_of([kind], body)
    assert ChannelsLast().run(module.clone()) == (after != "argument")
    *_, op = (op for op in laid_out(module, given(kind)).walk() if isinstance(op, ops.Convolution))
    assert op.dimension_numbers.input_feature_dimension == (1 if after == "argument" else 3)


def test_a_kernel_that_does_not_lie_in_rows_gains_at_few_positions() -> None:
    """As in the gradient of an image, whose kernel has its features swapped."""

    def gradient(b: Builder, x: Value, kernel: Value) -> Value:
        return convolve(b, x, b.add(ops.Transpose(kernel, permutation=(1, 0, 2))))

    types = [tensor(1, 3, 5, of=I32), tensor(3, 4, 2, of=I32)]
    module = program_of(types, gradient)
    assert ChannelsLast().run(module.clone())
    laid_out(module, *map(given, types))


def test_nothing_changes_without_convolutions() -> None:
    module = program_of([KIND], lambda b, x: b.add(ops.Negate(x)))
    assert not ChannelsLast().run(module)


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_the_permutations_undo_each_other(rank: int) -> None:
    x = np.empty(range(1, rank + 1))
    assert x.transpose(to_last(rank)).transpose(to_first(rank)).shape == x.shape
    assert x.transpose(to_last(rank)).shape[-1] == x.shape[1]
    assert type_of(x).rank == rank
