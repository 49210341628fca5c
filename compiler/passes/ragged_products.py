"""Products of groups of rows with a matrix each, as in mixtures of experts: loops over the groups, and over blocks of
the rows of each group. Written out, every group would be multiplied with every matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeGuard

from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.passes.tile import number
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder, Rewriter, region
from trivium.ir.core import Operation, Value
from trivium.ir.func import Module
from trivium.ir.ops import (
    Add,
    And,
    BroadcastInDim,
    Compare,
    ComparisonDirection,
    Constant,
    Convert,
    DotDimensionNumbers,
    DotGeneral,
    DynamicSlice,
    DynamicUpdateSlice,
    If,
    Iota,
    Maximum,
    Minimum,
    Precision,
    RaggedDot,
    Reshape,
    Select,
    Transpose,
    While,
)
from trivium.ir.types import I64, ElementType, TensorType, accumulation_type, is_quantized, tensor

FEWEST = 4
"""The number of groups from which on loops take less time than all products of rows and matrices."""
FEW_ROWS = 8
"""The number of rows that are multiplied at once: their sums are in registers while the matrix is read where it is."""
NARROW_ROWS = 16, 64
"""The same where elements have less than 32 bits: then the matrix is packed, for as many rows as a group usually has,
within these limits."""
SUMMED_ROWS = 8, 128
"""The number of rows whose products are added up at once, usually twice those of a group: most groups are one block."""


@dataclass(frozen=True)
class RaggedProducts(Pass):
    """Afterwards, no product of many groups whose sizes are known at run time is left, if it has no batches. The device
    has a number of vector `registers`."""

    NAME: ClassVar[str] = "ragged-products"

    registers: int

    def run(self, module: Module) -> bool:
        found = [op for block in blocks(module) for op in block if _is_plain(op)]
        for op in found:
            rewriter = Rewriter(op)
            rewriter.replace(_sums(rewriter, op) if _sums_up(op) else _rows(rewriter, op, self.registers))
        return bool(found)


def _is_plain(op: Operation) -> TypeGuard[RaggedDot]:
    """Whether rows of a matrix are in groups, which are multiplied with a matrix each, or summed up."""
    if not isinstance(op, RaggedDot) or op.adds_rows():
        return False
    numbers, kinds = op.ragged_dot_dimension_numbers, (op.lhs.type, op.rhs.type, op.group_sizes.type)
    if not all(kind.is_static for kind in kinds) or any(is_quantized(kind.element_type) for kind in kinds):
        return False
    if op.lhs.type.rank != 2 or op.group_sizes.type.rank != 1 or numbers.lhs_ragged_dimensions != (0,):
        return False
    if numbers.lhs_batching_dimensions or op.result.type.size == 0 or op.lhs.type.size == 0:
        return False
    if op.group_sizes.type.size < FEWEST:
        return False
    if _sums_up(op):
        return numbers.rhs_contracting_dimensions == (0,) and op.rhs.type.rank == 2
    return numbers.rhs_group_dimensions == (0,) and op.rhs.type.rank == 3


def _sums_up(op: RaggedDot) -> bool:
    """Whether the rows are contracted."""
    return op.ragged_dot_dimension_numbers.lhs_contracting_dimensions == (0,)


def _rows(b: Rewriter, op: RaggedDot, registers: int) -> Value:
    """Returns the products of the rows with the matrix of their group; rows outside of all groups are zeros."""
    kind, (count, *_) = op.result.type, op.lhs.type.static_shape
    narrow = op.lhs.type.dtype.itemsize < 4
    size = _within(*NARROW_ROWS, _rows_of_group(op)) if narrow else min(FEW_ROWS, registers // 2 - 2)
    size = min(count, size)
    matrices, numbers = _as_stored(op)
    shape = matrices.type.static_shape

    def group(b: Builder, place: Value, first: Value, last: Value, result: Value) -> Value:
        matrix = b.add(DynamicSlice(matrices, [place, number(b, 0), number(b, 0)], [1, *shape[1:]]))
        matrix = b.add(Reshape(matrix, result=matrices.type.with_shape(shape[1:])))

        def block(b: Builder, begin: Value, inside: Callable[[Builder, int], Value], result: Value) -> Value:
            product = _dot(b, op, _block(b, op.lhs, begin, size), matrix, numbers, kind.element_type)
            old = _block(b, result, begin, size)
            new = b.add(Select(inside(b, kind.static_shape[1]), product, old))
            return b.add(DynamicUpdateSlice(result, new, [begin, number(b, 0)]))

        return _over_blocks(b, count, size, first, last, result, block)

    return _over_groups(b, op, b.add(Constant(DenseElements.splat(0, kind))), group)


def _sums(b: Rewriter, op: RaggedDot) -> Value:
    """Returns the sums of the products of the rows in each group. Sums of blocks are added up in f32 at least."""
    kind, (count, *_) = op.result.type, op.lhs.type.static_shape
    size = min(count, _within(*SUMMED_ROWS, 2 * _rows_of_group(op)))
    wide = accumulation_type(kind.element_type)
    one = kind.with_shape(kind.static_shape[1:]).with_element(wide)
    numbers = op.ragged_dot_dimension_numbers.for_one_group()

    def group(b: Builder, place: Value, first: Value, last: Value, result: Value) -> Value:
        def block(b: Builder, begin: Value, inside: Callable[[Builder, int], Value], total: Value) -> Value:
            def own(value: Value) -> Value:
                part = _block(b, value, begin, size)
                zero = b.add(Constant(DenseElements.splat(0, part.type)))
                return b.add(Select(inside(b, part.type.static_shape[1]), part, zero))

            return b.add(Add(total, _dot(b, op, own(op.lhs), own(op.rhs), numbers, wide)))

        zeros = b.add(Constant(DenseElements.splat(0, one)))
        total = _over_blocks(b, count, size, first, last, zeros, block)
        total = total if wide is kind.element_type else b.add(Convert(total, result=kind.with_shape(one.static_shape)))
        row = b.add(Reshape(total, result=kind.with_shape((1, *one.static_shape))))
        return b.add(DynamicUpdateSlice(result, row, [place, *(number(b, 0) for _ in one.static_shape)]))

    return _over_groups(b, op, b.add(Constant(DenseElements.splat(0, kind))), group)


def _over_groups(b: Builder, op: RaggedDot, init: Value, group: Callable[..., Value]) -> Value:
    """Carries a value over all groups; `group(b, place, first, last, value)` changes it for one that is not empty."""
    sizes = b.add(Convert(op.group_sizes, result=op.group_sizes.type.with_element(I64)))
    groups, rows = sizes.type.static_shape[0], op.lhs.type.static_shape[0]

    def body(b: Builder, place: Value, first: Value, value: Value) -> list[Value]:
        size = b.add(Reshape(b.add(DynamicSlice(sizes, [place], [1])), result=tensor(of=I64)))
        last = b.add(Add(first, size))
        begin, end = b.add(Maximum(first, number(b, 0))), b.add(Minimum(last, number(b, rows)))
        inhabited = region([], lambda b: group(b, place, begin, end, value))
        (changed,) = b.add(If(_less(b, begin, end), inhabited, region([], lambda _: value)))
        return [b.add(Add(place, number(b, 1))), last, changed]

    start = [number(b, 0), number(b, 0), init]
    return _while(b, start, lambda b, place, *_: _less(b, place, number(b, groups)), body)[2]


def _rows_of_group(op: RaggedDot) -> int:
    """Returns the number of rows of a group if all have as many."""
    return -(-op.lhs.type.static_shape[0] // op.group_sizes.type.static_shape[0])


def _within(least: int, most: int, number: int) -> int:
    return max(least, min(most, number))


def _over_blocks(
    b: Builder, count: int, size: int, first: Value, last: Value, init: Value, block: Callable[..., Value]
) -> Value:
    """Carries a value over the rows from `first` to `last`, of `count`, in blocks of `size`. `block(b, begin, inside,
    value)` changes it; `inside` tells which of the rows from `begin` on are meant."""

    def body(b: Builder, at: Value, value: Value) -> list[Value]:
        # The last block begins early enough to end with the rows.
        begin = b.add(Minimum(at, number(b, count - size)))

        def inside(b: Builder, columns: int) -> Value:
            kind = tensor(size, of=I64)
            places = b.add(Add(b.add(Iota(iota_dimension=0, result=kind)), _spread(b, begin, kind)))
            own = b.add(And(_at_least(b, places, _spread(b, at, kind)), _less(b, places, _spread(b, last, kind))))
            return b.add(BroadcastInDim(own, (0,), result=own.type.with_shape((size, columns))))

        following = b.add(Minimum(b.add(Add(at, number(b, size))), last))
        return [following, block(b, begin, inside, value)]

    return _while(b, [first, init], lambda b, at, _: _less(b, at, last), body)[1]


def _block(b: Builder, value: Value, begin: Value, size: int) -> Value:
    return b.add(DynamicSlice(value, [begin, number(b, 0)], [size, value.type.static_shape[1]]))


def _as_stored(op: RaggedDot) -> tuple[Value, DotDimensionNumbers]:
    """Returns the matrices as they are before they are all transposed, and the dimension numbers of one product."""
    numbers, made = op.ragged_dot_dimension_numbers.for_one_group(), op.rhs.defining_op
    if not isinstance(made, Transpose) or tuple(made.permutation) != (0, 2, 1):
        return op.rhs, numbers
    (contracted,) = numbers.rhs_contracting_dimensions
    return made.operand, replace(numbers, rhs_contracting_dimensions=(1 - contracted,))


def _dot(
    b: Builder, op: RaggedDot, lhs: Value, rhs: Value, numbers: DotDimensionNumbers, element: ElementType
) -> Value:
    given = op.precision_config
    precision = None if given is None else [Precision(entry.value) for entry in given]
    kind = DotGeneral.infer(lhs.type, rhs.type, numbers).with_element(element)
    return b.add(DotGeneral(lhs, rhs, numbers, precision_config=precision, result=kind))


def _while(
    b: Builder, inits: Sequence[Value], goes_on: Callable[..., Value], body: Callable[..., object]
) -> list[Value]:
    types = [value.type for value in inits]
    return list(b.add(While(list(inits), region(types, goes_on), region(types, body))))


def _spread(b: Builder, number: Value, kind: TensorType) -> Value:
    return b.add(BroadcastInDim(number, (), result=kind))


def _less(b: Builder, one: Value, other: Value) -> Value:
    return b.add(Compare(one, other, comparison_direction=ComparisonDirection.LT))


def _at_least(b: Builder, one: Value, other: Value) -> Value:
    return b.add(Compare(one, other, comparison_direction=ComparisonDirection.GE))
