"""The tensor arrays of TensorFlow 1. There, an array is a resource, and a number that flows from op to op orders what
is done with it. Here, that flow is the array itself, as a list of tensors, and the handle only says what it holds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow.python.framework.tensor_shape import as_shape

from trivium.importers.tensorflow.context import Context, Known, NonTensor, Operand, Tensor, rule
from trivium.importers.tensorflow.indexing import scattered
from trivium.importers.tensorflow.lists import TensorList, joined
from trivium.importers.tensorflow.types import element_type_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32


@dataclass(frozen=True)
class Handle(NonTensor):
    """An array, or the one that holds its gradients, in which what is written at one place adds up."""

    adds_up: bool = False


@rule("TensorArrayV3")
def tensor_array(
    ctx: Context, size: Tensor, *, dtype: tf.DType, element_shape: TensorShapeProto, dynamic_size: bool,
    clear_after_read: bool, identical_element_shapes: bool, tensor_array_name: str,
) -> tuple[Handle, TensorList]:  # fmt: skip
    """TensorArrayV3(size; dtype, element_shape=<unknown>, dynamic_size=false, clear_after_read=true,
    identical_element_shapes=false, tensor_array_name="") -> handle, flow"""
    if dynamic_size:
        ctx.unsupported("dynamic_size", True, "an array of known size")
    shape = as_shape(element_shape)
    element = tuple(shape.as_list()) if shape.is_fully_defined() else None
    (count,) = ctx.given_sizes(size, "size")
    return Handle(), TensorList(element_type_of(dtype), element, count, count)


@rule("TensorArrayGradV3")
def gradient(ctx: Context, handle: Operand, flow_in: Operand, *, source: str) -> tuple[Handle, TensorList]:
    """TensorArrayGradV3(handle, flow_in; source) -> grad_handle, flow_out"""
    gradients = Handle(adds_up=True)
    return gradients, _array(ctx, gradients, flow_in)


@rule("TensorArrayWriteV3")
def write(ctx: Context, handle: Operand, index: Value, value: Value, flow_in: Operand) -> TensorList:
    """TensorArrayWriteV3(handle, index, value, flow_in) -> flow_out"""
    array = _array(ctx, handle, flow_in)
    if isinstance(handle, Handle) and handle.adds_up:
        array = array.allocated(ctx, ctx.extents(value))
        value = ctx.plus(value, ctx.value(array.get(ctx, index)))
    return array.set(ctx, index, value)


@rule("TensorArrayReadV3")
def read(ctx: Context, handle: Operand, index: Value, flow_in: Operand, *, dtype: tf.DType) -> Operand:
    """TensorArrayReadV3(handle, index, flow_in; dtype) -> value"""
    return _filled(ctx, handle, flow_in).get(ctx, index)


@rule("TensorArrayGatherV3")
def gather(
    ctx: Context, handle: Operand, indices: Value, flow_in: Operand, *, dtype: tf.DType, element_shape: TensorShapeProto
) -> Value:
    """TensorArrayGatherV3(handle, indices, flow_in; dtype, element_shape=<unknown>) -> value"""
    return ctx.take(_rows(ctx, handle, flow_in), indices)


@rule("TensorArrayScatterV3")
def scatter(ctx: Context, handle: Operand, indices: Value, value: Value, flow_in: Operand) -> TensorList:
    """TensorArrayScatterV3(handle, indices, value, flow_in) -> flow_out"""
    array = _array(ctx, handle, flow_in).allocated(ctx, ctx.extents(value)[1:])
    (rows,) = array.buffers
    op = ops.Add if isinstance(handle, Handle) and handle.adds_up else None
    return replace(array, buffers=(scattered(ctx, op, rows, ctx.unsqueeze(indices, [1]), value),))


@rule("TensorArrayConcatV3")
def concat(
    ctx: Context, handle: Operand, flow_in: Operand, *, dtype: tf.DType, element_shape_except0: TensorShapeProto
) -> tuple[Value, Tensor]:
    """TensorArrayConcatV3(handle, flow_in; dtype, element_shape_except0=<unknown>) -> value, lengths"""
    rows = _rows(ctx, handle, flow_in)
    return joined(ctx, rows)


@rule("TensorArraySplitV3")
def split(ctx: Context, handle: Operand, value: Value, lengths: Known, flow_in: Operand) -> TensorList:
    """TensorArraySplitV3(handle, value, lengths, flow_in) -> flow_out"""
    if len(set(lengths.tolist())) != 1:
        ctx.unsupported("lengths", lengths.tolist(), "elements of one shape")
    rows = ctx.reshape(value, (len(lengths), int(lengths[0]), *ctx.extents(value)[1:]))
    array = _array(ctx, handle, flow_in).allocated(ctx, ctx.extents(rows)[1:])
    if isinstance(handle, Handle) and handle.adds_up:
        rows = ctx.plus(rows, array.buffers[0])
    return replace(array, buffers=(rows,))


@rule("TensorArraySizeV3")
def size(ctx: Context, handle: Operand, flow_in: Operand) -> Tensor:
    """TensorArraySizeV3(handle, flow_in) -> size"""
    count = _array(ctx, handle, flow_in).capacity
    assert count is not None
    return np.array(count, np.int32) if isinstance(count, int) else ctx.number_as(count, I32)


@rule("TensorArrayCloseV3")
def close(ctx: Context, handle: Operand) -> None:
    """TensorArrayCloseV3(handle)"""


def _array(ctx: Context, handle: Operand, flow: Operand) -> TensorList:
    """Returns the array that flows. What flows into the first op on its gradients is the array itself."""
    if not isinstance(flow, TensorList):
        ctx.unsupported("flow_in", "a number", "the flow of a tensor array")
    if isinstance(handle, Handle) and handle.adds_up and not flow.is_gradient:
        return replace(flow.zeros_like(ctx), is_gradient=True)
    return flow


def _filled(ctx: Context, handle: Operand, flow: Operand) -> TensorList:
    array = _array(ctx, handle, flow)
    if array.element is None and not array.buffers:
        ctx.unsupported("flow_in", "an array that nothing was written to", "one with elements")
    return array if array.buffers or array.element is None else array.allocated(ctx, array.known_element(ctx))


def _rows(ctx: Context, handle: Operand, flow: Operand) -> Value:
    (rows,) = _filled(ctx, handle, flow).buffers
    return rows
