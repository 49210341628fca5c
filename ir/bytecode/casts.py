"""The boundary between dialects in an artifact. There, StableHLO's values have VHLO types, and those of other dialects
(Shardy) have MLIR's builtin types; a cast connects them, which does not exist in programs."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.ir.core import BlockArgument, Operation, Value
from trivium.ir.declare import Op
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.location import Location
from trivium.ir.types import Type


class Cast(Op):
    """The operand as a value of the other side. The op exists only in files: without a `name=`, it is not part of the
    language."""

    NAME = "builtin.unrealized_conversion_cast"


_PORTABLE = frozenset({"builtin", "func", "stablehlo", "chlo"})
"""The dialects whose ops become VHLO ops."""


def is_foreign(op: Operation | None) -> bool:
    """Whether an op keeps its own dialect, and MLIR's types, in artifacts."""
    return op is not None and op.NAME.partition(".")[0] not in _PORTABLE and not isinstance(op, Cast)


def dialect_of(value: Value) -> str:
    """Returns the dialect of a value's type in an artifact."""
    if isinstance(value, BlockArgument):
        return "builtin" if value.block.region and is_foreign(value.block.region.parent) else "vhlo"
    owner = value.defining_op
    if isinstance(owner, Cast):
        return "builtin" if dialect_of(owner.operands[0]) == "vhlo" else "vhlo"
    return "builtin" if is_foreign(owner) else "vhlo"


def insert_casts(module: Module) -> None:
    """Inserts a cast after each value that crosses from one side to the other, in the same place as MLIR."""
    for op in list(module.walk()):
        for region in op.regions:
            for block in region.blocks:
                _cast_crossing(block.arguments, block.first)
        _cast_crossing(op.results, op.next)


def _cast_crossing(values: Sequence[Value], before: Operation | None) -> None:
    """Inserts a cast before `before` for each value that has users on the other side."""
    for value in values:
        is_versioned = dialect_of(value) == "vhlo"
        crossing = [(user, index) for user, index in value.uses if is_foreign(user) is is_versioned]
        if crossing and before is not None and before.block is not None:
            location = location_of(value) if is_versioned else crossing[0][0].location
            cast = Cast.create([value], [value.type], location=location)
            before.block.insert(cast, before)
            for user, index in crossing:
                user.set_operand(index, cast.results[0])


def location_of(value: Value) -> Location:
    """Returns the location of a value."""
    return value.location if isinstance(value, BlockArgument) else value.defining_op.location  # type: ignore[union-attr]


def remove_casts(module: Module) -> None:
    """Removes all casts. Raises an `Error` for one that changes more than the dialect of a type."""
    for cast in [op for op in module.walk() if isinstance(op, Cast)]:
        if cast.operand_types != cast.result_types:
            has = f"{_listed(cast.operand_types)} to {_listed(cast.result_types)}"
            raise Error(f"the file casts {has}, expected the same types on both sides")
        for result, operand in zip(cast.results, cast.operands, strict=True):
            result.replace_all_uses_with(operand)
        cast.erase()


def _listed(kinds: Sequence[Type]) -> str:
    return f"({', '.join(map(str, kinds))})"
