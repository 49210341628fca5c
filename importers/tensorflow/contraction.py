"""Matrix products and ops that consist of them."""

from __future__ import annotations

from trivium.importers.tensorflow.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import F32, is_complex


@rule("MatMul")
def matmul(ctx: Context, a: Value, b: Value, *, transpose_a: bool, transpose_b: bool) -> Value:
    """MatMul(a, b; transpose_a=false, transpose_b=false) -> product"""
    return ctx.dot(a, b, ([0 if transpose_a else 1], [1 if transpose_b else 0]))


@rule("SparseMatMul")
def sparse_matmul(
    ctx: Context, a: Value, b: Value, *, transpose_a: bool, transpose_b: bool, a_is_sparse: bool, b_is_sparse: bool
) -> Value:
    """SparseMatMul(a, b; transpose_a=false, transpose_b=false, a_is_sparse=false, b_is_sparse=false) -> product"""
    a, b = (ctx.convert(x, F32) for x in (a, b))  # the operands are dense tensors, with many zeros
    return matmul(ctx, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(ctx: Context, x: Value, y: Value, *, adj_x: bool, adj_y: bool) -> Value:
    """BatchMatMulV2(x, y; adj_x=false, adj_y=false) -> output"""
    x, y = _widened(ctx, _adjoint(ctx, x, adj_x)), _widened(ctx, _adjoint(ctx, y, adj_y))
    return ctx.matmul(x, y)


def _widened(ctx: Context, x: Value) -> Value:
    return ctx.convert(x, ctx.element_type)


def _adjoint(ctx: Context, x: Value, wanted: bool) -> Value:
    if not wanted:
        return x
    count = x.type.rank
    x = ctx.transpose(x, (*range(count - 2), count - 1, count - 2))
    return ctx.add(ops.Conj(x)) if is_complex(x.type.element_type) else x


@rule("Cross")
def cross(ctx: Context, a: Value, b: Value) -> Value:
    """Cross(a, b) -> product"""
    last = a.type.rank - 1
    (x0, x1, x2), (y0, y1, y2) = ([ctx.slice(v, last, i, i + 1) for i in range(3)] for v in (a, b))
    pairs = ((x1, y2, x2, y1), (x2, y0, x0, y2), (x0, y1, x1, y0))
    return ctx.concatenate([ctx.minus(ctx.times(p, q), ctx.times(r, s)) for p, q, r, s in pairs], last)


# Einstein's summation


@rule("Einsum")
def einsum(ctx: Context, inputs: list[Value], *, equation: str) -> Value:
    """Einsum(N * inputs; equation) -> output"""
    left, _, output = equation.replace(" ", "").partition("->")
    terms = _spelled_out(left.split(","), inputs)
    output = output.replace("...", _ELLIPSIS[: _batch_rank(left, inputs)])
    operands = [_diagonals(ctx, x, term) for x, term in zip(inputs, terms, strict=True)]
    result, labels = operands[0]
    for x, term in operands[1:]:
        needed = set(output).union(*(later for _, later in operands[operands.index((x, term)) + 1 :]))
        result, labels = _pair(ctx, result, labels, x, term, needed)
    return _arranged(ctx, result, labels, output)


_ELLIPSIS = "0123456789"
"""Labels for the dimensions that `...` stands for."""


def _batch_rank(left: str, inputs: list[Value]) -> int:
    ranks = [x.type.rank - len(t) + 3 for t, x in zip(left.split(","), inputs, strict=True) if "..." in t]
    return max(ranks, default=0)


def _spelled_out(terms: list[str], inputs: list[Value]) -> list[str]:
    count = _batch_rank(",".join(terms), inputs)
    named = []
    for term, x in zip(terms, inputs, strict=True):
        own = x.type.rank - len(term) + 3 if "..." in term else 0
        named.append(term.replace("...", _ELLIPSIS[count - own : count]))
    return named


def _diagonals(ctx: Context, x: Value, labels: str) -> tuple[Value, str]:
    """A label that occurs twice in one term means a diagonal."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first, second = labels.index(label), labels.rindex(label)
            shape = ctx.extents(x)
            on = ctx.compare("EQ", ctx.iota(shape, first), ctx.iota(shape, second))
            x = ctx.reduce(ops.Add, ctx.select(on, x, ctx.constant_like(x, 0)), [second])
            labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _pair(ctx: Context, x: Value, mine: str, y: Value, theirs: str, needed: set[str]) -> tuple[Value, str]:
    """Returns the product of two terms, summed over the labels that are no longer needed."""
    x, mine = _summed(ctx, x, mine, {*needed, *theirs})
    y, theirs = _summed(ctx, y, theirs, {*needed, *mine})
    x, mine = _without_ones(ctx, x, mine, y, theirs)
    y, theirs = _without_ones(ctx, y, theirs, x, mine)
    batch = [label for label in mine if label in theirs and label in needed]
    inner = [label for label in mine if label in theirs and label not in needed]
    places = [[labels.index(label) for label in chosen] for labels in (mine, theirs) for chosen in (batch, inner)]
    result = ctx.dot(x, y, (places[1], places[3]), (places[0], places[2]))
    rest = [label for labels in (mine, theirs) for label in labels if label not in batch and label not in inner]
    return result, "".join([*batch, *rest])


def _summed(ctx: Context, x: Value, labels: str, needed: set[str]) -> tuple[Value, str]:
    gone = [i for i, label in enumerate(labels) if label not in needed]
    return ctx.reduce(ops.Add, x, gone), "".join(label for label in labels if label in needed)


def _without_ones(ctx: Context, x: Value, mine: str, y: Value, theirs: str) -> tuple[Value, str]:
    """Returns the dimensions of `...` that have extent 1 where the other term has more: the product broadcasts without
    them."""
    ones = [
        i
        for i, label in enumerate(mine)
        if label in _ELLIPSIS and label in theirs and x.type.shape[i] == 1 != y.type.shape[theirs.index(label)]
    ]
    return ctx.squeeze(x, ones), "".join(label for i, label in enumerate(mine) if i not in ones)


def _arranged(ctx: Context, x: Value, labels: str, output: str) -> Value:
    x, labels = _summed(ctx, x, labels, set(output))
    once = "".join(dict.fromkeys(output))
    if once != output:
        return _on_diagonals(ctx, _arranged(ctx, x, labels, once), output)
    if sorted(labels) != sorted(output):
        raise Error(f"einsum returns the labels {labels}, expected {output}")
    return ctx.transpose(x, [labels.index(label) for label in output])


def _on_diagonals(ctx: Context, x: Value, output: str) -> Value:
    """Puts elements on the diagonals of dimensions that share a label, and zeros beside them."""
    once = list(dict.fromkeys(output))
    shape = [ctx.extent(x, once.index(label)) for label in output]
    whole = ctx.broadcast_in_dim(x, shape, [output.index(label) for label in once])
    for place, label in enumerate(output):
        if (first := output.index(label)) != place:
            on = ctx.compare("EQ", ctx.iota(shape, first), ctx.iota(shape, place))
            whole = ctx.select(on, whole, ctx.constant_like(x, 0))
    return whole
