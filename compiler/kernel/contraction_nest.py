"""The kernel of a contraction: the mark, and the equivalent plain loop nest."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.contraction import Access, Contraction
from trivium.compiler.kernel.index import Index, variable
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Block, Buffer, Loop, Register, walk


def contraction_kernel(name: str, params: Sequence[Buffer], contraction: Contraction, *origins: Hashable) -> Kernel:
    """Returns the kernel of `contraction`: the mark, and the loop nest that defines its meaning. `origins` are those of
    the sum."""
    builder = KernelBuilder(name)
    builder.params.extend(params)
    outputs = [loop.extent for loop in contraction.loops if loop.role != "k"]
    inner = [loop.extent for loop in contraction.loops if loop.role == "k"] or [1]
    with builder.parallel(*(outputs or [1])) as indices, builder.computing(*origins):
        zero = builder.constant(0.0, contraction.accumulate)
        with builder.reduction(*inner, inits=[zero], combiner="add") as loop:
            every = [*indices[: len(outputs)], *loop.indices][: len(contraction.loops)]
            lhs = operand_element(builder, contraction, contraction.lhs, contraction.lhs_prologue, every)
            rhs = operand_element(builder, contraction, contraction.rhs, contraction.rhs_prologue, every)
            loop.yield_(builder.multiply(lhs, rhs))
        builder.inline(contraction.epilogue, loop.result, *indices[: len(outputs)])
    kernel = Kernel(name, list(params), builder.body, contraction)
    kernel.verify()
    return kernel


def sum_of(kernel: Kernel) -> Loop | None:
    """Returns the loop that sums the products of a contraction, in its loop nest: the first one, since the epilogue may
    have sums of its own."""
    return next(iter(sums_of(kernel)), None)


def sums_of(kernel: Kernel) -> Sequence[Loop]:
    """Returns the loop that sums the products of a contraction. If it is a copy, these are all copies, such as those of
    rows side by side and of the rows that are left over."""
    if kernel.contraction is None:
        return ()
    first, *others = (i for i in walk(kernel.body) if isinstance(i, Loop) and i.kind == "reduction")
    return [first, *(other for other in others if other.copied is not None and other.copied is first.copied)]


def operand_element(
    b: KernelBuilder, contraction: Contraction, access: Access, prologue: Block | None, loops: list[Register]
) -> Register:
    """Emits one element of an operand, after its prologue; zero if it is padding."""
    inside: Register | None = None
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


def _inside(b: KernelBuilder, position: Index, dilation: int, extent: int) -> tuple[Index, Register]:
    """Returns the index of a position, and whether there is an element."""
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
    loops: list[Register],
    indices: list[Index],
) -> Register:
    element = b.load(access.buffer, *indices)
    if prologue is not None:
        (element,) = b.inline(prologue, element, *loops)
    return b.convert(element, contraction.accumulate)
