"""The rules of TensorFlow's lists of tensors, which `TensorArray`s and the gradients of loops use, and of the optional
values that conditionals keep for their gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import tensorflow as tf

from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Known, NonTensor, Operand, Tensor, rule
from trivium.importers.tensorflow.indexing import scattered
from trivium.importers.tensorflow.lists import Optional, TensorList, joined
from trivium.importers.tensorflow.types import element_type_of, type_of
from trivium.ir.core import Value
from trivium.ir.types import I32, ElementType, compatible


@rule("OptionalFromValue")
def optional_from_value(ctx: Context, components: list[Operand]) -> Optional:
    """OptionalFromValue(components...) -> optional"""
    if len(components) != 1:
        ctx.unsupported("components", f"{len(components)} values", "one")
    return Optional((components[0],))


@rule("OptionalNone")
def optional_none(ctx: Context) -> Optional:
    """OptionalNone() -> optional"""
    return Optional()


@rule("OptionalGetValue")
def optional_get_value(ctx: Context, optional: Optional) -> list[Operand]:
    """OptionalGetValue(optional) -> components..."""
    values, result = optional.values, ctx.node.outputs[0]
    if len(values) > 1 and result.dtype == tf.variant:
        values = [x for x in values if isinstance(x, NonTensor)]
    elif len(values) > 1:
        wanted = type_of(result)
        values = [x for x in values if not isinstance(x, NonTensor) and compatible(ctx.value(x).type, wanted)]
    if len(values) > 1:
        ctx.unsupported("optional", f"{len(values)} values that are of the node's type", "one")
    if values:
        return [values[0]]
    # In a branch that is then never taken.
    kind = type_of(result)
    return [ctx.full(kind.static_shape, 0, kind.element_type)]


# Making lists


@rule("TensorListReserve")
def reserve(ctx: Context, element_shape: Tensor, num_elements: Tensor, *, element_dtype: tf.DType) -> TensorList:
    """TensorListReserve(element_shape, num_elements; element_dtype) -> handle"""
    (count,) = ctx.given_sizes(num_elements, "num_elements")
    return _filled(ctx, TensorList(_element_type(element_dtype), _static(element_shape), count, count))


@rule("EmptyTensorList")
def empty(ctx: Context, element_shape: Tensor, max_num_elements: Tensor, *, element_dtype: tf.DType) -> TensorList:
    """EmptyTensorList(element_shape, max_num_elements; element_dtype) -> handle"""
    most = int(max_num_elements) if isinstance(max_num_elements, np.ndarray) else -1
    capacity = most if most >= 0 else None
    return TensorList(_element_type(element_dtype), _static(element_shape), capacity, 0)


@rule("TensorListFromTensor")
def from_tensor(ctx: Context, tensor: Value, element_shape: Tensor) -> TensorList:
    """TensorListFromTensor(tensor, element_shape) -> output_handle"""
    count, element = ctx.extent(tensor, 0), tensor.type.shape[1:]
    return TensorList(tensor.type.element_type, element, count, count, (tensor,))


@rule("TensorListSplit")
def split(ctx: Context, tensor: Value, element_shape: Tensor, lengths: Known) -> TensorList:
    """TensorListSplit(tensor, element_shape, lengths) -> output_handle"""
    if len(set(lengths.tolist())) > 1:
        ctx.unsupported("lengths", lengths.tolist(), "elements of one shape")
    count, each = len(lengths), int(lengths[0]) if len(lengths) else 0
    rows = ctx.reshape(tensor, (count, each, *ctx.extents(tensor)[1:]))
    return TensorList(tensor.type.element_type, rows.type.shape[1:], count, count, (rows,))


# Elements


@rule("TensorListGetItem")
def get_item(
    ctx: Context, input_handle: TensorList, index: Value, element_shape: Tensor, *, element_dtype: tf.DType
) -> Operand:
    """TensorListGetItem(input_handle, index, element_shape; element_dtype) -> item"""
    shape = _static(element_shape)
    if input_handle.is_empty_yet and shape is not None:
        input_handle = input_handle.allocated(ctx, shape)
    return input_handle.get(ctx, index)


@rule("TensorListSetItem")
def set_item(
    ctx: Context,
    input_handle: TensorList,
    index: Tensor,
    item: Value,
    *,
    element_dtype: tf.DType,
    resize_if_index_out_of_bounds: bool,
) -> TensorList:
    """TensorListSetItem(input_handle, index, item; resize_if_index_out_of_bounds=false) -> output_handle"""
    # A list of a TensorArray that may grow: outside of loops, by a known index; a loop has lengthened it before.
    if resize_if_index_out_of_bounds and not input_handle.is_long_enough:
        if not (isinstance(index, np.ndarray) and isinstance(input_handle.length, int)):
            ctx.unsupported(
                "resize_if_index_out_of_bounds", True, "a known index, or one that counts a loop's iterations"
            )
        input_handle = input_handle.resized(ctx, max(int(index) + 1, input_handle.length))
    return input_handle.set(ctx, ctx.value(index), item)


@rule("TensorListPushBack")
def push_back(ctx: Context, input_handle: TensorList, tensor: Operand, *, element_dtype: tf.DType) -> TensorList:
    """TensorListPushBack(input_handle, tensor) -> output_handle"""
    if isinstance(tensor, np.ndarray) and _stays_uniform(input_handle, tensor):
        length = _moved(ctx, input_handle.length, 1)
        return replace(input_handle, element=tensor.shape, length=length, every=tensor)
    tensor = ctx.value(tensor) if isinstance(tensor, np.ndarray) else tensor
    if input_handle.may_be_full:
        ctx.unsupported("input_handle", "a list that may be full", "one whose length after the loop is known")
    if input_handle.has_no_room and isinstance(input_handle.length, int) and isinstance(tensor, Value):
        return _appended(ctx, input_handle, tensor)
    pushed = input_handle.set(ctx, input_handle.count(ctx), tensor)
    return replace(pushed, length=_moved(ctx, input_handle.length, 1))


@rule("TensorListPopBack")
def pop_back(
    ctx: Context, input_handle: TensorList, element_shape: Tensor, *, element_dtype: tf.DType
) -> tuple[TensorList, Operand]:
    """TensorListPopBack(input_handle, element_shape; element_dtype) -> output_handle, tensor"""
    length = _moved(ctx, input_handle.length, -1)
    popped = replace(input_handle, length=length)
    return popped, input_handle.get(ctx, popped.count(ctx))


def _stays_uniform(into: TensorList, item: np.ndarray) -> bool:
    """Whether all elements are still one known array, including `item`."""
    if into.every is not None:
        return np.array_equal(into.every, item)
    return not into.buffers and isinstance(into.length, int) and into.length == 0


def _appended(ctx: Context, old: TensorList, tensor: Value) -> TensorList:
    """Pushes outside loops: the list grows by a row."""
    row = ctx.unsqueeze(tensor, [0])
    old = old.allocated(ctx, ctx.extents(tensor)) if old.every is not None else old
    rows = ctx.concatenate([*old.buffers, row], 0)
    capacity = None if old.capacity is None else old.capacity + 1
    length = _moved(ctx, old.length, 1)
    return replace(old, element=tensor.type.shape, capacity=capacity, length=length, buffers=(rows,))


def _moved(ctx: Context, length: Extent | Value, by: int) -> Extent | Value:
    return ctx.plus(length, ctx.scalar(by, I32)) if isinstance(length, Value) else length + by


# Whole lists


@rule("TensorListStack")
def stack(
    ctx: Context, input_handle: TensorList, element_shape: Tensor, *, element_dtype: tf.DType, num_elements: int
) -> Value:
    """TensorListStack(input_handle, element_shape; element_dtype, num_elements=-1) -> tensor"""
    rows = _rows(ctx, input_handle, element_shape)
    if num_elements not in (-1, rows.type.shape[0]):
        rows = ctx.slice(rows, 0, 0, num_elements)
    return rows


@rule("TensorListGather")
def gather(
    ctx: Context, input_handle: TensorList, indices: Value, element_shape: Tensor, *, element_dtype: tf.DType
) -> Value:
    """TensorListGather(input_handle, indices, element_shape; element_dtype) -> values"""
    return ctx.take(_rows(ctx, input_handle, element_shape), indices)


@rule("TensorListScatterV2", "TensorListScatter")
def scatter(ctx: Context, tensor: Value, indices: Known, element_shape: Tensor, *rest: Tensor) -> TensorList:
    """TensorListScatterV2(tensor, indices, element_shape, num_elements) -> output_handle"""
    given = int(ctx.known(rest[0], "num_elements")) if rest else -1
    count = given if given >= 0 else int(indices.max(initial=-1)) + 1
    position = {int(at): row for row, at in enumerate(indices)}
    rows = [_row(ctx, tensor, position.get(at)) for at in range(count)]
    stacked = ctx.concatenate(rows, 0)
    return TensorList(tensor.type.element_type, tensor.type.shape[1:], count, count, (stacked,))


@rule("TensorListScatterIntoExistingList")
def scatter_into(ctx: Context, input_handle: TensorList, tensor: Value, indices: Tensor) -> TensorList:
    """TensorListScatterIntoExistingList(input_handle, tensor, indices) -> output_handle"""
    known, length = ctx.known_if_possible(indices), input_handle.length
    if isinstance(length, int) and known is not None and known.max(initial=-1) >= length:
        input_handle = input_handle.resized(ctx, int(known.max()) + 1)
    (rows,) = input_handle.allocated(ctx, ctx.extents(tensor)[1:]).buffers
    rows = scattered(ctx, None, rows, ctx.unsqueeze(ctx.value(indices), [1]), tensor)
    return replace(input_handle, element=tensor.type.shape[1:], buffers=(rows,), every=None)


@rule("TensorListConcatV2", "TensorListConcat")
def concat(ctx: Context, input_handle: TensorList, *rest: Tensor, element_dtype: tf.DType) -> tuple[Value, Tensor]:
    """TensorListConcatV2(input_handle, element_shape, leading_dims; element_dtype) -> tensor, lengths"""
    rows = _rows(ctx, input_handle, None)
    return joined(ctx, rows)


@rule("TensorListLength")
def length(ctx: Context, input_handle: TensorList) -> Tensor:
    """TensorListLength(input_handle) -> length"""
    count = input_handle.length
    return np.array(count, np.int32) if isinstance(count, int) else input_handle.count(ctx)


@rule("TensorListElementShape")
def element_shape(ctx: Context, input_handle: TensorList) -> np.ndarray:
    """TensorListElementShape(input_handle) -> element_shape"""
    element = input_handle.element
    shape = -1 if element is None else [-1 if extent is None else extent for extent in element]
    return np.array(shape, ctx.element_type.dtype)


@rule("TensorListResize")
def resize(ctx: Context, input_handle: TensorList, size: Known) -> TensorList:
    """TensorListResize(input_handle, size) -> output_handle"""
    return input_handle.resized(ctx, int(size))


def _rows(ctx: Context, given: TensorList, element_shape: Tensor | None) -> Value:
    if not given.buffers:
        element = _static(element_shape) if given.element is None else given.known_element(ctx)
        given = given if element is None else given.allocated(ctx, element)
    if len(given.buffers) != 1:
        ctx.unsupported("element_shape", "unknown extents", "a static shape")
    if isinstance(given.length, Value):
        ctx.unsupported("input_handle", "a length that depends on run-time values", "a known length")
    return ctx.slice(given.buffers[0], 0, 0, given.length)


def _row(ctx: Context, tensor: Value, at: int | None) -> Value:
    return (
        ctx.full((1, *ctx.extents(tensor)[1:]), 0, tensor.type.element_type)
        if at is None
        else ctx.slice(tensor, 0, at, at + 1)
    )


def _filled(ctx: Context, given: TensorList) -> TensorList:
    is_known = given.element is not None and None not in given.element
    return given.allocated(ctx, given.known_element(ctx)) if is_known else given


def _static(element_shape: Tensor | None) -> tuple[int, ...] | None:
    """Returns the shape of the elements, if all of it is known."""
    if not isinstance(element_shape, np.ndarray) or element_shape.ndim == 0 or (element_shape < 0).any():
        return None
    return tuple(int(extent) for extent in element_shape)


def _element_type(dtype: tf.DType) -> ElementType | None:
    """Returns the element type, if elements are tensors."""
    return None if dtype.name == "variant" else element_type_of(dtype)
