"""Layouts of arguments and results, which hosts request by attributes: compiled programs are row-major, so a program
takes an array of another layout with its dimensions in the order in which they are in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trivium.compiler.layouts import MinorToMajor, exchange_in_memory_order, outermost_first
from trivium.ir.core import Value
from trivium.ir.errors import CompileError
from trivium.ir.func import Module
from trivium.ir.ops import DynamicSlice, Transpose
from trivium.ir.sharding import Part

MODE = "mhlo.layout_mode"
"""The attribute of an argument or a result: its dimensions from the one whose elements are next to each other to the
one whose elements are farthest apart, `{0,1}`; or the compiler's choice (`auto`), or the device's (`default`)."""

LAYOUTS = "layouts"
"""The name of an artifact's text about layouts."""

AUTO = "auto"


@dataclass(frozen=True)
class Layouts:
    """The layouts of a program's arguments and results."""

    arguments: tuple[MinorToMajor, ...]
    results: tuple[MinorToMajor, ...]

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
    exchange_in_memory_order(module, layouts.arguments, layouts.results)
    return layouts


def _requested(module: Module) -> Layouts:
    """Returns the layouts that a host requests. Where it lets the compiler choose, a transposed value is returned as it
    is in memory."""
    main = module.main
    orders = [_order(main.argument_attributes(i).get(MODE), value) for i, value in enumerate(main.arguments)]
    taken: dict[Value, MinorToMajor] = dict(zip(main.arguments, orders, strict=True))
    found = []
    for index, value in enumerate(main.returned):
        mode = main.result_attributes(index).get(MODE)
        found.append(_own_order(value, taken) if mode == AUTO else _order(mode, value))
    return Layouts(tuple(orders), tuple(found))


def in_memory(part: Part, order: MinorToMajor) -> Part:
    """Returns the part of an array with its dimensions in the order of memory."""

    def turned(numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple(numbers[dimension] for dimension in outermost_first(order)) if order else tuple(numbers)

    return replace(part, shape=turned(part.shape), begins=tuple(map(turned, part.begins)))


def _order(mode: object, value: Value) -> MinorToMajor:
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


def _unless_row_major(order: MinorToMajor) -> MinorToMajor:
    return () if order == tuple(range(len(order)))[::-1] else order


def _own_order(value: Value, taken: Mapping[Value, MinorToMajor]) -> MinorToMajor:
    """Returns the order in which a value is in memory before it is transposed, or a part is cut out of it."""
    turns = []
    while isinstance(op := value.defining_op, Transpose | DynamicSlice):
        if isinstance(op, Transpose):
            turns.append(op.permutation)
        value = op.operand
    order = taken.get(value) or tuple(range(len(value.type.shape)))[::-1]
    for permutation in reversed(turns):
        order = tuple(permutation.index(dimension) for dimension in order)
    return _unless_row_major(order)
