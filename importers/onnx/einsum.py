"""Einstein sums of any form: letters more than once in an operand, an ellipsis, a result that is left out, and any
number of operands."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from trivium.importers.extents import Extent
from trivium.importers.onnx.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value


@rule("Einsum")
def einsum(ctx: Context, *values: Value, equation: str) -> Value:
    """Einsum(inputs, equation)"""
    terms, target = _terms(ctx, values, equation.replace(" ", ""))
    operands = [_diagonal(ctx, x, term) for x, term in zip(values, terms, strict=True)]
    x, term = operands[0]
    for index, (other, letters) in enumerate(operands[1:], 2):
        kept = {*target, *(letter for _, rest in operands[index:] for letter in rest)}
        x, term = _product(ctx, (x, term), (other, letters), kept)
    x, term = _summed(ctx, x, term, set(target))
    return ctx.transpose(x, [term.index(letter) for letter in target])


def _terms(ctx: Context, values: Sequence[Value], equation: str) -> tuple[list[str], str]:
    """Returns the letters of each operand, and of the result; an ellipsis gets letters that nothing else has."""
    sources, arrow, target = equation.partition("->")
    terms = sources.split(",")
    if len(terms) != len(values):
        ctx.unsupported("equation", equation, f"{len(values)} operands")
    free = [letter for letter in ascii_letters if letter not in equation]
    count = max(x.type.rank - len(term.replace("...", "")) for x, term in zip(values, terms, strict=True))
    dots = "".join(free[: max(count, 0)])
    full = []
    for x, term in zip(values, terms, strict=True):
        mine = x.type.rank - len(term.replace("...", ""))
        full.append(term.replace("...", dots[len(dots) - mine :]))
    if any(len(term) != x.type.rank or not (term + "a").isalpha() for x, term in zip(values, full, strict=True)):
        ctx.unsupported("equation", equation, "a letter for each dimension")
    if not arrow:
        letters = sorted(set("".join(terms)) - {"."})
        target = "..." * ("..." in sources) + "".join(c for c in letters if sources.count(c) == 1)
    return full, target.replace("...", dots)


def _diagonal(ctx: Context, x: Value, term: str) -> tuple[Value, str]:
    """Returns an operand in which each letter occurs once."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first, second = [place for place, found in enumerate(term) if found == letter][:2]
            same = ctx.compare("EQ", ctx.iota_like(x, first), ctx.iota_like(x, second))
            x = ctx.reduce(ops.Add, ctx.select(same, x, ctx.full_like(x, 0)), [second])
            term = term[:second] + term[second + 1 :]
    return x, term


def _summed(ctx: Context, x: Value, term: str, kept: set[str]) -> tuple[Value, str]:
    """Returns an operand without the letters that nothing else has."""
    dropped = [place for place, letter in enumerate(term) if letter not in kept]
    return ctx.reduce(ops.Add, x, dropped), "".join(letter for letter in term if letter in kept)


def _product(ctx: Context, lhs: tuple[Value, str], rhs: tuple[Value, str], kept: set[str]) -> tuple[Value, str]:
    """Returns the product of two operands, summed over the letters that nothing else has."""
    (a, left), (b, right) = _summed(ctx, *lhs, kept | set(rhs[1])), _summed(ctx, *rhs, kept | set(lhs[1]))
    shared = [letter for letter in left if letter in right]
    # A dimension of extent 1 under an ellipsis is repeated, also if that is only known when the program is compiled.
    for letter in shared:
        first, second = left.index(letter), right.index(letter)
        (common,) = ctx.common_shape([ctx.extent(a, first)], [ctx.extent(b, second)])
        a, b = _repeated(ctx, a, first, common), _repeated(ctx, b, second, common)
    batch = [letter for letter in shared if letter in kept]
    summed = [letter for letter in shared if letter not in kept]
    contracting = [left.index(c) for c in summed], [right.index(c) for c in summed]
    batching = [left.index(c) for c in batch], [right.index(c) for c in batch]
    rest = [letter for letter in left + right if letter not in shared]
    return ctx.dot(a, b, contracting, batching), "".join([*batch, *rest])


def _repeated(ctx: Context, x: Value, dimension: int, extent: Extent) -> Value:
    shape = ctx.extents(x)
    if shape[dimension] == extent:
        return x
    shape[dimension] = extent
    return ctx.broadcast_in_dim(x, shape, range(x.type.rank))
