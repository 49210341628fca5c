"""Einstein summation: diagonals, sums and one product, whose dimensions are then put in order."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.compiler.passes.decompositions.table import (
    dot,
    is_static,
    operands_of,
    part,
    pattern,
    reduced,
    reshape,
    transpose,
)
from trivium.ir.decompositions.tensors import Tensor
from trivium.ir.ops import DotDimensionNumbers, Einsum, Or, UnaryEinsum
from trivium.ir.types import accumulation_type, is_boolean

Names = list[str | int]
"""The names of the dimensions of a tensor: letters, and numbers, counted from the last one, for those of `...`."""


@pattern(UnaryEinsum)
def unary_einsum(op):
    """Diagonals and sums."""
    if not is_static(op):
        return None
    (x,) = operands_of(op)
    (names,), wanted = _names(op.einsum_config, [x.type.rank], op.result.type.rank)
    x = x.to(accumulation_type(op.result.type.element_type))
    x, names = _of_single(x, names, wanted)
    return _arranged(x, names, wanted).to(op.result.type.element_type).value


@pattern(Einsum)
def einsum(op):
    """A product over the letters that both operands have, after sums over those that only one has."""
    if not is_static(op):
        return None
    operands, kind = operands_of(op), op.result.type.element_type
    named, wanted = _names(op.einsum_config, [x.type.rank for x in operands], op.result.type.rank)
    factors = []
    for x, names, others in zip(operands, named, reversed(named), strict=True):
        x, names = _without_repeated(x.to(accumulation_type(kind)), names, others)
        factors.append(_of_single(x, names, [*wanted, *others]))
    (lhs, left), (rhs, right) = factors
    shared = [name for name in left if name in right]
    batch, contracted = ([name for name in shared if (name in wanted) is kept] for kept in (True, False))
    places = [tuple(map(names.index, group)) for group in (batch, contracted) for names in (left, right)]
    numbers = DotDimensionNumbers(places[0], places[1], places[2], places[3])
    rest = [name for names in (left, right) for name in names if name not in shared]
    return _arranged(dot(lhs, rhs, numbers), [*batch, *rest], wanted).to(kind).value


def _names(config: str, ranks: Sequence[int], rank: int) -> tuple[list[Names], Names]:
    """Returns the names of the dimensions of each operand, and of the result."""
    inputs, _, output = config.replace(" ", "").partition("->")
    return [_spelled(*pair) for pair in zip(inputs.split(","), ranks, strict=True)], _spelled(output, rank)


def _spelled(letters: str, rank: int) -> Names:
    before, dots, after = letters.partition("...")
    count = rank - len(before) - len(after) if dots else 0
    return [*before, *reversed(range(count)), *after]


def _without_repeated(x: Tensor, names: Names, others: Names) -> tuple[Tensor, Names]:
    """Drops dimensions of extent 1 that `...` names, if the other operand has them too: the product then repeats the
    element."""
    shape = x.type.static_shape
    repeated = [isinstance(name, int) and shape[axis] == 1 and name in others for axis, name in enumerate(names)]
    kept = [axis for axis, again in enumerate(repeated) if not again]
    return reshape(x, *(shape[axis] for axis in kept)), [names[axis] for axis in kept]


def _of_single(x: Tensor, names: Names, needed: Sequence[str | int]) -> tuple[Tensor, Names]:
    """Takes diagonals for letters that appear twice, and sums over letters that are not needed elsewhere."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            x, names = _diagonal(x, names, name)
    lost = [axis for axis, name in enumerate(names) if name not in needed]
    combine = {"combine": Or} if is_boolean(x.element_type) else {}
    return reduced(x, lost, **combine), [name for name in names if name in needed]


def _diagonal(x: Tensor, names: Names, name: str | int) -> tuple[Tensor, Names]:
    """Returns the elements whose indices along the first two dimensions of a name are equal. This diagonal becomes the
    last dimension."""
    first = names.index(name)
    second = names.index(name, first + 1)
    rest = [axis for axis in range(len(names)) if axis not in (first, second)]
    x = transpose(x, *rest, first, second)
    *shape, extent, _ = x.type.static_shape
    flat = reshape(x, *shape, extent * extent)
    return part(flat, len(shape), 0, extent * extent, extent + 1), [*(names[axis] for axis in rest), name]


def _arranged(x: Tensor, names: Names, wanted: Names) -> Tensor:
    return transpose(x, *map(names.index, wanted))
