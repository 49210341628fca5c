"""Asynchronous ops are done where they start, and requests for an order are dropped: the steps of a program run in
order anyway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.manager import Pass
from trivium.ir.builder import Rewriter, inline_block
from trivium.ir.func import Module
from trivium.ir.ops import AsyncDone, AsyncStart, CustomCall

ORDER = "control_dep"
"""The custom call by which JAX asks that the op that makes its second operand should run after that of the first."""


@dataclass(frozen=True)
class DoAtStart(Pass):
    """Afterwards, no `async_start` is left, except those whose futures something else than an `async_done` reads, and
    no request for an order."""

    NAME: ClassVar[str] = "do-at-start"

    def run(self, module: Module) -> bool:
        calls = [op for op in module.walk() if isinstance(op, CustomCall) and not op.results]
        orders = [op for op in calls if op.call_target_name == ORDER]
        for order in orders:
            order.erase()
        starts = [op for op in module.walk() if isinstance(op, AsyncStart)]
        starts = [op for op in starts if all(isinstance(user, AsyncDone) for user, _ in op.result.uses)]
        for start in starts:
            (value,) = inline_block(start.body.block, start.inputs, Rewriter(start))
            for done in [user for user, _ in start.result.uses]:
                Rewriter(done).replace(value)
            start.erase()
        return bool(orders or starts)
