"""Ops that read or write a box of a tensor at fixed or computed indices (`slice`, `dynamic_slice`,
`dynamic_update_slice`). `gather` and `scatter` are in `trivium.ir.ops.gather`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.ir.codecs import Ints
from trivium.ir.declare import PURE, Op, Operand, Operands, Result
from trivium.ir.errors import fail
from trivium.ir.ops.common import (
    expect_at_least,
    expect_at_most,
    expect_compatible,
    expect_element,
    expect_same_element,
    expect_shape,
    expect_size,
    expect_tensor,
    limits_of,
    shaped,
)
from trivium.ir.types import TensorType, is_integer

__all__ = [
    "DynamicSlice",
    "DynamicUpdateSlice",
    "Slice",
]


class Slice(Op, name="stablehlo.slice", traits={PURE}):
    """Every `strides[d]`-th element from `start_indices[d]` up to, not including, `limit_indices[d]`."""

    operand: Operand
    start_indices: Ints
    limit_indices: Ints
    strides: Ints
    result: Result

    def infer(operand, start_indices, limit_indices, strides):
        _expect_slice(operand, start_indices, limit_indices, strides)
        return shaped(_slice_shape(start_indices, limit_indices, strides), operand.element_type)

    def check(operand, start_indices, limit_indices, strides, result):
        expect_tensor("I1", "operand", operand)
        expect_same_element("C1", operand=operand, result=result)
        _expect_slice(operand, start_indices, limit_indices, strides)
        expect_shape("C5", "result", result, _slice_shape(start_indices, limit_indices, strides))

    def evaluate(operand, start_indices, limit_indices, strides):
        return operand[tuple(map(slice, start_indices, limit_indices, strides))]


def _expect_slice(operand: TensorType, start_indices: Ints, limit_indices: Ints, strides: Ints) -> None:
    expect_tensor("I1", "operand", operand)
    for name, values in (("start_indices", start_indices), ("limit_indices", limit_indices), ("strides", strides)):
        expect_size("C2", name, values, operand.rank, "the rank of operand")
    expect_at_least("C3", "start_indices", start_indices, 0)
    expect_at_most("C3", "start_indices", start_indices, limit_indices, "its entry in limit_indices")
    expect_at_most("C3", "limit_indices", limit_indices, limits_of(operand), f"its extent in operand {operand}")
    expect_at_least("C4", "strides", strides, 1)


def _slice_shape(start_indices: Ints, limit_indices: Ints, strides: Ints) -> list[int]:
    return [len(range(*box)) for box in zip(start_indices, limit_indices, strides, strict=True)]


class DynamicSlice(Op, name="stablehlo.dynamic_slice", traits={PURE}):
    """A box of `slice_sizes` at `start_indices`, one scalar for each dimension, clamped so that the box is inside."""

    operand: Operand
    start_indices: Operands
    slice_sizes: Ints
    result: Result

    def infer(operand, slice_sizes):
        expect_tensor("I1", "operand", operand)
        return shaped(slice_sizes, operand.element_type)

    def check(operand, start_indices, slice_sizes, result):
        expect_tensor("I1", "operand", operand)
        expect_same_element("C1", operand=operand, result=result)
        expect_size("C2", "start_indices", start_indices, operand.rank, "the rank of operand")
        expect_size("C2", "slice_sizes", slice_sizes, operand.rank, "the rank of operand")
        _expect_start_indices("I2", "C3", start_indices)
        expect_at_least("C4", "slice_sizes", slice_sizes, 0)
        expect_at_most("C4", "slice_sizes", slice_sizes, limits_of(operand), f"its extent in operand {operand}")
        expect_shape("C5", "result", result, slice_sizes)

    def evaluate(operand, start_indices, slice_sizes):
        return operand[_box(operand.shape, start_indices, slice_sizes)]


class DynamicUpdateSlice(Op, name="stablehlo.dynamic_update_slice", traits={PURE}):
    """The operand with `update` in place of the box at `start_indices`, clamped so that the box is inside."""

    operand: Operand
    update: Operand
    start_indices: Operands
    result: Result

    def infer(operand):
        return operand

    def check(operand, update, start_indices, result):
        expect_tensor("I1", "operand", operand)
        expect_compatible("C1", operand=operand, result=result)
        expect_same_element("C2", operand=operand, update=update)
        if update.rank != operand.rank:
            fail("C3", f"update has type {update}, expected the rank of operand {operand}")
        expect_size("C4", "start_indices", start_indices, operand.rank, "the rank of operand")
        _expect_start_indices("I3", "C5", start_indices)
        sizes = [extent or 0 for extent in update.shape]
        expect_at_most("C6", "update's shape", sizes, limits_of(operand), f"its extent in operand {operand}")

    def evaluate(operand, update, start_indices):
        result = operand.copy()
        result[_box(operand.shape, start_indices, update.shape)] = update
        return result


def _expect_start_indices(kind_label: str, same_label: str, start_indices: Sequence[TensorType]) -> None:
    for index, start in enumerate(start_indices):
        expect_element(kind_label, f"start_indices[{index}]", start, is_integer)
        expect_tensor(kind_label, f"start_indices[{index}]", start, rank=0)
        expect_same_element(same_label, **{"start_indices[0]": start_indices[0], f"start_indices[{index}]": start})


def _box(shape: Sequence[int], start_indices: Sequence[np.ndarray], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Returns the slices of a box of these sizes, with its start clamped."""
    starts = [min(max(int(at), 0), n - size) for at, n, size in zip(start_indices, shape, sizes, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
