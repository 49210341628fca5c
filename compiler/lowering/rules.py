"""The tables of lowering rules, by op. An op has one of: an `element` rule (computes its result at given indices from
elements of its operands), an `indexing` rule (the result is its operand at other indices), a `kernel` rule (it takes
separate launches), or a `step` rule (it becomes steps of the program: control flow, calls to the host)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trivium.ir.core import Operation, Value
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.errors import Error

ELEMENT: dict[type, Callable[..., Any]] = {}
"""(context, op, indices) -> the scalar at `indices`; a list of scalars for ops with a list of results."""

INDEXING: dict[type, Callable[..., Any]] = {}
"""(op, indices) -> the indices of the first operand's element that the result has at `indices`."""

KERNEL: dict[type, Callable[..., None]] = {}
"""(launches, op): emits the kernels, one after the other."""

SPECIAL: dict[type, tuple[Callable[[Any], bool], Callable[..., None]]] = {}
"""For ops with an element rule: when they nevertheless become a separate kernel, and the rule for it."""

STEP: dict[type, Callable[..., None]] = {}
"""(lowering, op): appends steps to the program."""

SCALAR: dict[type, Callable[..., Any]] = {}
"""(context, op) -> the scalars of its results, for control flow inside a region of scalars."""

IN_PLACE: dict[type, str] = {}
"""For ops with a kernel rule that updates operands in place: the name of the field with these operands."""

REPEATING: set[type] = set()
"""Ops that may read an element of an operand several times: only index changes are fused into them."""

BRANCHING: set[type] = set()
"""Ops whose elements are chosen by a branch."""


def element(*ops: type[Op], repeats: bool = False, branches: bool = False) -> Callable[[Callable], Callable]:
    """Declares an element rule. `repeats`: it reads elements of operands more than once. `branches`: it computes one of
    several scalars."""
    if repeats:
        _note(ops)
    if branches:
        BRANCHING.update(ops)
    return lambda rule: _declare(ELEMENT, ops, rule)


def indexing(*ops: type[Op]) -> Callable[[Callable], Callable]:
    """Declares an indexing rule."""
    return lambda rule: _declare(INDEXING, ops, rule)


def kernel(*ops: type[Op], in_place: str = "") -> Callable[[Callable], Callable]:
    """Declares a kernel rule."""
    _note(ops)
    if in_place:
        for op in ops:
            _file(IN_PLACE, op, in_place)
    return lambda rule: _declare(KERNEL, ops, rule)


def special_kernel(op: type[Op], when: Callable[[Any], bool]) -> Callable[[Callable], Callable]:
    """Declares a kernel rule for the cases of an op in which `when` holds."""

    def declare(rule: Callable) -> Callable:
        _file(SPECIAL, op, (when, rule))
        return rule

    return declare


def kernel_rule(op: Operation) -> Callable[..., None] | None:
    """Returns the rule by which an op becomes a separate kernel, or None."""
    when, rule = SPECIAL.get(type(op), (None, None))
    return rule if when is not None and when(op) else KERNEL.get(type(op))


def step(*ops: type[Op]) -> Callable[[Callable], Callable]:
    """Declares a step rule."""
    return lambda rule: _declare(STEP, ops, rule)


def scalar(*ops: type[Op]) -> Callable[[Callable], Callable]:
    """Declares the rule for an op inside a region of scalars, in addition to its rule for other places."""

    def declare(rule: Callable) -> Callable:
        for op in ops:
            _file(SCALAR, op, rule)
        return rule

    return declare


def is_elementwise(op: Operation | type[Op]) -> bool:
    return ELEMENTWISE in getattr(op, "TRAITS", ())


def has_lowering(op: type[Op]) -> bool:
    """Whether any table has a rule for `op`."""
    return any(op in table for table in (ELEMENT, INDEXING, KERNEL, STEP))


def _declare(table: dict[type, Any], ops: tuple[type[Op], ...], rule: Callable) -> Callable:
    for op in ops:
        if has_lowering(op):
            raise Error(f"{op.NAME} has two lowering rules, the second is {rule.__module__}.{rule.__name__}")
        table[op] = rule
    return rule


def _file(table: dict[type, Any], op: type[Op], entry: Any) -> None:
    """Adds an entry to a table that may contain ops of other tables as well."""
    if op in table:
        raise Error(f"{op.NAME} is declared twice in one table of lowering rules, the second time as {entry}")
    table[op] = entry


def _note(ops: tuple[type[Op], ...]) -> None:
    """Records ops that read elements several times."""
    for op in ops:
        if op in REPEATING:
            raise Error(f"{op.NAME} is declared twice as an op that reads elements several times")
        REPEATING.add(op)


def updated_in_place(op: Operation) -> list[tuple[Value, Value]]:
    """Returns the operands that the op's kernel updates in place, each with the result that replaces it."""
    if type(op) not in IN_PLACE:
        return []
    operands = getattr(op, IN_PLACE[type(op)])
    pairs = zip((operands,) if isinstance(operands, Value) else operands, op.results, strict=True)
    return [(operand, result) for operand, result in pairs if operand.type == result.type]
