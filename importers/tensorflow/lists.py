"""TensorFlow's lists of tensors as values: a buffer with one row per element, and a count. A list has a fixed number of
rows: its own, or that of the loop that fills it. Elements may themselves be lists or optional values, as the gradients
of nested loops keep them; such a list has one buffer for each part of an element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trivium.importers.extents import Extent, Size, known_shape
from trivium.importers.tensorflow.context import Context, NonTensor, Operand, Tensor
from trivium.importers.tensorflow.state import Variable
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.types import I32, I64, ElementType, compatible


@dataclass(frozen=True)
class TensorList(NonTensor):
    """`buffers` are absent while the elements' shape is not known; `length` is an extent, or a 0-d i32 value;
    `capacity` is the number of rows, `None` as long as it is unknown. If all elements are the same known array, that is
    `every`, and there is no buffer: loops often keep a shape for their gradients. `form` is an element that is not a
    tensor. `is_gradient` marks those that hold the gradients of a tensor array, `is_long_enough` those that writing
    does not lengthen, because the loop around it has been converted with all rows, and `keeps_length` those to which
    the loop around it pushes nothing. `may_be_full` marks those to which nothing can be pushed, because it is not known
    how many elements the loop around it pushes to their own ones."""

    element_type: ElementType | None
    element: tuple[int | None, ...] | None
    capacity: Extent | None
    length: Extent | Value
    buffers: tuple[Value, ...] = ()
    every: np.ndarray | None = None
    form: NonTensor | None = None
    is_gradient: bool = False
    is_long_enough: bool = False
    keeps_length: bool = False
    may_be_full: bool = False

    @property
    def has_no_room(self) -> bool:
        """Whether all rows are taken, as far as that is known."""
        if self.capacity is None:
            return True
        return isinstance(self.capacity, int) and isinstance(self.length, int) and self.length >= self.capacity

    @property
    def is_empty_yet(self) -> bool:
        """Whether nothing is known about the elements except, possibly, their shape."""
        return not self.buffers and self.every is None

    def allocated(self, ctx: Context, element: Sequence[Extent]) -> TensorList:
        """Returns the list with a buffer, for tensors of that shape."""
        assert self.element_type is not None
        return self.with_rows(ctx, [(element, self.element_type)])

    def with_rows(self, ctx: Context, parts: Sequence[tuple[Sequence[Extent], ElementType]]) -> TensorList:
        """Returns the list with buffers of zeros, for elements that consist of parts of those shapes and types."""
        if self.buffers:
            return self
        element = known_shape(parts[0][0]) if self.form is None else None
        if self.every is not None:
            count = self.capacity if self.capacity is not None else self.length
            if isinstance(count, Value):
                ctx.unsupported("max_num_elements", "no bound, in a loop whose trip count is not known", "a bound")
            rows = ctx.broadcast(ctx.elements(self.every), (count, *self.every.shape))
            return replace(self, every=None, buffers=(rows,))
        if self.capacity is None:
            ctx.unsupported("max_num_elements", "no bound, in a loop whose trip count is not known", "a bound")
        buffers = tuple(ctx.full((self.capacity, *shape), 0, kind) for shape, kind in parts)
        return replace(self, element=element, buffers=buffers)

    def grown(self, ctx: Context, count: int | None) -> TensorList:
        """Returns the list with space for `count` further elements; an unknown number only if it has no rows of its
        own."""
        if self.capacity is not None and self.has_no_room and count != 0:
            if count is None:
                return replace(self, may_be_full=True)
            assert isinstance(self.capacity, int)
            room = self.capacity + count
            return replace(self, capacity=room, buffers=tuple(_resized(ctx, x, room) for x in self.buffers))
        if self.capacity is not None or count is None or not isinstance(self.length, int):
            return self
        return replace(self, capacity=self.length + count)

    def resized(self, ctx: Context, count: int) -> TensorList:
        """Returns the list with a number of elements, of which new ones are zeros."""
        if count == self.length and count == self.capacity:
            return self
        if isinstance(self.capacity, Size):
            ctx.unsupported("size", count, "a list whose length is known")
        return replace(self, capacity=count, length=count, buffers=tuple(_resized(ctx, x, count) for x in self.buffers))

    def parts(self, ctx: Context, counted: bool = True) -> list[Value]:
        """Returns the values that make up the list at the edge of a region, including a known length if it is
        `counted`."""
        count = [self.count(ctx)] if self._is_counted(counted) else []
        if self.every is not None:
            return count
        if not self.buffers:
            return self.allocated(ctx, self.known_element(ctx)).parts(ctx, counted)
        return [*self.buffers, *count]

    def known_element(self, ctx: Context) -> list[int]:
        """Returns the shape of an element, all of which must be known."""
        shape = [extent for extent in self.element or () if extent is not None]
        if self.element is None or len(shape) < len(self.element):
            ctx.unsupported("element_shape", "unknown extents", "a static shape")
        return shape

    def with_parts(self, values: Iterator[Value], counted: bool = True) -> TensorList:
        """Returns the list inside, or after, a region, from its parts there."""
        rows = () if self.every is not None else tuple(next(values) for _ in self.buffers or (None,))
        length = next(values) if self._is_counted(counted) else self.length
        if not rows:
            return replace(self, length=length)
        count, *element = rows[0].type.shape
        shape = tuple(element) if self.form is None else None
        capacity = self.capacity if count is None else count
        return replace(self, element=shape, capacity=capacity, buffers=rows, length=length)

    def _is_counted(self, counted: bool) -> bool:
        """Whether the length is among the values at the edge of a region."""
        return isinstance(self.length, Value) or (counted and not self.is_long_enough and not self.keeps_length)

    def count(self, ctx: Context) -> Value:
        return self.length if isinstance(self.length, Value) else ctx.number_as(self.length, I32)

    def get(self, ctx: Context, index: Value) -> Operand:
        """One element."""
        if self.every is not None:
            return self.every
        if not self.buffers:
            ctx.unsupported("input_handle", "a list whose elements were never set", "one with elements")
        rows = [_row(ctx, buffer, index) for buffer in self.buffers]
        return rows[0] if self.form is None else whole_of(self.form, iter(rows), counted=False)

    def set(self, ctx: Context, index: Value, item: Value | NonTensor) -> TensorList:
        """Returns the list with another element at an index."""
        form = None if isinstance(item, Value) else item
        rows = [item] if isinstance(item, Value) else parts_of(ctx, item, counted=False)
        whole = replace(self, form=form).with_rows(ctx, [(ctx.extents(row), row.type.element_type) for row in rows])
        buffers = zip(whole.buffers, rows, strict=True)
        return replace(whole, buffers=tuple(_with_row(ctx, buffer, index, row) for buffer, row in buffers))

    def plus(self, ctx: Context, other: TensorList) -> TensorList:
        """Applies a function element by element; a list that was never set counts as zeros."""
        if not self.buffers or not other.buffers:
            return self if self.buffers else other
        sums = zip(self.buffers, other.buffers, strict=True)
        return replace(self, buffers=tuple(ctx.plus(mine, theirs) for mine, theirs in sums))

    def zeros_like(self, ctx: Context) -> TensorList:
        if self.every is not None:
            return replace(self, every=np.zeros_like(self.every))
        return replace(self, buffers=tuple(ctx.full_like(rows, 0) for rows in self.buffers))


@dataclass(frozen=True)
class Optional(NonTensor):
    """A value that may be absent: one branch of a conditional keeps it for its gradient. Where the branches keep values
    of different kinds in one place, there is one of each kind, of which the branch that ran has set one."""

    values: tuple[Operand, ...] = ()

    def like(self, other: Operand) -> Operand | None:
        """Returns the value that is of the kind of another one."""
        return next((x for x in self.values if kind_of(x) == kind_of(other)), None)


def kind_of(x: Operand) -> object:
    """Returns what two operands have in common that can stand for each other after a conditional."""
    if isinstance(x, NonTensor):
        return x if isinstance(x, Variable) else type(x)
    return x.type if isinstance(x, Value) else DenseElements(x).type


def zeros_of(ctx: Context, x: Operand) -> Operand:
    """Returns an operand of the same form as another, with zeros for its elements."""
    if isinstance(x, Optional):
        return Optional(tuple(zeros_of(ctx, value) for value in x.values))
    return x.zeros_like(ctx) if isinstance(x, TensorList) else ctx.full_like(ctx.value(x), 0)


def sum_of(ctx: Context, x: Operand, y: Operand) -> Operand:
    """Returns the sum of two operands of one form; an optional value that is absent counts as zero."""
    if isinstance(x, Optional) and isinstance(y, Optional):
        pairs = [(value, y.like(value)) for value in x.values]
        sums = [value if other is None else sum_of(ctx, value, other) for value, other in pairs]
        return Optional((*sums, *(value for value in y.values if x.like(value) is None)))
    if isinstance(x, TensorList) and isinstance(y, TensorList):
        return x.plus(ctx, y)
    return ctx.plus(ctx.value(x), ctx.value(y))


def parts_of(ctx: Context, x: Operand, counted: bool = True) -> list[Value]:
    """Returns the values of an operand of any kind, as they cross the edge of a region."""
    if isinstance(x, TensorList):
        return x.parts(ctx, counted)
    if isinstance(x, Optional):
        return [part for value in x.values for part in parts_of(ctx, value, counted)]
    return [] if isinstance(x, Variable) else [ctx.value(x)]


def whole_of(form: Operand, values: Iterator[Value], counted: bool = True) -> Operand:
    """Returns an operand of the same form as another, from its values."""
    if isinstance(form, TensorList):
        return form.with_parts(values, counted)
    if isinstance(form, Optional):
        return Optional(tuple(whole_of(value, values, counted) for value in form.values))
    return form if isinstance(form, Variable) else next(values)


def joined(ctx: Context, rows: Value) -> tuple[Value, Tensor]:
    """Returns the elements of a list one after another, and how many rows each has."""
    count, each, *others = ctx.extents(rows)
    whole = ctx.reshape(rows, (count * each, *others))
    if isinstance(count, int):
        return whole, ctx.held([each] * count, I64)
    return whole, ctx.broadcast(ctx.number_as(each, I64), [count])


def _resized(ctx: Context, rows: Value, count: int) -> Value:
    have, *element = rows.type.static_shape
    rows = ctx.slice(rows, 0, 0, min(count, have))
    return ctx.pad(rows, [0] * rows.type.rank, [max(0, count - have), *[0] * len(element)])


def _row(ctx: Context, rows: Value, index: Value) -> Value:
    if rows.type.shape[0] == 0:  # in the body of a loop that never runs
        return ctx.full(ctx.extents(rows)[1:], 0, rows.type.element_type)
    if not rows.type.is_static:
        return ctx.take(rows, index)
    element = rows.type.static_shape[1:]
    starts = [index, *(ctx.scalar(0, I32) for _ in element)]
    return ctx.reshape(ctx.add(ops.DynamicSlice(rows, starts, slice_sizes=(1, *element))), element)


def _with_row(ctx: Context, rows: Value, index: Value, row: Value) -> Value:
    element = rows.type.shape[1:]
    if not compatible(row.type, row.type.with_shape(element)):
        ctx.unsupported("item", f"shape {row.type.shape}, elements have {element}", "elements of one shape")
    if rows.type.shape[0] == 0:
        return rows
    starts = [index, *(ctx.scalar(0, I32) for _ in element)]
    # In the body of a loop that never runs, there is no place for it.
    row = ctx.slice(ctx.unsqueeze(row, [0]), 0, 0, ctx.one_of(rows, 0))
    return ctx.add(ops.DynamicUpdateSlice(rows, row, starts))
