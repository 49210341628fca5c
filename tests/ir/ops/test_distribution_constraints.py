"""The constraints of tokens, channels and queues, each broken once."""

from __future__ import annotations

from typing import Any

from tests.ir.ops.constraints import breaks, value
from trivium.ir.core import Value
from trivium.ir.ops import AfterAll, ChannelHandle, CreateToken, Infeed, Outfeed, PartitionId, Recv, ReplicaId, Send
from trivium.ir.types import I32, TOKEN, tensor

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
        Outfeed([token()], value())


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


def test_recv_c1() -> None:
    with breaks("C1"):
        recv()


def test_recv_c2() -> None:
    with breaks("C2"):
        recv(TOKEN, TOKEN)


def test_recv_c3() -> None:
    with breaks("C3"):
        recv(tensor(3))


def test_recv_c5() -> None:
    with breaks("C5"):
        recv(TOKEN, channel=TO_HOST)
