"""Checks a program: the structure that every op shares (counts, scope, terminators, symbols), then each op's own
constraints. A check that passes costs nothing more: messages are formatted only on failure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NoReturn

from trivium.ir.core import MAX_NESTING, Operation, Region, Value
from trivium.ir.declare import REQUIRED, Field, Op, Trait
from trivium.ir.errors import ConstraintKind, Error, VerificationError
from trivium.ir.func import FuncReturn, Function, Module, Symbols, symbols
from trivium.ir.ops.control import Composite
from trivium.ir.ops.sdy import ShardyReturn
from trivium.ir.services import SERVICES
from trivium.ir.terminators import Return
from trivium.ir.text import print_op


def verify(operation: Operation) -> None:
    """Verifies an op and all inside it. Raises `VerificationError` with the op's text and the place it came from."""
    scope = set(operation.operands)
    if not (isinstance(operation, Op) and operation.has_trait(Trait.ISOLATED)):
        scope.update(value for region in operation.regions for value in region.free_values())
    _verify(operation, scope, Symbols(), 0)


def _verify(op: Operation, scope: set[Value], table: Symbols, depth: int) -> None:
    for index, value in enumerate(op.operands):
        if value not in scope:
            _broken(op, f"operand {index} is not defined before its use, in this region or one around it")
    if not isinstance(op, Op):
        _broken(op, "is not a declared op")
    _verify_structure(op)
    try:
        if (check := type(op).CHECK) is not None:
            check(op)
        if (check_symbols := type(op).CHECK_SYMBOLS) is not None:
            check_symbols(op, table)
    except VerificationError as error:
        _broken(op, error.message, error.label, error.kind)
    except Error as error:  # raised by a type that a constraint computes
        _broken(op, error.message)
    if isinstance(op, Module):
        _verify_symbols(op)
    if op.regions:
        _verify_regions(op, set() if op.has_trait(Trait.ISOLATED) else scope, table, depth + 1)


def _verify_regions(op: Operation, scope: set[Value], table: Symbols, depth: int) -> None:
    if depth > MAX_NESTING:
        _broken(op, f"is nested {depth} regions deep, expected at most {MAX_NESTING}")
    for region in op.regions:
        for block in region.blocks:
            opened: list[Value] = list(block.arguments)
            scope.update(opened)
            for inner in block:
                _verify(inner, scope, table, depth)
                scope.update(inner.results)
                opened.extend(inner.results)
            scope.difference_update(opened)


@dataclass(frozen=True)
class _Counts:
    """How many operands, results or regions an op may have."""

    what: str
    fields: tuple[Field, ...]
    least: int
    most: int | None
    lists: int


@cache
def _counts_of(cls: type[Op]) -> tuple[_Counts, ...]:
    counts = []
    for what, fields in (("operands", cls.OPERANDS), ("results", cls.RESULTS), ("regions", cls.REGIONS)):
        lists = sum(field.arity == "*" for field in fields)
        least = sum(not field.arity for field in fields)
        counts.append(_Counts(what, fields, least, None if lists else len(fields), lists))
    return tuple(counts)


def _verify_structure(op: Op) -> None:
    """Checks the counts of operands, results and regions, and the required attributes."""
    for counts, items in zip(_counts_of(type(op)), (op.operands, op.results, op.regions), strict=True):
        least, most, count = counts.least, counts.most, len(items)
        if count < least or (most is not None and count > most):
            expected = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
            _broken(op, f"has {count} {counts.what}, expected {expected}")
        if op.segments and counts.what in op.segments:
            _verify_groups(op, counts, op.segments[counts.what], count)
        elif counts.lists > 1 and (count - least) % counts.lists:
            _broken(op, f"has {count} {counts.what}, expected {counts.lists} groups of equal size")
    for field in type(op).ATTRIBUTES:
        if field.default is REQUIRED and op.attributes.get(field.name) is None:
            _broken(op, f"lacks its attribute {field.name}")
    for region in op.regions:
        _verify_block(op, region)


def _verify_groups(op: Op, counts: _Counts, sizes: tuple[int, ...], count: int) -> None:
    """Checks the group sizes that an op states: one for each field, within what the field allows."""
    if len(sizes) != len(counts.fields) or sum(sizes) != count:
        expected = f"{len(counts.fields)} groups that add up"
        _broken(op, f"has {count} {counts.what} in groups of {list(sizes)}, expected {expected}")
    for field, size in zip(counts.fields, sizes, strict=True):
        if size < 0 or (field.arity == "" and size != 1) or (field.arity == "?" and size > 1):
            expected = {"": "1", "?": "at most 1", "*": "at least 0"}[field.arity]
            _broken(op, f"has {size} {counts.what} as {field.name}, expected {expected}")


def _verify_block(op: Op, region: Region) -> None:
    """Checks that a region has at most one block, with a return as its last op and nowhere else."""
    if len(region.blocks) > 1:
        _broken(op, f"has a region of {len(region.blocks)} blocks, expected one")
    for block in region.blocks:
        if isinstance(op, Module):
            continue
        for inner in block:
            ends = isinstance(inner, Op) and inner.has_trait(Trait.TERMINATOR)
            if ends != (inner is block.last):
                _broken(inner, "is in the middle of its block" if ends else "ends its block, expected a return")
        if block.last is None:
            _broken(op, "has a region with an empty block, expected a return")
        if not _may_end(op, block.last):
            _broken(block.last, f"ends a region of {op.NAME}")


_RETURNS = {"stablehlo": Return, "chlo": Return, "sdy": ShardyReturn}


def _may_end(op: Op, last: Operation) -> bool:
    """Whether regions of an op may end in this return. As in MLIR, a function may end in any return, and a composite in
    any except a function's."""
    if isinstance(op, Function) or isinstance(last, FuncReturn):
        return isinstance(op, Function)
    expected = _RETURNS.get(op.NAME.partition(".")[0])
    return expected is None or isinstance(op, Composite) or isinstance(last, expected)


def _verify_symbols(module: Module) -> None:
    seen: set[str] = set()
    for name, op in symbols(module):
        if name in seen:
            _broken(op, f"the symbol @{name} is defined twice", kind=ConstraintKind.SYMBOL)
        seen.add(name)


def _broken(op: Operation, message: str, label: str = "", kind: ConstraintKind = ConstraintKind.TYPE) -> NoReturn:
    """Raises the error with the op's name, text and location. All messages of the verifier are put together here."""
    name = op.NAME.partition(".")[2] or type(op).__name__
    source = op.location.describe() or None
    text = message if message.startswith(f"{name}: ") else f"{name}: {message}"
    raise VerificationError(text, label=label, kind=kind, inside=print_op(op), source=source)


SERVICES.verify = verify
