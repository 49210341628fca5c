"""Which elements a program needs. A program for several sizes has space for the largest (`compiler.bounded`); with
smaller ones, what is in the rest of the space has no use. This analysis goes from the results, and from the masks of
what sums and other reductions combine, back to what these are computed from. It only looks at the finished graph, so
that passes have nothing to preserve; an op that it does not know needs all of its operands."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trivium.compiler.passes.dimensions import along
from trivium.ir import ops
from trivium.ir.attributes import Attribute, DenseArray, Dictionary
from trivium.ir.core import Block, BlockArgument, Operation, Value
from trivium.ir.func import Function
from trivium.ir.types import I64, TensorType, is_integer

EXTENT = "trivium.extent"
"""The attribute of an argument that is an extent, a 0-d i64, with the least and the largest number that it may be."""

ENDS = "trivium.ends"
"""The attribute of a result with, for each dimension, the number of the argument where its elements end, or -1."""

READ = "trivium.read"
"""The attribute of a gather that reads no other elements of its operand than these, or has no use for them: four
numbers for each digit, which are the position of its dimension in `start_index_map`, the step, the count, and the
number of the argument where it ends."""


@dataclass(frozen=True)
class Digit:
    """A digit of the places along a dimension: of place i, it is i // step % count. `step * count` divides the extent.
    The rows of [batch, length] flattened have one with the step `length`, and one with the step 1."""

    step: int
    count: int


Digits = tuple[Mapping[Digit, Any], ...]
"""For each dimension, digits of its places, with something that is known about each."""

Ends = tuple[Mapping[Digit, "BlockArgument | int"], ...]
"""For each dimension, the digits whose elements have no use from an extent on, which is an argument of the program, or
a number."""


def ends_of(extents: Iterable[int | None]) -> dict[str, Attribute]:
    """Returns the attribute of a result whose dimensions end at arguments with these numbers."""
    numbers = tuple(-1 if number is None else number for number in extents)
    return {ENDS: DenseArray(I64, numbers)} if any(number >= 0 for number in numbers) else {}


def extent_attribute(extent: Sequence[int]) -> Dictionary:
    """Returns the attributes of an argument that is one of these numbers."""
    return Dictionary({EXTENT: DenseArray(I64, (min(extent), max(extent)))})


def needed(main: Function) -> dict[Value, Ends]:
    """Returns, for the values of a function's block that are not needed as a whole, where they end."""
    stated = {x: main.argument_attributes(x.index).get(EXTENT) for x in main.arguments}
    extents = {x: int(ends.values[0]) for x, ends in stated.items() if isinstance(ends, DenseArray)}
    if not extents:
        return {}
    analysis = _Needed(main.arguments, extents)
    analysis.block(main.body.block, [_stated(main, index, value) for index, value in enumerate(main.returned)])
    return {value: ends for value, ends in analysis.found.items() if any(ends)}


def _stated(main: Function, index: int, value: Value) -> Ends:
    stated = main.result_attributes(index).get(ENDS)
    if not isinstance(stated, DenseArray) or len(stated.values) != value.type.rank:
        return whole(value)
    shape = value.type.static_shape
    pairs = zip(shape, stated.values, strict=True)
    return tuple({Digit(1, extent): main.arguments[int(n)]} if n >= 0 else {} for extent, n in pairs)


def whole(value: Value) -> Ends:
    """Returns the ends of a value of which everything is needed."""
    return ({},) * (value.type.rank if isinstance(value.type, TensorType) else 0)


class _Needed:
    """What is known of the values of a block, once the ops after them have been seen."""

    def __init__(self, arguments: Sequence[BlockArgument], extents: Mapping[BlockArgument, int]):
        self.arguments, self.extents = arguments, extents
        self.found: dict[Value, Ends] = {}

    def common(self, one: Ends, other: Ends) -> Ends:
        """Returns the ends behind which neither of two uses needs anything."""
        pairs = zip(one, other, strict=True)
        both = ({digit: (end, b[digit]) for digit, end in a.items() if digit in b} for a, b in pairs)
        return tuple(
            {digit: end for digit, ends in digits.items() if (end := self._later(*ends)) is not None} for digits in both
        )

    def _later(self, one: BlockArgument | int, other: BlockArgument | int) -> BlockArgument | int | None:
        """Returns the later one of two ends, if it is known which one that is."""
        if isinstance(one, int) and isinstance(other, int):
            return max(one, other)
        if isinstance(one, int):
            one, other = other, one
        assert isinstance(one, BlockArgument)
        return one if other is one or (isinstance(other, int) and other <= self.extents[one]) else None

    def use(self, value: Value, ends: Ends) -> None:
        """Adds a use of a value: only what all uses leave out has no use."""
        self.found[value] = self.common(self.found[value], ends) if value in self.found else ends

    def block(self, block: Block, returned: Sequence[Ends]) -> None:
        """Adds the uses by the ops of a block, of which this is needed of what it returns."""
        for value, ends in zip(block.terminator.operands, returned, strict=True):
            self.use(value, ends)
        for op in reversed(list(block)):
            if op is not block.terminator:
                self.op(op)

    def op(self, op: Operation) -> None:
        """Adds the uses by an op whose results have been used."""
        match op:
            case ops.While():
                self._loop(op)
            case ops.If() | ops.Case():
                for region in op.regions:
                    self.block(region.block, [self.found.get(result, whole(result)) for result in op.results])
                self.use(op.operands[0], whole(op.operands[0]))
            case _:
                self._plain(op)

    def _loop(self, op: ops.While) -> None:
        """What is needed of a carried value after the loop is needed after each turn, besides what the turns use."""
        found, carried = self.found, [self.found.get(result, whole(result)) for result in op.results]
        while True:
            self.found = dict(found)
            self.block(op.cond.block, [()])
            self.block(op.body.block, carried)
            used = [
                functools.reduce(self.common, [ends, *(self.found[x] for x in arguments if x in self.found)])
                for ends, *arguments in zip(carried, op.cond.arguments, op.body.arguments, strict=True)
            ]
            if used == carried:
                break
            carried = used
        for value, ends in zip(op.operands, carried, strict=True):
            self.use(value, ends)

    def _plain(self, op: Operation) -> None:
        shapes = {result.type.shape if isinstance(result.type, TensorType) else None for result in op.results}
        alike = len(shapes) == 1 and None not in shapes
        wanted = [self.found[result] for result in op.results if result in self.found]
        rule = RULES.get(type(op), _along if alike else None) if wanted or op.is_pure else None
        captured = [value for region in op.regions for value in region.free_values()]
        for value in captured if rule is not None else (*op.operands, *captured):
            self.use(value, whole(value))
        if rule is not None and wanted:
            ends = functools.reduce(self.common, wanted)
            for value, of_operand in zip(op.operands, rule(self, op, ends), strict=True):
                self.use(value, whole(value) if of_operand is None else of_operand)

    # Masks

    def mask(self, value: Value) -> Ends:
        """Returns the ends behind which a mask is false."""
        match value.defining_op:
            case ops.And() as op:
                return tuple({**b, **a} for a, b in zip(self.mask(op.lhs), self.mask(op.rhs), strict=True))
            case ops.BroadcastInDim() as op:
                return _spread(self.mask(op.operand), op)
            case ops.Reshape() as op:
                return reshaped(self.mask(op.operand), op.operand.type.static_shape, value.type.static_shape)
            case ops.Transpose() as op:
                found = self.mask(op.operand)
                return tuple(found[d] for d in op.permutation)
            case ops.Slice() | ops.DynamicSlice() as op:
                pairs = zip(self.mask(op.operand), op.operand.type.static_shape, value.type.static_shape, strict=True)
                return tuple(end if a == b else {} for end, a, b in pairs)
            case ops.Compare() as op if op.comparison_direction is ops.ComparisonDirection.LT:
                limit = self.extent(op.rhs)
                if limit is not None:
                    return tuple(dict.fromkeys(found, limit) for found in places(op.lhs))
        return whole(value)

    def extent(self, value: Value) -> BlockArgument | None:
        """Returns the argument that all elements of a value are."""
        while isinstance(op := value.defining_op, ops.Convert | ops.Reshape | ops.BroadcastInDim):
            if not _counts(value):
                return None
            value = op.operand
        return value if isinstance(value, BlockArgument) and value in self.extents else None


def places(value: Value) -> Digits:
    """Returns the digit, of one dimension, that a value has as its elements, if it is known to have one."""
    if _counts(value):
        match value.defining_op:
            case ops.Iota() as op:
                shape = value.type.static_shape
                return tuple({Digit(1, n): None} if d == op.iota_dimension else {} for d, n in enumerate(shape))
            case ops.Convert() as op:
                return places(op.operand)
            case ops.BroadcastInDim() as op:
                return _spread(places(op.operand), op)
            case ops.Reshape() as op:
                return reshaped(places(op.operand), op.operand.type.static_shape, value.type.static_shape)
            case ops.Divide() as op:
                return _parted(places(op.lhs), op.rhs, lambda digit, n: Digit(digit.step * n, digit.count // n))
            case ops.Remainder() as op:
                return _parted(places(op.lhs), op.rhs, lambda digit, n: Digit(digit.step, n))
    return whole(value)


def _counts(value: Value) -> bool:
    """Whether a value's type represents all places: in a narrow one, they would wrap around."""
    kind = value.type.element_type
    return is_integer(kind) and kind.dtype.itemsize >= 4 and max(value.type.static_shape, default=0) < 1 << 31


def _parted(given: Digits, by: Value, part: Callable[[Digit, int], Digit]) -> Digits:
    """Returns the quotient or remainder of places and a number, if it divides their count."""
    number = _number(by)
    return tuple(
        {part(digit, number): None for digit in found if number > 0 and digit.count % number == 0} for found in given
    )


def _number(value: Value) -> int:
    """Returns the number that all elements of a constant are, or 0."""
    while isinstance(op := value.defining_op, ops.BroadcastInDim):
        value = op.operand
    if isinstance(op, ops.Constant) and op.value.is_splat:
        return int(op.value.array.flat[0])
    return 0


def reshaped(ends: Digits, shape: Sequence[int], wanted: Sequence[int]) -> Digits:
    """Returns the ends of the dimensions of another shape with the same elements, as far as digits are within one."""
    found: list[dict[Digit, Any]] = [{} for _ in wanted]
    runs, targets = _runs(shape), _runs(wanted)
    for run, digits in zip(runs, ends, strict=True):
        for digit, end in digits.items():
            step = run * digit.step
            for d, (extent, target) in enumerate(zip(wanted, targets, strict=True)):
                inside, rest = divmod(step, target) if target else (0, 1)
                if extent > 1 and rest == 0 and inside < extent and extent % (inside * digit.count) == 0:
                    found[d][Digit(inside, digit.count)] = end
                    break
    return tuple(found)


def _runs(shape: Sequence[int]) -> list[int]:
    """Returns, for each dimension, how many elements one step along it is."""
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]


Rule = Callable[[_Needed, Any, Ends], Sequence[Ends | None]]
"""Returns the ends of an op's operands, given those of all its results; None for one that is needed as a whole."""


def _along(_: _Needed, op: Operation, ends: Ends) -> list[Ends | None]:
    """Operands end where the dimensions of the result do that go along with theirs."""
    found = [list(whole(value)) for value in op.operands]
    for dimension, end in enumerate(ends):
        for of_operand, place in zip(found, (along(op, dimension) if end else None) or (), strict=False):
            if place is not None:
                of_operand[place] = end
    return list(map(tuple, found))


def _select(analysis: _Needed, op: ops.Select, ends: Ends) -> list[Ends | None]:
    """What a mask leaves out has no use either."""
    if op.pred.type.rank != len(ends):
        return [None, ends, ends]
    masked = tuple({**a, **b} for a, b in zip(analysis.mask(op.pred), ends, strict=True))
    return [ends, masked, ends]


def _spread(ends: Digits, op: ops.BroadcastInDim) -> Digits:
    shape, kind = op.operand.type.static_shape, op.result.type.static_shape
    found: list[Mapping[Digit, Any]] = [{} for _ in kind]
    for d, to in enumerate(op.broadcast_dimensions):
        found[to] = ends[d] if shape[d] == kind[to] else {}
    return tuple(found)


def _reshape(_: _Needed, op: ops.Reshape, ends: Ends) -> list[Ends | None]:
    return [reshaped(ends, op.result.type.static_shape, op.operand.type.static_shape)]


def _convolution(_: _Needed, op: ops.Convolution, ends: Ends) -> list[Ends | None]:
    """Images of a batch are independent."""
    numbers = op.dimension_numbers
    images: list[Mapping[Digit, BlockArgument | int]] = [{} for _ in ends]
    if op.batch_group_count == 1:
        images[numbers.input_batch_dimension] = ends[numbers.output_batch_dimension]
    return [tuple(images), None]


def _windows(_: _Needed, op: ops.ReduceWindow, ends: Ends) -> list[Ends | None]:
    shapes = op.inputs[0].type.static_shape, op.results[0].type.static_shape
    still = [a == b and window == 1 for a, b, window in zip(*shapes, op.window_dimensions, strict=True)]
    of_input: Ends = tuple(end if same else {} for end, same in zip(ends, still, strict=True))
    return [of_input] * len(op.inputs) + [None] * len(op.init_values)


def _update(_: _Needed, op: ops.DynamicUpdateSlice, ends: Ends) -> list[Ends | None]:
    pairs = zip(ends, op.update.type.static_shape, op.operand.type.static_shape, strict=True)
    of_update: Ends = tuple(end if part == n else {} for end, part, n in pairs)
    return [ends, of_update, *[None] * len(op.start_indices)]


def _box(_: _Needed, op: ops.DynamicSlice, ends: Ends) -> list[Ends | None]:
    pairs = zip(ends, op.operand.type.static_shape, op.result.type.static_shape, strict=True)
    return [tuple(end if part == n else {} for end, n, part in pairs), *[None] * len(op.start_indices)]


def _slice(analysis: _Needed, op: ops.Slice, ends: Ends) -> list[Ends | None]:
    (others,) = _along(analysis, op, ends)
    shape = op.operand.type.static_shape
    limits = zip(others or (), shape, op.limit_indices, strict=True)
    return [tuple({Digit(1, n): limit} if limit < n else end for end, n, limit in limits)]


def _concatenate(_: _Needed, op: ops.Concatenate, ends: Ends) -> list[Ends | None]:
    others: Ends = tuple({} if d == op.dimension else end for d, end in enumerate(ends))
    return [others] * len(op.operands)


def _gather(analysis: _Needed, op: ops.Gather, ends: Ends) -> list[Ends | None]:
    """Each index has a window of its own."""
    numbers, shape = op.dimension_numbers, op.operand.type.static_shape
    batch = iter(end for d, end in enumerate(ends) if d not in numbers.offset_dims)
    windows = iter(ends[d] for d in numbers.offset_dims)
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    of_windows = [{} if d in dropped else next(windows) for d in range(len(shape))]
    read = [dict(end) if size == n else {} for end, n, size in zip(of_windows, shape, op.slice_sizes, strict=True)]
    stated = op.extra.get(READ)
    numbered = iter(stated.values if isinstance(stated, DenseArray) else ())
    for position, step, count, argument in zip(*[map(int, numbered)] * 4, strict=True):
        read[numbers.start_index_map[position]][Digit(step, count)] = analysis.arguments[argument]
    rank = op.start_indices.type.rank
    return [tuple(read), tuple({} if d == numbers.index_vector_dim else next(batch) for d in range(rank))]


def _scatter(analysis: _Needed, op: ops.Scatter, ends: Ends) -> list[Ends | None]:
    """Updates at negative places are skipped."""
    numbers, indices = op.scatter_dimension_numbers, op.scatter_indices.defining_op
    of_updates: Ends = whole(op.updates[0])
    if isinstance(indices, ops.Select) and _number(indices.on_false) < 0:
        mask = analysis.mask(indices.pred) if indices.pred.type.rank else whole(op.scatter_indices)
        batch = iter(end for d, end in enumerate(mask) if d != numbers.index_vector_dim)
        places = range(op.updates[0].type.rank)
        of_updates = tuple({} if d in numbers.update_window_dims else next(batch) for d in places)
    return [*[None] * len(op.inputs), None, *[of_updates] * len(op.updates)]


RULES: dict[type[Operation], Rule] = {
    ops.Select: _select,
    ops.Reshape: _reshape,
    ops.Convolution: _convolution,
    ops.ReduceWindow: _windows,
    ops.Slice: _slice,
    ops.DynamicSlice: _box,
    ops.DynamicUpdateSlice: _update,
    ops.Concatenate: _concatenate,
    ops.Gather: _gather,
    ops.Scatter: _scatter,
}
"""Of ops without a rule, operands end along the dimensions that go along with those of the results."""
