"""Tokens become arrays without elements. The ops with effects that they order stay in the order of the program anyway,
and ops that carry tokens (loops, branches, custom calls) carry an ordinary array instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.manager import Pass
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Rewriter
from trivium.ir.core import Operation, Value
from trivium.ir.func import Module
from trivium.ir.ops import AfterAll, Constant, CreateToken, Infeed, Outfeed, Recv, Send
from trivium.ir.types import I1, TOKEN, tensor

EMPTY = tensor(0, of=I1)


@dataclass(frozen=True)
class EraseTokens(Pass):
    """Afterwards, no value is a token, unless the program exchanges values with other processes, which no backend
    supports."""

    NAME: ClassVar[str] = "erase-tokens"

    def run(self, module: Module) -> bool:
        ops = list(module.walk())
        tokens = [value for op in ops for value in _values(op) if value.type is TOKEN]
        if not tokens or any(isinstance(op, Infeed | Outfeed | Recv | Send) for op in ops):
            return False
        for op in ops:
            if isinstance(op, CreateToken | AfterAll):
                rewriter = Rewriter(op)
                rewriter.replace(rewriter.add(Constant(DenseElements(np.zeros(0, np.bool_)))))
        for value in tokens:
            value.type = EMPTY
        for function in module.functions.values():
            if not function.is_declaration:
                function.refresh_type()
        return True


def _values(op: Operation) -> Iterator[Value]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments
