"""Arrays whose dimensions are in another order in memory, such as images with features last. Compiled programs are
row-major, so a program takes and returns such an array with its dimensions in the order of memory."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.ir.builder import Builder
from trivium.ir.core import BlockArgument
from trivium.ir.func import Module
from trivium.ir.ops import Transpose
from trivium.ir.types import TensorType

MinorToMajor = tuple[int, ...]
"""The dimensions of an array, from the one whose elements are next to each other in memory to the one whose elements
are farthest apart; empty for row-major."""


def outermost_first(order: MinorToMajor) -> tuple[int, ...]:
    """Returns the dimensions in the order of memory: those by which a transposition gives the row-major array."""
    return order[::-1]


def places(order: MinorToMajor) -> tuple[int, ...]:
    """Returns where each dimension is in the order of memory: those by which a transposition restores the array."""
    return tuple(map(order[::-1].index, range(len(order))))


def exchange_in_memory_order(
    module: Module, arguments: Sequence[MinorToMajor], results: Sequence[MinorToMajor]
) -> None:
    """Lets a program take and return arrays with their dimensions in the order of memory."""
    main = module.main
    end = main.body.terminator
    for order, argument in zip(arguments, main.arguments, strict=True):
        if order:
            _take(argument, order)
    for index, order in enumerate(results):
        if order:
            returned = Transpose(end.operands[index], permutation=outermost_first(order))
            end.set_operand(index, Builder.in_front_of(end).add(returned))
    if any(arguments) or any(results):
        main.refresh_type()


def _take(argument: BlockArgument, order: MinorToMajor) -> None:
    first, given, uses = argument.block.first, argument.type, list(argument.uses)
    assert first is not None, "a function ends in a return"
    argument.type = TensorType(tuple(given.shape[d] for d in outermost_first(order)), given.element_type)
    own = Builder.in_front_of(first).add(Transpose(argument, permutation=places(order)))
    for user, index in uses:
        user.set_operand(index, own)
