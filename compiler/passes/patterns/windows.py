"""Rewrites of sliding windows."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.compiler.passes.patterns.matching import is_splat_of, splat
from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.ops import (
    Add,
    And,
    BroadcastInDim,
    Constant,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Pad,
    ReduceWindow,
    Reshape,
    Slice,
)

WINDOWS = PatternSet()
pattern = WINDOWS.pattern

IDEMPOTENT = Maximum, Minimum, And, Or
"""The operations in which a second time makes no difference."""


@pattern(ReduceWindow)
def window_without_padding(op):
    """A window of which there is one along a dimension, such as a global pool's, has nothing but elements of the
    operand: further initial values make no difference."""
    shape, results = op.inputs[0].type.shape, op.results[0].type.shape
    if not (op.inputs[0].type.is_static and op.results[0].type.is_static) or not _is_settled(op):
        return None
    sizes, padding = list(op.window_dimensions), list(op.padding or ((0, 0),) * len(shape))
    dilations = zip(op.base_dilations or (1,) * len(shape), op.window_dilations or (1,) * len(shape), strict=True)
    for d, (extent, count, dilated) in enumerate(zip(shape, results, dilations, strict=True)):
        low, _ = padding[d]
        begin, end = max(0, -low), min(extent, sizes[d] - low)
        if count == 1 and dilated == (1, 1) and begin < end and end - begin < sizes[d]:
            sizes[d], padding[d] = end - begin, (-begin, end - extent)
    if sizes == list(op.window_dimensions):
        return None
    attributes = {name: value for name, value in op.attributes.items() if name not in ("window_dimensions", "padding")}
    operands = op.inputs, op.init_values
    return ReduceWindow(*operands, window_dimensions=sizes, padding=padding, body=op.body.clone(), **attributes)


@pattern(ReduceWindow)
def window_that_reaches_to_the_next_element(op):
    """The sum over a window of elements that are as far apart as it is long is one of them: each is repeated, as in the
    gradients of averages over windows that do not overlap."""
    if len(op.inputs) != 1 or not isinstance(op.body.block.terminator.operands[0].defining_op, Add):
        return None
    if not _is_settled(op) or not is_splat_of(op.init_values[0], 0.0) or not op.results[0].type.is_static:
        return None
    source, padding, apart = _spread(op)
    kind, sizes, results = source.type, op.window_dimensions, op.results[0].type.static_shape
    steps = (*(op.window_strides or ()), *(op.window_dilations or ()))
    if not kind.is_static or set(steps) - {1} or 0 in kind.static_shape:
        return None
    firsts = [size - 1 - low for size, (low, _) in zip(sizes, padding, strict=True)]
    for first, extent, size, gap, count in zip(firsts, kind.static_shape, sizes, apart, results, strict=True):
        if gap != size or first < 0 or first + count > extent * size:
            return None
    if set(sizes) == {1}:
        return None
    pairs = [number for pair in zip(kind.static_shape, sizes, strict=True) for number in pair]
    repeated = BroadcastInDim(source, range(0, len(pairs), 2), result=kind.with_shape(pairs)).result
    whole = kind.with_shape([extent * size for extent, size in zip(kind.static_shape, sizes, strict=True)])
    limits = [first + count for first, count in zip(firsts, results, strict=True)]
    taken = Slice(Reshape(repeated, result=whole).result, firsts, limits, [1] * kind.rank).result
    return Add(taken, Constant(DenseElements.splat(0, taken.type)).result)


def _spread(op: ReduceWindow) -> tuple[Value, Sequence[tuple[int, int]], Sequence[int]]:
    """Returns what a window slides over, with the padding around it, and how far its elements are apart: zeros that a
    pad adds belong to that."""
    (source,), rank = op.inputs, op.inputs[0].type.rank
    padding = [(low, high) for low, high in op.padding or ((0, 0),) * rank]
    apart, made = tuple(op.base_dilations or (1,) * rank), source.defining_op
    plain = set(apart) == {1} and set(padding) == {(0, 0)}
    if plain and isinstance(made, Pad) and is_splat_of(made.padding_value, 0.0):
        edges = zip(made.edge_padding_low, made.edge_padding_high, strict=True)
        return made.operand, list(edges), [gap + 1 for gap in made.interior_padding]
    return source, padding, apart


def _is_settled(op: ReduceWindow) -> bool:
    """Whether one initial value more or less makes no difference."""
    made = op.body.block.terminator.operands[0].defining_op
    if len(op.inputs) != 1 or made is None or set(made.operands) != set(op.body.block.arguments):
        return False
    (init,) = op.init_values
    return isinstance(made, IDEMPOTENT) or _is_neutral(made, init)


def _is_neutral(made: object, init: Value) -> bool:
    if isinstance(made, Add):
        return splat(init) is not None and splat(init) == 0
    return isinstance(made, Multiply) and is_splat_of(init, 1)
