"""A kernel: a program of loops with the buffers that it works on. It can be printed, verified and digested."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trivium.compiler.kernel import printer, verifier
from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.kernel.structure import Block, Buffer

if TYPE_CHECKING:
    from trivium.compiler.kernel.attention import Attention
    from trivium.compiler.kernel.chained import Chained


@dataclass(eq=False)
class Kernel:
    """A named kernel: `params` are the buffers that a launch binds, in order; `body` is the program; `contraction`, if
    set, describes the matrix product or convolution that the body computes, so that a backend may use a template
    instead; `attention` does so for two products with a softmax between them, or for the gradients of such."""

    name: str
    params: list[Buffer]
    body: Block
    contraction: Contraction | None = None
    attention: Attention | Chained | None = None
    _digest: str | None = field(default=None, init=False, repr=False)

    def __str__(self) -> str:
        return printer.print_kernel(self)

    def blocks(self) -> list[Block]:
        """Returns the program, and the blocks of the marks beside it that are not part of it."""
        mark = self.contraction
        beside = (mark.lhs_prologue, mark.rhs_prologue, mark.epilogue) if mark is not None else ()
        return [self.body, *(block for block in beside if block is not None)]

    def verify(self) -> None:
        """Raises CompileError if the kernel is malformed."""
        verifier.verify(self)

    def digest(self) -> str:
        """Returns a hash that is equal for kernels that differ at most in their names and their buffers' names: a
        backend compiles each digest once. It is computed once, since a kernel that was built does not change."""
        if self._digest is None:
            self._digest = printer.digest(self)
        return self._digest
