"""The names of values in text, as MLIR assigns them: `%0`, `%1` in order, `%arg0` for arguments, `%cst` for constants,
and the names that came with the program. A region continues the numbering of the region around it."""

from __future__ import annotations

import re

from trivium.ir.core import Operation, Region, Value
from trivium.ir.text.assembly import form_of

_STRANGE = re.compile(r"[^\w$.-]", re.ASCII)


class _Scope:
    """The state at the start of a region: the names around it and the next numbers."""

    def __init__(self, around: _Scope | None = None):
        self.around = around
        self.used: set[str] = set()
        self.next_value = around.next_value if around else 0
        self.next_argument = around.next_argument if around else 0
        self.next_conflict = around.next_conflict if around else 0

    def is_used(self, name: str) -> bool:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.used:
                return True
            scope = scope.around
        return False

    def unique(self, name: str) -> str:
        """Returns the name, with a number appended if it is taken."""
        candidate = name
        while self.is_used(candidate):
            candidate = f"{name}_{self.next_conflict}"
            self.next_conflict += 1
        self.used.add(candidate)
        return candidate


def name_values(root: Operation, generic: bool = False) -> dict[Value, str]:
    """Returns the names of all values of an op and inside it. With `generic`, ops do not suggest names."""
    names: dict[Value, str] = {}
    outermost = _Scope()
    _name_results(root, names, outermost, generic)
    stack = [(region, outermost) for region in root.regions]
    while stack:
        region, around = stack.pop()
        scope = _Scope(around)
        _name_region(region, names, scope, generic)
        stack += [(inner, scope) for block in region.blocks for op in block for inner in op.regions]
    return names


def _name_region(region: Region, names: dict[Value, str], scope: _Scope, generic: bool) -> None:
    form = form_of(type(region.parent)) if region.parent is not None and not generic else None
    argument_name = getattr(form, "argument_name", None)
    for block in region.blocks:
        for argument in block.arguments:
            hint = sanitize(argument.name_hint) or (argument_name(argument.index) if argument_name else "")
            if not hint:
                hint = f"arg{scope.next_argument}"
                scope.next_argument += 1
            names[argument] = f"%{scope.unique(hint)}"
        for op in block:
            _name_results(op, names, scope, generic)


def _name_results(op: Operation, names: dict[Value, str], scope: _Scope, generic: bool) -> None:
    if not op.results:
        return
    hints = [sanitize(value.name_hint) for value in op.results]
    if not generic and not any(hints):
        hints = _declared_names(op)
    if len(hints) > 1 and all(hints) and len(set(hints)) > 1:
        names.update((value, f"%{scope.unique(hint)}") for value, hint in zip(op.results, hints, strict=True))
        return
    if hints[0]:
        name = f"%{scope.unique(hints[0])}"
    else:
        name = f"%{scope.next_value}"
        scope.next_value += 1
    if len(op.results) == 1:
        names[op.results[0]] = name
    else:
        names.update((value, f"{name}#{index}") for index, value in enumerate(op.results))


def _declared_names(op: Operation) -> list[str]:
    """Returns the names that an op suggests for its results: constants have a special name, and several results have
    the names of their fields."""
    result_name = getattr(form_of(type(op)), "result_name", None)
    if result_name is not None:
        return [result_name(op)]
    fields = getattr(op, "RESULTS", ())
    if len(fields) == len(op.results) > 1 and not any(field.arity for field in fields):
        return [field.name for field in fields]
    return [""] * len(op.results)


def sanitize(hint: str) -> str:
    """Turns a hint into a valid name: no special characters, no leading digit."""
    if not hint:
        return ""
    name = _STRANGE.sub("_", hint)
    return f"_{name}" if name[0].isdigit() else name
