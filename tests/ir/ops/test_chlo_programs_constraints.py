"""The constraints of CHLO's scans, products by groups and constants, each broken once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ir.ops.constraints import breaks, value
from trivium.ir.attributes import DenseElements, Float
from trivium.ir.builder import region
from trivium.ir.core import Value
from trivium.ir.ops import (
    ChloConstant,
    ChloPrecision,
    ConstantLike,
    Mulhi,
    RaggedDot,
    RaggedDotDimensionNumbers,
    Scan,
)
from trivium.ir.types import F32, F64, I32, TOKEN, tensor


def test_constant_c1() -> None:
    with breaks("C1"):
        ChloConstant(DenseElements(np.float32([1])), result=tensor(2))


def test_constant_like_i1() -> None:
    with breaks("I1"):
        ConstantLike(Value(TOKEN), Float(1.0, F32))


def test_constant_like_i2() -> None:
    with breaks("I2"):
        ConstantLike(value(3), "one")
    assert ConstantLike(value(3), Float(1.0, F64)).result.type is tensor(3, of=F64)


def test_constant_like_c1() -> None:
    with breaks("C1"):
        ConstantLike(value(3), Float(1.0, F32), result=tensor(4))
    with breaks("C1"):
        ConstantLike(value(3), Float(1.0, F64), result=tensor(3))


def test_mulhi_i1() -> None:
    with breaks("I1"):
        Mulhi(value(3), value(3))


def scan(*inputs: Value, dimension: int = 0, body: Any = None, outputs: Any = None, **more: Any) -> None:
    body = body or region([tensor(), tensor()], lambda builder, x, y: [x, y])
    named = {"outputs": outputs or [tensor(3)], "carries": [tensor()], **more}
    Scan(inputs or [value(3)], [value()], dimension, body, **named)


def test_scan_i1() -> None:
    with breaks("I1"):
        scan(Value(TOKEN))


def test_scan_c1() -> None:
    with breaks("C1"):
        Scan([], [value()], 0, region([tensor()], lambda builder, x: x), outputs=[], carries=[tensor()])


def test_scan_c2() -> None:
    with breaks("C2"):
        scan(dimension=1)


def test_scan_c3() -> None:
    with breaks("C3"):
        scan(outputs=[tensor(4)])
    with breaks("C3"):
        scan(scan_dim_size=4)


def test_scan_c4() -> None:
    with breaks("C4"):
        scan(body=region([tensor(), tensor()], lambda builder, x, y: [x]))


def test_scan_c5() -> None:
    with breaks("C5"):
        scan(carries=[tensor(2)])
    with breaks("C5"):
        scan(carries=[])


def ragged(
    lhs: Value | None = None,
    rhs: Value | None = None,
    sizes: Value | None = None,
    of: tuple[int, ...] = (0,),
    groups: tuple[int, ...] = (0,),
    **more: Any,
) -> None:
    numbers = RaggedDotDimensionNumbers((), (), (1,), (1,), of, groups)
    RaggedDot(lhs or value(6, 3), rhs or value(2, 3, 4), sizes or value(2, of=I32), numbers, **more)


def test_ragged_dot_i1() -> None:
    with breaks("I1"):
        ragged(Value(TOKEN))


def test_ragged_dot_i2() -> None:
    with breaks("I2"):
        ragged(rhs=Value(TOKEN))


def test_ragged_dot_i3() -> None:
    with breaks("I3"):
        ragged(sizes=value(2))


def test_ragged_dot_c1() -> None:
    with breaks("C1"):
        ragged(of=())


def test_ragged_dot_c2() -> None:
    with breaks("C2"):
        ragged(of=(2,))
    with breaks("C2"):
        ragged(groups=(3,))


def test_ragged_dot_c3() -> None:
    with breaks("C3"):
        ragged(groups=())
    with breaks("C3"):
        ragged(of=(1,))


def test_ragged_dot_c4() -> None:
    with breaks("C4"):
        ragged(sizes=value(3, 2, of=I32))
    with breaks("C4"):
        ragged(sizes=value(3, of=I32))
    batched = RaggedDotDimensionNumbers((0,), (1,), (2,), (2,), (1,), (0,))
    with breaks("C4"):
        RaggedDot(value(5, 6, 3), value(2, 5, 3, 4), value(4, 2, of=I32), batched)


def test_ragged_dot_c8() -> None:
    batched = RaggedDotDimensionNumbers((0,), (1,), (2,), (2,), (1,), (0,))
    with breaks("C8"):
        RaggedDot(value(5, 6, 3), value(2, 4, 3, 4), value(2, of=I32), batched)


def test_ragged_dot_c9() -> None:
    with breaks("C9"):
        ragged(rhs=value(2, 2, 4))


def test_ragged_dot_c5() -> None:
    with breaks("C5"):
        ragged(rhs=value(2, 3, 4, of=F64))


def test_ragged_dot_c6() -> None:
    with breaks("C6"):
        ragged(precision_config=[ChloPrecision.HIGH])


def test_ragged_dot_c7() -> None:
    with breaks("C7"):
        ragged(result=tensor(6, 5))
