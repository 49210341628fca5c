"""Checks of programs that exchange values with their host while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import numpy as np

from trivium.backends.table.buffer import PluginBuffer
from trivium.backends.table.plugin import Refusal
from trivium.pjrt.channels import Send, Stream, given, options
from trivium.pjrt.kit import Kit, NotImplementedByPlugin, X, check, expect

DOUBLED = """func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %y = stablehlo.add %x, %x : tensor<4x6xf32>
  %sent = "stablehlo.send"(%y, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
    is_host_transfer = true} : (tensor<4x6xf32>, !stablehlo.token) -> !stablehlo.token
  %z, %received = "stablehlo.recv"(%sent) {channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>,
    is_host_transfer = true} : (!stablehlo.token) -> (tensor<4x6xf32>, !stablehlo.token)
  %w = stablehlo.add %y, %z : tensor<4x6xf32>
  return %w : tensor<4x6xf32>
}"""
"""Sends 2 x on channel 1, receives on channel 2, and adds both."""


def _run(
    kit: Kit, sends: Mapping[int, Send], receives: Mapping[int, Callable[[Stream], object]], text: str = DOUBLED
) -> list[PluginBuffer]:
    fields, alive = options(kit.plugin, sends, receives)
    kit.alive.append(alive)
    try:
        return kit.compile(text).execute_buffers([kit.buffer()], **fields)
    except Refusal as refusal:
        if refusal.code == "UNIMPLEMENTED":
            raise NotImplementedByPlugin("ExecuteOptions.send_callbacks") from None
        raise


def _fails(kit: Kit, sends: Mapping[int, Send], receives: Mapping[int, Callable[[Stream], object]]) -> Refusal:
    try:
        _run(kit, sends, receives)
    except Refusal as refusal:
        return refusal
    expect(False, "the run ended without an error")
    raise AssertionError


@check("transfers")
def values_reach_the_host_and_come_from_it(kit: Kit) -> None:
    sent: list[bytes] = []

    def send(data: bytes, total: int, is_last: bool) -> None:
        sent.append(data)
        expect(total == X.nbytes and is_last == (len(b"".join(sent)) == total), f"{len(data)} of {total}, {is_last}")

    (result,) = _run(kit, {1: send}, {2: given(X - 1)})
    expect(b"".join(sent) == (2 * X).tobytes(), "the host received other elements")
    expect(np.array_equal(result.to_numpy(), 3 * X - 1), "the program received other elements")


@check("transfers")
def chunks_from_another_thread(kit: Kit) -> None:
    """A host may write later, and in parts."""
    threads: list[threading.Thread] = []
    seen: list[tuple[int, int]] = []

    def write(stream: Stream) -> None:
        data = X.tobytes()
        stream.add(data[:4])
        seen.append(stream.sizes())
        stream.add(data[4:])
        stream.close()

    def receive(stream: Stream) -> None:
        threads.append(threading.Thread(target=write, args=(stream,)))
        threads[0].start()

    (result,) = _run(kit, {1: lambda *_: None}, {2: receive})
    threads[0].join()
    expect(np.array_equal(result.to_numpy(), 3 * X), "the program received other elements")
    expect(seen == [(X.nbytes, 4)], f"a stream has the sizes {seen}")


@check("transfers")
def errors_of_callbacks_end_the_run(kit: Kit) -> None:
    def send(*_: object) -> None:
        raise ValueError("no room")

    refusal = _fails(kit, {1: send}, {2: given(X)})
    expect(refusal.code == "DATA_LOSS" and "no room" in str(refusal), f"{refusal.code}: {refusal}")


@check("transfers")
def streams_that_end_too_early_or_too_late(kit: Kit) -> None:
    refused: list[str] = []

    def too_much(stream: Stream) -> None:
        try:
            stream.add(X.tobytes() + b"more")
        except Refusal as refusal:
            refused.append(refusal.code)
        stream.close()

    _fails(kit, {1: lambda *_: None}, {2: too_much})
    expect(refused, "more bytes were written than the program receives")
    _fails(kit, {1: lambda *_: None}, {2: Stream.close})
