"""The times of a program's steps, recorded by the code itself. An entry function that is emitted with a `Timer` reads
the clock before and after each launch, copy and call, and writes both to a table, whose address is the last pointer of
its context. One that is emitted with a `Tracer` reports its launches to the native runtime, which has a profiler's
events of all programs. All other code is that of the program without either."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import llvmlite.ir as ll
import numpy as np

from trivium.backends.llvm.code import I32, I64, POINTER, Code
from trivium.compiler.program import Launch, Step, Switch, While

MONOTONIC = 1
"""The number of Linux's clock that never goes back."""

MOST_EVENTS = 1 << 18
"""How many steps of one run are kept; of a loop with more, the first ones."""

EVENT = np.dtype([("step", np.int64), ("start", np.int64), ("end", np.int64)])
"""A step that ran, by its number, and when, in nanoseconds."""


def table() -> np.ndarray:
    """Returns an empty table: how many steps ran, and then the events."""
    return np.zeros(1 + 3 * MOST_EVENTS, np.int64)


def events(filled: np.ndarray) -> np.ndarray:
    """Returns the events in a table, in order."""
    return filled[1 : 1 + 3 * min(int(filled[0]), MOST_EVENTS)].view(EVENT)


class Timer:
    """Emits code that records steps in the table at `address`. `steps` are those that were emitted, by number."""

    def __init__(self, module: ll.Module, builder: ll.IRBuilder, address: ll.Value):
        self.steps: list[Step] = []
        self._builder, self._address = builder, address
        self._now = _now(module)
        self._record = _record(module, self._now)

    @contextmanager
    def around(self, step: Step) -> Iterator[None]:
        """Times the code that is emitted inside. Control flow has no time of its own."""
        if isinstance(step, While | Switch):
            yield
            return
        number = len(self.steps)
        self.steps.append(step)
        start = self._builder.call(self._now, [])
        yield
        self._builder.call(self._record, [self._address, I64(number), start])


class Tracer:
    """Emits code that reports each launch to the runtime (`backends/native/trace.cc`). `text` makes a pointer to a
    constant."""

    def __init__(self, code: Code, text: Callable[[str], ll.Value]):
        self._code, self._text = code, text

    @contextmanager
    def around(self, step: Step) -> Iterator[None]:
        """Reports the code that is emitted inside, if it is a launch: the kernel, and the user's lines."""
        if not isinstance(step, Launch):
            yield
            return
        self._code.call("trivium_launch_begin", ll.VoidType())
        yield
        self._code.call("trivium_launch_end", ll.VoidType(), self._text(f"{step.kernel.name}\n{step.source}"))


def _now(module: ll.Module) -> ll.Function:
    """Defines `i64 trivium.now()`: nanoseconds."""
    clock = ll.Function(module, ll.FunctionType(I32, [I32, POINTER]), "clock_gettime")
    function = ll.Function(module, ll.FunctionType(I64, []), "trivium.now")
    function.linkage = "internal"
    builder = ll.IRBuilder(function.append_basic_block("entry"))
    time = builder.alloca(ll.ArrayType(I64, 2))
    builder.call(clock, [I32(MONOTONIC), time])
    seconds, nanoseconds = (
        builder.load(builder.gep(time, [I64(field)], source_etype=I64), typ=I64) for field in range(2)
    )
    builder.ret(builder.add(builder.mul(seconds, I64(10**9)), nanoseconds))
    return function


def _record(module: ll.Module, now: ll.Function) -> ll.Function:
    """Defines `void trivium.record(ptr table, i64 step, i64 start)`."""
    function = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER, I64, I64]), "trivium.record")
    function.linkage = "internal"
    table, step, start = function.args
    builder = ll.IRBuilder(function.append_basic_block("entry"))
    end = builder.call(now, [])
    count = builder.load(table, typ=I64)
    builder.store(builder.add(count, I64(1)), table)
    with builder.if_then(builder.icmp_unsigned("<", count, I64(MOST_EVENTS))):
        first = builder.add(builder.mul(count, I64(3)), I64(1))
        for field, value in enumerate((step, start, end)):
            place = builder.gep(table, [builder.add(first, I64(field))], source_etype=I64)
            builder.store(value, place)
    builder.ret_void()
    return function
