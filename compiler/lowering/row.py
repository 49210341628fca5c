"""The elements along one dimension of a value or of scratch memory, which sorts read and write one by one."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.compiler.kernel import Buffer
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, Indices
from trivium.compiler.lowering.launches import Argument
from trivium.compiler.lowering.scalars import Scalar


@dataclass(frozen=True)
class Row:
    """The elements of a buffer, or of a value, along one dimension; the indices before and after it are fixed."""

    memory: Buffer | Argument
    before: Indices = ()
    after: Indices = ()

    def load(self, ctx: LoweringContext, index: Index) -> Scalar:
        at = (*self.before, index, *self.after)
        return ctx.read(self.memory, at) if isinstance(self.memory, Buffer) else ctx.load(self.memory, at)

    def store(self, ctx: LoweringContext, index: Index, scalar: Scalar) -> None:
        at = (*self.before, index, *self.after)
        if isinstance(self.memory, Buffer):
            ctx.write(self.memory, at, scalar)
        else:
            ctx.store(self.memory, at, scalar)
