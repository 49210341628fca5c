"""Collectives that run while others do: `async_start` gives a future, `async_done` waits for its values. Evaluated, an
op has done its work once it was started."""

from __future__ import annotations

from trivium.ir.core import Region
from trivium.ir.declare import RECURSIVE_EFFECTS, Op, Operand, Operands, Result, Results
from trivium.ir.errors import fail
from trivium.ir.ops.collective import (
    AllGather,
    AllReduce,
    AllToAll,
    CollectiveBroadcast,
    CollectivePermute,
    ReduceScatter,
)
from trivium.ir.ops.indexing import DynamicSlice, DynamicUpdateSlice, Slice
from trivium.ir.ops.regions import inputs_of, outputs_of
from trivium.ir.types import FutureType, compatible

__all__ = ["AsyncDone", "AsyncStart"]

STARTED = (
    *(AllGather, AllReduce, AllToAll, CollectiveBroadcast, CollectivePermute, ReduceScatter),
    *(DynamicSlice, DynamicUpdateSlice, Slice),
)
"""What may run asynchronously."""


class AsyncStart(Op, name="stablehlo.async_start", traits={RECURSIVE_EFFECTS}):
    """Starts the one op of `body`, and gives its results as a future."""

    inputs: Operands
    body: Region
    result: Result

    def infer(body):
        return FutureType(outputs_of(body))

    def check(inputs, body, result):
        started = [op for op in body.block if op is not body.block.last]
        if len(started) != 1:
            fail("C1", f"body has {len(started)} ops besides its return, expected one")
        if not isinstance(started[0], STARTED):
            expected = ", ".join(cls.short_name() for cls in STARTED)
            fail("C2", f"body has {started[0].NAME}, expected one of {expected}")
        if not _same(inputs, inputs_of(body)):
            fail("C3", f"inputs have types {_words(inputs)}, body takes {_words(inputs_of(body))}")
        if not compatible(result, FutureType(outputs_of(body))):
            fail("C4", f"result has type {result}, expected {FutureType(outputs_of(body))}")

    def evaluate(inputs, body):
        return body(*inputs)


class AsyncDone(Op, name="stablehlo.async_done"):
    """The values of a future, once they are there."""

    future: Operand
    results: Results

    def infer(future):
        _expect_future(future)
        return list(future.types)

    def check(future, results):
        _expect_future(future)
        if not _same(results, future.types):
            fail("C1", f"results have types {_words(results)}, future has {_words(future.types)}")

    def evaluate(future):
        return future


def _expect_future(kind):
    if not isinstance(kind, FutureType):
        fail("I1", f"future has type {kind}, expected a future")


def _same(types, others):
    return len(types) == len(others) and all(map(compatible, types, others))


def _words(types):
    return f"({', '.join(map(str, types))})"
