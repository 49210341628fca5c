"""Ops whose attributes are computed: shapes, sizes, paddings and slice boxes are operands. Once the operand is known,
each means the same as its static counterpart, which evaluates it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from trivium.ir.codecs import Bools, Ints
from trivium.ir.declare import EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import ConstraintKind, VerificationError, fail
from trivium.ir.ops.common import (
    Shape,
    expect_compatible,
    expect_element,
    expect_same_element,
    expect_shape,
    expect_size,
    expect_sizes,
    expect_static,
    expect_tensor,
    expect_unique,
    expect_within,
    shaped,
)
from trivium.ir.ops.convolution import ConvDimensionNumbers, Convolution, check_conv_dimensions
from trivium.ir.ops.gather import (
    Gather,
    GatherDimensionNumbers,
    check_gather_dimensions,
    check_slice_sizes,
    gathered,
)
from trivium.ir.ops.parameters import expect_broadcast, expect_moved, expect_reshaped
from trivium.ir.ops.products import Precision
from trivium.ir.ops.shape import BroadcastInDim, Iota, Pad, check_extents, known_ints, padded_shape
from trivium.ir.types import (
    I32,
    TensorType,
    dimensions_compatible,
    is_complex,
    is_float,
    is_integer,
    is_per_tensor,
    tensor,
    type_of,
)

__all__ = [
    "DynamicBroadcastInDim",
    "DynamicConv",
    "DynamicGather",
    "DynamicIota",
    "DynamicPad",
    "DynamicReshape",
    "GetDimensionSize",
    "RealDynamicSlice",
    "SetDimensionSize",
]


def expect_count(label: str, name: str, kind: TensorType, count: int, what: str) -> None:
    """Checks the length of a list that is a tensor; `what` says where the expected length comes from."""
    if not dimensions_compatible(kind.shape[0], count):
        fail(label, f"{name} has {kind.shape[0]} entries, expected {count}, {what}")


def _ints(array: np.ndarray) -> tuple[int, ...]:
    return tuple(array.tolist())


# Shapes


class DynamicIota(Op, name="stablehlo.dynamic_iota", traits={PURE, EXPRESSED}):
    """Counts from 0 along `iota_dimension` of a tensor of `output_shape`."""

    output_shape: Operand
    iota_dimension: int
    result: Result

    def check(op, output_shape, iota_dimension, result):
        expect_sizes("I1", "output_shape", output_shape)
        expect_element("O1", "result", result, is_integer, is_float, is_complex, is_per_tensor)
        expect_within("C1", "iota_dimension", (iota_dimension,), result.rank)
        expect_count("C2", "output_shape", output_shape, result.rank, "the rank of result")
        if (extents := known_ints(op.output_shape)) is not None:
            check_extents("C2", "output_shape", extents, result)

    def evaluate(output_shape, iota_dimension, result):
        check_extents("C2", "output_shape", _ints(output_shape), result, ConstraintKind.RUN_TIME)
        return Iota.evaluate(iota_dimension, result.with_shape(_ints(output_shape)))


class DynamicReshape(Op, name="stablehlo.dynamic_reshape", traits={PURE}):
    """The same elements, in row-major order, in `output_shape`."""

    operand: Operand
    output_shape: Operand
    result: Result

    def check(op, operand, output_shape, result):
        expect_tensor("I1", "operand", operand, per_axis=True)
        expect_sizes("I2", "output_shape", output_shape)
        expect_tensor("O1", "result", result, per_axis=True)
        expect_moved("C1", operand, result)
        expect_reshaped("C3", operand, result)
        if operand.is_static and result.is_static and operand.size != result.size:
            fail("C2", f"result has type {result} of {result.size} elements, operand {operand} has {operand.size}")
        expect_count("C4", "output_shape", output_shape, result.rank, "the rank of result")
        if (extents := known_ints(op.output_shape)) is not None:
            check_extents("C4", "output_shape", extents, result)
            if operand.is_static:
                _check_size(operand.size, extents)

    def evaluate(operand, output_shape, result):
        check_extents("C4", "output_shape", _ints(output_shape), result, ConstraintKind.RUN_TIME)
        _check_size(operand.size, output_shape.tolist(), ConstraintKind.RUN_TIME)
        return operand.reshape(_ints(output_shape))


def _check_size(size: int, extents: Sequence[int], kind: ConstraintKind = ConstraintKind.TYPE) -> None:
    if math.prod(extents) != size:
        fail("C2", f"output_shape has {list(extents)}, of {math.prod(extents)} elements, operand has {size}", kind)


class DynamicBroadcastInDim(Op, name="stablehlo.dynamic_broadcast_in_dim", traits={PURE}):
    """Dimension d of the operand becomes dimension `broadcast_dimensions[d]` of a tensor of `output_dimensions`, where
    extent 1 is repeated. The attributes may state for some dimensions whether they expand."""

    operand: Operand
    output_dimensions: Operand
    broadcast_dimensions: Ints
    known_expanding_dimensions: Ints | None = None
    known_nonexpanding_dimensions: Ints | None = None
    result: Result

    def check(
        op,
        operand,
        output_dimensions,
        broadcast_dimensions,
        known_expanding_dimensions,
        known_nonexpanding_dimensions,
        result,
    ):
        expect_tensor("I1", "operand", operand, per_axis=True)
        expect_sizes("I2", "output_dimensions", output_dimensions)
        expect_tensor("O1", "result", result, per_axis=True)
        expect_size("C2", "broadcast_dimensions", broadcast_dimensions, operand.rank, "the rank of operand")
        expect_within("C3", "broadcast_dimensions", broadcast_dimensions, result.rank)
        expect_unique("C4", "broadcast_dimensions", broadcast_dimensions)
        expect_broadcast(("C1", "C6"), operand, result, broadcast_dimensions)
        for index, dimension in enumerate(broadcast_dimensions):
            extent, wanted = operand.shape[index], result.shape[dimension]
            if extent != 1 and not dimensions_compatible(extent, wanted):
                fail("C5", f"dimension {index} of operand has extent {extent}, expected 1 or {wanted}, as in {result}")
        expect_count("C7", "output_dimensions", output_dimensions, result.rank, "the rank of result")
        expanding, keeping = known_expanding_dimensions or (), known_nonexpanding_dimensions or ()
        expect_unique("C8", "the list of known dimensions", (*expanding, *keeping))
        expect_within("C9", "known_expanding_dimensions", expanding, operand.rank)
        expect_within("C10", "known_nonexpanding_dimensions", keeping, operand.rank)
        if (extents := known_ints(op.output_dimensions)) is not None:
            check_extents("C7", "output_dimensions", extents, result)
            _check_broadcast(operand.shape, broadcast_dimensions, extents)

    def evaluate(operand, output_dimensions, broadcast_dimensions, result):
        extents = _ints(output_dimensions)
        check_extents("C7", "output_dimensions", extents, result, ConstraintKind.RUN_TIME)
        _check_broadcast(operand.shape, broadcast_dimensions, extents, ConstraintKind.RUN_TIME)
        return BroadcastInDim.evaluate(operand, broadcast_dimensions, result.with_shape(_ints(output_dimensions)))


def _check_broadcast(
    shape: Shape, dimensions: Ints, extents: Sequence[int], kind: ConstraintKind = ConstraintKind.TYPE
) -> None:
    for index, (extent, dimension) in enumerate(zip(shape, dimensions, strict=True)):
        if extent != 1 and not dimensions_compatible(extent, extents[dimension]):
            has = f"dimension {index} of operand has extent {extent}"
            fail("C5", f"{has}, expected 1 or {extents[dimension]}, as in output_dimensions", kind)


class GetDimensionSize(Op, name="stablehlo.get_dimension_size", traits={PURE}):
    """The extent of one dimension."""

    operand: Operand
    dimension: int
    result: Result

    def infer():
        return tensor(of=I32)

    def check(operand, dimension, result):
        expect_tensor("I1", "operand", operand, per_axis=True)
        expect_compatible("O1", expected=tensor(of=I32), result=result)
        expect_within("C1", "dimension", (dimension,), operand.rank)

    def evaluate(operand, dimension):
        return np.array(operand.shape[dimension], np.int32)


class SetDimensionSize(Op, name="stablehlo.set_dimension_size", traits={PURE}):
    """The first `size` elements along one dimension, which becomes dynamic with its extent as the bound."""

    operand: Operand
    size: Operand
    dimension: int
    result: Result

    def infer(operand, dimension):
        expect_tensor("I1", "operand", operand)
        expect_within("C1", "dimension", (dimension,), operand.rank)
        shape, bounds = list(operand.shape), list(operand.bounds)
        bounds[dimension] = shape[dimension] if shape[dimension] is not None else bounds[dimension]
        shape[dimension] = None
        return shaped(shape, operand.element_type, bounds)

    def check(operand, size, dimension, result):
        expect_tensor("I1", "operand", operand)
        expect_compatible("I2", expected=tensor(of=I32), size=size)
        expect_within("C1", "dimension", (dimension,), operand.rank)
        expect_same_element("C2", operand=operand, result=result)
        expect_compatible("C3", inferred=SetDimensionSize.infer(operand, dimension), result=result)

    def evaluate(operand, size, dimension):
        if not 0 <= size <= operand.shape[dimension]:
            raise ValueError(f"size has {size}, expected at least 0 and at most {operand.shape[dimension]}")
        return operand[(slice(None),) * dimension + (slice(int(size)),)]


# Parts and padding


class DynamicPad(Op, name="stablehlo.dynamic_pad", traits={PURE}):
    """`pad` with computed amounts."""

    operand: Operand
    padding_value: Operand
    edge_padding_low: Operand
    edge_padding_high: Operand
    interior_padding: Operand
    result: Result

    def check(op, operand, padding_value, edge_padding_low, edge_padding_high, interior_padding, result):
        expect_tensor("I1", "operand", operand)
        expect_tensor("I2", "padding_value", padding_value, rank=0)
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        for name, kind in zip(names, (edge_padding_low, edge_padding_high, interior_padding), strict=True):
            expect_sizes("I3", name, kind)
            expect_count("C2", name, kind, operand.rank, "the rank of operand")
        expect_same_element("C1", operand=operand, padding_value=padding_value, result=result)
        expect_tensor("C4", "result", result, rank=operand.rank)
        low, high, interior = map(known_ints, (op.edge_padding_low, op.edge_padding_high, op.interior_padding))
        if interior is not None:
            _check_interior(interior)
        if None not in (low, high, interior):
            expect_shape("C4", "result", result, padded_shape(operand.shape, low, high, interior))

    def evaluate(operand, padding_value, edge_padding_low, edge_padding_high, interior_padding, result):
        low, high, interior = map(_ints, (edge_padding_low, edge_padding_high, interior_padding))
        _check_interior(interior, ConstraintKind.RUN_TIME)
        extents = padded_shape(operand.shape, low, high, interior)
        check_extents("C4", "the shape after padding", extents, result, ConstraintKind.RUN_TIME)
        return Pad.evaluate(operand, padding_value, low, high, interior)


def _check_interior(interior: Sequence[int], kind: ConstraintKind = ConstraintKind.TYPE) -> None:
    if min(interior, default=0) < 0:
        fail("C3", f"interior_padding has {list(interior)}, expected at least 0", kind)


class RealDynamicSlice(Op, name="stablehlo.real_dynamic_slice", traits={PURE}):
    """`slice` with a computed box."""

    operand: Operand
    start_indices: Operand
    limit_indices: Operand
    strides: Operand
    result: Result

    def check(operand, start_indices, limit_indices, strides, result):
        expect_tensor("I1", "operand", operand)
        named = {"start_indices": start_indices, "limit_indices": limit_indices, "strides": strides}
        for name, kind in named.items():
            expect_sizes("I2", name, kind)
            expect_count("C1", name, kind, operand.rank, "the rank of operand")
        if len({kind.element_type for kind in named.values()}) > 1:
            fail("C2", f"the lists have types {', '.join(map(str, named.values()))}, expected one element type")
        expect_same_element("C3", operand=operand, result=result)
        expect_tensor("C4", "result", result, rank=operand.rank)

    def evaluate(operand, start_indices, limit_indices, strides):
        boxes = list(zip(*map(_ints, (start_indices, limit_indices, strides)), strict=True))
        for extent, (start, limit, stride) in zip(operand.shape, boxes, strict=True):
            if not 0 <= start <= limit <= extent or stride < 1:
                raise ValueError(f"the box {start}:{limit}:{stride} is not within an extent of {extent}")
        return operand[tuple(slice(*box) for box in boxes)]


class DynamicGather(Op, name="stablehlo.dynamic_gather", traits={PURE}):
    """`gather` with computed window sizes."""

    operand: Operand
    start_indices: Operand
    slice_sizes: Operand
    dimension_numbers: GatherDimensionNumbers
    indices_are_sorted: bool = False
    result: Result

    def check(op, operand, start_indices, slice_sizes, dimension_numbers, result):
        expect_tensor("I1", "operand", operand)
        expect_element("I2", "start_indices", start_indices, is_integer)
        expect_element("I3", "slice_sizes", slice_sizes, is_integer)
        expect_sizes("I3", "slice_sizes", slice_sizes)
        sizes = known_ints(op.slice_sizes)
        with _as_gather():
            check_gather_dimensions(operand, start_indices, dimension_numbers)
        expect_count("C11", "slice_sizes", slice_sizes, operand.rank, "the rank of operand")
        if sizes is not None:
            with _as_gather():
                check_slice_sizes(operand, dimension_numbers, sizes)
        windows = gathered(operand, start_indices, dimension_numbers, sizes or (None,) * operand.rank)
        expect_shape("C13", "result", result, windows.shape)
        expect_same_element("C14", operand=operand, result=result)

    def evaluate(operand, start_indices, slice_sizes, dimension_numbers):
        with _as_gather(ConstraintKind.RUN_TIME):
            check_slice_sizes(type_of(operand), dimension_numbers, _ints(slice_sizes))
        return Gather.evaluate(operand, start_indices, dimension_numbers, _ints(slice_sizes))


_GATHER_LABELS = {"C1": "C1", "C2": "C2", "C3": "C3", "C4": "C4", "C5": "C5", "C6": "C6", "C7": "C6", "C8": "C7"}
_GATHER_LABELS |= {"C9": "C8", "C18": "C9", "C19": "C10", "C21": "C12"}
"""The specification's names for the constraints of `gather` in `dynamic_gather`, for which it defines no batching."""


@contextmanager
def _as_gather(kind: ConstraintKind = ConstraintKind.TYPE) -> Iterator[None]:
    """Renames constraints of `gather` to those of `dynamic_gather`."""
    try:
        yield
    except VerificationError as error:
        fail(_GATHER_LABELS.get(error.label, ""), error.message.removeprefix(f"[{error.label}] "), kind)


class DynamicConv(Op, name="stablehlo.dynamic_conv", traits={PURE, EXPRESSED}):
    """`convolution` with computed padding."""

    lhs: Operand
    rhs: Operand
    padding: Operand
    window_strides: Ints | None = None
    lhs_dilation: Ints | None = None
    rhs_dilation: Ints | None = None
    window_reversal: Bools | None = None
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int
    batch_group_count: int
    precision_config: tuple[Precision, ...] | None = None
    result: Result

    def check(
        op,
        lhs,
        rhs,
        padding,
        window_strides,
        lhs_dilation,
        rhs_dilation,
        window_reversal,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision_config,
        result,
    ):
        check_conv_dimensions(lhs, rhs, dimension_numbers, window_strides, None, lhs_dilation, rhs_dilation)
        expect_element("I3", "padding", padding, is_integer)
        expect_static("I3", "padding", padding)
        expect_shape("C4", "padding", padding, (lhs.rank - 2, 2))
        known = known_ints(op.padding)
        Convolution.check(
            lhs if known is not None else _without_space(lhs, dimension_numbers),
            rhs,
            window_strides,
            None if known is None else tuple(zip(known[::2], known[1::2], strict=True)),
            lhs_dilation,
            rhs_dilation,
            window_reversal,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
            precision_config,
            result,
        )

    def evaluate(
        lhs,
        rhs,
        padding,
        window_strides,
        lhs_dilation,
        rhs_dilation,
        window_reversal,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        result,
    ):
        return Convolution.evaluate(
            lhs,
            rhs,
            window_strides,
            tuple(map(tuple, padding.tolist())),
            lhs_dilation,
            rhs_dilation,
            window_reversal,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
            result,
        )


def _without_space(lhs: TensorType, numbers: ConvDimensionNumbers) -> TensorType:
    """Returns the type with unknown spatial extents, because they depend on the padding."""
    shape = (None if axis in numbers.input_spatial_dimensions else extent for axis, extent in enumerate(lhs.shape))
    return lhs.with_shape(shape)
