"""CHLO's ops that are whole programs: `scan` (a recurrence along a dimension) and `ragged_dot` (products with a matrix
for each group of rows); and its constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import Attribute, DenseElements, Enumeration, Float, Integer, Struct, enumeration
from trivium.ir.codecs import Ints
from trivium.ir.core import Region
from trivium.ir.declare import EXPRESSED, PURE, RECURSIVE_EFFECTS, Op, Operand, Operands, Result, Results
from trivium.ir.errors import fail
from trivium.ir.ops.common import (
    expect_compatible,
    expect_element,
    expect_same_baseline,
    expect_shape,
    expect_tensor,
    expect_within,
)
from trivium.ir.ops.dot_general import DotDimensionNumbers, DotGeneral
from trivium.ir.ops.elementwise import Binary
from trivium.ir.ops.products import check_precision
from trivium.ir.ops.regions import check_region
from trivium.ir.types import TensorType, dimensions_compatible, is_integer, is_quantized, shapes_compatible, type_of

__all__ = ["ChloConstant", "ChloPrecision", "ConstantLike", "Mulhi", "RaggedDot", "RaggedDotDimensionNumbers", "Scan"]


class ChloConstant(Op, name="chlo.constant", traits={PURE}):
    """The elements of `value`, as written in older files."""

    value: DenseElements
    result: Result

    def infer(value):
        return value.type

    def check(value, result):
        expect_compatible("C1", value=value.type, result=result)

    def evaluate(value):
        return value.array


class ConstantLike(Op, name="chlo.constant_like", traits={PURE}):
    """A tensor of the operand's shape, all of whose elements are `value`."""

    operand: Operand
    value: Attribute
    result: Result

    def infer(operand, value):
        expect_tensor("I1", "operand", operand)
        if not isinstance(value, Float | Integer):
            fail("I2", f"value has {value}, expected a number")
        return operand.with_element(value.type)

    def check(operand, value, result):
        expect_compatible("C1", expected=ConstantLike.infer(operand, value), result=result)

    def evaluate(operand, value, result):
        return np.broadcast_to(np.asarray(value.value).astype(result.dtype), operand.shape)


class Mulhi(Binary, name="chlo.mulhi"):
    """The upper half of the bits of a product of integers."""

    def check(lhs, rhs, result):
        expect_element("I1", "lhs", lhs, is_integer)
        Binary.check(lhs, rhs, result)

    def evaluate(op, lhs, rhs):
        width = op.result.type.element_type.width
        product = lhs.astype(object) * rhs.astype(object)
        return np.asarray(product >> width, dtype=object).astype(lhs.dtype)


# Recurrences


class Scan(Op, name="chlo.scan", traits={RECURSIVE_EFFECTS}):
    """Runs `body` on each slice of `inputs` along `dimension` in turn, and on carries that start as `inits`. The body
    returns the slices of `outputs`, and the next carries."""

    STATES_GROUPS = True

    inputs: Operands
    inits: Operands
    dimension: int
    is_reverse: bool = False
    is_associative: bool | None = None
    scan_dim_size: int | None = None
    body: Region
    outputs: Results
    carries: Results

    def check(inputs, inits, dimension, scan_dim_size, body, outputs, carries):
        wholes = {f"inputs[{index}]": kind for index, kind in enumerate(inputs)}
        wholes |= {f"outputs[{index}]": kind for index, kind in enumerate(outputs)}
        length = scan_dim_size
        if not inputs and scan_dim_size is None:
            fail("C1", "has neither inputs nor scan_dim_size, expected either, for the number of steps")
        for name, kind in wholes.items():
            expect_tensor("I1", name, kind)
            expect_within("C2", "dimension", (dimension,), kind.rank)
            if not dimensions_compatible(length, kind.shape[dimension]):
                fail("C3", f"{name} has type {kind}, expected extent {length} along the scanned dimension")
            length = kind.shape[dimension] if length is None else length
        taken, given = [_slice_type(kind, dimension) for kind in inputs], [_slice_type(k, dimension) for k in outputs]
        check_region("C4", "body", body, [*taken, *inits], [*given, *inits])
        for index, (init, carry) in enumerate(zip(inits, carries, strict=False)):
            expect_compatible("C5", **{f"inits[{index}]": init, f"carries[{index}]": carry})
        if len(inits) != len(carries):
            fail("C5", f"has {len(carries)} carries, expected {len(inits)}, one for each of inits")

    def evaluate(inputs, inits, dimension, is_reverse, scan_dim_size, body, outputs):
        length = inputs[0].shape[dimension] if inputs else scan_dim_size
        carries, slices = tuple(inits), []
        for step in reversed(range(length)) if is_reverse else range(length):
            returned = body(*(np.take(array, step, dimension) for array in inputs), *carries)
            slices.append(returned[: len(outputs)])
            carries = tuple(returned[len(outputs) :])
        if not slices:
            return (*(np.empty(kind.static_shape, kind.dtype) for kind in outputs), *carries)
        lists = zip(*(slices[::-1] if is_reverse else slices), strict=True)
        return (*(np.stack(arrays, dimension) for arrays in lists), *carries)


def _slice_type(kind: TensorType, dimension: int) -> TensorType:
    return kind.with_shape((*kind.shape[:dimension], *kind.shape[dimension + 1 :]))


# Grouped products


@enumeration("chlo.precision")
class ChloPrecision(Enumeration):
    """How precise the products of an operand should be."""

    DEFAULT = "DEFAULT"
    HIGH = "HIGH"
    HIGHEST = "HIGHEST"


@dataclass(frozen=True)
class RaggedDotDimensionNumbers(Struct, mnemonic="chlo.ragged_dot"):
    """Which dimensions are batched and contracted, which dimension of `lhs` is divided into groups, and which dimension
    of `rhs` has one entry for each group."""

    lhs_batching_dimensions: Ints = ()
    rhs_batching_dimensions: Ints = ()
    lhs_contracting_dimensions: Ints = ()
    rhs_contracting_dimensions: Ints = ()
    lhs_ragged_dimensions: Ints = ()
    rhs_group_dimensions: Ints = ()

    @property
    def ragged(self) -> int:
        """The dimension of `lhs` that is divided."""
        return self.lhs_ragged_dimensions[0]

    def lhs_free(self, rank: int) -> list[int]:
        """Returns the dimensions of `lhs` that are neither batched nor contracted."""
        taken = (*self.lhs_batching_dimensions, *self.lhs_contracting_dimensions)
        return [axis for axis in range(rank) if axis not in taken]

    def outer(self, rank: int) -> list[int]:
        """Returns the dimensions of `lhs` for each index of which the groups may have different sizes."""
        batching, contracting = self.lhs_batching_dimensions, self.lhs_contracting_dimensions
        if self.ragged in batching:
            return list(batching[: batching.index(self.ragged)])
        inner = list(contracting) if self.ragged in contracting else self.lhs_free(rank)
        return [*batching, *inner[: inner.index(self.ragged)]]

    def for_one_group(self) -> DotDimensionNumbers:
        """Returns the dimension numbers of the product of one group, whose `rhs` has no group dimension."""
        lost = self.rhs_group_dimensions[0] if self.rhs_group_dimensions else None
        batching, contracting = (
            tuple(axis - (lost is not None and axis > lost) for axis in axes)
            for axes in (self.rhs_batching_dimensions, self.rhs_contracting_dimensions)
        )
        return DotDimensionNumbers(self.lhs_batching_dimensions, batching, self.lhs_contracting_dimensions, contracting)


class RaggedDot(Op, name="chlo.ragged_dot", traits={PURE, EXPRESSED}):
    """`dot_general` in groups: `group_sizes` divides one dimension of `lhs`. If it is a dimension of rows, each group
    has its own matrix of `rhs`. If it is contracted, each group has its own product, along a new first dimension. If it
    is batched, the results outside of all groups are zero."""

    lhs: Operand
    rhs: Operand
    group_sizes: Operand
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers
    precision_config: tuple[ChloPrecision, ...] | None = None
    result: Result

    def adds_rows(self) -> bool:
        """Whether, all extents being known, it adds up segments of the rows of `rhs`, each times the only number that
        `lhs` has for the row."""
        numbers, kinds = self.ragged_dot_dimension_numbers, (*self.operand_types, *self.result_types)
        if not all(kind.is_static for kind in kinds) or any(is_quantized(kind.element_type) for kind in kinds):
            return False
        added = numbers.lhs_contracting_dimensions == numbers.lhs_ragged_dimensions
        one = self.lhs.type.shape[numbers.ragged] == self.lhs.type.size
        along = numbers.rhs_contracting_dimensions == (0,) and not numbers.lhs_batching_dimensions
        return added and one and along and self.group_sizes.type.rank == 1

    def infer(lhs, rhs, group_sizes, ragged_dot_dimension_numbers):
        numbers = ragged_dot_dimension_numbers
        _check_ragged(lhs, rhs, group_sizes, numbers)
        groups = numbers.rhs_group_dimensions
        one = rhs.with_shape([extent for axis, extent in enumerate(rhs.shape) if axis not in groups])
        product = DotGeneral.infer(lhs, one, numbers.for_one_group())
        contracted = numbers.ragged in numbers.lhs_contracting_dimensions
        return product.with_shape((group_sizes.shape[-1], *product.shape)) if contracted else product

    def check(lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision_config, result):
        expected = RaggedDot.infer(lhs, rhs, group_sizes, ragged_dot_dimension_numbers)
        _check_extents(lhs, rhs, group_sizes, ragged_dot_dimension_numbers)
        expect_same_baseline("C5", lhs=lhs, rhs=rhs)
        check_precision("C6", precision_config)
        expect_shape("C7", "result", result, expected.shape)

    def evaluate(lhs, rhs, group_sizes, ragged_dot_dimension_numbers, result):
        numbers = ragged_dot_dimension_numbers
        one = numbers.for_one_group()
        masks = _group_masks(lhs, group_sizes, numbers)
        if numbers.ragged in numbers.lhs_contracting_dimensions:
            parts = _parts(lhs, rhs, masks, numbers, group_sizes.ndim)
            return np.stack([DotGeneral.evaluate(*part, one, None, result) for part in parts])
        free = numbers.lhs_free(lhs.ndim)
        order = (*numbers.lhs_batching_dimensions, *free, *numbers.lhs_contracting_dimensions)
        total = np.zeros((), result.dtype)
        for group, mask in enumerate(masks):
            matrix = np.take(rhs, group, numbers.rhs_group_dimensions[0]) if numbers.rhs_group_dimensions else rhs
            product = DotGeneral.evaluate(lhs, matrix, one, None, result)
            rows = mask.transpose(order)
            rows = rows.reshape(rows.shape[: len(order) - len(one.lhs_contracting_dimensions)])
            total = np.where(rows.reshape(*rows.shape, *(1,) * (product.ndim - rows.ndim)), product, total)
        if masks:
            return total
        kinds = map(type_of, (lhs, rhs, group_sizes))
        return np.broadcast_to(total, RaggedDot.infer(*kinds, numbers).shape)


def _parts(
    lhs: np.ndarray, rhs: np.ndarray, masks: list[np.ndarray], numbers: RaggedDotDimensionNumbers, rank: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the operands of the product of each group, of which the masks tell the elements: only its own rows, or, if
    groups have several sizes, zeros for the others."""
    along = dict(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    for mask in masks:
        if rank == 1:
            own = mask.ravel()
            yield lhs.compress(own, numbers.ragged), rhs.compress(own, along[numbers.ragged])
        else:
            yield np.where(mask, lhs, np.zeros((), lhs.dtype)), rhs


def _group_masks(lhs: np.ndarray, sizes: np.ndarray, numbers: RaggedDotDimensionNumbers) -> list[np.ndarray]:
    """Returns, for each group, a mask of the elements of `lhs` in it; dimensions without influence have extent 1."""
    axes = [*(numbers.outer(lhs.ndim) if sizes.ndim > 1 else ()), numbers.ragged]
    ends = np.cumsum(sizes, -1, dtype=np.int64)
    places = np.arange(lhs.shape[numbers.ragged])
    shape = [lhs.shape[axis] if axis in axes else 1 for axis in range(lhs.ndim)]
    masks = []
    for group in range(sizes.shape[-1]):
        end = ends[..., group, None]
        inside = (places < end) & (places >= end - sizes[..., group, None])
        masks.append(inside.transpose(np.argsort(axes)).reshape(shape))
    return masks


def _check_ragged(lhs: TensorType, rhs: TensorType, sizes: TensorType, numbers: RaggedDotDimensionNumbers) -> None:
    expect_tensor("I1", "lhs", lhs, per_axis=True)
    expect_tensor("I2", "rhs", rhs, per_axis=True)
    expect_element("I3", "group_sizes", sizes, is_integer)
    if len(numbers.lhs_ragged_dimensions) != 1:
        fail("C1", f"lhs_ragged_dimensions has {list(numbers.lhs_ragged_dimensions)}, expected one")
    expect_within("C2", "lhs_ragged_dimensions", numbers.lhs_ragged_dimensions, lhs.rank)
    expect_within("C2", "rhs_group_dimensions", numbers.rhs_group_dimensions, rhs.rank)
    rows = numbers.ragged in numbers.lhs_free(lhs.rank)
    if len(numbers.rhs_group_dimensions) != rows:
        fail("C3", f"rhs_group_dimensions has {list(numbers.rhs_group_dimensions)}, expected {int(rows)} of them")
    if sizes.rank not in (1, 1 + len(numbers.outer(lhs.rank))):
        fail("C4", f"group_sizes has type {sizes}, expected rank 1 or {1 + len(numbers.outer(lhs.rank))}")
    if rows and not dimensions_compatible(rhs.shape[numbers.rhs_group_dimensions[0]], sizes.shape[-1]):
        fail("C4", f"group_sizes has type {sizes}, rhs has {rhs}; expected the same number of groups")


def _check_extents(lhs: TensorType, rhs: TensorType, sizes: TensorType, numbers: RaggedDotDimensionNumbers) -> None:
    outer = tuple(lhs.shape[axis] for axis in numbers.outer(lhs.rank))
    if sizes.rank > 1 and not shapes_compatible(sizes.shape[:-1], outer):
        fail("C4", f"group_sizes has type {sizes}, expected the extents {list(outer)} of lhs {lhs} first")
    for label, kind in (("C8", "batching"), ("C9", "contracting")):
        axes = (getattr(numbers, f"{side}_{kind}_dimensions") for side in ("lhs", "rhs"))
        for left, right in zip(*axes, strict=False):
            if not dimensions_compatible(lhs.shape[left], rhs.shape[right]):
                fail(label, f"{kind} dimension {left} of lhs {lhs} differs in extent from {right} of rhs {rhs}")
