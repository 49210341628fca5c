"""The mark that says: this kernel is a matrix product or a convolution. It describes the loops, how the operands are
addressed, what happens to elements on the way in (prologues) and to the sum on the way out (epilogue), so that a
backend can use a template; and it gives the plain loop nest that means the same, which is the kernel's body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.dtypes import DType
from trivium.compiler.kernel.index import Index, variable
from trivium.compiler.kernel.structure import Block, Buffer, Kernel, Value

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
    """Where along one buffer dimension an element lies: index = position / dilation, with `position` an affine
    expression of the loops. Elements at positions outside [0, extent * dilation) or between multiples of `dilation` are
    padding: they count as zero."""

    position: Index
    dilation: int = 1


@dataclass(frozen=True, eq=False)
class Access:
    """How an operand is addressed: a subscript for each dimension of its buffer."""

    buffer: Buffer
    subscripts: tuple[Subscript, ...]

    def padded(self, dimension: int) -> bool:
        """Whether some position along `dimension` is padding."""
        subscript = self.subscripts[dimension]
        low, high = subscript.position.range
        return low < 0 or high >= self.buffer.shape[dimension] or subscript.dilation != 1


@dataclass(frozen=True, eq=False)
class Contraction:
    """`loops` in the order batch, m, n, k. Products and sums are of type `accumulate`.

    A prologue is a block of (element, *all loop indices) that yields one value of type `accumulate`; without one,
    elements are converted. Padding is zero after the prologue. The epilogue is a block of (sum, *indices of all loops
    but the k ones) that yields nothing: it stores, and may load from other buffers at any index."""

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
        """Which of `loops` have `role`."""
        return tuple(i for i, loop in enumerate(self.loops) if loop.role == role)

    def describe(self, names: dict[Buffer, str]) -> str:
        """One line for printers."""
        loops = " ".join(f"{loop.role}{loop.extent}" for loop in self.loops)
        numbers = {loop: f"l{number}" for number, loop in enumerate(self.loops)}
        lhs, rhs = (_describe(access, names, numbers) for access in (self.lhs, self.rhs))
        return f"({loops}) {lhs} * {rhs} in {self.accumulate}"


def contraction_kernel(name: str, params: Sequence[Buffer], contraction: Contraction) -> Kernel:
    """The kernel of `contraction`: the mark, and the loop nest that says what it means."""
    builder = KernelBuilder(name)
    builder.params.extend(params)
    outputs = [loop.extent for loop in contraction.loops if loop.role != "k"]
    inner = [loop.extent for loop in contraction.loops if loop.role == "k"] or [1]
    with builder.parallel(*(outputs or [1])) as indices:
        zero = builder.constant(0.0, contraction.accumulate)
        with builder.reduction(*inner, inits=[zero], combiner="add") as loop:
            every = [*indices[: len(outputs)], *loop.indices][: len(contraction.loops)]
            lhs = _operand(builder, contraction, contraction.lhs, contraction.lhs_prologue, every)
            rhs = _operand(builder, contraction, contraction.rhs, contraction.rhs_prologue, every)
            loop.yield_(builder.multiply(lhs, rhs))
        builder.inline(contraction.epilogue, loop.result, *indices[: len(outputs)])
    kernel = Kernel(name, list(params), builder.body, contraction)
    kernel.verify()
    return kernel


def _operand(
    b: KernelBuilder, contraction: Contraction, access: Access, prologue: Block | None, loops: list[Value]
) -> Value:
    """One element of an operand, after its prologue; zero where it is padding."""
    inside: Value | None = None
    indices = []
    bound = {loop: variable(value) for loop, value in zip(contraction.loops, loops, strict=True)}
    for dimension, subscript in enumerate(access.subscripts):
        index = subscript.position.replace(bound.get)  # type: ignore[arg-type]
        if access.padded(dimension):
            index, here = _inside(b, index, subscript.dilation, access.buffer.shape[dimension])
            inside = here if inside is None else b.apply("and", inside, here)
        indices.append(index)
    if inside is None:
        return _element(b, contraction, access, prologue, loops, indices)
    with b.if_(inside) as branch:
        branch.yield_(_element(b, contraction, access, prologue, loops, indices))
    with branch.otherwise():
        branch.yield_(b.constant(0.0, contraction.accumulate))
    return branch.results[0]


def _inside(b: KernelBuilder, position: Index, dilation: int, extent: int) -> tuple[Index, Value]:
    """The index of a position, and whether an element is there."""
    number = b.position(position)
    here = b.apply("and", b.compare("GE", number, 0), b.compare("LT", number, extent * dilation))
    if dilation == 1:
        return position, here
    on_grid = b.compare("EQ", b.remainder(number, dilation), 0)
    return position // dilation, b.apply("and", here, on_grid)


def _element(
    b: KernelBuilder,
    contraction: Contraction,
    access: Access,
    prologue: Block | None,
    loops: list[Value],
    indices: list[Index],
) -> Value:
    element = b.load(access.buffer, *indices)
    if prologue is not None:
        (element,) = b.inline(prologue, element, *loops)
    return b.convert(element, contraction.accumulate)


def _describe(access: Access, names: dict[Buffer, str], loops: dict[ContractionLoop, str]) -> str:
    def one(subscript: Subscript) -> str:
        position = subscript.position
        terms = [f"{c}*{loops[loop]}" if c != 1 else loops[loop] for loop, c in position.terms.items()]  # type: ignore[index]
        text = "+".join([*terms, *([str(position.offset)] if position.offset or not terms else [])])
        return f"({text})/{subscript.dilation}" if subscript.dilation != 1 else text

    return f"{names[access.buffer]}[{', '.join(map(one, access.subscripts))}]"
