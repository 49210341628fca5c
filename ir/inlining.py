"""Inlining: calls and composites become the body of what they name, unless the result would be far larger than the
program is: a few functions that each call the one before twice would be more than a machine can hold."""

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
"""The operations that a function may have with its calls inlined, however short the program is."""
ALLOWED_GROWTH = 256
"""How many times the operations that are written it may have. Real models call a function once for each layer."""
MOST_GROWN = 1 << 20
"""The operations that no growth may pass."""


def inline_calls(function: Function) -> bool:
    """Leaves no call and no composite in a function, or raises a `CompileError`: before any work where the result would
    be too large or nested too deep, and for recursion, which the language does not have. Its callees stay as they
    are."""
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
    """The ops from `first` up to `end`, with all inside them."""
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


# What inlining would make, found before it is done

_MANY = 10**18
"""Counts go no higher: exact ones of long chains of functions have as many digits as the chains have functions."""


@dataclass
class _Extent:
    """What a function has by itself, and the calls in it; then what it has with them inlined."""

    operations: int  # of very many, `_MANY`
    nesting: int
    calls: list[tuple[Function, int]]
    """Each callee with how many regions the call stands inside."""


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
    """What a function has by itself; a callee takes the place of its call."""
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
    """The functions that one reaches, each after those that it calls; `extents` learns of each."""
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
