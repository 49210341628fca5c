"""The mark of a kernel that is a matrix product or a convolution. It describes the loops, how the operands are
addressed, and what is computed from elements on the way in (prologues) and from the sum on the way out (epilogue), so
that a backend can use a template. `contraction_nest` builds the equivalent plain loop nest, which is the kernel's
body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trivium.compiler.kernel.dtypes import DType
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.structure import Block, Buffer

Role = Literal["batch", "m", "n", "k"]


@dataclass(frozen=True, eq=False)
class ContractionLoop:
    """One loop, and the symbol of its index in expressions: `batch` appears in both operands and the result, `m` in lhs
    and result, `n` in rhs and result, `k` is summed over."""

    role: Role
    extent: int

    @property
    def range(self) -> tuple[int, int]:
        return 0, self.extent - 1


@dataclass(frozen=True)
class Subscript:
    """The index along one buffer dimension: position / dilation, where `position` is an affine expression of the loops.
    Positions outside [0, extent * dilation) or between multiples of `dilation` are padding: elements there count as
    zero."""

    position: Index
    dilation: int = 1


@dataclass(frozen=True, eq=False)
class Access:
    """How an operand is addressed: a subscript for each dimension of its buffer."""

    buffer: Buffer
    subscripts: tuple[Subscript, ...]

    @property
    def last(self) -> int | None:
        """The last dimension that has more than one element, if there is one."""
        wide = [d for d, extent in enumerate(self.buffer.shape) if extent > 1]
        return wide[-1] if wide else None

    def padded(self, dimension: int) -> bool:
        """Whether any position along `dimension` is padding."""
        subscript = self.subscripts[dimension]
        low, high = subscript.position.range
        return low < 0 or high >= self.buffer.shape[dimension] or subscript.dilation != 1


@dataclass(frozen=True, eq=False)
class Contraction:
    """`loops` are in the order batch, m, n, k. Products and sums have type `accumulate`.

    A prologue is a block of (element, *all loop indices) that yields one value of type `accumulate`; without one,
    elements are converted. Padding is zero after the prologue. The epilogue is a block of (sum, *indices of all loops
    except k) that yields nothing: it stores, and may load from other buffers at any index."""

    loops: tuple[ContractionLoop, ...]
    lhs: Access
    rhs: Access
    accumulate: DType
    epilogue: Block
    lhs_prologue: Block | None = None
    rhs_prologue: Block | None = None

    def extents(self, role: Role) -> tuple[int, ...]:
        return tuple(loop.extent for loop in self.loops if loop.role == role)

    def positions(self, role: Role) -> tuple[int, ...]:
        """Returns the positions of the loops that have `role`."""
        return tuple(i for i, loop in enumerate(self.loops) if loop.role == role)

    def describe(self, names: dict[Buffer, str]) -> str:
        """Describes the contraction in one line, for printers."""
        loops = " ".join(f"{loop.role}{loop.extent}" for loop in self.loops)
        numbers = {loop: f"l{number}" for number, loop in enumerate(self.loops)}
        lhs, rhs = (_describe(access, names, numbers) for access in (self.lhs, self.rhs))
        return f"({loops}) {lhs} * {rhs} in {self.accumulate}"


def _describe(access: Access, names: dict[Buffer, str], loops: dict[ContractionLoop, str]) -> str:
    def one(subscript: Subscript) -> str:
        position = subscript.position
        terms = [f"{c}*{loops[loop]}" if c != 1 else loops[loop] for loop, c in position.terms.items()]  # type: ignore[index]
        text = "+".join([*terms, *([str(position.offset)] if position.offset or not terms else [])])
        return f"({text})/{subscript.dilation}" if subscript.dilation != 1 else text

    return f"{names[access.buffer]}[{', '.join(map(one, access.subscripts))}]"
