"""The constraints of asynchronous ops, each broken once."""

from __future__ import annotations

import pytest

from tests.ir.ops.constraints import breaks, value
from tests.ir.ops.test_collective_constraints import add
from tests.ir.test_parallel import ASYNCHRONOUS
from trivium.ir.builder import region
from trivium.ir.core import Region, Value
from trivium.ir.errors import ParseError
from trivium.ir.ops import Add, AllReduce, AsyncDone, AsyncStart, CollectiveBroadcast
from trivium.ir.text import parse
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
    pair = region([tensor(3)], lambda b, x: b.add(AllReduce([x, x], replica_groups=((0, 1),), computation=add())))
    with breaks("C4"):
        AsyncStart([value(3)], pair, result=FutureType((tensor(3),)))
    AsyncStart([value(3)], broadcast())


def test_a_body_sees_nothing_from_outside() -> None:
    text = ASYNCHRONOUS.replace("(%2) {replica_groups", "(%0) {replica_groups")
    with pytest.raises(ParseError, match="%0 is not defined"):
        parse(text)


def test_async_done_i1() -> None:
    with breaks("I1"):
        AsyncDone(value(3))
    with breaks("I1"):
        AsyncDone(Value(FutureType((tensor(3), tensor(3)))))


def test_async_done_c1() -> None:
    with breaks("C1"):
        AsyncDone(Value(FutureType((tensor(3),))), result=tensor(4))
