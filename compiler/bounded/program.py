"""Programs for several combinations of sizes at once. A program with dynamic shapes becomes one with static shapes, in
which every dimension has space for the largest of its extents; those that it needs are arguments of it. So sizes that
change with every call, as those of a cache that grows, need one program for many of them. This is XLA's bounded
dynamism, but the bounds are the extents in each combination, and not intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trivium.compiler.bounded.axes import Extent, extents_of, simple
from trivium.compiler.bounded.shapes import elementwise
from trivium.compiler.bounded.writer import RULES, Bounded, Numbers, Unbounded, Writer, as_it_is, captured
from trivium.compiler.ends import ends_of, extent_attribute
from trivium.ir.attributes import DenseElements, Dictionary
from trivium.ir.core import Block, Operation, Region, Value
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.errors import Error
from trivium.ir.func import FuncReturn, Function, Module
from trivium.ir.interpreter import Interpreter
from trivium.ir.known import STAYING
from trivium.ir.ops import Constant, Reduce
from trivium.ir.types import FunctionType, TensorType, is_quantized

MOST_NUMBERS = 64
"""The number of elements up to which a value is computed in each combination, since extents may follow from it."""


@dataclass(frozen=True)
class BoundedProgram:
    """A module without dynamic shapes. `arguments` and `results` are the extents of its arguments and results in each
    combination; their types have the largest. After the arguments, the module takes the `extents` that it needs, as 0-d
    i64."""

    module: Module
    arguments: tuple[tuple[Extent, ...], ...]
    results: tuple[tuple[Extent, ...], ...]
    extents: tuple[Extent, ...]

    def extents_of(self, combination: int) -> list[np.int64]:
        """Returns the extents that the module takes, for a combination."""
        return [np.int64(extent[combination]) for extent in self.extents]


def bounded(
    module: Module, shapes: Sequence[Sequence[Sequence[int]]], values: Mapping[int, Sequence[ArrayLike]]
) -> BoundedProgram:
    """Returns a program for several combinations of sizes. `shapes` has the shapes of all arguments for each of them;
    `values` the values of those arguments, by index, that are sizes, or lists of them. Calls must have been inlined.
    Raises `Unbounded` if an op cannot compute with several sizes."""
    main = module.main
    block = Block()
    given = [extents_of(entries) for entries in zip(*shapes, strict=True)]
    for argument, extents in zip(main.arguments, given, strict=True):
        kind = argument.type.with_shape(tuple(map(max, extents)))
        block.add_argument(kind, argument.name_hint, argument.location)
    w = Writer(block, len(shapes))
    for index, (argument, value, extents) in enumerate(zip(main.arguments, block.arguments, given, strict=False)):
        numbers = values.get(index)
        arrays = None if numbers is None else w.noted([np.array(number, value.type.dtype) for number in numbers])
        w.values[argument] = Bounded(value, tuple(map(simple, extents)), arrays)
    returned = [w.with_simple(x) for x in write(w, main.body.block)]
    w.add(FuncReturn([x.value for x in returned]))
    results = tuple(tuple(axis.extent for axis in x.axes) for x in returned)
    ends = [ends_of(map(w.end, extents)) for extents in results]
    kinds = [argument.type for argument in block.arguments], [x.value.type for x in returned]
    arguments = [main.argument_attributes(index) for index in range(len(given))] + list(map(extent_attribute, w.sizes))
    entries = [Dictionary({**main.result_attributes(index), **end}) for index, end in enumerate(ends)]
    function = Function(
        main.sym_name, FunctionType(*map(tuple, kinds)), Region([block]), arg_attrs=arguments, res_attrs=entries
    )
    made = Module.build(functions=[function])
    made.verify()
    return BoundedProgram(made, tuple(given), results, tuple(w.sizes))


def bounded_where_valid(
    module: Module,
    shapes: Sequence[Sequence[Sequence[int]]],
    values: Mapping[int, Sequence[ArrayLike]],
    needed: int,
) -> tuple[list[int], BoundedProgram]:
    """Like `bounded`, for those of the combinations of sizes for which the program is valid, which the `needed`-th one
    is: a network that halves an image and doubles it again may not take odd sizes. Returns their numbers, too."""
    left = list(range(len(shapes)))
    while True:
        listed = {index: [numbers[number] for number in left] for index, numbers in values.items()}
        try:
            return left, bounded(module, [shapes[number] for number in left], listed)
        except Unbounded as error:
            valid = [number for place, number in enumerate(left) if place not in error.combinations]
            if not error.combinations or needed not in valid:
                raise
            left = valid


def write(w: Writer, block: Block) -> list[Bounded]:
    """Writes the ops of a block. Returns what it returns."""
    for op in block:
        if op is not block.terminator:
            with w.builder.at(op.location):
                _write(w, op)
    return [w.values[value] for value in block.terminator.operands]


def _write(w: Writer, op: Operation) -> None:
    if not isinstance(op, Op) or any(_is_strange(value) for value in (*op.operands, *op.results)):
        raise Unbounded(f"{op.NAME}: an op on values other than tensors of numbers")
    numbers = _numbers(w, op)
    try:
        if numbers is not None and all(all(each is array[0] for each in array) for array in numbers):
            kinds = [w.fixed(*array[0].shape) for array in numbers]
            made = [
                Bounded(w.add(Constant(DenseElements(array[0], value.type.with_shape(array[0].shape)))), axes)
                for value, array, axes in zip(op.results, numbers, kinds, strict=True)
            ]
        else:
            made = list(_rule_of(w, op)(w, op))
    except Unbounded as error:
        raise Unbounded(f"{op.NAME}: {error.message}", error.combinations) from None
    for index, (value, found) in enumerate(zip(op.results, made, strict=True)):
        found.value.name_hint = found.value.name_hint or value.name_hint
        w.values[value] = found if numbers is None else Bounded(found.value, found.axes, numbers[index])


def _rule_of(w: Writer, op: Op) -> Any:
    rule = RULES.get(type(op))
    if rule is not None:
        return rule
    if op.has_trait(ELEMENTWISE):
        return elementwise
    return as_it_is


def _numbers(w: Writer, op: Op) -> list[Numbers] | None:
    """Returns the elements of the results in each combination, if they follow from sizes and constants."""
    if isinstance(op, Constant):
        array = op.value.array
        return [w.noted((array,) * w.combinations)] if array.size <= MOST_NUMBERS else None
    given = [w.values[value].numbers for value in op.operands]
    known = [numbers for numbers in given if numbers is not None]
    if isinstance(op, STAYING) or not op.is_pure or not given or len(known) < len(given):
        return None
    if op.regions and (not isinstance(op, Reduce) or captured(op)):
        return None
    # Layers that are alike compute the same sizes.
    kind = op if op.regions else type(op)
    key = kind, repr(op.attributes), op.result_types, tuple(map(id, known))
    if key not in w.computed:
        w.computed[key] = _computed(w, op, known)
    return w.computed[key]


def _computed(w: Writer, op: Op, given: Sequence[Numbers]) -> list[Numbers] | None:
    found: list[list[np.ndarray]] = []
    seen: dict[tuple, list[np.ndarray]] = {}
    for arrays in zip(*given, strict=True):
        key = tuple(map(id, arrays))
        if key not in seen:
            try:
                results = Interpreter().step(op, dict(zip(op.operands, arrays, strict=True)))
            except Error:
                return None
            seen[key] = [np.asarray(result) for result in results]
        found.append(seen[key])
        if any(array.size > MOST_NUMBERS for array in seen[key]):
            return None
    return [w.noted(arrays) for arrays in zip(*found, strict=True)]


def _is_strange(value: Value) -> bool:
    return not isinstance(value.type, TensorType) or is_quantized(value.type.element_type)
