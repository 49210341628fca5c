"""Describes an op or a value and its origin, for errors."""

from __future__ import annotations

from trivium.ir.core import Operation, Value


def text_of(op: Operation) -> str:
    """Returns an op as text on one line."""
    operands = ", ".join(str(value.type) for value in op.operands)
    return f'"{op.NAME}"({operands}) -> {", ".join(str(value.type) for value in op.results)}'


def origin_of(source: Operation | Value) -> dict[str, str | None]:
    """Returns the parts of an error that say where an op, or the op that defines a value, is; empty for arguments."""
    op = source.defining_op if isinstance(source, Value) else source
    if op is None:
        return {}
    return {"inside": text_of(op), "source": op.location.describe() or None}
