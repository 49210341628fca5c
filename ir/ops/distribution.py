"""The connections of a process to its surroundings: tokens that order effects, channels to other processes and to the
host, queues, and the process's own number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import Attribute, Integer, Struct
from trivium.ir.codecs import Pairs
from trivium.ir.declare import PURE, Op, Operand, Operands, Result, Results
from trivium.ir.errors import fail
from trivium.ir.ops.common import expect_compatible, expect_tensor, expect_unique
from trivium.ir.process import Id, Process
from trivium.ir.types import TOKEN, UI32, Type, tensor

__all__ = [
    "AfterAll",
    "ChannelHandle",
    "CreateToken",
    "Infeed",
    "Outfeed",
    "PartitionId",
    "Recv",
    "ReplicaId",
    "Send",
]

TOKEN_VALUE = None
"""The value of a token at run time, which carries nothing, because evaluation is already ordered."""

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3


@dataclass(frozen=True)
class ChannelHandle(Struct, mnemonic="stablehlo.channel_handle"):
    """A channel's number and its type: 1 from device to device, 2 from device to host, 3 from host to device."""

    handle: int
    type: int


def expect_token(label: str, name: str, kind: Type) -> None:
    if kind is not TOKEN:
        fail(label, f"{name} has type {kind}, expected {TOKEN}")


class AfterAll(Op, name="stablehlo.after_all", traits={PURE}):
    """Returns a token that comes after all of `inputs`."""

    inputs: Operands
    result: Result

    def infer():
        return TOKEN

    def check(inputs, result):
        for index, kind in enumerate(inputs):
            expect_token("I1", f"inputs[{index}]", kind)
        expect_token("O1", "result", result)

    def evaluate():
        return TOKEN_VALUE


class CreateToken(Op, name="stablehlo.create_token", traits={PURE}):
    """Returns a token that depends on nothing."""

    result: Result

    def infer():
        return TOKEN

    def check(result):
        expect_token("O1", "result", result)

    def evaluate():
        return TOKEN_VALUE


class ReplicaId(Op, name="stablehlo.replica_id", traits={PURE}):
    """The number of this process's replica."""

    result: Result

    def infer():
        return tensor(of=UI32)

    def check(result):
        expect_compatible("O1", expected=tensor(of=UI32), result=result)

    def evaluate(context):
        return np.array(context.process.replica, np.uint32)


class PartitionId(Op, name="stablehlo.partition_id", traits={PURE}):
    """The number of this process's partition."""

    result: Result

    def infer():
        return tensor(of=UI32)

    def check(result):
        expect_compatible("O1", expected=tensor(of=UI32), result=result)

    def evaluate(context):
        return np.array(context.process.partition, np.uint32)


# Queues and channels


class Infeed(Op, name="stablehlo.infeed"):
    """Takes the next values from the infeed queue; returns them and a token."""

    token: Operand
    infeed_config: str = ""
    layout: Attribute | None = None
    results: Results

    def check(token, layout, results):
        expect_token("I1", "token", token)
        _check_received(("C1", "C2", "C3"), results)
        lists = layout if isinstance(layout, tuple) else ()
        fits = len(lists) == len(results) - 1 and all(isinstance(one, tuple) for one in lists)
        if layout is not None and not (fits and all(isinstance(axis, Integer) for one in lists for axis in one)):
            fail("", f"layout has {layout}, expected a list of dimensions for each of {len(results) - 1} results")

    def evaluate(context, results):
        values = context.process.feed()
        if len(values) != len(results) - 1:
            raise ValueError(f"the infeed has {len(values)} values, expected {len(results) - 1}")
        return (*values, TOKEN_VALUE)


class Outfeed(Op, name="stablehlo.outfeed"):
    """Puts values into the outfeed queue."""

    inputs: Operands
    token: Operand
    outfeed_config: str = ""
    result: Result

    def infer():
        return TOKEN

    def check(inputs, token, result):
        for index, kind in enumerate(inputs):
            expect_tensor("I1", f"inputs[{index}]", kind, per_axis=True)
        expect_token("I2", "token", token)
        expect_token("O1", "result", result)

    def evaluate(inputs, context):
        context.process.feed_out(inputs)
        return TOKEN_VALUE


class Send(Op, name="stablehlo.send"):
    """Puts values into a channel."""

    inputs: Operands
    token: Operand
    channel_handle: ChannelHandle
    is_host_transfer: bool = False
    source_target_pairs: Pairs | None = None
    result: Result

    def infer():
        return TOKEN

    def check(inputs, token, channel_handle, is_host_transfer, source_target_pairs, result):
        for index, kind in enumerate(inputs):
            expect_tensor("I1", f"inputs[{index}]", kind, per_axis=True)
        expect_token("I2", "token", token)
        check_pairs(source_target_pairs or ())
        _check_channel("C5", channel_handle, is_host_transfer, DEVICE_TO_HOST)
        expect_token("O1", "result", result)

    def evaluate(inputs, channel_handle, is_host_transfer, source_target_pairs, context):
        process = context.process
        if is_host_transfer or not source_target_pairs:
            process.send(channel_handle.handle, inputs)
            return TOKEN_VALUE
        for source, target in _processes(process, channel_handle, source_target_pairs):
            if source == process.id:
                process.send((channel_handle.handle, source, target), inputs)
        return TOKEN_VALUE


class Recv(Op, name="stablehlo.recv"):
    """Receives the next values from a channel; returns them and a token."""

    token: Operand
    channel_handle: ChannelHandle
    is_host_transfer: bool = False
    source_target_pairs: Pairs | None = None
    results: Results

    def check(token, channel_handle, is_host_transfer, source_target_pairs, results):
        expect_token("I1", "token", token)
        check_pairs(source_target_pairs or ())
        _check_channel("C5", channel_handle, is_host_transfer, HOST_TO_DEVICE)
        _check_received(("O1", "O1", "O1"), results)

    def evaluate(channel_handle, is_host_transfer, source_target_pairs, context, results):
        process, channel = context.process, channel_handle.handle
        if source_target_pairs and not is_host_transfer:
            pairs = _processes(process, channel_handle, source_target_pairs)
            sources = [source for source, target in pairs if target == process.id]
            if not sources:
                raise ValueError(f"source_target_pairs has no pair whose target is this process, {process.id}")
            channel = (channel, sources[0], process.id)
        values = process.receive(channel)
        if len(values) != len(results) - 1:
            raise ValueError(f"the channel has {len(values)} values, expected {len(results) - 1}")
        return (*values, TOKEN_VALUE)


def _processes(process: Process, handle: ChannelHandle, pairs: Pairs) -> list[list[Id]]:
    """Returns pairs of partitions if there is a channel, else of replicas, as for `collective_permute`."""
    return process.cross_partition(pairs) if handle.handle > 0 else process.cross_replica(pairs)


def _check_channel(label: str, handle: ChannelHandle, is_host_transfer: bool, host_type: int) -> None:
    expected = host_type if is_host_transfer else DEVICE_TO_DEVICE
    if handle.type != expected:
        fail(label, f"channel_handle has type {handle.type}, expected {expected}, as is_host_transfer says")


def check_pairs(pairs: Pairs) -> None:
    """Checks pairs of processes, in which no process may be a source twice or a target twice."""
    rows = [list(pair) for pair in pairs]
    if any(len(pair) != 2 for pair in pairs):
        fail("C1", f"source_target_pairs has {rows}, expected pairs")
    expect_unique("C2", "the sources of source_target_pairs", [source for source, _ in pairs])
    expect_unique("C3", "the targets of source_target_pairs", [target for _, target in pairs])
    if any(number < 0 for pair in pairs for number in pair):
        fail("C4", f"source_target_pairs has {rows}, expected numbers of processes")


def _check_received(labels: tuple[str, str, str], results: tuple[Type, ...]) -> None:
    """Checks for tensors followed by a token."""
    if not results:
        fail(labels[0], "has no results, expected at least a token")
    expect_token(labels[2], "the last result", results[-1])
    for index, kind in enumerate(results[:-1]):
        expect_tensor(labels[1], f"results[{index}]", kind, per_axis=True)
