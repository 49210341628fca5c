"""Ops that move windows over arrays, generated at random and compared with XLA: all combinations of padding (negative
too), strides, dilations, groups, reversal, orders of dimensions, and positions outside of the array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest

from tests.ir import xla
from trivium.ir.interpreter import evaluate
from trivium.ir.ops.windows import Window, window_counts
from trivium.ir.text import parse
from trivium.ir.types import F32, tensor, type_of

pytestmark = pytest.mark.jax

Case = tuple[str, list[np.ndarray]]
"""The text of an op, in which `$a` stands for the type of operand `%a`, and its operands."""

REGION = "({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.{0} : {1} stablehlo.return %z : tensor<{2}> }})"
ADD = REGION.format("add %x, %y", "tensor<f32>", "f32")
MAXIMUM = REGION.format("maximum %x, %y", "tensor<f32>", "f32")
GREATER = REGION.format("compare GE, %x, %y", "(tensor<f32>, tensor<f32>) -> tensor<i1>", "i1")


def f32(shape: Sequence[int | None]) -> str:
    return str(tensor(*shape, of=F32))


def integers(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def numbers(random: Random, *shape: int) -> np.ndarray:
    """Returns whole numbers, whose sums are exact in any order. All are different, so that there is only one
    maximum."""
    values = list(range(-(np.prod(shape, dtype=int) // 2), np.prod(shape, dtype=int)))
    return np.array(random.sample(values, int(np.prod(shape))), np.float32).reshape(shape)


def windows(random: Random, rank: int, least: int, dilated: bool = True) -> list[Window]:
    """Draws windows whose padding is at least `least`, and, where elements are selected, less than the window's
    size."""
    drawn = []
    for _ in range(rank):
        size, dilation = random.randint(1, 3), random.randint(1, 2) if dilated else 1
        low, high = (random.randint(least, 3 if least < 0 else size - 1) for _ in range(2))
        base = random.randint(1, 2) if dilated else 1
        drawn.append(Window(size, random.randint(1, 3), low, high, base, dilation))
    return drawn


def window_attributes(drawn: Sequence[Window], dilated: bool = True) -> str:
    columns = {"window_dimensions": [w.size for w in drawn], "window_strides": [w.stride for w in drawn]}
    if dilated:
        columns |= {"base_dilations": [w.base_dilation for w in drawn], "window_dilations": [w.dilation for w in drawn]}
    padding = f"padding = dense<{[[w.low, w.high] for w in drawn]}> : tensor<{len(drawn)}x2xi64>"
    return ", ".join([*(f"{name} = {integers(values)}" for name, values in columns.items()), padding])


def pad(random: Random) -> Case:
    shape = [random.randint(0, 4) for _ in range(random.randint(1, 3))]
    low, interior = ([random.randint(least, 2) for _ in shape] for least in (-3, 0))
    inner = [extent + max(extent - 1, 0) * between for extent, between in zip(shape, interior, strict=True)]
    high = [
        random.randint(max(-3, -start - size), 2 - min(0, start + size)) for start, size in zip(low, inner, strict=True)
    ]
    result = [start + size + end for start, size, end in zip(low, inner, high, strict=True)]
    line = f"stablehlo.pad %a, %b, low = {low}, high = {high}, interior = {interior} : ($a, $b) -> {f32(result)}"
    return line, [numbers(random, *shape), np.float32(99)]


def reduce_window(random: Random) -> Case:
    shape = [random.randint(2, 5) for _ in range(random.randint(1, 3))]
    drawn = windows(random, len(shape), -1)
    result = f32(window_counts(shape, drawn))
    text = (
        f'"stablehlo.reduce_window"(%a, %b) <{{{window_attributes(drawn)}}}> {random.choice([ADD, MAXIMUM])} : ($a, $b)'
    )
    return f"{text} -> {result}", [numbers(random, *shape), np.float32(0)]


def select_and_scatter(random: Random) -> Case:
    shape = [random.randint(1, 6) for _ in range(random.randint(1, 3))]
    drawn = windows(random, len(shape), 0, dilated=False)
    source = numbers(random, *(count or 0 for count in window_counts(shape, drawn)))
    regions = f"{GREATER[:-1]}, {ADD[1:]}"
    text = f'"stablehlo.select_and_scatter"(%a, %b, %c) <{{{window_attributes(drawn, dilated=False)}}}> {regions}'
    return f"{text} : ($a, $b, $c) -> $a", [numbers(random, *shape), source, np.float32(0)]


def convolution(random: Random) -> Case:
    rank = random.randint(1, 2)
    feature_groups, batch_groups = random.choice([(1, 1), (2, 1), (1, 2), (3, 1)])
    drawn, space = windows(random, rank, -1), [random.randint(2, 6) for _ in range(rank)]
    inputs, kernels = random.randint(1, 2), random.randint(1, 2) * feature_groups * batch_groups
    batch = random.randint(1, 2)
    places = [str(axis) for axis in range(rank)]
    extents = [
        {"b": batch * batch_groups, "f": inputs * feature_groups, **dict(zip(places, space, strict=True))},
        {"i": inputs, "o": kernels, **{place: w.size for place, w in zip(places, drawn, strict=True)}},
        {"b": batch, "f": kernels, **dict(zip(places, window_counts(space, drawn), strict=True))},
    ]
    orders = [random.sample(list(sizes), len(sizes)) for sizes in extents]
    shapes = [[sizes[place] or 0 for place in order] for sizes, order in zip(extents, orders, strict=True)]
    names = [f"[{', '.join(order)}]" for order in orders]
    window = f"stride = {[w.stride for w in drawn]}, pad = {[[w.low, w.high] for w in drawn]}, "
    window += f"lhs_dilate = {[w.base_dilation for w in drawn]}, rhs_dilate = {[w.dilation for w in drawn]}, "
    window += f"reverse = {str([random.random() < 0.5 for _ in drawn]).lower()}"
    groups = f"batch_group_count = {batch_groups} : i64, feature_group_count = {feature_groups} : i64"
    line = f"stablehlo.convolution(%a, %b) dim_numbers = {names[0]}x{names[1]}->{names[2]}, window = {{{window}}}"
    arrays = [numbers(random, *shape) for shape in shapes[:2]]
    return f"{line} {{{groups}}} : ($a, $b) -> {f32(shapes[2])}", arrays


def gather(random: Random) -> Case:
    names = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims")
    shape, sizes, whole, starts, dimensions = indexed(random, (*names, "start_index_map"))
    attributes = f"dimension_numbers = #stablehlo.gather<{dimensions}>, slice_sizes = {integers(sizes)}"
    return f'"stablehlo.gather"(%a, %b) <{{{attributes}}}> : ($a, $b) -> {f32(whole)}', [
        numbers(random, *shape),
        starts,
    ]


def scatter(random: Random) -> Case:
    names = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims")
    shape, _, whole, starts, dimensions = indexed(random, (*names, "scatter_dims_to_operand_dims"))
    attributes = f"scatter_dimension_numbers = #stablehlo.scatter<{dimensions}>"
    line = f'"stablehlo.scatter"(%a, %b, %c) <{{{attributes}}}> {random.choice([ADD, MAXIMUM])} : ($a, $b, $c) -> $a'
    return line, [numbers(random, *shape), starts, numbers(random, *whole)]


def indexed(random: Random, names: Sequence[str]) -> tuple[list[int], list[int], list[int], np.ndarray, str]:
    """What `gather` and `scatter` have in common: the shape of a tensor, of a window in it, and of all windows, the
    list of the windows' positions (some are so far outside that no part of the window is inside), and the dimension
    numbers."""
    shape = [random.randint(1, 5) for _ in range(random.randint(1, 3))]
    dims = range(len(shape))
    batching = sorted(random.sample(dims, random.randint(0, min(1, len(shape) - 1))))
    rest = [dim for dim in dims if dim not in batching]
    index_map = random.sample(rest, random.randint(1, len(rest)))
    sizes = [1 if dim in batching else random.randint(1, shape[dim]) for dim in dims]
    dropped = [dim for dim in rest if sizes[dim] == 1 and random.random() < 0.5]
    batch = [random.randint(1, 3) for _ in range(random.randint(len(batching), 2))]
    in_list = random.sample(range(len(batch)), len(batching))
    for dim, axis in zip(batching, in_list, strict=True):
        batch[axis] = shape[dim]
    starts = np.empty((*batch, len(index_map)), np.int32)
    for place in np.ndindex(starts.shape):
        most = shape[index_map[place[-1]]] - sizes[index_map[place[-1]]]
        starts[place] = random.choice([-9, most + 9, *range(most + 1), *range(most + 1)])
    vector_dim = random.randint(0, len(batch))
    window = [sizes[dim] for dim in rest if dim not in dropped]
    offsets = sorted(random.sample(range(len(batch) + len(window)), len(window)))
    extents, inner = iter(batch), iter(window)
    whole = [next(inner) if axis in offsets else next(extents) for axis in range(len(batch) + len(window))]
    in_list = [axis + (axis >= vector_dim) for axis in in_list]
    lists = zip(names, (offsets, dropped, batching, in_list, index_map), strict=True)
    dimensions = ", ".join([f"{name} = {values}" for name, values in lists])
    return shape, sizes, whole, np.moveaxis(starts, -1, vector_dim), f"{dimensions}, index_vector_dim = {vector_dim}"


def dynamic_slice(random: Random) -> Case:
    shape = [random.randint(1, 5) for _ in range(2)]
    sizes = [random.randint(0, extent) for extent in shape]
    starts = [np.uint64(random.choice([0, 1, 2, 2**63 + 5])) for _ in shape]
    line = f"stablehlo.dynamic_slice %a, %b, %c, sizes = {sizes} : ($a, $b, $c) -> {f32(sizes)}"
    return line, [numbers(random, *shape), *starts]


CASES = 12
KINDS = (pad, reduce_window, select_and_scatter, convolution, gather, scatter, dynamic_slice)


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_equal_to_xla(kind: Callable[[Random], Case], seed: int) -> None:
    line, arrays = kind(Random(seed))
    types = {f"${name}": str(type_of(array)) for name, array in zip("abc", arrays, strict=False)}
    for name, text in types.items():
        line = line.replace(name, text)
    arguments = ", ".join(f"%{name[1]}: {text}" for name, text in types.items())
    result = line.rpartition(" -> ")[2]
    text = f"func.func @main({arguments}) -> {result} {{ %0 = {line} return %0 : {result} }}"
    module = parse(text)
    module.verify()
    np.testing.assert_array_equal(evaluate(module, *arrays)[0], xla.run(text, arrays)[0], text)
