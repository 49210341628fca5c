"""Ops that combine elements: the space behind those that they combine must not contribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from trivium.compiler.bounded.axes import Axes, is_fixed, listed, simple
from trivium.compiler.bounded.writer import Bounded, Unbounded, Writer, cloned, inferred_extents, known, rule
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Region, Value
from trivium.ir.ops import (
    Add,
    And,
    Constant,
    Convolution,
    DotGeneral,
    DynamicConv,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Reduce,
    ReduceWindow,
    Select,
    SelectAndScatter,
    Slice,
    Xor,
)
from trivium.ir.types import is_boolean, is_complex, is_float, tensor


def neutral(body: Region, number: int, kind: Any) -> np.ndarray | None:
    """Returns the element that does not change others, if a region folds the values with this number by one known
    op."""
    made = body.terminator.operands[number].defining_op
    if made is None or set(made.operands) != set(_pair(body, number)):
        return None
    dtype = kind.dtype
    match made:
        case Add():
            zero = complex(-0.0, -0.0) if is_complex(kind) else -0.0 if is_float(kind) else 0
            return np.array(zero, dtype)
        case Multiply():
            return np.array(1, dtype)
        case Or() | Xor():
            return np.array(0, dtype)
        case And():
            return np.invert(np.array(0, dtype))
        case Maximum() | Minimum() if not is_complex(kind):
            return _extreme(kind, isinstance(made, Maximum))
    return None


def _extreme(kind: Any, lowest: bool) -> np.ndarray:
    """Returns the lowest, or the highest, number of an element type."""
    dtype = kind.dtype
    if is_boolean(kind):
        return np.array(not lowest)
    if is_float(kind):
        infinity = np.array(-math.inf if lowest else math.inf, dtype)
        if np.isinf(infinity.astype(np.float32)):
            return infinity
    limits: Any = ml_dtypes.finfo(dtype) if is_float(kind) else ml_dtypes.iinfo(dtype)
    return np.array(limits.min if lowest else limits.max, dtype)


def _pair(body: Region, number: int) -> tuple[Value, Value]:
    """Returns the two arguments of a reduction's region that are values with this number."""
    return body.arguments[number], body.arguments[len(body.arguments) // 2 + number]


def _picks(body: Region) -> bool:
    """Whether each result is one of the two values, such as the larger number and its place. It makes no difference
    how often the initial values are among them."""

    def comes_from(value: Value, pair: tuple[Value, Value]) -> bool:
        match value.defining_op:
            case Select() as op:
                return comes_from(op.on_true, pair) and comes_from(op.on_false, pair)
            case Maximum() | Minimum() as op:
                return comes_from(op.lhs, pair) and comes_from(op.rhs, pair)
        return value in pair

    return all(comes_from(value, _pair(body, number)) for number, value in enumerate(body.terminator.operands))


def _fill(w: Writer, op: Reduce, number: int) -> Value:
    """Returns what does not change a reduction, for one of its inputs."""
    kind = op.inputs[number].type.element_type
    found = neutral(op.body, number, kind)
    if found is not None and len(op.inputs) == 1:
        return w.add(Constant(DenseElements(found, tensor(of=kind))))
    if not _picks(op.body):
        raise Unbounded("a reduction by a function of which no neutral element is known")
    return w.convert(w.values[op.init_values[number]].value, kind)


@rule(Reduce)
def reduce(w: Writer, op: Reduce) -> list[Bounded]:
    inputs = alike(w, op.inputs)
    if not all(inputs[0].axes[d].is_fixed for d in op.dimensions):
        inputs = [w.masked(x, op.dimensions, _fill(w, op, number)) for number, x in enumerate(inputs)]
    axes = tuple(axis for d, axis in enumerate(inputs[0].axes) if d not in op.dimensions)
    inits = [w.values[value].value for value in op.init_values]
    return cloned(w, op, [*(x.value for x in inputs), *inits], [axes] * len(op.results))


def alike(w: Writer, values: Sequence[Value]) -> list[Bounded]:
    operands = [w.values[value] for value in values]
    return [w.aligned(x, operands[0].axes) for x in operands]


@rule(DotGeneral)
def dot_general(w: Writer, op: DotGeneral) -> list[Bounded]:
    """Zeros on one side are not enough: what is on the other may be infinite."""
    numbers, lhs, rhs = op.dot_dimension_numbers, w.values[op.lhs], w.values[op.rhs]
    left = (*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions)
    right = (*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions)
    wanted = list(rhs.axes)
    for one, other in zip(left, right, strict=True):
        wanted[other] = lhs.axes[one]
    rhs = w.aligned(rhs, tuple(wanted))
    lhs = w.masked(lhs, numbers.lhs_contracting_dimensions, w.number(0, op.lhs.type.element_type))
    rhs = w.masked(rhs, numbers.rhs_contracting_dimensions, w.number(0, op.rhs.type.element_type))
    batch = [lhs.axes[d] for d in numbers.lhs_batching_dimensions]
    rows = [axis for d, axis in enumerate(lhs.axes) if d not in left]
    columns = [axis for d, axis in enumerate(rhs.axes) if d not in right]
    return cloned(w, op, [lhs.value, rhs.value], [(*batch, *rows, *columns)])


@rule(DynamicConv)
def dynamic_conv(w: Writer, op: DynamicConv) -> Sequence[Bounded]:
    paddings = listed(known(w, op.padding, "a padding"))
    if not all(map(is_fixed, paddings)):
        raise Unbounded("a padding of a convolution differs between combinations of sizes")
    pairs = [numbers[0] for numbers in paddings]
    attributes = {name: value for name, value in op.attributes.items() if value is not None}
    padding = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    static = Convolution(op.lhs, op.rhs, padding=padding, **attributes, result=op.result.type)
    found = convolution(w, static)
    static.erase()
    return found


@rule(Convolution)
def convolution(w: Writer, op: Convolution) -> list[Bounded]:
    """Zeros behind an image are what its padding would be."""
    numbers = op.dimension_numbers
    lhs, rhs = w.with_simple(w.values[op.lhs]), w.with_simple(w.values[op.rhs])
    features = numbers.input_feature_dimension, numbers.kernel_input_feature_dimension
    outputs = rhs.axes[numbers.kernel_output_feature_dimension]
    grouped = [lhs.axes[features[0]], rhs.axes[features[1]], outputs] if op.feature_group_count != 1 else []
    grouped += [lhs.axes[numbers.input_batch_dimension], outputs] if op.batch_group_count != 1 else []
    if not all(axis.is_fixed for axis in grouped):
        raise Unbounded("a convolution has groups whose sizes differ between combinations of sizes")
    window = [rhs.axes[d] for d in numbers.kernel_spatial_dimensions]
    if op.window_reversal and any(op.window_reversal) and not all(axis.is_fixed for axis in window):
        raise Unbounded("a convolution reverses kernels whose sizes differ between combinations of sizes")
    masked = (*numbers.input_spatial_dimensions, features[0]), (*numbers.kernel_spatial_dimensions, features[1])
    lhs = w.masked(lhs, masked[0], w.number(0, op.lhs.type.element_type))
    rhs = w.masked(rhs, masked[1], w.number(0, op.rhs.type.element_type))
    return _as_inferred(w, op, [lhs, rhs], tuple(map(simple, inferred_extents(w, op))))


def _as_inferred(w: Writer, op: Any, operands: Sequence[Bounded], axes: Axes) -> list[Bounded]:
    """Writes an op whose results have at least as much space, by its type rule, as all combinations need."""
    copy = op.clone({})
    for index, x in enumerate(operands):
        copy.set_operand(index, x.value)
    infer: Any = type(op).INFER
    kinds = infer(copy)
    found = []
    for result, kind in zip(copy.results, kinds if isinstance(kinds, list | tuple) else [kinds], strict=True):
        result.type = kind
    w.add(copy)
    for result in copy.results:
        shape, wanted = result.type.static_shape, tuple(axis.bound for axis in axes)
        if any(has < needed for has, needed in zip(shape, wanted, strict=True)):
            raise Unbounded("a window has more places for smaller sizes than for larger ones")
        rank = len(shape)
        value = result if shape == wanted else w.add(Slice(result, (0,) * rank, wanted, (1,) * rank))
        found.append(Bounded(value, axes))
    return found


@rule(ReduceWindow)
def reduce_window(w: Writer, op: ReduceWindow) -> list[Bounded]:
    inputs = [w.with_simple(x) for x in alike(w, op.inputs)]
    slides = [d for d, axis in enumerate(inputs[0].axes) if not axis.is_fixed and op.window_dimensions[d] != 1]
    if slides:
        inputs = [w.masked(x, slides, _window_fill(w, op, number)) for number, x in enumerate(inputs)]
    inits = [w.values[value] for value in op.init_values]
    return _as_inferred(w, op, [*inputs, *inits], tuple(map(simple, inferred_extents(w, op))))


def _window_fill(w: Writer, op: ReduceWindow, number: int) -> Value:
    """Returns what windows find outside of the elements: the initial value, which must be neutral."""
    kind, init = op.inputs[number].type.element_type, op.init_values[number]
    found, given = neutral(op.body, number, kind), w.values[init].numbers
    if found is None or given is None or any(array != found for array in given):
        raise Unbounded("a reduction of windows with an initial value that is not known to be neutral")
    return w.convert(w.values[init].value, kind)


@rule(SelectAndScatter)
def select_and_scatter(w: Writer, op: SelectAndScatter) -> list[Bounded]:
    operand, source = w.with_simple(w.values[op.operand]), w.with_simple(w.values[op.source])
    for d, axis in enumerate(operand.axes):
        sizes = (op.window_dimensions, op.window_strides)
        still = all(given is None or given[d] == 1 for given in sizes) and not (op.padding and any(op.padding[d]))
        if not axis.is_fixed and not still:
            raise Unbounded("windows select elements along a dimension whose size differs")
    init = w.values[op.init_value].value
    return cloned(w, op, [operand.value, source.value, init], [operand.axes])
