"""The launches that a group of ops becomes. A kernel is one parallel nest: work that takes several dependent nests
takes several launches, with temporaries of the program between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from trivium.compiler.kernel import Kernel, Scratch, walk
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.target import Target
from trivium.ir.core import Operation, Value
from trivium.ir.errors import CompileError
from trivium.ir.types import TensorType


@dataclass(eq=False)
class Temporary:
    """A value that is not the result of an op: one launch of `op` leaves it in memory for the next."""

    type: TensorType
    op: Operation


Argument = Value | Temporary


class Launches:
    """Launches under construction. `members` are the ops that are computed inside the kernels."""

    def __init__(self, name: str, members: Iterable[Operation], target: Target):
        self.name, self.target = name, target
        self.members = dict.fromkeys(members)
        self.finished: list[tuple[Kernel, Sequence[Argument]]] = []
        """The kernels so far, with the values that their parameters are bound to."""
        self._written: set[Argument] = set()

    def context(self, suffix: str = "") -> LoweringContext:
        """Returns the context of the next kernel."""
        return LoweringContext(self.name + suffix, self.members, self._written)

    @contextmanager
    def kernel(self, suffix: str = "") -> Iterator[LoweringContext]:
        """Opens the next kernel. It can read values that earlier kernels have written, or update them in place."""
        ctx = self.context(suffix)
        yield ctx
        self.add(ctx.b.build(), ctx.arguments)

    def add(self, kernel: Kernel, arguments: Sequence[Argument]) -> None:
        """Appends a launch of a finished kernel."""
        scratch = sum(i.buffer.nbytes for i in walk(kernel.body) if isinstance(i, Scratch))
        limit = self.target.fusion.scratch_bytes
        if scratch > limit:
            raise CompileError(f"kernel {kernel.name} has {scratch} bytes of scratch, expected at most {limit}")
        self.finished.append((kernel, arguments))
        pairs = zip(kernel.params, arguments, strict=True)
        self._written.update(argument for param, argument in pairs if param.mode != "in")
