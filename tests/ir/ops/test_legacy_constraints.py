"""The constraints of ops of older files, each broken once. They have no specification; their labels are numbered as if
they had one."""

from __future__ import annotations

from typing import Any

from tests.ir.ops.constraints import breaks, value
from trivium.ir.core import Value
from trivium.ir.ops import Broadcast, Dot, Einsum, Precision, TorchIndexSelect, UnaryEinsum
from trivium.ir.types import F16, F64, I32, TOKEN, tensor


def test_broadcast_i1() -> None:
    with breaks("I1"):
        Broadcast(Value(TOKEN), (2,))


def test_broadcast_c1() -> None:
    with breaks("C1"):
        Broadcast(value(3), (2,), result=tensor(2, 3, of=F64))


def test_broadcast_c2() -> None:
    with breaks("C2"):
        Broadcast(value(3), (-2,))


def test_broadcast_c3() -> None:
    with breaks("C3"):
        Broadcast(value(3), (2,), result=tensor(3, 2))


def test_dot_i1() -> None:
    with breaks("I1"):
        Dot(value(3), Value(TOKEN))


def test_dot_c1() -> None:
    with breaks("C1"):
        Dot(value(), value(3))
    with breaks("C1"):
        Dot(value(2, 3, 4), value(4))


def test_dot_c2() -> None:
    with breaks("C2"):
        Dot(value(3, 4), value(3, 4))


def test_dot_c3() -> None:
    with breaks("C3"):
        Dot(value(3), value(3, of=F64))


def test_dot_c4() -> None:
    with breaks("C4"):
        Dot(value(3), value(3), precision_config=[Precision.HIGH])


def test_dot_c5() -> None:
    with breaks("C5"):
        Dot(value(3, 4), value(4), result=tensor(4))


def einsum(config: str, *shapes: tuple[int, ...], result: Any) -> None:
    Einsum(*(value(*shape) for shape in shapes), config, result=result)


def test_einsum_c1() -> None:
    with breaks("C1"):
        einsum("a,a->", (3,), (3,), result=tensor(of=F16))
    einsum("a,a->", (3,), (3,), result=tensor(of=F64))


def test_einsum_o1() -> None:
    with breaks("O1"):
        einsum("a,a->", (3,), (3,), result=TOKEN)


def test_einsum_c2() -> None:
    for config in ("a,a", "a->a", "a,1->", "a,a->b", "a,a->aa"):
        with breaks("C2"):
            einsum(config, (3,), (3,), result=tensor(3, 3) if config.endswith("aa") else tensor(3))


def test_einsum_c3() -> None:
    with breaks("C3"):
        einsum("ab,b->a", (3,), (3,), result=tensor(3))
    with breaks("C3"):
        einsum("a,a->", (3,), (3,), result=tensor(3))


def test_einsum_c4() -> None:
    with breaks("C4"):
        einsum("ab,bc->ac", (3, 4), (5, 6), result=tensor(3, 6))
    with breaks("C4"):
        einsum("a...,b->...ab", (3, 4), (5,), result=tensor(4, 5, 3))


def test_unary_einsum_c1() -> None:
    with breaks("C1"):
        UnaryEinsum(value(3), "a->", result=tensor(of=I32))


def test_unary_einsum_c2() -> None:
    with breaks("C2"):
        UnaryEinsum(value(3), "a,a->", result=tensor())


def test_unary_einsum_c3() -> None:
    with breaks("C3"):
        UnaryEinsum(value(3), "ab->", result=tensor())


def test_unary_einsum_c4() -> None:
    with breaks("C4"):
        UnaryEinsum(value(3, 4), "aa->a", result=tensor(3))


def select(operand: Value, index: Value, dim: int = 0, batch_dims: int = 0, **results: Any) -> None:
    TorchIndexSelect(operand, index, dim, batch_dims, **results)


INDEX = value(2, of=I32)


def test_torch_index_select_i1() -> None:
    with breaks("I1"):
        select(Value(TOKEN), INDEX)


def test_torch_index_select_i2() -> None:
    with breaks("I2"):
        select(value(3), value(2))


def test_torch_index_select_c1() -> None:
    with breaks("C1"):
        select(value(3), INDEX, dim=1)


def test_torch_index_select_c2() -> None:
    with breaks("C2"):
        select(value(3), INDEX, batch_dims=1)


def test_torch_index_select_c3() -> None:
    with breaks("C3"):
        select(value(3, 4), INDEX, dim=1, batch_dims=1)


def test_torch_index_select_c4() -> None:
    with breaks("C4"):
        select(value(3), INDEX, result=tensor(2, of=F64))


def test_torch_index_select_c5() -> None:
    with breaks("C5"):
        select(value(3), INDEX, result=tensor(3))
