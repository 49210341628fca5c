"""Asynchronous collectives: `async_start` returns a future, and `async_done` waits for its value. The interpreter does
all the work at the start."""

from __future__ import annotations

from trivium.ir.core import Region
from trivium.ir.declare import RECURSIVE_EFFECTS, Op, Operand, Operands, Result, Trait
from trivium.ir.errors import fail
from trivium.ir.ops.collective import (
    AllGather,
    AllReduce,
    AllToAll,
    CollectiveBroadcast,
    CollectivePermute,
    CollectiveReduce,
    ReduceScatter,
)
from trivium.ir.ops.indexing import DynamicSlice, DynamicUpdateSlice, Slice
from trivium.ir.ops.regions import inputs_of, outputs_of
from trivium.ir.types import FutureType, compatible

__all__ = ["AsyncDone", "AsyncStart"]

STARTED = (
    *(AllGather, AllReduce, AllToAll, CollectiveBroadcast, CollectivePermute, CollectiveReduce, ReduceScatter),
    *(DynamicSlice, DynamicUpdateSlice, Slice),
)
"""The ops that may run asynchronously."""


class AsyncStart(Op, name="stablehlo.async_start", traits={RECURSIVE_EFFECTS, Trait.ISOLATED}):
    """Starts the only op of `body`, and returns its result as a future."""

    inputs: Operands
    body: Region
    result: Result

    def infer(body):
        return FutureType(outputs_of(body))

    def check(inputs, body, result):
        takes, gives = inputs_of(body), outputs_of(body)
        started = [op for op in body.block if op is not body.block.last]
        if len(started) != 1:
            fail("C1", f"body has {len(started)} ops besides its return, expected one")
        if not isinstance(started[0], STARTED):
            expected = ", ".join(cls.short_name() for cls in STARTED)
            fail("C2", f"body has {started[0].NAME}, expected one of {expected}")
        if not _same(inputs, takes):
            fail("C3", f"inputs have types {_words(inputs)}, body takes {_words(takes)}")
        if len(gives) != 1:
            fail("C4", f"body returns {len(gives)} values, expected one")
        if not compatible(result, FutureType(gives)):
            fail("C4", f"result has type {result}, expected {FutureType(gives)}")

    def evaluate(inputs, body):
        return body(*inputs)


class AsyncDone(Op, name="stablehlo.async_done"):
    """Waits for a future, and returns its value."""

    future: Operand
    result: Result

    def infer(future):
        _expect_future(future)
        return future.types[0]

    def check(future, result):
        _expect_future(future)
        if not compatible(result, future.types[0]):
            fail("C1", f"result has type {result}, future has {future.types[0]}")

    def evaluate(future):
        return future[0]


def _expect_future(kind):
    if not isinstance(kind, FutureType) or len(kind.types) != 1:
        fail("I1", f"future has type {kind}, expected a future of one value")


def _same(types, others):
    return len(types) == len(others) and all(map(compatible, types, others))


def _words(types):
    return f"({', '.join(map(str, types))})"
