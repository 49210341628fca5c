"""A kernel: a program of loops with the buffers that it works on, its text and its verification."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.compiler.kernel import printer, verifier
from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.kernel.structure import Block, Buffer


@dataclass(eq=False)
class Kernel:
    """A named kernel: `params` are the buffers a launch binds, in order; `body` is the program; `contraction`, where
    set, describes the matrix product or convolution that the body computes, so that a backend may use a template in
    its place."""

    name: str
    params: list[Buffer]
    body: Block
    contraction: Contraction | None = None

    def __str__(self) -> str:
        return printer.print_kernel(self)

    def verify(self) -> None:
        """Raises CompileError where the kernel is malformed."""
        verifier.verify(self)

    def digest(self) -> str:
        """Equal for kernels that differ at most in their names and their buffers' names: a backend compiles each
        digest once."""
        return printer.digest(self)
