"""Inlining: calls and composites become the body of what they name."""

from __future__ import annotations

from trivium.ir.attributes import SymbolRef
from trivium.ir.builder import Rewriter, inline_block
from trivium.ir.core import Operation
from trivium.ir.errors import CompileError
from trivium.ir.func import Call, Function, resolve
from trivium.ir.ops import Composite


def inline_calls(function: Function, done: set[Function]) -> bool:
    """Leaves no call and no composite in a function, nor in those that it calls; `done` has those without, and learns.

    Callees come first, each once, so that a body is copied only when it holds no call any more. Recursion is a
    `CompileError`: the language has none.
    """
    changed = False
    stack = [function]
    while stack:
        current = stack[-1]
        calls = [op for op in current.walk() if isinstance(op, Call | Composite)]
        waiting = [callee for callee in dict.fromkeys(map(_callee, calls)) if callee not in done]
        for callee in waiting:
            if callee in stack:
                raise CompileError(f"@{callee.sym_name} calls itself: recursion is not supported")
        if waiting:
            stack.append(waiting[0])
            continue
        for call in calls:
            _expand(call)
        changed |= bool(calls)
        done.add(current)
        stack.pop()
    return changed


def _callee(op: Operation) -> Function:
    symbol: SymbolRef = op.callee if isinstance(op, Call) else op.decomposition  # type: ignore[attr-defined]
    function = resolve(op, symbol)
    if function.is_declaration:
        raise CompileError(f"{symbol} has no body", source=op.location.describe() or None)
    return function


def _expand(call: Operation) -> None:
    rewriter = Rewriter(call)
    rewriter.replace(*inline_block(_callee(call).body.block, call.operands, rewriter))
