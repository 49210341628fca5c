"""Ops whose sizes are operands, if the sizes are known: from the type of the result, or as constants."""

from __future__ import annotations

import numpy as np

from trivium.compiler.passes.patterns.matching import constant
from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.core import Value
from trivium.ir.ops import (
    Add,
    BroadcastInDim,
    Constant,
    Convolution,
    DynamicBroadcastInDim,
    DynamicConv,
    DynamicGather,
    DynamicIota,
    DynamicPad,
    DynamicReshape,
    DynamicSlice,
    Gather,
    GetDimensionSize,
    Iota,
    Pad,
    RealDynamicSlice,
    Reshape,
    SetDimensionSize,
    Slice,
)

DYNAMIC = PatternSet()
pattern = DYNAMIC.pattern


@pattern(DynamicIota)
def iota_of_known_shape(op):
    """The result's type has the shape."""
    return Iota(op.iota_dimension, result=op.result.type) if op.result.type.is_static else None


@pattern(DynamicReshape)
def reshape_to_known_shape(op):
    """The result's type has the shape."""
    return Reshape(op.operand, result=op.result.type) if op.result.type.is_static else None


@pattern(DynamicBroadcastInDim)
def broadcast_to_known_shape(op):
    """The result's type has the shape."""
    if not op.result.type.is_static or not op.operand.type.is_static:
        return None
    return BroadcastInDim(op.operand, op.broadcast_dimensions, result=op.result.type)


@pattern(GetDimensionSize)
def size_of_known_dimension(op):
    """The operand's type has the extent."""
    extent = op.operand.type.shape[op.dimension]
    return None if extent is None else Constant(np.array(extent, np.int32))


@pattern(SetDimensionSize)
def prefix_of_known_size(op):
    """A slice, if the result's type has the size."""
    if not op.result.type.is_static or not op.operand.type.is_static:
        return None
    rank = op.operand.type.rank
    return Slice(op.operand, (0,) * rank, op.result.type.shape, (1,) * rank, result=op.result.type)


@pattern(DynamicPad)
def pad_by_constants(op):
    """dynamic_pad(x, v, constants) == pad(x, v)"""
    paddings = _known(op, op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    if paddings is None:
        return None
    return Pad(op.operand, op.padding_value, *paddings, result=op.result.type)


@pattern(RealDynamicSlice)
def slice_at_constants(op):
    """real_dynamic_slice(x, constants) == slice(x)"""
    box = _known(op, op.start_indices, op.limit_indices, op.strides)
    return Slice(op.operand, *box, result=op.result.type) if box is not None else None


@pattern(RealDynamicSlice)
def slice_of_constant_size(op):
    """real_dynamic_slice(x, start, start + size, 1) == dynamic_slice(x, start, size)   (if it is inside x)"""
    sizes = moving_box(op)
    if sizes is None or not op.result.type.is_static or not op.operand.type.is_static:
        return None
    scalar = op.start_indices.type.with_shape(())
    starts = [
        Reshape(Slice(op.start_indices, (index,), (index + 1,), (1,)).result, result=scalar).result
        for index in range(len(sizes))
    ]
    return DynamicSlice(op.operand, starts, sizes.tolist(), result=op.result.type)


def moving_box(op: RealDynamicSlice) -> np.ndarray | None:
    """Returns the sizes of a slice whose limit is the sum of its start, which is unknown, and constants; else None."""
    sizes = size_operand(op)
    return None if sizes is None or constant(op.start_indices) is not None else constant(sizes)


def size_operand(op: RealDynamicSlice) -> Value | None:
    """Returns the value that is added to the start of a slice without strides to compute its limit, or None."""
    limit, strides = op.limit_indices.defining_op, constant(op.strides)
    if not isinstance(limit, Add) or strides is None or np.any(strides != 1):
        return None
    pairs = (limit.lhs, limit.rhs), (limit.rhs, limit.lhs)
    return next((other for one, other in pairs if one is op.start_indices), None)


@pattern(DynamicGather)
def gather_of_constant_sizes(op):
    """dynamic_gather(x, places, constant) == gather(x, places)"""
    sizes = _known(op, op.slice_sizes)
    if sizes is None:
        return None
    numbers, in_order = op.dimension_numbers, op.indices_are_sorted
    operands = op.operand, op.start_indices
    return Gather(*operands, numbers, *sizes, indices_are_sorted=in_order, result=op.result.type)


@pattern(DynamicConv)
def convolution_of_constant_padding(op):
    """dynamic_conv(x, w, constant) == convolution(x, w)"""
    padding = _known(op, op.padding)
    if padding is None:
        return None
    attributes = {name: value for name, value in op.attributes.items() if value is not None}
    return Convolution(op.lhs, op.rhs, padding=padding[0], **attributes, result=op.result.type)


def _known(op, *values: Value) -> list | None:
    """Returns the values of these operands of an op with static types; None if any is unknown."""
    arrays = [array for value in values if (array := constant(value)) is not None]
    if len(arrays) < len(values) or not op.result.type.is_static or not op.operands[0].type.is_static:
        return None
    return [array.tolist() for array in arrays]
