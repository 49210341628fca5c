"""The constraints of collectives, each broken once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ir.ops.constraints import breaks, value
from tests.ir.ops.records import body
from trivium.ir.attributes import UNIT
from trivium.ir.core import Value
from trivium.ir.errors import ConstraintKind, VerificationError
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import (
    Add,
    AllGather,
    AllReduce,
    AllToAll,
    And,
    ChannelHandle,
    CollectiveBroadcast,
    CollectivePermute,
    CollectiveReduce,
    CrossReplicaSum,
    ReduceScatter,
)
from trivium.ir.text import parse
from trivium.ir.types import F32, F64, I1, I32, TOKEN, tensor

PAIR = ((0, 1),)
TWICE = ((0, 0),)
BELOW = ((0, -2),)


def add() -> Any:
    return body(Add, F32, F32)()


def all_gather(*operands: Value, dim: int = 0, groups: Any = PAIR, results: Any = None, **more: Any) -> None:
    operands = operands or (value(2, 3),)
    results = results or [tensor(4, 3)]
    AllGather(operands, all_gather_dim=dim, replica_groups=groups, results=results, **more)


def test_all_gather_i1() -> None:
    with breaks("I1"):
        all_gather(Value(TOKEN))


def test_all_gather_c1() -> None:
    with breaks("C1"):
        all_gather(dim=2)


def test_all_gather_c2() -> None:
    with breaks("C2"):
        all_gather(groups=TWICE)


def test_all_gather_c4() -> None:
    for groups in (BELOW, ((0, 2),), ((0, -1),)):
        with breaks("C4"):
            all_gather(groups=groups)


def test_all_gather_c5() -> None:
    with breaks("C5"):
        all_gather(use_global_device_ids=UNIT)


def test_all_gather_c6() -> None:
    for results in ([tensor(4, 4)], [tensor(4, 3, of=F64)], [tensor(4, 3)] * 2, [tensor(5, 3)]):
        with breaks("C6"):
            all_gather(results=results)
    with breaks("C6"):
        all_gather(results=[tensor(6, 3)])
    across = ChannelHandle(1, 1)
    all_gather(results=[tensor(6, 3)], channel_handle=across)  # for two replicas and three partitions


def all_reduce(*operands: Value, groups: Any = PAIR, computation: Any = None, **more: Any) -> None:
    computation = computation or add()
    AllReduce(operands or (value(3),), replica_groups=groups, computation=computation, **more)


def test_all_reduce_i1() -> None:
    with breaks("I1"):
        all_reduce(Value(TOKEN))


def test_all_reduce_c1() -> None:
    with breaks("C1"):
        all_reduce(groups=TWICE)


def test_all_reduce_c3() -> None:
    with breaks("C3"):
        all_reduce(groups=BELOW)
    with breaks("C3"):
        all_reduce(groups=((0, 2),))
    all_reduce(groups=((0, 2), (1, -1)))


def test_all_reduce_c4() -> None:
    with breaks("C4"):
        all_reduce(use_global_device_ids=UNIT)


def test_all_reduce_c5() -> None:
    with breaks("C5"):
        all_reduce(computation=body(And, I1, I1)())


def test_all_reduce_c6() -> None:
    with breaks("C6"):
        all_reduce(results=[tensor(4)])
    with breaks("C6"):
        all_reduce(results=[])


def test_all_reduce_c7() -> None:
    with breaks("C7"):
        all_reduce(results=[tensor(3, of=F64)])


def reduce_scatter(operand: Value | None = None, dim: int = 0, groups: Any = PAIR, **more: Any) -> None:
    named = {"computation": add(), "result": tensor(2, 3), **more}
    ReduceScatter(operand or value(4, 3), replica_groups=groups, scatter_dimension=dim, **named)


def test_reduce_scatter_i1() -> None:
    with breaks("I1"):
        reduce_scatter(Value(TOKEN))


def test_reduce_scatter_c1() -> None:
    with breaks("C1"):
        reduce_scatter(value(3, 3))
    with breaks("C1"):
        reduce_scatter(value(0, 3))


def test_reduce_scatter_c2() -> None:
    with breaks("C2"):
        reduce_scatter(dim=-1)


def test_reduce_scatter_c3() -> None:
    with breaks("C3"):
        reduce_scatter(groups=TWICE)


def test_reduce_scatter_c5() -> None:
    with breaks("C5"):
        reduce_scatter(groups=BELOW)
    with breaks("C5"):
        reduce_scatter(groups=((0, 2),))


def test_reduce_scatter_c6() -> None:
    with breaks("C6"):
        reduce_scatter(use_global_device_ids=UNIT)


def test_reduce_scatter_c7() -> None:
    with breaks("C7"):
        reduce_scatter(computation=body(And, I1, I1)())


def test_reduce_scatter_c8() -> None:
    with breaks("C8"):
        reduce_scatter(result=tensor(2, 4))
    with breaks("C8"):
        reduce_scatter(result=tensor(1, 3))


def test_reduce_scatter_c9() -> None:
    with breaks("C9"):
        reduce_scatter(result=tensor(2, 3, of=F64))


def all_to_all(operand: Value | None = None, split: int = 0, concat: int = 1, count: int = 2, **more: Any) -> None:
    dimensions = {"split_dimension": split, "concat_dimension": concat, "split_count": count}
    AllToAll([operand or value(2, 4)], **{"replica_groups": PAIR, **dimensions, **more})


def test_all_to_all_i1() -> None:
    with breaks("I1"):
        all_to_all(Value(TOKEN))


def test_all_to_all_c1() -> None:
    with breaks("C1"):
        all_to_all(split=2)


def test_all_to_all_c2() -> None:
    with breaks("C2"):
        all_to_all(value(3, 4))


def test_all_to_all_c3() -> None:
    with breaks("C3"):
        all_to_all(concat=-1)


def test_all_to_all_c4() -> None:
    with breaks("C4"):
        all_to_all(count=0)


def test_all_to_all_c5() -> None:
    with breaks("C5"):
        all_to_all(replica_groups=TWICE)


def test_all_to_all_c7() -> None:
    with breaks("C7"):
        all_to_all(replica_groups=BELOW)
    with breaks("C7"):
        all_to_all(replica_groups=((0, 2),))


def test_all_to_all_c8() -> None:
    with breaks("C8"):
        all_to_all(replica_groups=())
    with breaks("C8"):
        all_to_all(replica_groups=((0,), (1,)))


def test_all_to_all_c9() -> None:
    with breaks("C9"):
        all_to_all(results=[tensor(2, 4)])
    with breaks("C9"):
        all_to_all(results=[])


def test_collective_broadcast_c1() -> None:
    with breaks("C1"):
        CollectiveBroadcast([value(3)], replica_groups=TWICE)


def test_collective_broadcast_c2() -> None:
    with breaks("C2"):
        CollectiveBroadcast([value(3)], replica_groups=BELOW)


def test_collective_broadcast_c3() -> None:
    with breaks("C3"):
        CollectiveBroadcast([value(3)], replica_groups=PAIR, results=[tensor(4)])
    with breaks("C3"):
        CollectiveBroadcast([], replica_groups=PAIR, results=[])
    with breaks("C3"):
        CollectiveBroadcast([value(1, of=I32)], replica_groups=PAIR, has_dynamic_root=UNIT, results=[])


def test_collective_broadcast_c4() -> None:
    with breaks("C4"):
        CollectiveBroadcast([value(3), value(1)], replica_groups=PAIR, has_dynamic_root=UNIT)
    with breaks("C4"):
        CollectiveBroadcast([value(3), value(2, of=I32)], replica_groups=PAIR, has_dynamic_root=UNIT)


def test_collective_broadcast_c5() -> None:
    with breaks("C5"):
        CollectiveBroadcast([value(3)], replica_groups=PAIR, results=[])


def test_collective_broadcast_c6() -> None:
    """At run time, the root is an index into the group."""
    with breaks("C6", ConstraintKind.RUN_TIME):
        rooted(1)
    np.testing.assert_array_equal(rooted(0)[0], [1, 2])


def rooted(root: int) -> Any:
    """Broadcasts with a dynamic root in the only process of its group."""
    module = parse("""
    func.func @main(%x: tensor<2xf32>, %root: tensor<1xi32>) -> tensor<2xf32> {
      %0 = "stablehlo.collective_broadcast"(%x, %root) <{has_dynamic_root, replica_groups = dense<0> : tensor<1x1xi64>}>
        : (tensor<2xf32>, tensor<1xi32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    return evaluate(module, np.float32([1, 2]), np.int32([root]))


def collective_reduce(*operands: Value, groups: Any = PAIR, computation: Any = None, **more: Any) -> None:
    computation = computation or add()
    CollectiveReduce(operands or (value(3),), replica_groups=groups, computation=computation, **more)


def test_collective_reduce_i1() -> None:
    with breaks("I1"):
        collective_reduce(Value(TOKEN))


def test_collective_reduce_c1() -> None:
    with breaks("C1"):
        collective_reduce(groups=TWICE)


def test_collective_reduce_c2() -> None:
    with breaks("C2"):
        collective_reduce(groups=BELOW)


def test_collective_reduce_c3() -> None:
    with breaks("C3"):
        collective_reduce(results=[tensor(4)])
    with breaks("C3"):
        collective_reduce(value(3), value(2, of=I32), has_dynamic_root=UNIT)
    with breaks("C3"):
        collective_reduce(value(1, of=I32), has_dynamic_root=UNIT)


def test_collective_reduce_c4() -> None:
    with breaks("C4"):
        collective_reduce(computation=body(And, I1, I1)())


def test_collective_reduce_needs_a_channel_for_global_numbers() -> None:
    with pytest.raises(VerificationError, match="use_global_device_ids is set without a channel"):
        collective_reduce(use_global_device_ids=UNIT)


def permute(*pairs: tuple[int, ...], **more: Any) -> None:
    CollectivePermute(value(3), source_target_pairs=pairs, **more)


def test_collective_permute_c1() -> None:
    with breaks("C1"):
        permute((0, 1, 2))


def test_collective_permute_c2() -> None:
    with breaks("C2"):
        permute((0, 1), (0, 2))


def test_collective_permute_c3() -> None:
    with breaks("C3"):
        permute((0, 1), (2, 1))


def test_collective_permute_c4() -> None:
    with breaks("C4"):
        permute((0, -1))


def test_collective_permute_c5() -> None:
    with breaks("C5"):
        permute((0, 1), result=tensor(4))


def test_cross_replica_sum_c1() -> None:
    with breaks("C1"):
        CrossReplicaSum(value(3), replica_groups=TWICE)


def test_cross_replica_sum_c2() -> None:
    with breaks("C2"):
        CrossReplicaSum(value(3), replica_groups=BELOW)


def test_cross_replica_sum_c3() -> None:
    with breaks("C3"):
        CrossReplicaSum(value(3), replica_groups=PAIR, result=tensor(4))


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("C3", "all_gather(%x) {all_gather_dim = 0 : i64, GROUPS} : (tensor<2xf32>) -> tensor<4xf32>"),
        ("C2", "all_reduce(%x) ADD {GROUPS} : (tensor<2xf32>) -> tensor<2xf32>"),
        ("C4", "reduce_scatter(%x) ADD {scatter_dimension = 0 : i64, GROUPS} : (tensor<2xf32>) -> tensor<1xf32>"),
        (
            "C6",
            "all_to_all(%x) {split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, GROUPS}"
            " : (tensor<2xf32>) -> tensor<2xf32>",
        ),
        ("C2", "collective_broadcast(%x) {GROUPS} : (tensor<2xf32>) -> tensor<2xf32>"),
        ("C2", "collective_reduce(%x) ADD {GROUPS} : (tensor<2xf32>) -> tensor<2xf32>"),
        ("C4", "collective_permute(%x) {PAIRS} : (tensor<2xf32>) -> tensor<2xf32>"),
    ],
)
def test_numbers_of_processes(label: str, text: str) -> None:
    """The collectives of a module must fit the numbers of replicas and partitions that it states."""
    name, _, rest = text.partition("(")
    rest = rest.replace("ADD", ADDITION).replace("GROUPS", "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>")
    rest = rest.replace("PAIRS", "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>")
    body = f'func.func @main(%x: tensor<2xf32>) {{ %0 = "stablehlo.{name}"({rest} return }}'
    parse(f"module attributes {{mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32}} {{ {body} }}").verify()
    with breaks(label, ConstraintKind.CONFIGURATION):
        parse(f"module attributes {{mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 4 : i32}} {{ {body} }}").verify()


ADDITION = """({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
})"""
