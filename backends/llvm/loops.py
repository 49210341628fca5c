"""Counted loops in generated code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import llvmlite.ir as ll

from trivium.backends.llvm.code import I64, Code
from trivium.backends.llvm.numbers import Int, Number, i64


@dataclass
class Loop:
    """The inside of a loop: its index, the values that it carries, and their next values, which the body sets. After
    the loop, `carried` holds their last values."""

    index: Number
    carried: list[ll.Value]
    next: list[ll.Value] = field(default_factory=list)


@contextmanager
def counted(
    code: Code,
    begin: Number,
    end: Number,
    step: int = 1,
    carried: Sequence[ll.Value] = (),
    nonempty: bool = False,
    opaque: bool = False,
) -> Iterator[Loop]:
    """Runs its body for begin, begin + step, ... below `end`. The test is at the bottom, and also at the top unless the
    bounds are known or the loop is `nonempty`; a body that is known to run once is emitted without a loop. If the index
    is `opaque`, LLVM does not look for cheaper ways to compute the addresses that depend on it: a search that takes
    long where there are many, and may gain nothing."""
    if isinstance(begin, int) and isinstance(end, int) and begin < end:
        if end <= begin + step:
            loop = Loop(begin, list(carried))
            yield loop
            loop.carried = loop.next
            return
        nonempty = True
    builder = code.builder
    start, stop, before = i64(begin), i64(end), builder.block
    body, after = builder.append_basic_block("loop"), builder.append_basic_block("end")
    if nonempty:
        builder.branch(body)
    else:
        builder.cbranch(builder.icmp_signed("<", start, stop), body, after)
    builder.position_at_end(body)
    index, *phis = (code.phi([(value, before)]) for value in (start, *carried))
    loop = Loop(Int(code, _opaque(code, index) if opaque else index), phis)
    yield loop
    following = builder.add(index, I64(step), flags=("nsw",))
    latch = builder.block
    builder.cbranch(builder.icmp_signed("<", following, stop), body, after)
    for phi, value in zip((index, *phis), (following, *loop.next), strict=True):
        phi.add_incoming(value, latch)
    builder.position_at_end(after)
    loop.carried = loop.next
    if not nonempty:
        pairs = zip(carried, loop.next, strict=True)
        loop.carried = [code.phi([(first, before), (last, latch)]) for first, last in pairs]


def _opaque(code: Code, value: ll.Value) -> ll.Value:
    """Returns the same value, of which LLVM then knows nothing. It becomes no instruction."""
    return code.builder.asm(ll.FunctionType(I64, [I64]), "", "=r,0", [value], side_effect=False)
