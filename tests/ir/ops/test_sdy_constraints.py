"""The constraints of Shardy's ops, each broken once."""

from __future__ import annotations

from tests.ir.ops.constraints import breaks, value
from trivium.ir.attributes import OpaqueAttribute
from trivium.ir.builder import region
from trivium.ir.ops import ManualComputation, ShardingConstraint
from trivium.ir.types import F64, tensor

ANY = OpaqueAttribute("#sdy.sharding<@mesh, [{}]>")


def test_shardy_identity_c1() -> None:
    with breaks("C1"):
        ShardingConstraint(value(3), ANY, result=tensor(4))


def manual(part: tuple[int, ...], result: object) -> None:
    body = region([tensor(*part)], lambda builder, x: x)
    ManualComputation([value(4, 4)], ANY, ANY, ANY, body, results=[result])


def test_manual_computation_c1() -> None:
    with breaks("C1"):
        manual((2,), tensor(4, 4))


def test_manual_computation_c2() -> None:
    with breaks("C2"):
        manual((2, 2), tensor(4, 4, of=F64))
