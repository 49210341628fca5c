"""What the rules write with: the values of the new program, the sizes of which it has one set at a time, masks of the
elements that exist, and the moves between the two ways in which space can lie in a dimension."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivium.compiler.bounded.axes import Axes, Axis, Extent, different, extents_of, is_fixed, simple
from trivium.compiler.ends import READ
from trivium.ir.attributes import DenseArray, DenseElements
from trivium.ir.builder import Builder
from trivium.ir.core import Block, BlockArgument, Operation, Value
from trivium.ir.declare import Op
from trivium.ir.errors import CompileError
from trivium.ir.ops import (
    Add,
    And,
    BroadcastInDim,
    Compare,
    ComparisonDirection,
    Constant,
    Convert,
    Divide,
    Gather,
    GatherDimensionNumbers,
    Iota,
    Maximum,
    Multiply,
    Pad,
    Remainder,
    Reshape,
    Select,
    Slice,
)
from trivium.ir.types import I1, I32, I64, ElementType, TensorType, tensor

Numbers = tuple[np.ndarray, ...]
"""An array for each combination of sizes; those that are the same bits are the same object."""


class Unbounded(CompileError):
    """A program cannot compute with several sizes at once, because of one of its ops; or it is not valid for some of
    the `combinations` of sizes, which are named by their numbers."""

    def __init__(self, message: str, combinations: Iterable[int] = ()):
        super().__init__(message)
        self.combinations = frozenset(combinations)


@dataclass(frozen=True)
class Bounded:
    """A value of the new program. Its dimensions have space for every combination of sizes; what is in the space that
    a combination leaves is arbitrary. `numbers` are its elements in each combination, if they follow from the sizes."""

    value: Value
    axes: Axes
    numbers: Numbers | None = None

    @property
    def is_fixed(self) -> bool:
        return all(axis.is_fixed for axis in self.axes)


class Writer:
    """A place in the new program, and what has been written there. `combinations` is how many combinations of sizes
    there are. `sizes` are the arguments of the program with the extents that masks and slices need."""

    def __init__(self, block: Block, combinations: int, outside: Writer | None = None):
        self.builder = Builder(block)
        self.combinations = combinations
        self.values: dict[Value, Bounded] = dict(outside.values) if outside else {}
        self.sizes: dict[Extent, BlockArgument] = outside.sizes if outside else {}
        self._main: Block = outside._main if outside else block
        self._masks: dict[Axis, Value] = dict(outside._masks) if outside else {}
        self.computed: dict[Hashable, Any] = outside.computed if outside else {}
        self._noted: dict[Hashable, Numbers] = outside._noted if outside else {}
        self._fixed: dict[int, Axis] = outside._fixed if outside else {}

    def inside(self, block: Block) -> Writer:
        """Returns a writer for a block inside of this one, which may use what has been written here."""
        return Writer(block, self.combinations, self)

    def add(self, op: Operation) -> Any:
        return self.builder.add(op)

    # Extents

    def fixed(self, *extents: int) -> Axes:
        """Returns dimensions that are the same in all combinations."""
        for extent in extents:
            if extent not in self._fixed:
                self._fixed[extent] = simple((extent,) * self.combinations)
        return tuple(map(self._fixed.__getitem__, extents))

    def noted(self, arrays: Sequence[np.ndarray]) -> Numbers:
        """Returns arrays as numbers: the same object if they were noted before."""
        seen: dict[tuple, np.ndarray] = {}
        shared = tuple(seen.setdefault((array.shape, array.tobytes()), array) for array in arrays)
        order = {id(array): place for place, array in enumerate(seen.values())}
        key = arrays[0].dtype, tuple(seen), tuple(order[id(array)] for array in shared)
        return self._noted.setdefault(key, shared)

    def number(self, number: int, kind: ElementType = I64) -> Value:
        return self.add(Constant(DenseElements(np.array(number, kind.dtype), tensor(of=kind))))

    def size(self, extent: Extent) -> Value:
        """Returns an extent as a 0-d value."""
        if is_fixed(extent):
            return self.number(extent[0])
        if extent not in self.sizes:
            self.sizes[extent] = self._main.add_argument(tensor(of=I64), "extent")
        return self.sizes[extent]

    def end(self, extent: Extent) -> int | None:
        """Returns the number of the program's argument with an extent; None if it is fixed."""
        size = self.size(extent) if not is_fixed(extent) else None
        return size.index if isinstance(size, BlockArgument) else None

    # Values

    def convert(self, x: Value, kind: ElementType) -> Value:
        return x if x.type.element_type is kind else self.add(Convert(x, result=x.type.with_element(kind)))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        return x if x.type.shape == tuple(shape) else self.add(Reshape(x, result=x.type.with_shape(tuple(shape))))

    def spread(self, x: Value, shape: Sequence[int], dimensions: Sequence[int] = ()) -> Value:
        """Repeats a value, by default a 0-d one."""
        return self.add(BroadcastInDim(x, tuple(dimensions), result=x.type.with_shape(tuple(shape))))

    def iota(self, extent: int, kind: ElementType = I64) -> Value:
        return self.add(Iota(0, result=TensorType((extent,), kind)))

    def with_number(self, op: Callable[[Value, Value], Op], x: Value, scalar: Value) -> Value:
        """Computes with each element of `x` and a 0-d value."""
        return self.add(op(x, self.spread(scalar, x.type.static_shape)))

    def resized(self, x: Value, dimension: int, bound: int) -> Value:
        """Returns `x` with more or less space behind a dimension: zeros, if it is more."""
        shape = list(x.type.static_shape)
        more, shape[dimension] = bound - shape[dimension], bound
        rank = len(shape)
        if more < 0:
            return self.add(Slice(x, (0,) * rank, tuple(shape), (1,) * rank))
        if not more:
            return x
        high = [more if d == dimension else 0 for d in range(rank)]
        zero = self.number(0, x.type.element_type)
        return self.add(Pad(x, zero, (0,) * rank, high, (0,) * rank))

    # Masks

    def masked(self, x: Bounded, dimensions: Iterable[int], fill: Value) -> Bounded:
        """Returns `x` with `fill`, a 0-d value, in the space along some of its dimensions."""
        open_ones = [d for d in dimensions if not x.axes[d].is_fixed]
        shape, value = x.value.type.static_shape, x.value
        if open_ones:
            masks = [self.spread(self.mask(x.axes[d]), shape, (d,)) for d in open_ones]
            exists = masks[0]
            for mask in masks[1:]:
                exists = self.add(And(exists, mask))
            value = self.add(Select(exists, value, self.spread(fill, shape)))
        return Bounded(value, x.axes)

    def mask(self, axis: Axis) -> Value:
        """Returns which places along a dimension have an element."""
        if axis not in self._masks:
            place, exists = self.iota(axis.bound, I32), None
            for extent, bound, below in _digits(axis):
                if is_fixed(extent):
                    continue
                digit = place
                if below > 1:
                    digit = self.with_number(Divide, digit, self.number(below, I32))
                if bound * below < axis.bound:
                    digit = self.with_number(Remainder, digit, self.number(bound, I32))
                limit = self.spread(self.convert(self.size(extent), I32), (axis.bound,))
                found = self.add(Compare(digit, limit, comparison_direction=ComparisonDirection.LT))
                exists = found if exists is None else self.add(And(exists, found))
            self._masks[axis] = self.spread(self.number(1, I1), (axis.bound,)) if exists is None else exists
        return self._masks[axis]

    # Where the space lies

    def with_simple(self, x: Bounded, dimensions: Iterable[int] | None = None) -> Bounded:
        """Returns `x` with all space behind the elements of some dimensions; by default, of all."""
        wanted = range(len(x.axes)) if dimensions is None else tuple(dimensions)
        return self.aligned(x, tuple(simple(a.extent) if d in wanted else a for d, a in enumerate(x.axes)))

    def aligned(self, x: Bounded, axes: Axes) -> Bounded:
        """Returns `x` with space where these dimensions, of the same extents, have it."""
        for dimension, (has, wanted) in enumerate(zip(x.axes, axes, strict=True)):
            if has == wanted:
                continue
            if has.extent != wanted.extent:
                message = f"dimension {dimension} of a value has another extent than expected"
                raise Unbounded(message, different(has.extent, wanted.extent))
            value = x.value
            if self._is_repeated(value, dimension):
                value = self._repeated(value, dimension, wanted.bound)
            else:
                if not has.is_simple:
                    value = self.taken(value, dimension, self._places(has, from_simple=False), has)
                if not wanted.is_simple:
                    value = self.taken(value, dimension, self._places(wanted, from_simple=True), simple(has.extent))
            x = Bounded(value, (*x.axes[:dimension], wanted, *x.axes[dimension + 1 :]), x.numbers)
        return x

    def _is_repeated(self, x: Value, dimension: int) -> bool:
        """Whether a value is the same at all places along a dimension, and it makes no difference where they are."""
        op = x.defining_op
        return isinstance(op, BroadcastInDim) and (
            dimension not in op.broadcast_dimensions
            or op.operand.type.shape[op.broadcast_dimensions.index(dimension)] == 1
        )

    def _repeated(self, x: Value, dimension: int, bound: int) -> Value:
        op: Any = x.defining_op
        shape = list(x.type.static_shape)
        shape[dimension] = bound
        return self.spread(op.operand, shape, op.broadcast_dimensions)

    def taken(self, x: Value, dimension: int, places: Value, axis: Axis) -> Value:
        """Returns what is at some places along a dimension, which is an axis."""
        numbers = GatherDimensionNumbers(
            offset_dims=tuple(d for d in range(x.type.rank) if d != dimension),
            collapsed_slice_dims=(dimension,),
            start_index_map=(dimension,),
            index_vector_dim=1,
        )
        sizes = tuple(1 if d == dimension else extent for d, extent in enumerate(x.type.static_shape))
        return self.add(self.reading(Gather(x, places, numbers, sizes), [axis]))

    def reading(self, op: Gather, axes: Sequence[Axis]) -> Gather:
        """Notes that a gather has no use for what is in the space of the axes along which it has indices."""
        found = [
            number
            for position, axis in enumerate(axes)
            for extent, bound, below in _digits(axis)
            if (end := self.end(extent)) is not None
            for number in (position, below, bound, end)
        ]
        if found:
            op.extra[READ] = DenseArray(I64, tuple(found))
        return op

    def _places(self, axis: Axis, from_simple: bool) -> Value:
        """Returns where the elements of a dimension are if all space is behind them, in the order in which `axis` has
        them; or the other way round."""
        bound = axis.bound if from_simple else max(axis.extent)
        rest, found, reached = self.iota(bound), None, self.number(1)
        one, below = self.number(1), 1
        for extent, space in reversed(list(zip(axis.parts, axis.bounds, strict=True))):
            inner = self.number(space) if from_simple else self.add(Maximum(self.size(extent), one))
            digit = self.with_number(Remainder, rest, inner)
            rest = self.with_number(Divide, rest, inner)
            weight = reached if from_simple else self.number(below)
            term = self.with_number(Multiply, digit, weight)
            found = term if found is None else self.add(Add(found, term))
            reached, below = self.add(Multiply(reached, self.size(extent))), below * space
        assert found is not None
        return found


def _digits(axis: Axis) -> Iterable[tuple[Extent, int, int]]:
    """Yields, for each part, its extent and its space, and how many places each of its steps has."""
    bounds = axis.bounds
    for number, (extent, bound) in enumerate(zip(axis.parts, bounds, strict=True)):
        yield extent, bound, int(np.prod(bounds[number + 1 :], dtype=np.int64))


Rule = Callable[[Writer, Any], Sequence[Bounded]]
RULES: dict[type[Op], Rule] = {}


def rule(*kinds: type[Op]) -> Callable[[Rule], Rule]:
    """Registers how ops of some classes are written."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


def cloned(w: Writer, op: Op, operands: Sequence[Value], axes: Sequence[Axes]) -> list[Bounded]:
    """Writes a copy of an op with other operands, whose results have these dimensions."""
    copy = op.clone({value: w.values[value].value for value in captured(op)})
    for index, value in enumerate(operands):
        copy.set_operand(index, value)
    for result, described in zip(copy.results, axes, strict=True):
        result.type = result.type.with_shape(tuple(axis.bound for axis in described))
    w.add(copy)
    return [Bounded(result, described) for result, described in zip(copy.results, axes, strict=True)]


def as_it_is(w: Writer, op: Op) -> list[Bounded]:
    """Writes an op that knows only one size."""
    if not all(w.values[value].is_fixed for value in (*op.operands, *captured(op))):
        raise Unbounded("it cannot compute with several sizes at once")
    if not all(value.type.is_static for value in op.results):
        raise Unbounded("its result has a size that is not known")
    axes = [w.fixed(*value.type.static_shape) for value in op.results]
    return cloned(w, op, [w.values[value].value for value in op.operands], axes)


def captured(op: Op) -> list[Value]:
    """Returns the values that the regions of an op take from outside."""
    return [value for region in op.regions for value in region.free_values()]


def inferred_extents(w: Writer, op: Op) -> tuple[Extent, ...]:
    """Returns the extents of an op's first result, as its type rule has them."""
    operands = [w.values[value] for value in op.operands]
    seen: dict[tuple, tuple[int, ...]] = {}
    found = []
    for number in range(w.combinations):
        shapes = tuple(tuple(axis.extent[number] for axis in x.axes) for x in operands)
        if shapes not in seen:
            copy = op.clone({})
            for index, shape in enumerate(shapes):
                copy.set_operand(index, Value(op.operands[index].type.with_shape(shape)))
            infer: Any = type(op).INFER
            kinds = infer(copy)
            seen[shapes] = (kinds[0] if isinstance(kinds, list | tuple) else kinds).static_shape
            copy.erase()
        found.append(seen[shapes])
    return extents_of(found)


def known(w: Writer, value: Value, what: str) -> Numbers:
    """Returns the elements of a value in each combination."""
    numbers = w.values[value].numbers
    if numbers is None:
        raise Unbounded(f"{what} does not follow from the sizes of inputs")
    return numbers
