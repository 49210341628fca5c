"""TensorFlow's lists of tensors: a buffer with one row an element, and a count. They have a fixed number of rows: that
of the list, or of the loop that fills it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trivium.importers.tensorflow.context import Context, Known, rule
from trivium.importers.tensorflow.types import element_type_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32


@dataclass(frozen=True)
class TensorList:
    """`buffer` is absent while the elements' shape is not known; `length` is a number or a 0-d i32 value; `capacity` is
    the number of rows, `None` while nothing tells it. Where all elements are the same known array, that is `every`, and
    there is no buffer: what loops keep for their gradients is often a shape."""

    element_type: Any
    element: tuple[int, ...] | None
    capacity: int | None
    length: int | Value
    buffer: Value | None = None
    every: np.ndarray | None = None

    def allocated(self, ctx: Context, element: tuple[int, ...]) -> TensorList:
        """The list with a buffer of zeros, for elements of that shape."""
        if self.buffer is not None:
            return self
        if self.every is not None:
            row = ctx.elements(self.every)
            return replace(self, every=None, buffer=ctx.broadcast(row, (self.capacity or self.length, *element)))
        if self.capacity is None:
            ctx.unsupported("max_num_elements", "no bound, in a loop whose trip count is not known", "a bound")
        return replace(self, element=element, buffer=ctx.full((self.capacity, *element), 0, self.element_type))

    def grown(self, count: int | None) -> TensorList:
        """The list with room for so many more elements, if it has no size of its own."""
        if self.capacity is not None or count is None or not isinstance(self.length, int):
            return self
        return replace(self, capacity=self.length + count)

    def parts(self, ctx: Context) -> list[Value]:
        """The values that make up the list at the edge of a region."""
        if self.every is not None:
            return [self.count(ctx)]
        if self.buffer is None:
            if self.element is None:
                ctx.unsupported("element_shape", "unknown extents", "a static shape")
            return self.allocated(ctx, self.element).parts(ctx)
        return [self.buffer, self.count(ctx)]

    def with_parts(self, values: Iterator[Value]) -> TensorList:
        """The list inside, or behind, a region: its count is a value there."""
        if self.every is not None:
            return replace(self, length=next(values))
        rows = next(values)
        count, *element = rows.type.shape
        return replace(self, element=tuple(element), capacity=count, buffer=rows, length=next(values))

    def count(self, ctx: Context) -> Value:
        return self.length if isinstance(self.length, Value) else ctx.scalar(self.length, I32)

    def get(self, ctx: Context, index: Value) -> Value | np.ndarray:
        """One element."""
        if self.every is not None:
            return self.every
        if self.buffer is None or self.element is None:
            ctx.unsupported("input_handle", "a list whose elements were never set", "one with elements")
        starts = [index, *(ctx.scalar(0, I32) for _ in self.element)]
        row = ctx.add(ops.DynamicSlice(self.buffer, starts, slice_sizes=(1, *self.element)))
        return ctx.reshape(row, self.element)

    def set(self, ctx: Context, index: Value, item: Value) -> TensorList:
        """The list with another element at an index."""
        whole = self.allocated(ctx, item.type.static_shape)
        if whole.element != item.type.shape:
            ctx.unsupported("item", f"shape {item.type.shape}, elements have {whole.element}", "elements of one shape")
        starts = [index, *(ctx.scalar(0, I32) for _ in item.type.shape)]
        row = ctx.unsqueeze(item, [0])
        return replace(whole, buffer=ctx.add(ops.DynamicUpdateSlice(whole.buffer, row, starts)))

    def plus(self, ctx: Context, other: TensorList) -> TensorList:
        """Element by element; a list that was never set counts as zeros."""
        if self.buffer is None or other.buffer is None:
            return other if self.buffer is None else self
        return replace(self, buffer=ctx.plus(self.buffer, other.buffer))

    def zeros_like(self, ctx: Context) -> TensorList:
        if self.every is not None:
            return replace(self, every=np.zeros_like(self.every))
        return self if self.buffer is None else replace(self, buffer=ctx.full_like(self.buffer, 0))


@dataclass(frozen=True)
class Optional:
    """A value that may be absent: what one branch of a conditional keeps for its gradient."""

    value: Any = None


@rule("OptionalFromValue")
def optional_from_value(ctx: Context, components: Any) -> Optional:
    """OptionalFromValue(components...) -> optional"""
    if len(components) != 1:
        ctx.unsupported("components", f"{len(components)} values", "one")
    return Optional(components[0])


@rule("OptionalNone")
def optional_none(ctx: Context) -> Optional:
    """OptionalNone() -> optional"""
    return Optional()


@rule("OptionalGetValue")
def optional_get_value(ctx: Context, optional: Any) -> list[Any]:
    """OptionalGetValue(optional) -> components..."""
    if optional.value is not None:
        return [optional.value]
    # In a branch that is never taken then.
    output = ctx.node.outputs[0]
    if not output.shape.is_fully_defined():
        ctx.unsupported("optional", f"nothing, of shape {output.shape}", "a static shape")
    return [ctx.full(tuple(output.shape), 0, element_type_of(output.dtype))]


# Making lists


@rule("TensorListReserve")
def reserve(ctx: Context, element_shape: Known, num_elements: Known, *, element_dtype: Any) -> TensorList:
    """TensorListReserve(element_shape, num_elements; element_dtype) -> handle"""
    count = int(num_elements)
    return _filled(ctx, TensorList(element_type_of(element_dtype), _static(element_shape), count, count))


@rule("EmptyTensorList")
def empty(ctx: Context, element_shape: Known, max_num_elements: Any, *, element_dtype: Any) -> TensorList:
    """EmptyTensorList(element_shape, max_num_elements; element_dtype) -> handle"""
    known = isinstance(max_num_elements, np.ndarray) and int(max_num_elements) >= 0
    capacity = int(max_num_elements) if known else None
    return TensorList(_element_type(ctx, element_dtype), _static(element_shape), capacity, 0)


@rule("TensorListFromTensor")
def from_tensor(ctx: Context, tensor: Value, element_shape: Any) -> TensorList:
    """TensorListFromTensor(tensor, element_shape) -> output_handle"""
    count, *element = tensor.type.static_shape
    return TensorList(tensor.type.element_type, tuple(element), count, count, tensor)


@rule("TensorListSplit")
def split(ctx: Context, tensor: Value, element_shape: Any, lengths: Known) -> TensorList:
    """TensorListSplit(tensor, element_shape, lengths) -> output_handle"""
    if len(set(lengths.tolist())) > 1:
        ctx.unsupported("lengths", lengths.tolist(), "elements of one shape")
    count, each = len(lengths), int(lengths[0]) if len(lengths) else 0
    rows = ctx.reshape(tensor, (count, each, *tensor.type.shape[1:]))
    return TensorList(tensor.type.element_type, rows.type.shape[1:], count, count, rows)


# Elements


@rule("TensorListGetItem")
def get_item(ctx: Context, input_handle: Any, index: Value, element_shape: Any, *, element_dtype: Any) -> Value:
    """TensorListGetItem(input_handle, index, element_shape; element_dtype) -> item"""
    if input_handle.buffer is None and isinstance(element_shape, np.ndarray) and _static(element_shape) is not None:
        input_handle = input_handle.allocated(ctx, _static(element_shape))
    return input_handle.get(ctx, index)


@rule("TensorListSetItem")
def set_item(
    ctx: Context,
    input_handle: Any,
    index: Value,
    item: Value,
    *,
    element_dtype: Any,
    resize_if_index_out_of_bounds: bool,
) -> TensorList:
    """TensorListSetItem(input_handle, index, item; resize_if_index_out_of_bounds=false) -> output_handle"""
    # A list of a TensorArray that may grow: its rows are counted by the loop that fills it.
    if resize_if_index_out_of_bounds and input_handle.capacity in (0, None):
        ctx.unsupported("resize_if_index_out_of_bounds", True, "a list of fixed size")
    return input_handle.set(ctx, index, item)


@rule("TensorListPushBack")
def push_back(ctx: Context, input_handle: Any, tensor: Any, *, element_dtype: Any) -> TensorList:
    """TensorListPushBack(input_handle, tensor) -> output_handle"""
    if isinstance(tensor, np.ndarray) and _stays_uniform(input_handle, tensor):
        length = _moved(ctx, input_handle.length, 1)
        return replace(input_handle, element=tensor.shape, length=length, every=tensor)
    tensor = ctx.value(tensor, "tensor")
    if input_handle.capacity is None and isinstance(input_handle.length, int):
        return _appended(ctx, input_handle, tensor)
    pushed = input_handle.set(ctx, input_handle.count(ctx), tensor)
    return replace(pushed, length=_moved(ctx, input_handle.length, 1))


@rule("TensorListPopBack")
def pop_back(ctx: Context, input_handle: Any, element_shape: Any, *, element_dtype: Any) -> tuple[TensorList, Any]:
    """TensorListPopBack(input_handle, element_shape; element_dtype) -> output_handle, tensor"""
    length = _moved(ctx, input_handle.length, -1)
    popped = replace(input_handle, length=length)
    return popped, input_handle.get(ctx, popped.count(ctx))


def _stays_uniform(into: TensorList, item: np.ndarray) -> bool:
    """Whether all elements are one known array still, once `item` is among them."""
    if into.every is not None:
        return np.array_equal(into.every, item)
    return into.buffer is None and isinstance(into.length, int) and into.length == 0


def _appended(ctx: Context, old: TensorList, tensor: Value) -> TensorList:
    """A push outside of loops: the list grows by a row."""
    row = ctx.unsqueeze(tensor, [0])
    old = old.allocated(ctx, tensor.type.shape) if old.every is not None else old
    rows = row if old.buffer is None else ctx.concatenate([old.buffer, row], 0)
    return replace(old, element=tensor.type.static_shape, length=old.length + 1, buffer=rows)


def _moved(ctx: Context, length: int | Value, by: int) -> int | Value:
    return length + by if isinstance(length, int) else ctx.plus(length, ctx.scalar(by, I32))


# All of it


@rule("TensorListStack")
def stack(ctx: Context, input_handle: Any, element_shape: Any, *, element_dtype: Any, num_elements: int) -> Value:
    """TensorListStack(input_handle, element_shape; element_dtype, num_elements=-1) -> tensor"""
    rows = _rows(ctx, input_handle, element_shape)
    if num_elements not in (-1, rows.type.shape[0]):
        rows = ctx.slice(rows, 0, 0, num_elements)
    return rows


@rule("TensorListGather")
def gather(ctx: Context, input_handle: Any, indices: Value, element_shape: Any, *, element_dtype: Any) -> Value:
    """TensorListGather(input_handle, indices, element_shape; element_dtype) -> values"""
    return ctx.take(_rows(ctx, input_handle, element_shape), indices)


@rule("TensorListScatterV2", "TensorListScatter")
def scatter(ctx: Context, tensor: Value, indices: Known, element_shape: Any, *rest: Any) -> TensorList:
    """TensorListScatterV2(tensor, indices, element_shape, num_elements) -> output_handle"""
    given = int(ctx.known(rest[0], "num_elements")) if rest else -1
    count = given if given >= 0 else int(indices.max(initial=-1)) + 1
    position = {int(at): row for row, at in enumerate(indices)}
    rows = [_row(ctx, tensor, position.get(at)) for at in range(count)]
    stacked = ctx.concatenate(rows, 0)
    return TensorList(tensor.type.element_type, tensor.type.shape[1:], count, count, stacked)


@rule("TensorListConcatV2", "TensorListConcat")
def concat(ctx: Context, input_handle: Any, *rest: Any, element_dtype: Any) -> tuple[Value, np.ndarray]:
    """TensorListConcatV2(input_handle, element_shape, leading_dims; element_dtype) -> tensor, lengths"""
    rows = _rows(ctx, input_handle, None)
    count, each, *others = rows.type.shape
    return ctx.reshape(rows, (count * each, *others)), np.full((count,), each, np.int64)


@rule("TensorListLength")
def length(ctx: Context, input_handle: Any) -> Any:
    """TensorListLength(input_handle) -> length"""
    return input_handle.length if isinstance(input_handle.length, Value) else np.array(input_handle.length, np.int32)


@rule("TensorListElementShape")
def element_shape(ctx: Context, input_handle: Any) -> np.ndarray:
    """TensorListElementShape(input_handle) -> element_shape"""
    shape: Sequence[int] | int = -1 if input_handle.element is None else input_handle.element
    return np.array(shape, ctx.element_type.dtype)


@rule("TensorListResize")
def resize(ctx: Context, input_handle: Any, size: Known) -> TensorList:
    """TensorListResize(input_handle, size) -> output_handle"""
    count = int(size)
    if input_handle.buffer is None:
        return replace(input_handle, capacity=count, length=count)
    have = input_handle.buffer.type.shape[0]
    rows = ctx.slice(input_handle.buffer, 0, 0, min(count, have))
    rows = ctx.pad(rows, [0] * rows.type.rank, [max(0, count - have), *[0] * (rows.type.rank - 1)])
    return replace(input_handle, capacity=count, length=count, buffer=rows)


def _rows(ctx: Context, given: TensorList, element_shape: Any) -> Value:
    static = _static(element_shape) if isinstance(element_shape, np.ndarray) else None
    element = given.element if given.element is not None else static
    if given.buffer is None and element is not None:
        given = given.allocated(ctx, element)
    if given.buffer is None:
        ctx.unsupported("element_shape", "unknown extents", "a static shape")
    if not isinstance(given.length, int):
        ctx.unsupported("input_handle", "a length that depends on run-time values", "a known length")
    if given.length != given.buffer.type.shape[0]:
        return ctx.slice(given.buffer, 0, 0, given.length)
    return given.buffer


def _row(ctx: Context, tensor: Value, at: int | None) -> Value:
    return (
        ctx.full((1, *tensor.type.shape[1:]), 0, tensor.type.element_type)
        if at is None
        else ctx.slice(tensor, 0, at, at + 1)
    )


def _filled(ctx: Context, given: TensorList) -> TensorList:
    return given if given.element is None else given.allocated(ctx, given.element)


def _static(element_shape: np.ndarray) -> tuple[int, ...] | None:
    """The shape of the elements, if all of it is known."""
    if element_shape.ndim == 0 or (element_shape < 0).any():
        return None
    return tuple(int(extent) for extent in element_shape)


def _element_type(ctx: Context, dtype: Any) -> Any:
    if dtype.name == "variant":
        ctx.unsupported("element_dtype", "variant", "lists of tensors, not of lists")
    return element_type_of(dtype)
