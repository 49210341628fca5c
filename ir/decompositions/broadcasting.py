"""Ops that broadcast implicitly: the operands are broadcast to one shape, then the op without broadcasting follows. If
extents are known only at run time, the program computes those of the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from trivium.ir import ops
from trivium.ir.codecs import Ints
from trivium.ir.core import Value
from trivium.ir.declare import OPS
from trivium.ir.decompositions.table import decomposition
from trivium.ir.decompositions.tensors import Tensor, where
from trivium.ir.ops.chlo_broadcast import aligned
from trivium.ir.types import I32, TensorType, tensor

_BINARY = [op for op in OPS.values() if issubclass(op, ops.BroadcastBinary)]


@decomposition(*_BINARY)
def broadcast_binary(op, lhs, rhs, broadcast_dimensions, result):
    one, other = _broadcast((lhs, rhs), result, broadcast_dimensions)
    return lhs.of(op.STATIC(one.value, other.value, result=result))


@decomposition(ops.BroadcastCompare)
def broadcast_compare(op, lhs, rhs, broadcast_dimensions, result):
    one, other = _broadcast((lhs, rhs), result, broadcast_dimensions)
    return lhs.of(ops.Compare(one.value, other.value, **op.static_attributes, result=result))


@decomposition(ops.BroadcastComplex)
def broadcast_complex(lhs, rhs, broadcast_dimensions, result):
    one, other = _broadcast((lhs, rhs), result, broadcast_dimensions)
    return lhs.of(ops.Complex(one.value, other.value, result=result))


@decomposition(ops.BroadcastSelect)
def broadcast_select(pred, on_true, on_false, result):
    chosen, one, other = _broadcast((pred, on_true, on_false), result, None)
    return pred.of(ops.Select(chosen.value, one.value, other.value, result=result))


def _broadcast(operands: Sequence[Tensor], result: TensorType, broadcast_dimensions: Ints | None) -> list[Tensor]:
    """Returns the operands in the shape of the result."""
    dimensions = [aligned(operand.type.rank, result.rank, broadcast_dimensions) for operand in operands]
    shape = None
    if not all(operand.type.is_static for operand in operands):
        shape = _shape(operands, dimensions, result)
    return [_in_shape(operand, axes, result, shape) for operand, axes in zip(operands, dimensions, strict=True)]


def _in_shape(operand: Tensor, axes: Ints, result: TensorType, shape: Value | None) -> Tensor:
    kind = result.with_element(operand.element_type)
    if shape is not None:
        return operand.of(ops.DynamicBroadcastInDim(operand.value, shape, axes, result=kind))
    return operand if operand.type is kind else operand.of(ops.BroadcastInDim(operand.value, axes, result=kind))


def _shape(operands: Sequence[Tensor], dimensions: Sequence[Ints], result: TensorType) -> Value:
    """Returns the extents of the result as a value that the program computes at run time."""
    extents = []
    for axis in range(result.rank):
        places = [
            (operand, axes.index(axis)) for operand, axes in zip(operands, dimensions, strict=True) if axis in axes
        ]
        found = [_extent(operand, place) for operand, place in places]
        extent = reduce(lambda one, other: where(one.equals(1), other, one), found)
        extents.append(extent.of(ops.Reshape(extent.value, result=tensor(1, of=I32))).value)
    return operands[0].of(ops.Concatenate(extents, 0)).value


def _extent(operand: Tensor, axis: int) -> Tensor:
    return operand.of(ops.GetDimensionSize(operand.value, axis))
