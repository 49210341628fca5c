"""Checks a program: the structure that every op shares (counts, scope, terminators, symbols), then each op's own
constraints. A check costs nothing beyond itself while it holds: no message is formatted."""

from __future__ import annotations

from typing import NoReturn

from trivium.ir.attributes import SymbolRef
from trivium.ir.core import Operation, Region, Value
from trivium.ir.declare import REQUIRED, Op, Trait
from trivium.ir.errors import VerificationError, fail
from trivium.ir.func import Call, FuncReturn, Function, Module, lookup, symbols
from trivium.ir.ops.collective import Collective
from trivium.ir.ops.control import Composite
from trivium.ir.types import compatible

MAX_NESTING = 200
"""Regions inside regions; real programs stay below ten."""


def verify(operation: Operation) -> None:
    """Verifies an op and all inside it. Raises `VerificationError` with the op's text and the place it came from."""
    scope = set(operation.operands)
    if not (isinstance(operation, Op) and operation.has_trait(Trait.ISOLATED)):
        scope.update(value for region in operation.regions for value in region.free_values())
    _verify(operation, scope, 0)


def _verify(op: Operation, scope: set[Value], depth: int) -> None:
    for index, value in enumerate(op.operands):
        if value not in scope:
            _broken(op, f"operand {index} is not defined before its use, in this region or one around it")
    if not isinstance(op, Op):
        _broken(op, "is no declared op")
    _verify_structure(op)
    try:
        if (check := type(op).CHECK) is not None:
            check(op)
        if isinstance(op, Call):
            _check_callee(op, op.callee, ("", "", ""))
        elif isinstance(op, Composite):
            _check_callee(op, op.decomposition, ("C2", "C3", "C4"))
        elif isinstance(op, Collective):
            _check_mesh(op)
    except VerificationError as error:
        _broken(op, error.message, error.label)
    if isinstance(op, Module):
        _verify_symbols(op)
    if op.regions:
        _verify_regions(op, set() if op.has_trait(Trait.ISOLATED) else scope, depth + 1)


def _verify_regions(op: Operation, scope: set[Value], depth: int) -> None:
    if depth > MAX_NESTING:
        _broken(op, f"is nested {depth} regions deep, expected at most {MAX_NESTING}")
    for region in op.regions:
        for block in region.blocks:
            opened: list[Value] = list(block.arguments)
            scope.update(opened)
            for inner in block:
                _verify(inner, scope, depth)
                scope.update(inner.results)
                opened.extend(inner.results)
            scope.difference_update(opened)
        _verify_terminators(op, region)


def _verify_structure(op: Op) -> None:
    """Counts of operands, results and regions, and the attributes that must be there."""
    cls = type(op)
    for what, fields, items in (
        ("operands", cls.OPERANDS, op.operands),
        ("results", cls.RESULTS, op.results),
        ("regions", cls.REGIONS, op.regions),
    ):
        least = sum(not field.arity for field in fields)
        most = None if any(field.arity == "*" for field in fields) else len(fields)
        if len(items) < least or (most is not None and len(items) > most):
            expected = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
            _broken(op, f"has {len(items)} {what}, expected {expected}")
        sizes = (op.segments or {}).get(what)
        lists = sum(field.arity == "*" for field in fields)
        if sizes is not None and (len(sizes) != len(fields) or sum(sizes) != len(items)):
            _broken(
                op, f"has {len(items)} {what} in groups of {list(sizes)}, expected {len(fields)} groups that add up"
            )
        if sizes is None and lists > 1 and (len(items) - least) % lists:
            _broken(op, f"has {len(items)} {what}, expected {lists} groups of equal size")
    for field in cls.ATTRIBUTES:
        if field.default is REQUIRED and op.attributes.get(field.name) is None:
            _broken(op, f"lacks its attribute {field.name}")


def _verify_terminators(op: Operation, region: Region) -> None:
    if isinstance(op, Module):
        return
    for block in region.blocks:
        for inner in block:
            ends = isinstance(inner, Op) and inner.has_trait(Trait.TERMINATOR)
            if ends != (inner is block.last):
                _broken(inner, "stands in the middle of its block" if ends else "ends its block, expected a return")
        if block.last is None:
            _broken(op, "has a region with an empty block, expected a return")
        if isinstance(op, Function) != isinstance(block.last, FuncReturn):
            _broken(block.last, f"ends a region of {op.NAME}")


def _check_callee(op: Operation, callee: SymbolRef, labels: tuple[str, str, str]) -> None:
    """The constraints that ask for the function of a symbol; `labels` are those of its absence, operands, results."""
    function = lookup(op, callee)
    if not isinstance(function, Function) or function.function_type is None:
        fail(labels[0], f"{callee} is no function of the module")
    expected = function.function_type
    for what, have, want, label in (
        ("operands", op.operand_types, expected.inputs, labels[1]),
        ("results", op.result_types, expected.results, labels[2]),
    ):
        if len(have) != len(want) or not all(map(compatible, have, want)):
            fail(label, f"has {what} ({', '.join(map(str, have))}), {callee} is {expected}")


def _check_mesh(op: Collective) -> None:
    """Groups along axes of a mesh that is named: it must be there."""
    mesh = getattr(op.replica_groups, "mesh", None)
    if isinstance(mesh, SymbolRef) and lookup(op, mesh) is None:
        fail("", f"replica_groups has mesh {mesh}, which the module does not have")


def _verify_symbols(module: Module) -> None:
    seen: set[str] = set()
    for name, op in symbols(module):
        if name in seen:
            _broken(op, f"the symbol @{name} is defined twice")
        seen.add(name)


def _broken(op: Operation, message: str, label: str = "") -> NoReturn:
    """Raises with the op's name, text and place; the one spot where a message is put together."""
    from trivium.ir.text import print_op

    name = op.NAME.partition(".")[2] or type(op).__name__
    source = op.location.describe() or None
    text = message if message.startswith(f"{name}: ") else f"{name}: {message}"
    raise VerificationError(text, label=label, inside=print_op(op), source=source)
