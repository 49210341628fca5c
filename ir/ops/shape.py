"""Ops that create tensors without operands (constants), and ops that move elements without using their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.ir.attributes import MAX_EXPANDED, DenseElements
from trivium.ir.codecs import Ints
from trivium.ir.core import Value
from trivium.ir.declare import EXPRESSED, PURE, Op, Operand, Operands, Result
from trivium.ir.errors import ConstraintKind, fail
from trivium.ir.ops import numerics
from trivium.ir.ops.common import (
    Shape,
    expect_at_least,
    expect_compatible,
    expect_element,
    expect_same_element,
    expect_shape,
    expect_size,
    expect_static,
    expect_tensor,
    expect_unique,
    expect_within,
    limits_of,
    shaped,
)
from trivium.ir.ops.parameters import expect_broadcast, expect_dimension, expect_moved, expect_reshaped
from trivium.ir.ops.windows import padded, windows_of
from trivium.ir.types import (
    TensorType,
    dimensions_compatible,
    is_complex,
    is_float,
    is_integer,
    is_per_axis,
    is_per_tensor,
    shapes_compatible,
    stated,
)

__all__ = [
    "BroadcastInDim",
    "Concatenate",
    "Constant",
    "Iota",
    "Pad",
    "Reshape",
    "Reverse",
    "Transpose",
]

# Tensors without operands


class Constant(Op, name="stablehlo.constant", traits={PURE}):
    """The elements of `value`."""

    value: DenseElements
    result: Result

    def infer(value):
        return value.type

    def check(value, result):
        expect_static("O1", "result", result)
        expect_compatible("C1", value=value.type, result=stated(result))

    def evaluate(value, result):
        return value.array if value.array.dtype == result.dtype else value.array.view(result.dtype)


def known_ints(value: Value) -> tuple[int, ...] | None:
    """Returns the numbers of a constant operand, so that constraints on them can be checked without a run."""
    op = value.defining_op
    if not isinstance(op, Constant) or op.value.array.size > MAX_EXPANDED:
        return None
    return tuple(op.value.array.reshape(-1).tolist())


def check_extents(
    label: str,
    name: str,
    extents: Sequence[int],
    result: TensorType,
    kind: ConstraintKind = ConstraintKind.TYPE,
) -> None:
    """Checks that the result can have these extents."""
    if any(extent < 0 for extent in extents) or not shapes_compatible(tuple(extents), result.shape):
        fail(label, f"{name} has {list(extents)}, the result has type {result}", kind)


class Iota(Op, name="stablehlo.iota", traits={PURE, EXPRESSED}):
    """Counts from 0 along `iota_dimension`."""

    iota_dimension: int
    result: Result

    def check(iota_dimension, result):
        expect_static("O1", "result", result)
        expect_element("O1", "result", result, is_integer, is_float, is_complex, is_per_tensor)
        expect_within("C1", "iota_dimension", (iota_dimension,), result.rank)

    def evaluate(iota_dimension, result):
        shape = result.static_shape
        count = numerics.convert(np.arange(shape[iota_dimension]), result.dtype)
        trailing = (1,) * (len(shape) - iota_dimension - 1)
        return np.broadcast_to(count.reshape(-1, *trailing), shape)


# The same elements in another shape


class Reshape(Op, name="stablehlo.reshape", traits={PURE}):
    """The same elements, in row-major order, in the result's shape."""

    operand: Operand
    result: Result

    def check(operand, result):
        expect_tensor("I1", "operand", operand, per_axis=True)
        expect_static("O1", "result", result, bounded=True)
        expect_moved("C1", operand, result)
        expect_reshaped("C3", operand, result)
        if operand.is_static and result.is_static and operand.size != result.size:
            fail("C2", f"result has type {result} of {result.size} elements, operand {operand} has {operand.size}")

    def evaluate(operand, result):
        return operand.reshape(result.static_shape)


class BroadcastInDim(Op, name="stablehlo.broadcast_in_dim", traits={PURE}):
    """Dimension d of the operand becomes dimension `broadcast_dimensions[d]` of the result, where extent 1 is repeated.
    Everything is repeated along the other dimensions."""

    operand: Operand
    broadcast_dimensions: Ints
    result: Result

    def check(operand, broadcast_dimensions, result):
        expect_tensor("I1", "operand", operand, per_axis=True)
        expect_static("O1", "result", result, bounded=True)
        expect_size("C2", "broadcast_dimensions", broadcast_dimensions, operand.rank, "the rank of operand")
        expect_within("C3", "broadcast_dimensions", broadcast_dimensions, result.rank)
        expect_unique("C4", "broadcast_dimensions", broadcast_dimensions)
        expect_broadcast(("C1", "C6"), operand, result, broadcast_dimensions)
        for index, dimension in enumerate(broadcast_dimensions):
            extent, wanted = operand.shape[index], result.shape[dimension]
            if extent != 1 and not dimensions_compatible(extent, wanted):
                fail("C5", f"dimension {index} of operand has extent {extent}, expected 1 or {wanted}, as in {result}")

    def evaluate(operand, broadcast_dimensions, result):
        shape = [1] * result.rank
        for extent, dimension in zip(operand.shape, broadcast_dimensions, strict=True):
            shape[dimension] = extent
        ordered = operand.transpose(np.argsort(broadcast_dimensions))
        return np.broadcast_to(ordered.reshape(shape), result.static_shape)


class Transpose(Op, name="stablehlo.transpose", traits={PURE}):
    """Dimension d of the result is dimension `permutation[d]` of the operand."""

    operand: Operand
    permutation: Ints
    result: Result

    def infer(operand, permutation):
        expect_tensor("I1", "operand", operand, per_axis=True)
        _expect_permutation("C2", permutation, operand.rank)
        shape = [operand.shape[source] for source in permutation]
        return shaped(shape, operand.element_type, [operand.bounds[source] for source in permutation])

    def check(operand, permutation, result):
        expect_tensor("I1", "operand", operand, per_axis=True)
        _expect_permutation("C2", permutation, operand.rank)
        expect_shape("C3", "result", result, [operand.shape[source] for source in permutation])
        expect_moved("C1", operand, result)
        if is_per_axis(result.element_type):
            source = permutation[result.element_type.quantization_dimension]
            expect_dimension("C4", "operand", operand, source, "like the result's")

    def evaluate(operand, permutation):
        return operand.transpose(permutation)


def _expect_permutation(label: str, permutation: Ints, rank: int) -> None:
    if sorted(permutation) != list(range(rank)):
        fail(label, f"permutation has {list(permutation)}, expected each dimension of operand, of rank {rank}, once")


class Reverse(Op, name="stablehlo.reverse", traits={PURE}):
    """Reverses the order of elements along `dimensions`."""

    operand: Operand
    dimensions: Ints
    result: Result

    def infer(operand):
        return operand

    def check(operand, dimensions, result):
        expect_tensor("I1", "operand", operand)
        expect_compatible("C1", operand=operand, result=result)
        expect_unique("C2", "dimensions", dimensions)
        expect_within("C3", "dimensions", dimensions, result.rank)

    def evaluate(operand, dimensions):
        return np.flip(operand, dimensions)


# Larger tensors


class Concatenate(Op, name="stablehlo.concatenate", traits={PURE}):
    """Joins `inputs` along `dimension`, in the order given."""

    inputs: Operands
    dimension: int
    result: Result

    def infer(inputs, dimension):
        _expect_joinable(inputs, dimension)
        limits = _joined([limits_of(kind) for kind in inputs], dimension)
        return shaped(_joined([kind.shape for kind in inputs], dimension), inputs[0].element_type, limits)

    def check(inputs, dimension, result):
        _expect_joinable(inputs, dimension)
        expect_same_element("C5", **{"inputs[0]": inputs[0], "result": result})
        expect_shape("C6", "result", result, _joined([kind.shape for kind in inputs], dimension))

    def evaluate(inputs, dimension):
        return np.concatenate(inputs, dimension)


def _expect_joinable(inputs: tuple[TensorType, ...], dimension: int) -> None:
    if not inputs:
        fail("C3", "inputs has no entries, expected at least one")
    first = inputs[0]
    expect_tensor("I1", "inputs[0]", first)
    expect_within("C4", "dimension", (dimension,), first.rank)
    for index, other in enumerate(inputs[1:], 1):
        expect_same_element("C1", **{"inputs[0]": first, f"inputs[{index}]": other})
        if not shapes_compatible(_without(first.shape, dimension), _without(other.shape, dimension)):
            wanted = f"they may differ only in dimension {dimension}"
            fail("C2", f"inputs[{index}] has type {other}, inputs[0] has {first}; {wanted}")


def _without(shape: Shape, dimension: int) -> Shape:
    return (*shape[:dimension], *shape[dimension + 1 :])


def _joined(shapes: Sequence[Shape], dimension: int) -> list[int | None]:
    """Returns the shape of a concatenation: the sum along `dimension`, and the known extents elsewhere."""
    joined = [next((extent for extent in extents if extent is not None), None) for extents in zip(*shapes, strict=True)]
    along = [shape[dimension] for shape in shapes]
    joined[dimension] = None if None in along else sum(extent for extent in along if extent is not None)
    return joined


class Pad(Op, name="stablehlo.pad", traits={PURE}):
    """Inserts `padding_value` between neighbouring elements, `interior_padding` times, and then at the edges. A
    negative edge removes elements."""

    operand: Operand
    padding_value: Operand
    edge_padding_low: Ints
    edge_padding_high: Ints
    interior_padding: Ints
    result: Result

    def infer(operand, edge_padding_low, edge_padding_high, interior_padding):
        expect_tensor("I1", "operand", operand)
        paddings = edge_padding_low, edge_padding_high, interior_padding
        limits = padded_shape(limits_of(operand), *paddings)
        return shaped(padded_shape(operand.shape, *paddings), operand.element_type, limits)

    def check(operand, padding_value, edge_padding_low, edge_padding_high, interior_padding, result):
        expect_tensor("I1", "operand", operand)
        expect_tensor("I2", "padding_value", padding_value, rank=0)
        expect_same_element("C1", operand=operand, padding_value=padding_value, result=result)
        expect_at_least("C3", "interior_padding", interior_padding, 0)
        expected = Pad.infer(operand, edge_padding_low, edge_padding_high, interior_padding)
        expect_shape("C4", "result", result, expected.shape)

    def evaluate(operand, padding_value, edge_padding_low, edge_padding_high, interior_padding):
        edges = tuple(zip(edge_padding_low, edge_padding_high, strict=True))
        spread = [interior + 1 for interior in interior_padding]
        return padded(operand, padding_value, windows_of((1,) * operand.ndim, None, edges, spread))


def padded_shape(operand: Shape, low: Ints, high: Ints, interior: Ints) -> list[int | None]:
    for name, values in (("edge_padding_low", low), ("edge_padding_high", high), ("interior_padding", interior)):
        expect_size("C2", name, values, len(operand), "the rank of operand")
    columns = zip(operand, low, high, interior, strict=True)
    shape = [None if n is None else before + n + max(n - 1, 0) * inner + after for n, before, after, inner in columns]
    for dimension, extent in enumerate(shape):
        if extent is not None and extent < 0:
            fail("C4", f"dimension {dimension} has extent {extent} after padding, expected at least 0")
    return shape
