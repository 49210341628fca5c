"""The constraints of implicit broadcasting, each broken once."""

from __future__ import annotations

from tests.ir.ops.constraints import breaks, value
from trivium.ir.core import Value
from trivium.ir.ops import (
    BroadcastAdd,
    BroadcastAnd,
    BroadcastCompare,
    BroadcastComplex,
    BroadcastSelect,
    BroadcastZeta,
    ChloComparisonDirection,
)
from trivium.ir.types import C128, F64, I1, I32, TOKEN, tensor

LT = ChloComparisonDirection.LT
PRED = value(3, of=I1)


def test_broadcast_binary_i1() -> None:
    with breaks("I1"):
        BroadcastAdd(Value(TOKEN), value(3))

    with breaks("I1"):
        BroadcastAnd(value(3), value(3))
    with breaks("I1"):
        BroadcastZeta(value(3, of=I32), value(3, of=I32))


def test_broadcast_binary_i2() -> None:
    with breaks("I2"):
        BroadcastAdd(value(3), Value(TOKEN))


def test_broadcast_binary_c1() -> None:
    with breaks("C1"):
        BroadcastAdd(value(3), value(3, of=F64))


def test_broadcast_binary_c2() -> None:
    for dimensions in ((0, 1), (2,), (-1,)):
        with breaks("C2"):
            BroadcastAdd(value(3), value(3, 4), broadcast_dimensions=dimensions)


def test_broadcast_binary_c3() -> None:
    with breaks("C3"):
        BroadcastAdd(value(3), value(4))
    with breaks("C3"):
        BroadcastAdd(value(3), value(3, 4))
    BroadcastAdd(value(3), value(3, 4), broadcast_dimensions=(0,))


def test_broadcast_binary_c4() -> None:
    with breaks("C4"):
        BroadcastAdd(value(3), value(1), result=tensor(1))


def test_broadcast_compare_i1() -> None:
    with breaks("I1"):
        BroadcastCompare(Value(TOKEN), value(3), LT)


def test_broadcast_compare_i2() -> None:
    with breaks("I2"):
        BroadcastCompare(value(3), Value(TOKEN), LT)


def test_broadcast_compare_o1() -> None:
    with breaks("O1"):
        BroadcastCompare(value(3), value(3), LT, result=tensor(3))


def test_broadcast_compare_c1() -> None:
    with breaks("C1"):
        BroadcastCompare(value(3), value(3, of=I32), LT)


def test_broadcast_compare_c2() -> None:
    with breaks("C2"):
        BroadcastCompare(value(3), value(3, 4), LT, broadcast_dimensions=())


def test_broadcast_compare_c3() -> None:
    with breaks("C3"):
        BroadcastCompare(value(3), value(4), LT)


def test_broadcast_compare_c4() -> None:
    with breaks("C4"):
        BroadcastCompare(value(3), value(1), LT, result=tensor(1, of=I1))


def test_broadcast_complex_i1() -> None:
    with breaks("I1"):
        BroadcastComplex(value(3, of=I32), value(3))


def test_broadcast_complex_i2() -> None:
    with breaks("I2"):
        BroadcastComplex(value(3), value(3, of=I32))


def test_broadcast_complex_c1() -> None:
    with breaks("C1"):
        BroadcastComplex(value(3), value(3, of=F64))


def test_broadcast_complex_c2() -> None:
    with breaks("C2"):
        BroadcastComplex(value(3), value(3, 4), broadcast_dimensions=(5,))


def test_broadcast_complex_c3() -> None:
    with breaks("C3"):
        BroadcastComplex(value(3), value(4))


def test_broadcast_complex_c4() -> None:
    with breaks("C4"):
        BroadcastComplex(value(3), value(3), result=tensor(3, of=C128))


def test_broadcast_select_i1() -> None:
    with breaks("I1"):
        BroadcastSelect(value(3), value(3), value(3))


def test_broadcast_select_i2() -> None:
    with breaks("I2"):
        BroadcastSelect(PRED, Value(TOKEN), value(3))


def test_broadcast_select_i3() -> None:
    with breaks("I3"):
        BroadcastSelect(PRED, value(3), Value(TOKEN))


def test_broadcast_select_c1() -> None:
    with breaks("C1"):
        BroadcastSelect(PRED, value(3), value(3, of=F64))


def test_broadcast_select_c3() -> None:
    with breaks("C3"):
        BroadcastSelect(PRED, value(4), value(1))


def test_broadcast_select_c4() -> None:
    with breaks("C4"):
        BroadcastSelect(PRED, value(3), value(1), result=tensor(1))
