"""The vocabulary in which rules are written: a builder whose methods are the few combinations of ops that every
framework needs, such as a constant of a given type, NumPy's broadcasting, or a reduction with its region. It does not
depend on any framework."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Self, TypeVar, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder
from trivium.ir.core import Block, Region, Value
from trivium.ir.errors import Error
from trivium.ir.types import (
    F64,
    I1,
    I64,
    ElementType,
    FloatType,
    IntegerType,
    TensorType,
    Type,
    accumulation_type,
    is_boolean,
    is_complex,
    is_float,
)

Number = bool | int | float | complex | np.generic | np.ndarray
"""A number; an array of no dimensions counts as one."""

Padding = Sequence[tuple[Any, Any]]
"""The number of elements before and after, one entry per dimension: an `int`, or an extent that the program computes,
for emitters that know of these."""

Rule = TypeVar("Rule", bound=Callable[..., Any])


MAX_RAMP = 1 << 20
"""The maximal number of elements of a ramp that is a constant of the program."""

MAX_COMPUTED = 1 << 26
"""The maximal number of elements of an array that a rule may compute from a few numbers in the file."""


def require_computable(count: int, what: str) -> None:
    """Rejects an array that is too large to be computed during import."""
    if count > MAX_COMPUTED:
        raise Error(f"{what} has {count} elements that are computed while importing, expected at most {MAX_COMPUTED}")


class BroadcastError(Error, ValueError):
    """Shapes that cannot be broadcast to one: a `ValueError` as well, as NumPy's own, of which an importer may ask its
    framework for the reason."""


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape to which shapes are broadcast by NumPy's rule."""
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        listed = ", ".join(str(list(shape)) for shape in shapes)
        raise BroadcastError(f"shapes {listed} cannot be broadcast to one shape") from None


class Emitter(Builder):
    """A builder with the importers' vocabulary. Shapes are static."""

    # Constants

    def elements(self, values: npt.ArrayLike, element_type: ElementType | None = None) -> Value:
        """Returns a constant of an array, which is viewed and not copied."""
        array = np.asarray(values) if element_type is None else np.asarray(values, dtype=element_type.dtype)
        return self.add(ops.Constant(DenseElements(array)))

    def full(self, shape: Sequence[int], value: Number, element_type: ElementType) -> Value:
        """Returns a tensor whose elements are all `value`."""
        return self.add(ops.Constant(DenseElements.splat(value, TensorType(tuple(shape), element_type))))

    def scalar(self, value: Number, element_type: ElementType) -> Value:
        """Returns a 0-d constant."""
        return self.full((), value, element_type)

    def full_like(self, x: Value, value: Number) -> Value:
        """Returns a constant of the shape and element type of `x`."""
        return self.full(x.type.static_shape, value, x.type.element_type)

    def iota(self, shape: Sequence[int], dimension: int, element_type: ElementType = I64) -> Value:
        """Returns a tensor in which each element is its index along `dimension`."""
        return self.add(ops.Iota(iota_dimension=dimension, result=TensorType(tuple(shape), element_type)))

    def iota_like(self, x: Value, dimension: int) -> Value:
        """Returns a tensor of the shape of `x` in which each element is its index along `dimension`."""
        return self.iota(x.type.static_shape, dimension)

    def ramp(self, start: Number, step: Number, count: int, element_type: ElementType) -> Value:
        """Returns `start`, `start + step`, ...: `count` elements, computed in 64 bits, integers as integers. The result
        is a constant, or is computed when the program runs if it would be large."""
        wide = F64 if is_float(element_type) else I64
        if count <= MAX_RAMP:
            with np.errstate(over="ignore"):
                numbers = wide.dtype.type(start) + wide.dtype.type(step) * np.arange(count, dtype=wide.dtype)
            return self.elements(numbers.astype(element_type.dtype))
        steps = self.times(self.iota((count,), 0, wide), self.scalar(step, wide))
        return self.convert(self.plus(self.scalar(start, wide), steps), element_type)

    # Shape and type

    def convert(self, x: Value, element_type: ElementType) -> Value:
        """Converts `x` to another element type; returns `x` itself if it already has it."""
        if x.type.element_type is element_type:
            return x
        if is_complex(x.type.element_type) and not is_complex(element_type):
            x = self.add(ops.Real(x))
        return self.add(ops.Convert(x, result=x.type.with_element(element_type)))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Reshapes `x` to a shape with the same number of elements; returns `x` itself if it already has it."""
        shape = tuple(int(extent) for extent in shape)
        return x if x.type.shape == shape else self.add(ops.Reshape(x, result=x.type.with_shape(shape)))

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        """Transposes: dimension `i` of the result is `permutation[i]` of `x`; returns `x` itself if nothing moves."""
        permutation = tuple(permutation)
        return x if permutation == tuple(range(x.type.rank)) else self.add(ops.Transpose(x, permutation=permutation))

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """Broadcasts `x` to `shape` by NumPy's rule: aligned at the last dimension; extents of 1 are repeated."""
        rank = len(tuple(shape))
        return self.broadcast_in_dim(x, shape, range(rank - x.type.rank, rank))

    def broadcast_in_dim(self, x: Value, shape: Sequence[int], dimensions: Sequence[int]) -> Value:
        """Broadcasts `x` to `shape`; its dimension `i` becomes `dimensions[i]`. Returns `x` itself if it already has
        that shape."""
        shape, dimensions = tuple(shape), tuple(dimensions)
        if x.type.shape == shape and dimensions == tuple(range(len(shape))):
            return x
        return self.add(ops.BroadcastInDim(x, broadcast_dimensions=dimensions, result=x.type.with_shape(shape)))

    def unsqueeze(self, x: Value, dimensions: Sequence[int]) -> Value:
        """Inserts extents of 1, at positions `dimensions` of the result."""
        shape = list(x.type.shape)
        for dimension in sorted(dimensions):
            shape.insert(dimension, 1)
        return self.reshape(x, shape)

    def squeeze(self, x: Value, dimensions: Sequence[int]) -> Value:
        """Removes dimensions, which have extent 1."""
        return self.reshape(x, [extent for i, extent in enumerate(x.type.shape) if i not in dimensions])

    def slice(self, x: Value, dimension: int, start: int, limit: int, stride: int = 1) -> Value:
        """Returns `x[..., start:limit:stride, ...]` along one dimension; `x` itself if that is all of it."""
        if (start, limit, stride) == (0, x.type.shape[dimension], 1):
            return x
        starts, limits, strides = [0] * x.type.rank, list(x.type.shape), [1] * x.type.rank
        starts[dimension], limits[dimension], strides[dimension] = start, limit, stride
        return self.add(ops.Slice(x, start_indices=starts, limit_indices=limits, strides=strides))

    def pad(
        self,
        x: Value,
        low: Sequence[int],
        high: Sequence[int],
        value: Value | Number = 0,
        interior: Sequence[int] | None = None,
    ) -> Value:
        """Returns `x` with `value` (a number or a 0-d value) around it and, for `interior`, between its elements.
        Negative edges crop."""
        between = [0] * x.type.rank if interior is None else interior
        if not any(low) and not any(high) and not any(between):
            return x
        fill = value if isinstance(value, Value) else self.scalar(value, x.type.element_type)
        return self.add(ops.Pad(x, fill, edge_padding_low=low, edge_padding_high=high, interior_padding=between))

    def with_known_padding(self, x: Value, padding: Padding, value: Number) -> tuple[Value, Padding]:
        """Returns `x` and its padding by elements that are `value`, for an op with windows, which takes numbers:
        padding that is computed becomes part of the tensor."""
        return x, tuple(padding)

    def concatenate(self, values: Sequence[Value], dimension: int) -> Value:
        """Concatenates `values`; returns a single one itself."""
        return values[0] if len(values) == 1 else self.add(ops.Concatenate(list(values), dimension=dimension))

    # Elementwise

    def binary(self, op: type, lhs: Value, rhs: Value) -> Value:
        """Applies an elementwise op to two values of one element type, broadcast by NumPy's rule."""
        shape = broadcast_shape(lhs.type.shape, rhs.type.shape)
        return self.add(op(self.broadcast(lhs, shape), self.broadcast(rhs, shape)))

    def plus(self, lhs: Value, rhs: Value) -> Value:
        return self.binary(ops.Add, lhs, rhs)

    def minus(self, lhs: Value, rhs: Value) -> Value:
        return self.binary(ops.Subtract, lhs, rhs)

    def times(self, lhs: Value, rhs: Value) -> Value:
        return self.binary(ops.Multiply, lhs, rhs)

    def over(self, lhs: Value, rhs: Value) -> Value:
        return self.binary(ops.Divide, lhs, rhs)

    def scaled(self, x: Value, factor: float) -> Value:
        """Returns `x` times a number."""
        return x if factor == 1 else self.times(x, self.scalar(factor, x.type.element_type))

    def compare(self, direction: str, lhs: Value, rhs: Value) -> Value:
        """`lhs` `direction` (`EQ NE GE GT LE LT`) `rhs`, broadcast by NumPy's rule."""
        shape = broadcast_shape(lhs.type.shape, rhs.type.shape)
        lhs, rhs = self.broadcast(lhs, shape), self.broadcast(rhs, shape)
        return self.add(ops.Compare(lhs, rhs, comparison_direction=ops.ComparisonDirection(direction)))

    def select(self, pred: Value, on_true: Value, on_false: Value) -> Value:
        """Returns `on_true` where `pred` is true, otherwise `on_false`; broadcast by NumPy's rule."""
        shape = broadcast_shape(pred.type.shape, on_true.type.shape, on_false.type.shape)
        return self.add(ops.Select(*(self.broadcast(x, shape) for x in (pred, on_true, on_false))))

    def sign(self, x: Value) -> Value:
        """Returns -1, 0 or 1 by the sign of each element, for any type of numbers; 0 for -0 and, for floats, NaN for
        NaN."""
        kind = x.type.element_type
        if isinstance(kind, IntegerType) and not kind.is_signed:
            return self.convert(self.compare("NE", x, self.full_like(x, 0)), kind)
        found = self.add(ops.Sign(x))
        if not is_float(kind):
            return found
        zero = self.full_like(x, 0)
        return self.select(self.compare("EQ", x, zero), zero, found)

    # Regions, reductions, windows

    def within(self, block: Block) -> Self:
        """Returns an emitter like this one, at the end of another block."""
        return type(self)(block, location=self.location)

    def region(self, argument_types: Sequence[Type], body: Callable[..., Value | Sequence[Value]]) -> Region:
        """Returns a region of one block: `body(emit, *arguments)` returns the value, or the values, that it yields."""
        block = Block(argument_types)
        emit = self.within(block)
        returned = body(emit, *block.arguments)
        emit.add(ops.Return([returned] if isinstance(returned, Value) else list(returned)))
        return Region([block])

    def combiner(self, op: type, element_type: ElementType) -> Region:
        """Returns the region `(x, y) -> op(x, y)` of two scalars."""
        kind = TensorType((), element_type)
        return self.region([kind, kind], lambda emit, x, y: emit.add(op(x, y)))

    def reduce(
        self, op: type, x: Value, dimensions: Sequence[int], keep: bool = False, init: Number | None = None
    ) -> Value:
        """Reduces `dimensions` with `op` (`ops.Add`, `Multiply`, `Maximum`, `Minimum`, `And`, `Or`) from its neutral
        element; with `keep` they remain, with extent 1."""
        kind = x.type.element_type
        start = self.scalar(neutral(op, kind) if init is None else init, kind)
        result = x
        if dimensions := tuple(sorted(dimensions)):
            result = self.add(ops.Reduce([x], [start], dimensions=dimensions, body=self.combiner(op, kind)))[0]
        return self.unsqueeze(result, dimensions) if keep else result

    def mean(self, x: Value, dimensions: Sequence[int], keep: bool = False) -> Value:
        """Returns the mean over `dimensions`, for floats."""
        count = math.prod(x.type.shape[dimension] for dimension in dimensions)
        total = self.reduce(ops.Add, x, dimensions, keep)
        return self.over(total, self.scalar(count, total.type.element_type))

    def arg_reduce(self, direction: str, x: Value, dimension: int) -> tuple[Value, Value]:
        """Returns the largest (`GT`) or smallest (`LT`) element along a dimension, and the index (i64) of its first
        occurrence. A NaN wins."""
        kind = x.type.element_type
        index = self.iota_like(x, dimension)
        types = [TensorType((), kind), TensorType((), I64)] * 2

        def body(emit: Emitter, best: Value, at: Value, new: Value, here: Value) -> tuple[Value, Value]:
            better = emit.compare(direction, best, new)
            if is_float(kind):
                better = emit.add(ops.Or(better, emit.compare("NE", best, best)))
            same = emit.add(ops.And(emit.compare("EQ", best, new), emit.compare("LT", at, here)))
            if is_float(kind):
                both = emit.add(ops.And(emit.compare("NE", best, best), emit.compare("NE", new, new)))
                fresh = emit.add(ops.Or(emit.add(ops.Not(both)), emit.compare("LT", at, here)))
                better = emit.add(ops.And(better, fresh))
            keep = emit.add(ops.Or(better, same))
            return emit.select(keep, best, new), emit.select(keep, at, here)

        start = neutral(ops.Maximum if direction == "GT" else ops.Minimum, kind)
        inits = [self.scalar(start, kind), self.scalar(np.iinfo(np.int64).max, I64)]
        values, indices = self.add(
            ops.Reduce([x, index], inits, dimensions=(dimension,), body=self.region(types, body))
        )
        return values, indices

    def reduce_window(
        self,
        op: type,
        x: Value,
        window: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Padding | None = None,
        dilations: Sequence[int] | None = None,
    ) -> Value:
        """Combines each window by `op`; one entry per dimension. Padding consists of `op`'s neutral element."""
        kind, rank = x.type.element_type, x.type.rank
        start = neutral(op, kind)
        x, padding = self.with_known_padding(x, padding or ((0, 0),) * rank, start)
        return self.add(
            ops.ReduceWindow(
                [x],
                [self.scalar(start, kind)],
                window_dimensions=tuple(window),
                window_strides=tuple(strides or (1,) * rank),
                base_dilations=(1,) * rank,
                window_dilations=tuple(dilations or (1,) * rank),
                padding=padding,
                body=self.combiner(op, kind),
            )
        )[0]

    def cumulative(self, op: type, x: Value, dimension: int, reverse: bool = False, exclusive: bool = False) -> Value:
        """Combines each element with all elements before it along a dimension (after it, if `reverse`): a window that
        ends, or starts, at each element. If `exclusive`, the element itself is not among them."""
        extent, rank = x.type.shape[dimension], x.type.rank
        if not extent:
            return x
        if exclusive:
            # What is combined up to each element, but the last, belongs to the next one.
            others = self.slice(x, dimension, int(reverse), extent - int(not reverse))
            combined = self.cumulative(op, others, dimension, reverse)
            edges = [0] * rank, [int(d == dimension) for d in range(rank)]
            low, high = edges if reverse else edges[::-1]
            return self.pad(combined, low, high, neutral(op, x.type.element_type))
        window, padding = [1] * rank, [(0, 0)] * rank
        window[dimension] = extent
        padding[dimension] = (0, extent - 1) if reverse else (extent - 1, 0)
        return self.reduce_window(op, x, window, padding=padding)

    def sort(
        self, keys: Sequence[Value], dimension: int, descending: bool = False, total: bool = False
    ) -> tuple[Value, ...]:
        """Sorts all of `keys` along a dimension by the first one, stably. A NaN is the largest, unless the order is
        `total`: then one with a sign is the smallest, and -0.0 comes before 0.0."""
        kind = keys[0].type.element_type
        types = [TensorType((), key.type.element_type) for key in keys for _ in range(2)]

        def before(emit: Emitter, *pairs: Value) -> Value:
            first, second = (pairs[1], pairs[0]) if descending else (pairs[0], pairs[1])
            if not is_float(kind):
                return emit.compare("LT", first, second)
            order = {"comparison_direction": ops.ComparisonDirection.LT, "compare_type": ops.ComparisonType.TOTALORDER}
            if not total:
                first, second = emit.sorted_as(first), emit.sorted_as(second)
            return emit.add(ops.Compare(first, second, **order))

        comparator = self.region(types, before)
        return self.add(ops.Sort(list(keys), dimension=dimension, is_stable=True, comparator=comparator))

    def sorted_as(self, x: Value) -> Value:
        """Returns what a float is sorted as: zeros of both signs are equal, and all NaN are the same one."""
        zero, nan = self.full_like(x, 0), self.full_like(x, float("nan"))
        return self.select(self.compare("NE", x, x), nan, self.select(self.compare("EQ", x, zero), zero, x))

    # Contraction and indexing

    def dot(
        self,
        lhs: Value,
        rhs: Value,
        contracting: tuple[Sequence[int], Sequence[int]],
        batching: tuple[Sequence[int], Sequence[int]] = ((), ()),
        element_type: ElementType | None = None,
    ) -> Value:
        """Returns the general dot product: batching dimensions first, then the remaining ones of `lhs` and of `rhs`."""
        numbers = ops.DotDimensionNumbers(
            lhs_batching_dimensions=tuple(batching[0]),
            rhs_batching_dimensions=tuple(batching[1]),
            lhs_contracting_dimensions=tuple(contracting[0]),
            rhs_contracting_dimensions=tuple(contracting[1]),
        )
        spent = ({*batching[0], *contracting[0]}, {*batching[1], *contracting[1]})
        batch = [lhs.type.shape[dimension] for dimension in batching[0]]
        rows, columns = (
            [extent for i, extent in enumerate(x.type.shape) if i not in used]
            for x, used in zip((lhs, rhs), spent, strict=True)
        )
        shape = (*batch, *rows, *columns)
        result = TensorType(shape, element_type or lhs.type.element_type)
        return self.add(ops.DotGeneral(lhs, rhs, dot_dimension_numbers=numbers, result=result))

    def matmul(self, lhs: Value, rhs: Value, element_type: ElementType | None = None) -> Value:
        """Returns NumPy's `matmul` of operands of rank 2 or more; leading dimensions are broadcast."""
        batch = broadcast_shape(lhs.type.shape[:-2], rhs.type.shape[:-2])
        lhs = self.broadcast(lhs, (*batch, *lhs.type.shape[-2:]))
        rhs = self.broadcast(rhs, (*batch, *rhs.type.shape[-2:]))
        count = len(batch)
        return self.dot(lhs, rhs, ([count + 1], [count]), (range(count), range(count)), element_type)

    def take(self, x: Value, indices: Value, dimension: int = 0) -> Value:
        """Returns slices of `x` along a dimension, at `indices` of any shape, which replaces that dimension. Indices
        beyond the end are clamped, as in `gather`. Where there is nothing to take, the result is zero."""
        count, batch = x.type.rank, indices.type.rank
        if 0 in indices.type.shape or x.type.shape[dimension] == 0:
            shape = (*x.type.shape[:dimension], *indices.type.shape, *x.type.shape[dimension + 1 :])
            return self.full(shape, 0, x.type.element_type)
        numbers = ops.GatherDimensionNumbers(
            offset_dims=(*range(dimension), *range(dimension + batch, count - 1 + batch)),
            collapsed_slice_dims=(dimension,),
            operand_batching_dims=(),
            start_indices_batching_dims=(),
            start_index_map=(dimension,),
            index_vector_dim=batch,
        )
        sizes = [1 if i == dimension else extent for i, extent in enumerate(x.type.shape)]
        return self.add(ops.Gather(x, indices, dimension_numbers=numbers, slice_sizes=sizes))


def neutral(op: type, kind: ElementType) -> float:
    """Returns the value `e` with `op(e, x) == x` for every `x` of an element type."""
    if op is ops.Add or (op is ops.Or and is_boolean(kind)):
        return 0
    if op is ops.Multiply or (op is ops.And and is_boolean(kind)):
        return 1
    if op in (ops.Maximum, ops.Minimum):
        return lowest(kind) if op is ops.Maximum else highest(kind)
    return {ops.Or: 0, ops.And: -1, ops.Xor: 0}[op]


def in_single(function: Rule) -> Rule:
    """Wraps a rule so that it computes in 32 bits if its operands are narrower floats, and rounds its result to the
    type of the first operand at the end, as the frameworks' own kernels do."""

    @wraps(function)
    def computed(ctx: Emitter, *operands: Any, **options: Any) -> Value:
        kind = operands[0].type.element_type
        wide = [ctx.convert(x, accumulation_type(x.type.element_type)) if isinstance(x, Value) else x for x in operands]
        return ctx.convert(function(ctx, *wide, **options), kind)

    return cast(Rule, computed)


def lowest(kind: ElementType) -> float:
    """Returns the smallest value of an element type; minus infinity if there is one."""
    if isinstance(kind, FloatType):
        return -np.inf if _has_infinity(kind) else float(ml_dtypes.finfo(kind.dtype).min)
    assert isinstance(kind, IntegerType), kind
    return False if kind is I1 else integer_range(kind)[0]


def highest(kind: ElementType) -> float:
    """Returns the largest value of an element type; infinity if there is one."""
    if isinstance(kind, FloatType):
        return np.inf if _has_infinity(kind) else float(ml_dtypes.finfo(kind.dtype).max)
    assert isinstance(kind, IntegerType), kind
    return True if kind is I1 else integer_range(kind)[1]


def _has_infinity(kind: FloatType) -> bool:
    """Whether a float type has infinities: some with 8 bits or fewer have NaN, or their largest number, instead."""
    return bool(np.isinf(np.array(np.inf).astype(kind.dtype)))


def integer_range(kind: IntegerType) -> tuple[int, int]:
    """Returns the smallest and the largest value of an integer type."""
    if kind.is_signed:
        return -(1 << (kind.width - 1)), (1 << (kind.width - 1)) - 1
    return 0, (1 << kind.width) - 1
