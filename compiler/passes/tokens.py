"""Tokens become arrays without elements. The ops with effects that they order stay in the order of the program anyway,
and ops that carry tokens (loops, branches, custom calls) carry an ordinary array instead. Exchanges with the host
become custom calls, which the lowering knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from trivium.compiler.host import RECEIVE, SEND
from trivium.compiler.passes.manager import Pass
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Rewriter
from trivium.ir.core import Operation, Value
from trivium.ir.declare import Op
from trivium.ir.errors import Unsupported, UnsupportedOpError
from trivium.ir.func import Module
from trivium.ir.ops import AfterAll, Constant, CreateToken, CustomCall, Infeed, Outfeed, Recv, Send
from trivium.ir.types import I1, TOKEN, Type, tensor

EMPTY = tensor(0, of=I1)


@dataclass(frozen=True)
class EraseTokens(Pass):
    """Afterwards, no value is a token. Queues, and channels to other devices, are refused."""

    NAME: ClassVar[str] = "erase-tokens"

    def run(self, module: Module) -> bool:
        ops = list(module.walk())
        tokens = [value for op in ops for value in _values(op) if value.type is TOKEN]
        if not tokens:
            return False
        _require_host_transfers(ops)
        for op in ops:
            _replace(op)
        for value in tokens:
            value.type = EMPTY
        for function in module.functions.values():
            if not function.is_declaration:
                function.refresh_type()
        return True


def _require_host_transfers(ops: Sequence[Operation]) -> None:
    refused: dict[str, Unsupported] = {}
    for op in ops:
        if isinstance(op, Infeed | Outfeed) or (isinstance(op, Send | Recv) and not op.is_host_transfer):
            known = refused.setdefault(op.NAME, Unsupported(op.NAME, 0, op.location.describe()))
            refused[op.NAME] = replace(known, count=known.count + 1)
    if refused:
        raise UnsupportedOpError(
            "the program exchanges values in other ways than on channels to its host:", list(refused.values())
        )


def _replace(op: Operation) -> None:
    """Replaces an op whose own purpose is a token."""
    match op:
        case CreateToken() | AfterAll():
            new: Op = Constant(DenseElements(np.zeros(0, np.bool_)))
        case Send():
            new = _call(SEND, op.inputs, op, [EMPTY])
        case Recv():
            *received, _ = (result.type for result in op.results)
            new = _call(RECEIVE, [], op, [*received, EMPTY])
        case _:
            return
    rewriter = Rewriter(op)
    rewriter.add(new)
    rewriter.replace(*new.results)


def _call(target: str, inputs: Sequence[Value], op: Send | Recv, results: Sequence[Type]) -> CustomCall:
    """Returns a call whose last operand and result are in the place of tokens."""
    channel = str(op.channel_handle.handle)
    return CustomCall([*inputs, op.token], target, has_side_effect=True, backend_config=channel, results=results)


def _values(op: Operation) -> Iterator[Value]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments
