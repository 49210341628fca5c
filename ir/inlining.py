"""Inlining: calls and composites are replaced by the body of the function that they name, unless the result would be
far larger than the program: a few functions that each call the previous one twice would exhaust any machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from trivium.ir.attributes import SymbolRef
from trivium.ir.builder import Rewriter, inline_block
from trivium.ir.core import MAX_NESTING, Operation
from trivium.ir.errors import CompileError
from trivium.ir.func import Call, Function, Symbols, resolve
from trivium.ir.ops import Composite

ALWAYS_ALLOWED = 1 << 15
"""The number of operations that a function may have after inlining, however short the program is."""
ALLOWED_GROWTH = 256
"""How many times the program's own number of operations it may have. Real models call a function once for each
layer."""
MOST_GROWN = 1 << 20
"""The number of operations that no growth may exceed."""


def inline_calls(function: Function) -> bool:
    """Replaces all calls and composites in a function; returns whether there were any. The called functions do not
    change. Raises `CompileError`, before any change, if the result would be too large or nested too deep, or if there
    is recursion, which the language does not allow."""
    symbols = Symbols()
    _check_size(function, symbols)
    waiting = _calls(function.walk())
    changed = bool(waiting)
    while waiting:
        call = waiting.pop()
        body = _callee(call, symbols).body.block
        rewriter = Rewriter(call)
        before = call.previous
        values = inline_block(body, call.operands, rewriter)
        first = before.next if before is not None else rewriter.block.first
        waiting += _calls(_between(first, call))
        rewriter.replace(*values)
    return changed


def _is_call(op: Operation) -> TypeGuard[Call | Composite]:
    return isinstance(op, Call | Composite)


def _calls(ops: Iterator[Operation]) -> list[Operation]:
    return [op for op in ops if _is_call(op)]


def _between(first: Operation | None, end: Operation) -> Iterator[Operation]:
    """Yields the ops from `first` up to `end`, and all ops inside them."""
    while first is not end:
        assert first is not None
        yield from first.walk()
        first = first.next


def _callee(op: Operation, symbols: Symbols) -> Function:
    symbol: SymbolRef = op.callee if isinstance(op, Call) else op.decomposition  # type: ignore[attr-defined]
    function = resolve(op, symbol, symbols)
    if function.is_declaration:
        raise CompileError(f"{symbol} has no body", source=op.location.describe() or None)
    return function


# The size of the result, computed before inlining

_MANY = 10**18
"""The limit of counts: exact counts for long chains of functions have as many digits as the chains have functions."""


@dataclass
class _Extent:
    """The size of a function and the calls in it; later, its size after inlining."""

    operations: int  # at most `_MANY`
    nesting: int
    calls: list[tuple[Function, int]]
    """Each callee, with the number of regions around the call."""


def _check_size(function: Function, symbols: Symbols) -> None:
    extents = {}
    for called in _callees_first(function, lambda current: _extent(current, symbols), extents):
        extent = extents[called]
        copied = sum(extents[callee].operations - 1 for callee, _ in extent.calls)  # all but the return
        extent.operations = min(extent.operations + copied, _MANY)
        depths = (depth + extents[callee].nesting for callee, depth in extent.calls)
        extent.nesting = max((extent.nesting, *depths))
    extent, written = extents[function], sum(1 for called in extents for _ in called.walk())
    allowed = max(ALWAYS_ALLOWED, min(ALLOWED_GROWTH * written, MOST_GROWN), written)
    name, source = f"@{function.sym_name}", function.location.describe() or None
    if extent.operations > allowed:
        has = str(extent.operations) if extent.operations < _MANY else "more than 10^18"
        message = f"{name} has {has} operations once its calls are inlined, expected at most {allowed}"
        raise CompileError(f"{message} (the functions that it reaches have {written})", source=source)
    nesting = extent.nesting + 2  # with those of the module and of the function
    if nesting > MAX_NESTING:
        message = f"{name} has regions nested {nesting} deep once its calls are inlined"
        raise CompileError(f"{message}, expected at most {MAX_NESTING}", source=source)


def _extent(function: Function, symbols: Symbols) -> _Extent:
    """Returns the size of a function itself; calls are not counted, because the callee replaces them."""
    extent = _Extent(0, 0, [])
    stack: list[tuple[Operation, int]] = [(op, 0) for op in function.body.block]
    while stack:
        op, depth = stack.pop()
        if _is_call(op):
            extent.calls.append((_callee(op, symbols), depth))
        else:
            extent.operations += 1
        inner = [inner for region in op.regions for block in region.blocks for inner in block]
        extent.nesting = max(extent.nesting, depth + bool(op.regions))
        stack += [(op, depth + 1) for op in inner]
    return extent


def _callees_first(
    function: Function, extent: Callable[[Function], _Extent], extents: dict[Function, _Extent]
) -> Iterator[Function]:
    """Yields the functions that `function` reaches, each after those that it calls, and adds each to `extents`."""
    active: dict[Function, Iterator[Function]] = {}
    following: Function | None = function
    while following is not None:
        if following in active:
            raise CompileError(f"@{following.sym_name} calls itself: recursion is not supported")
        if following not in extents:
            extents[following] = extent(following)
            active[following] = iter([callee for callee, _ in extents[following].calls])
        following = None
        while active and following is None:
            current, callees = next(reversed(active.items()))
            following = next(callees, None)
            if following is None:
                del active[current]
                yield current
