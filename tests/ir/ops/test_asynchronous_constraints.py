"""The constraints of asynchronous ops, each broken once."""

from __future__ import annotations

from tests.ir.ops.constraints import breaks, value
from trivium.ir.builder import region
from trivium.ir.core import Region, Value
from trivium.ir.ops import Add, AsyncDone, AsyncStart, CollectiveBroadcast
from trivium.ir.types import FutureType, tensor


def broadcast() -> Region:
    return region([tensor(3)], lambda b, x: b.add(CollectiveBroadcast([x], replica_groups=((0, 1),))))


def test_async_start_c1() -> None:
    with breaks("C1"):
        AsyncStart([value(3)], region([tensor(3)], lambda builder, x: x))


def test_async_start_c2() -> None:
    with breaks("C2"):
        AsyncStart([value(3)], region([tensor(3)], lambda builder, x: builder.add(Add(x, x))))


def test_async_start_c3() -> None:
    with breaks("C3"):
        AsyncStart([value(4)], broadcast())


def test_async_start_c4() -> None:
    with breaks("C4"):
        AsyncStart([value(3)], broadcast(), result=FutureType((tensor(4),)))
    AsyncStart([value(3)], broadcast())


def test_async_done_i1() -> None:
    with breaks("I1"):
        AsyncDone(value(3))


def test_async_done_c1() -> None:
    with breaks("C1"):
        AsyncDone(Value(FutureType((tensor(3),))), results=[tensor(4)])
