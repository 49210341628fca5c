"""The constraints of tokens, channels and queues, each broken once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ir.ops.constraints import breaks, value
from trivium.ir.attributes import Integer
from trivium.ir.core import Value
from trivium.ir.errors import VerificationError
from trivium.ir.ops import AfterAll, ChannelHandle, CreateToken, Infeed, Outfeed, PartitionId, Recv, ReplicaId, Send
from trivium.ir.types import I32, I64, INDEX, TOKEN, tensor

TO_HOST, FROM_HOST, BETWEEN = (ChannelHandle(1, kind) for kind in (2, 3, 1))


def token() -> Value:
    return Value(TOKEN)


def test_after_all_i1() -> None:
    with breaks("I1"):
        AfterAll([token(), value()])


def test_after_all_o1() -> None:
    with breaks("O1"):
        AfterAll([], result=tensor())


def test_create_token_o1() -> None:
    with breaks("O1"):
        CreateToken(result=tensor())


def test_replica_id_o1() -> None:
    with breaks("O1"):
        ReplicaId(result=tensor(of=I32))


def test_partition_id_o1() -> None:
    with breaks("O1"):
        PartitionId(result=tensor(of=I32))


def infeed(*results: Any, given: Value | None = None) -> None:
    Infeed(given or token(), results=results)


def test_infeed_i1() -> None:
    with breaks("I1"):
        infeed(TOKEN, given=value())


def test_infeed_c1() -> None:
    with breaks("C1"):
        infeed()


def test_infeed_c2() -> None:
    with breaks("C2"):
        infeed(TOKEN, TOKEN)


def test_infeed_c3() -> None:
    with breaks("C3"):
        infeed(tensor(3))


def test_outfeed_i2() -> None:
    with breaks("I2"):
        Outfeed([value()], value())


def test_outfeed_o1() -> None:
    with breaks("O1"):
        Outfeed([value()], token(), result=tensor())


def send(given: Value | None = None, channel: ChannelHandle = BETWEEN, to_host: bool = False, **more: Any) -> None:
    Send([value(3)], given or token(), channel, is_host_transfer=to_host, **more)


def test_send_i2() -> None:
    with breaks("I2"):
        send(value())


def test_send_c5() -> None:
    with breaks("C5"):
        send(channel=TO_HOST)
    with breaks("C5"):
        send(to_host=True)


def test_send_o1() -> None:
    with breaks("O1"):
        send(result=tensor())


def recv(*results: Any, channel: ChannelHandle = FROM_HOST, given: Value | None = None) -> None:
    Recv(given or token(), channel, is_host_transfer=True, results=results)


def test_recv_i1() -> None:
    with breaks("I1"):
        recv(TOKEN, given=value())


def test_recv_o1() -> None:
    for results in ((), (TOKEN, TOKEN), (tensor(3),)):
        with breaks("O1"):
            recv(*results)


def test_recv_c5() -> None:
    with breaks("C5"):
        recv(TOKEN, channel=TO_HOST)


def test_send_c1() -> None:
    with breaks("C1"):
        send(source_target_pairs=((0,),))


def test_recv_c1() -> None:
    with breaks("C1"):
        Recv(token(), FROM_HOST, is_host_transfer=True, source_target_pairs=((0,),), results=[TOKEN])


def test_send_c2() -> None:
    with breaks("C2"):
        send(source_target_pairs=((0, 1), (0, 2)))


def test_recv_c2() -> None:
    with breaks("C2"):
        Recv(token(), FROM_HOST, is_host_transfer=True, source_target_pairs=((0, 1), (0, 2)), results=[TOKEN])


def test_send_c3() -> None:
    with breaks("C3"):
        send(source_target_pairs=((0, 1), (2, 1)))


def test_recv_c3() -> None:
    with breaks("C3"):
        Recv(token(), FROM_HOST, is_host_transfer=True, source_target_pairs=((0, 1), (2, 1)), results=[TOKEN])


def test_send_c4() -> None:
    with breaks("C4"):
        send(source_target_pairs=((0, -1),))


def test_recv_c4() -> None:
    with breaks("C4"):
        Recv(token(), FROM_HOST, is_host_transfer=True, source_target_pairs=((0, -1),), results=[TOKEN])


def test_send_i1() -> None:
    with breaks("I1"):
        Send([Value(TOKEN)], token(), BETWEEN)


def test_outfeed_i1() -> None:
    with breaks("I1"):
        Outfeed([value(3, of=INDEX)], token())


@pytest.mark.parametrize("layout", [(), ((Integer(0, I64),), ()), (0,), (("a",),)])
def test_layouts_of_infeed(layout: Any) -> None:
    with pytest.raises(VerificationError, match="expected a list of dimensions for each of 1 results"):
        Infeed(token(), layout=layout, results=[tensor(3), TOKEN])
    Infeed(token(), layout=((Integer(0, I64),),), results=[tensor(3), TOKEN])
