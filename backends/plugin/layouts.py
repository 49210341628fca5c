"""Layouts of arguments and results, which hosts request by attributes: compiled programs are row-major, so a program
takes an array of another layout with its dimensions in the order in which they are in memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trivium.compiler.artifact import Slot
from trivium.ir.builder import Builder
from trivium.ir.core import BlockArgument, Value
from trivium.ir.errors import CompileError
from trivium.ir.func import Module
from trivium.ir.ops import Transpose
from trivium.ir.types import TensorType, tensor

MODE = "mhlo.layout_mode"
"""The attribute of an argument or a result: its dimensions from the one whose elements are next to each other to the
one whose elements are farthest apart, `{0,1}`; or the compiler's choice (`auto`), or the device's (`default`)."""

LAYOUTS = "layouts"
"""The name of an artifact's text about layouts."""

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
    layouts = requested(module)
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
    return layouts


def requested(module: Module) -> Layouts:
    """Returns the layouts that a host requests."""
    main = module.main
    found = (
        [_order(main.argument_attributes(i).get(MODE), value) for i, value in enumerate(main.arguments)],
        [_order(main.result_attributes(i).get(MODE), value) for i, value in enumerate(main.returned)],
    )
    return Layouts(*map(tuple, found))


def require_row_major(module: Module) -> None:
    """Raises an `Error` if a host requests another layout, in a program of several devices."""
    if requested(module).text():
        raise CompileError("the program is for several devices, expected the default layout of arguments and results")


def types_of(slots: Sequence[Slot], orders: Sequence[Order]) -> list[TensorType]:
    """Returns the types of arrays as hosts know them, by the slots and layouts of the program."""
    return [
        tensor(*(slot.shape[len(order) - 1 - order.index(d)] for d in range(len(order))), of=slot.dtype)
        if order
        else slot.type
        for slot, order in zip(slots, orders, strict=True)
    ]


def _order(mode: object, value: Value) -> Order:
    if mode is None or mode in ("default", "auto"):
        return ()
    written = re.fullmatch(r"\{(\d+(?:,\d+)*)?\}", str(mode))
    if written is None:
        raise CompileError(f"the layout {mode} is requested, expected an order of dimensions, without tiles")
    order = tuple(map(int, (written[1] or "").split(","))) if written[1] else ()
    rank = len(value.type.shape)
    if sorted(order) != list(range(rank)):
        raise CompileError(f"the layout {mode} is requested for {value.type}, which has {rank} dimensions")
    return () if order == tuple(range(rank))[::-1] else order


def _turn_argument(argument: BlockArgument, order: Order) -> None:
    first, given, uses = argument.block.first, argument.type, list(argument.uses)
    assert first is not None, "a function ends in a return"
    argument.type = TensorType(tuple(given.shape[dimension] for dimension in order[::-1]), given.element_type)
    places = [order[::-1].index(dimension) for dimension in range(len(order))]
    own = Builder.in_front_of(first).add(Transpose(argument, permutation=places))
    for user, index in uses:
        user.set_operand(index, own)
