"""Layouts of arguments and results, which hosts request by attributes: compiled programs are row-major, so a program
takes an array of another layout with its dimensions in the order in which they are in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trivium.ir.builder import Builder
from trivium.ir.core import BlockArgument, Value
from trivium.ir.errors import CompileError
from trivium.ir.func import Module
from trivium.ir.ops import Transpose
from trivium.ir.sharding import Part
from trivium.ir.types import TensorType

MODE = "mhlo.layout_mode"
"""The attribute of an argument or a result: its dimensions from the one whose elements are next to each other to the
one whose elements are farthest apart, `{0,1}`; or the compiler's choice (`auto`), or the device's (`default`)."""

LAYOUTS = "layouts"
"""The name of an artifact's text about layouts."""

AUTO = "auto"

Order = tuple[int, ...]
"""Dimensions, the last one of them outermost; empty for row-major."""


@dataclass(frozen=True)
class Layouts:
    """The layouts of a program's arguments and results."""

    arguments: tuple[Order, ...]
    results: tuple[Order, ...]

    def text(self) -> str:
        """Returns this in the form of an artifact's text, which the native runtime reads, too (`pjrt/program.cc`): one
        word for each argument and result."""
        orders = [*self.arguments, *self.results]
        return " ".join(",".join(map(str, order)) or "-" for order in orders) if any(orders) else ""

    @classmethod
    def read(cls, text: str, arguments: int, results: int) -> Layouts:
        words = text.split() or ["-"] * (arguments + results)
        orders = [tuple(map(int, word.split(","))) if word != "-" else () for word in words]
        return cls(tuple(orders[:arguments]), tuple(orders[arguments:]))


def take_layouts(module: Module) -> Layouts:
    """Returns the layouts that a host requests, and lets the program take and return arrays in the order of memory."""
    layouts = _requested(module)
    turn(module, layouts)
    return layouts


def turn(module: Module, layouts: Layouts) -> None:
    """Lets a program take and return arrays in the order of memory."""
    main = module.main
    end = main.body.terminator
    for order, argument in zip(layouts.arguments, main.arguments, strict=True):
        if order:
            _turn_argument(argument, order)
    for index, order in enumerate(layouts.results):
        if order:
            turned = Builder.in_front_of(end).add(Transpose(end.operands[index], permutation=order[::-1]))
            end.set_operand(index, turned)
    if layouts.text():
        main.refresh_type()


def _requested(module: Module) -> Layouts:
    """Returns the layouts that a host requests. Where it lets the compiler choose, a transposed value is returned as it
    is in memory."""
    main = module.main
    orders = [_order(main.argument_attributes(i).get(MODE), value) for i, value in enumerate(main.arguments)]
    taken: dict[Value, Order] = dict(zip(main.arguments, orders, strict=True))
    found = []
    for index, value in enumerate(main.returned):
        mode = main.result_attributes(index).get(MODE)
        found.append(_own_order(value, taken) if mode == AUTO else _order(mode, value))
    return Layouts(tuple(orders), tuple(found))


def in_memory(part: Part, order: Order) -> Part:
    """Returns the part of an array with its dimensions in the order of memory."""

    def turned(numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple(numbers[dimension] for dimension in reversed(order)) if order else tuple(numbers)

    return replace(part, shape=turned(part.shape), begins=tuple(map(turned, part.begins)))


def _order(mode: object, value: Value) -> Order:
    if mode is None or mode in ("default", AUTO):
        return ()
    written = re.fullmatch(r"\{(\d+(?:,\d+)*)?\}", str(mode))
    if written is None:
        raise CompileError(f"the layout {mode} is requested, expected an order of dimensions, without tiles")
    order = tuple(map(int, (written[1] or "").split(","))) if written[1] else ()
    rank = len(value.type.shape)
    if sorted(order) != list(range(rank)):
        raise CompileError(f"the layout {mode} is requested for {value.type}, which has {rank} dimensions")
    return _unless_row_major(order)


def _unless_row_major(order: Order) -> Order:
    return () if order == tuple(range(len(order)))[::-1] else order


def _own_order(value: Value, taken: Mapping[Value, Order]) -> Order:
    """Returns the order in which a value is in memory before it is transposed."""
    turns = []
    while isinstance(value.defining_op, Transpose):
        turns.append(value.defining_op.permutation)
        value = value.defining_op.operand
    order = taken.get(value) or tuple(range(len(value.type.shape)))[::-1]
    for permutation in reversed(turns):
        order = tuple(permutation.index(dimension) for dimension in order)
    return _unless_row_major(order)


def _turn_argument(argument: BlockArgument, order: Order) -> None:
    first, given, uses = argument.block.first, argument.type, list(argument.uses)
    assert first is not None, "a function ends in a return"
    argument.type = TensorType(tuple(given.shape[dimension] for dimension in order[::-1]), given.element_type)
    places = [order[::-1].index(dimension) for dimension in range(len(order))]
    own = Builder.in_front_of(first).add(Transpose(argument, permutation=places))
    for user, index in uses:
        user.set_operand(index, own)
