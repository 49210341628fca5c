"""Ops that fold many elements into one, or sort them: `reduce`, windows, `select_and_scatter`, `sort`.

Their regions are scalar programs, which are mapped over whole arrays here (`body.map`): all folds of an op take their
next element at once, in the order that the specification requires. A sort is a merge sort whose binary searches run for
all elements at once, unless the comparator turns out to be no order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.ir.codecs import Ints, Pairs
from trivium.ir.core import Region
from trivium.ir.declare import RECURSIVE_EFFECTS, Op, Operand, Operands, Result, Results
from trivium.ir.errors import fail
from trivium.ir.ops.common import (
    expect_at_least,
    expect_size,
    expect_tensor,
    expect_unique,
    expect_within,
)
from trivium.ir.ops.quantization import promoted
from trivium.ir.ops.regions import check_reducer, check_region, outputs_of
from trivium.ir.ops.windows import padded, window_counts, window_view, windows_of
from trivium.ir.types import I1, TensorType, compatible, same_baseline, shapes_compatible

__all__ = ["Reduce", "ReduceWindow", "SelectAndScatter", "Sort"]


class Reduce(Op, name="stablehlo.reduce", traits={RECURSIVE_EFFECTS}):
    """Folds `inputs` along `dimensions` with `body`, starting from `init_values`; several inputs fold together."""

    inputs: Operands
    init_values: Operands
    dimensions: Ints
    body: Region
    results: Results

    def infer(inputs, dimensions, body):
        _check_inputs("C3", inputs)
        shape = _kept(inputs[0].shape, dimensions)
        return [TensorType(shape, kind) for kind in _reduced("C6", body)]

    def check(inputs, init_values, dimensions, body, results):
        _check_inputs("C3", inputs)
        _check_same_shape("C1", inputs)
        _check_init_values("C2", "C3", inputs, init_values)
        rank = inputs[0].rank
        expect_within("C4", "dimensions", dimensions, rank)
        expect_unique("C5", "dimensions", dimensions)
        check_reducer("C6", "body", body, [kind.element_type for kind in inputs])
        _check_results(("C3", "C7", "C8"), results, _kept(inputs[0].shape, dimensions), body)

    def evaluate(op, inputs, init_values, dimensions, body, results):
        order = [axis for axis in range(inputs[0].ndim) if axis not in dimensions]
        shape = _kept(inputs[0].shape, dimensions)
        count = math.prod(inputs[0].shape[axis] for axis in dimensions)
        order += sorted(dimensions)
        lists = [
            array.transpose(order).reshape(*shape, count)
            for array in promoted(inputs, [value.type for value in op.inputs], results)
        ]
        return fold(body, lists, promoted(init_values, [value.type for value in op.init_values], results))


class ReduceWindow(Op, name="stablehlo.reduce_window", traits={RECURSIVE_EFFECTS}):
    """Folds every window of `inputs` with `body`; `init_values` is also the value of padding."""

    inputs: Operands
    init_values: Operands
    window_dimensions: Ints
    window_strides: Ints | None = None
    base_dilations: Ints | None = None
    window_dilations: Ints | None = None
    padding: Pairs | None = None
    body: Region
    results: Results

    def infer(inputs, window_dimensions, window_strides, base_dilations, window_dilations, padding, body):
        _check_inputs("C1", inputs)
        rank = inputs[0].rank
        _check_list("C4", "C5", "window_dimensions", window_dimensions, rank)
        _check_list("C6", "C7", "window_strides", window_strides, rank)
        _check_list("C8", "C9", "base_dilations", base_dilations, rank)
        _check_list("C10", "C11", "window_dilations", window_dilations, rank)
        _check_padding("C12", padding, rank)
        windows = windows_of(window_dimensions, window_strides, padding, base_dilations, window_dilations)
        shape = window_counts(inputs[0].shape, windows)
        return [TensorType(shape, kind) for kind in _reduced("C13", body)]

    def check(
        inputs,
        init_values,
        window_dimensions,
        window_strides,
        base_dilations,
        window_dilations,
        padding,
        body,
        results,
    ):
        expected = ReduceWindow.infer(
            inputs, window_dimensions, window_strides, base_dilations, window_dilations, padding, body
        )
        _check_same_shape("C2", inputs)
        _check_init_values("C3", "C1", inputs, init_values)
        check_reducer("C13", "body", body, [kind.element_type for kind in inputs])
        _check_same_shape("C14", results)
        _check_results(("C1", "C15", "C16"), results, expected[0].shape, body)

    def evaluate(
        op,
        inputs,
        init_values,
        window_dimensions,
        window_strides,
        base_dilations,
        window_dilations,
        padding,
        body,
        results,
    ):
        windows = windows_of(window_dimensions, window_strides, padding, base_dilations, window_dilations)
        inputs = promoted(inputs, [value.type for value in op.inputs], results)
        init_values = promoted(init_values, [value.type for value in op.init_values], results)
        lists = []
        for array, init in zip(inputs, init_values, strict=True):
            view = window_view(padded(array, init, windows), windows)
            lists.append(view.reshape(*view.shape[: array.ndim], math.prod(window_dimensions)))
        return fold(body, lists, init_values)


class SelectAndScatter(Op, name="stablehlo.select_and_scatter", traits={RECURSIVE_EFFECTS}):
    """Selects one element of every window of `operand`, and scatters `source` to the positions of the selected
    elements: the gradient of max-pooling."""

    operand: Operand
    source: Operand
    init_value: Operand
    window_dimensions: Ints | None = None
    window_strides: Ints | None = None
    padding: Pairs | None = None
    select: Region
    scatter: Region
    result: Result

    def infer(operand, scatter):
        expect_tensor("I1", "operand", operand)
        check_reducer("C10", "scatter", scatter, [operand.element_type])
        return operand.with_element(outputs_of(scatter)[0].element_type)

    def check(operand, source, init_value, window_dimensions, window_strides, padding, select, scatter, result):
        for label, name, kind in (
            ("I1", "operand", operand),
            ("I2", "source", source),
            ("I3", "init_value", init_value),
        ):
            expect_tensor(label, name, kind)
        expect_tensor("O1", "result", result)
        rank, element = operand.rank, operand.element_type
        if element is not source.element_type:
            fail("C1", f"source has element type {source.element_type}, operand has {element}")
        if init_value.element_type is not element or init_value.rank != 0:
            fail("C3", f"init_value has type {init_value}, expected tensor<{element}>")
        # Optional in the format; without it, MLIR also assumes no dimensions.
        _check_list("C4", "C5", "window_dimensions", window_dimensions or (), rank)
        _check_list("C6", "C7", "window_strides", window_strides, rank)
        _check_padding("C8", padding, rank)
        counts = window_counts(operand.shape, windows_of(window_dimensions or (), window_strides, padding))
        if not shapes_compatible(source.shape, counts):
            fail("C2", f"source has shape {source.shape}, the windows of operand are {counts}")
        scalar = TensorType((), element)
        check_region("C9", "select", select, [scalar, scalar], [TensorType((), I1)])
        check_reducer("C10", "scatter", scatter, [element])
        if not shapes_compatible(operand.shape, result.shape):
            fail("C11", f"the result has shape {result.shape}, operand has {operand.shape}")
        if result.element_type is not outputs_of(scatter)[0].element_type:
            fail("C12", f"the result has type {result}, scatter returns {outputs_of(scatter)[0]}")

    def evaluate(op, operand, source, init_value, window_dimensions, window_strides, padding, select, scatter, result):
        windows = windows_of(window_dimensions or (), window_strides, padding)
        places = np.arange(operand.size).reshape(operand.shape)
        view = window_view(padded(places, np.array(-1), windows), windows)
        places = view.reshape(-1, math.prod(window.size for window in windows))
        chosen = _selected(operand.reshape(-1), places, select) if operand.size else np.full(len(places), -1)
        kinds = op.source.type, op.init_value.type
        values, initial = promoted([source.reshape(-1), init_value], kinds, [result, result])
        # A window that is all padding selects nothing.
        scattered = np.full(operand.size, initial, result.dtype)
        _accumulate(scattered, chosen[chosen >= 0], values[chosen >= 0], scatter)
        return scattered.reshape(operand.shape)


class Sort(Op, name="stablehlo.sort", traits={RECURSIVE_EFFECTS}):
    """Sorts `inputs` together along `dimension`; `comparator` says whether one row comes before another. The sort is
    stable, whether or not `is_stable` is set."""

    inputs: Operands
    dimension: int = -1
    is_stable: bool = False
    comparator: Region
    results: Results

    def infer(inputs):
        return list(inputs)

    def check(inputs, dimension, comparator, results):
        _check_inputs("C1", inputs)
        if len(inputs) != len(results):
            fail("C2", f"has {len(results)} results, expected {len(inputs)}")
        for index, (kind, result) in enumerate(zip(inputs, results, strict=True)):
            expect_tensor("C2", f"results[{index}]", result)
            if not same_baseline(kind.element_type, result.element_type):
                fail("C2", f"results[{index}] has type {result}, inputs[{index}] has {kind}")
        _check_same_shape("C3", (*inputs, *results))
        rank = inputs[0].rank
        if not -rank <= dimension < rank:
            fail("C4", f"dimension has {dimension}, expected a number from {-rank} to {rank - 1}")
        scalars = [TensorType((), kind.element_type) for kind in inputs for _ in range(2)]
        check_region("C5", "comparator", comparator, scalars, [TensorType((), I1)])

    def evaluate(inputs, dimension, comparator):
        lists = [np.moveaxis(array, dimension, -1) for array in inputs]
        flat = [array.reshape(math.prod(array.shape[:-1]), array.shape[-1]) for array in lists]
        order = _sorted_order(flat, comparator)
        return [
            np.moveaxis(np.take_along_axis(rows, order, 1).reshape(array.shape), -1, dimension)
            for rows, array in zip(flat, lists, strict=True)
        ]


IN_TURN = 64
"""How many elements `fold` takes one at a time."""


def fold(body, lists: Sequence[np.ndarray], init_values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Folds the last axis of `lists` together: `init_values` first, then element by element. In long lists, neighbours
    are first combined in pairs until few are left."""
    *shape, count = lists[0].shape
    while count > IN_TURN:
        even = count - count % 2
        left = [array[..., 0:even:2] for array in lists]
        right = [array[..., 1:even:2] for array in lists]
        combined = body.map(*left, *right)
        lists = [np.concatenate([new, old[..., even:]], -1) for new, old in zip(combined, lists, strict=True)]
        count = lists[0].shape[-1]
    folded = [np.broadcast_to(init, shape) for init in init_values]
    for place in range(count):
        folded = body.map(*folded, *(array[..., place] for array in lists))
    return [np.array(values) for values in folded]


# select_and_scatter


def _selected(operand: np.ndarray, places: np.ndarray, select) -> np.ndarray:
    """Returns the position that each window (a row of `places`; -1 is padding) selects; `select` says whether the
    current best stays."""
    best = np.full(len(places), -1)
    for candidates in places.T:
        kept, challengers = operand[best], operand[candidates]
        (stays,) = select.map(kept, challengers)
        best = np.where((candidates >= 0) & ((best < 0) | ~stays), candidates, best)
    return best


def _accumulate(target: np.ndarray, places: np.ndarray, values: np.ndarray, scatter) -> None:
    """Applies `target[place] = scatter(target[place], value)`, in order; rounds take the next value of every place."""
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    first = np.searchsorted(places, places)
    turn = np.arange(len(places)) - first
    for now in range(turn.max(initial=-1) + 1):
        here = places[turn == now]
        (target[here],) = scatter.map(target[here], values[turn == now])


# sort


def _sorted_order(rows: Sequence[np.ndarray], comparator) -> np.ndarray:
    """Returns the permutation that sorts every row, by a bottom-up merge sort. A merge takes the first element of the
    right run if it comes before that of the left one, else that of the left one: this says what is the order even if
    the comparator has none, as with NaN."""
    count = rows[0].shape[1]
    order = np.broadcast_to(np.arange(count), rows[0].shape).copy()
    width = 1
    while width < count:
        order = _merged(rows, order, width, comparator)
        width *= 2
    return order


def _merged(rows: Sequence[np.ndarray], order: np.ndarray, width: int, comparator) -> np.ndarray:
    """Merges runs of `width` elements with their right neighbours. An element's position is its position in its own run
    plus the number of elements of the other run that come before it."""
    count = order.shape[1]
    here = np.arange(count)
    run = here // width
    is_left = run % 2 == 0
    other = np.where(is_left, run + 1, run - 1) * width
    low = np.minimum(other, count)
    before = _count_before(rows, order, is_left, low, np.minimum(low + width, count), comparator)
    start = np.where(is_left, run, run - 1) * width
    place = start + (here - run * width) + before
    places = np.argsort(place, 1, kind="stable")
    if not np.array_equal(places, _following(rows, order, places, width, comparator)):
        places = _in_turn(rows, order, width, comparator)
    return np.take_along_axis(order, places, 1)


def _following(rows, order, places, width: int, comparator) -> np.ndarray:
    """Returns the places of the elements that merges take at each turn, if before that they have taken `places`."""
    start = np.arange(order.shape[1]) // (2 * width) * (2 * width)
    from_right = (places // width) % 2
    before = np.cumsum(from_right, 1) - from_right
    right = before - np.take_along_axis(before, np.broadcast_to(start, before.shape), 1)
    return _next(rows, order, start, np.arange(order.shape[1]) - start - right, right, width, comparator)


def _in_turn(rows, order, width: int, comparator) -> np.ndarray:
    """Returns the places of the elements that merges take at each turn, one turn after the other."""
    count = order.shape[1]
    start = np.arange(0, count, 2 * width)
    left = np.zeros((len(order), len(start)), np.int64)
    right, places = left, np.empty_like(order)
    for turn in range(min(2 * width, count)):
        goes_on = start + turn < count
        place = _next(rows, order, start, left, right, width, comparator)
        places[:, (start + turn)[goes_on]] = place[:, goes_on]
        from_right = (place // width) % 2
        left, right = left + 1 - from_right, right + from_right
    return places


def _next(rows, order, start, left, right, width: int, comparator) -> np.ndarray:
    """Returns the place of the element that comes next in a merge of the two runs from `start` on, of which so many
    have been taken."""
    count = order.shape[1]
    left, right, middle = start + left, start + width + right, start + width
    one, other = (np.take_along_axis(order, np.minimum(at, count - 1), 1) for at in (right, left))
    (less,) = comparator.map(*(np.take_along_axis(array, at, 1) for array in rows for at in (one, other)))
    takes_right = (right < np.minimum(middle + width, count)) & (less | (left >= middle))
    return np.where(takes_right, right, left)


def _count_before(rows, order, is_left, low, high, comparator) -> np.ndarray:
    """Returns, for every element, how many of the sorted `order[low:high]` come before it, by binary search. Equal
    elements come before the elements of a right run, and after those of a left run."""
    start = low
    low, high = (np.broadcast_to(bound, order.shape) for bound in (low, high))
    own = [np.take_along_axis(array, order, 1) for array in rows]
    while np.any(low < high):
        middle = np.minimum((low + high) // 2, order.shape[1] - 1)
        theirs = [np.take_along_axis(array, np.take_along_axis(order, middle, 1), 1) for array in rows]
        pairs = []
        for mine, their in zip(own, theirs, strict=True):
            pairs += [np.where(is_left, their, mine), np.where(is_left, mine, their)]
        (less,) = comparator.map(*pairs)
        comes_before = less == is_left
        searching = low < high
        low = np.where(searching & comes_before, middle + 1, low)
        high = np.where(searching & ~comes_before, middle, high)
    return low - start


# Shared checks


def _kept(shape, dimensions):
    return tuple(extent for axis, extent in enumerate(shape) if axis not in dimensions)


def _reduced(label, body):
    """Returns the element types that a reducer returns."""
    for kind in outputs_of(body):
        expect_tensor(label, "a value that body returns", kind)
    return [kind.element_type for kind in outputs_of(body)]


def _check_inputs(label, inputs):
    if not inputs:
        fail(label, "has no inputs, expected at least one")
    for index, kind in enumerate(inputs):
        expect_tensor("I1", f"inputs[{index}]", kind)


def _check_same_shape(label, types):
    for index, kind in enumerate(types):
        expect_tensor(label, f"tensor {index}", kind)
        if not shapes_compatible(kind.shape, types[0].shape):
            fail(label, f"tensor {index} has shape {kind.shape}, tensor 0 has {types[0].shape}")


def _check_init_values(element_label, count_label, inputs, init_values):
    if len(inputs) != len(init_values) or not inputs:
        fail(
            count_label,
            f"has {len(inputs)} inputs and {len(init_values)} init_values, expected the same number of each",
        )
    for index, (kind, init) in enumerate(zip(inputs, init_values, strict=True)):
        if not compatible(init, TensorType((), kind.element_type)):
            fail(element_label, f"init_values[{index}] has type {init}, expected tensor<{kind.element_type}>")


def _check_results(labels, results, shape, body):
    count_label, shape_label, element_label = labels
    outputs = outputs_of(body)
    if len(results) != len(outputs):
        fail(count_label, f"has {len(results)} results, expected {len(outputs)}")
    for index, (kind, output) in enumerate(zip(results, outputs, strict=True)):
        expect_tensor(shape_label, f"results[{index}]", kind)
        if not shapes_compatible(kind.shape, shape):
            fail(shape_label, f"results[{index}] has shape {kind.shape}, expected {shape}")
        if not same_baseline(kind.element_type, output.element_type):
            fail(element_label, f"results[{index}] has type {kind}, body returns {output}")


def _check_list(size_label, sign_label, name, values, rank):
    if values is not None:
        expect_size(size_label, name, values, rank, "the rank")
        expect_at_least(sign_label, name, values, 1)


def _check_padding(label, padding, rank):
    if padding is not None and (len(padding) != rank or any(len(pair) != 2 for pair in padding)):
        fail(label, f"padding has {[list(pair) for pair in padding]}, expected {rank} pairs")
