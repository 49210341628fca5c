"""Local rewrites. A pattern is a function from an op to its replacement:

    @pattern(Add)
    def add_zero(op):
        \"\"\"x + 0 == x   (floats: only for -0.0)\"\"\"
        if is_zero(op.rhs):
            return op.lhs

It returns `None` (no match), a value, a tuple of values, or a new op whose results replace the old ones. New ops may
have new ops as operands: all ops that are not yet in a block are inserted before the op that is replaced. A pattern
builds ops only when it is certain to return them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from trivium.compiler.passes.watch import watcher
from trivium.ir.builder import Rewriter
from trivium.ir.core import Operation, Value
from trivium.ir.declare import Op
from trivium.ir.func import Module

Pattern = Callable[[Any], Operation | Value | tuple[Value, ...] | None]


class PatternSet:
    """Patterns by the class of the op at their root. The decorator `pattern` adds them."""

    def __init__(self, *others: PatternSet) -> None:
        self.patterns: dict[type[Op], list[Pattern]] = {}
        for other in others:
            for kind, patterns in other.patterns.items():
                self.patterns.setdefault(kind, []).extend(patterns)

    def pattern(self, *kinds: type[Op]) -> Callable[[Pattern], Pattern]:
        """Registers a pattern for ops of the given classes."""

        def register(function: Pattern) -> Pattern:
            for kind in kinds:
                self.patterns.setdefault(kind, []).append(function)
            return function

        return register

    def match(self, op: Operation) -> tuple[Value, ...] | None:
        """Returns the values by which the first matching pattern replaces the op's results, or None."""
        matched = self.find(op)
        return None if matched is None else matched[1]

    def find(self, op: Operation) -> tuple[Pattern, tuple[Value, ...]] | None:
        """Returns the first pattern that matches, and the values by which it replaces the op's results; or None."""
        for function in self.patterns.get(type(op), ()):  # type: ignore[arg-type]
            found = function(op)
            if found is None:
                continue
            if isinstance(found, Operation):
                return function, found.results
            return function, found if isinstance(found, tuple) else (found,)
        return None


def rewrite_to_fixpoint(module: Module, patterns: PatternSet, limit: int = 32) -> bool:
    """Applies the patterns until none matches, again to users of changed values. `limit` bounds the number of rewrites
    per op of the module, so that the process ends even if two patterns undo each other."""
    worklist = dict.fromkeys(reversed(list(module.walk())))
    budget = limit * (len(worklist) + 1)
    changed = False
    while worklist and budget:
        op, _ = worklist.popitem()
        if op.block is None:
            continue
        found = patterns.find(op)
        if found is None:
            continue
        rule, values = found
        changed = True
        budget -= 1
        affected = list(users_of(op.results))
        for inserted in replace(op, values, rule):
            worklist[inserted] = None
        worklist.update(dict.fromkeys(user for user in affected if user.block is not None))
    return changed


def replace(op: Operation, values: tuple[Value, ...], rule: Pattern | None = None) -> list[Operation]:
    """Replaces the op's results by `values` and erases the op. Returns the ops that were inserted. `rule` is the
    pattern that requested it."""
    for old, new in zip(op.results, values, strict=True):
        assert old.type is new.type, f"{op.NAME} of type {old.type} is replaced by a value of type {new.type}"
    observer = watcher()
    users = list(users_of(op.results)) if observer is not None else []
    rewriter = Rewriter(op)
    inserted = _insert_new(values, rewriter)
    rewriter.replace(*values)
    if observer is not None:
        observer.rewrote(rule, op, inserted, users)
    return inserted


def users_of(values: Iterable[Value]) -> Iterable[Operation]:
    """Yields every op that uses one of the values."""
    for value in values:
        yield from value.users


def _insert_new(values: Iterable[Value], rewriter: Rewriter) -> list[Operation]:
    """Inserts the ops that compute `values` and are not yet in a block, operands before users."""
    order: dict[Operation, None] = {}
    stack = [(value.defining_op, False) for value in values]
    while stack:
        op, ready = stack.pop()
        if op is None or op.block is not None or op in order:
            continue
        if ready:
            order[op] = None
            continue
        stack.append((op, True))
        stack.extend((operand.defining_op, False) for operand in op.operands)
    for op in order:
        rewriter.add(op)
    return list(order)
