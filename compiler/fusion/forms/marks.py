"""The products inside attention and its gradients, as emitters get them: their loops and factors, and what is computed
from the elements of factors and from sums."""

from __future__ import annotations

from trivium.compiler.fusion.forms.softmax import Factor
from trivium.compiler.kernel import Access, Block, Buffer, ContractionLoop, DType, Subscript
from trivium.compiler.kernel import Contraction as Mark
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Variable, variable
from trivium.compiler.lowering.scalars import dtype_of

Loops = dict[Variable, ContractionLoop]


def product(ctx: LoweringContext, lhs: Factor, rhs: Factor, loops: Loops, result: Block) -> Mark:
    """Returns a product of two factors from memory. `result` gets its sums."""
    places = _access(ctx, lhs, loops), _access(ctx, rhs, loops)
    before = _prologue(ctx, lhs, loops), _prologue(ctx, rhs, loops)
    return Mark(tuple(loops.values()), *places, DType("f32"), result, *before)


def weighted(ctx: LoweringContext, values: Factor, key: Variable, loops: Loops, result: Block) -> Mark:
    """Returns a product of values with weights, of which a row is computed before. `result` gets its sums."""
    row = Buffer("weights", DType("f32"), (key.extent,), "scratch")
    weights = Access(row, (Subscript(variable(loops[key])),))
    at, before = _access(ctx, values, loops), _prologue(ctx, values, loops)
    return Mark(tuple(loops.values()), weights, at, DType("f32"), result, None, before)


def _access(ctx: LoweringContext, factor: Factor, loops: Loops) -> Access:
    """Returns how a factor is read from memory."""

    def loop(symbol: object):
        return variable(loops[symbol]) if isinstance(symbol, Variable) else None

    buffer = ctx.buffer(factor.source, factor.source.type.shape, "in")
    return Access(buffer, tuple(Subscript(index.replace(loop)) for index in factor.at))


def _prologue(ctx: LoweringContext, factor: Factor, loops: Loops) -> Block | None:
    """Returns what is computed from the elements of a factor's source."""
    kind = dtype_of(factor.source.type.element_type)
    with ctx.block(ctx.b.block(kind, *["i64"] * len(loops))) as block:
        for v, register in zip(loops, block.parameters[1:], strict=True):
            ctx.bind(v, register)
        ctx.know(factor.source, factor.at, block.parameters[0])
        block.yields = [ctx.real(factor.value, factor.place)]
    return block if block.instructions else None
