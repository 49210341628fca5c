"""Loop indices of which only digits are used: of a sum over all elements of an image whose rows and channels are in
another order in memory, for example. With a loop for each digit, the sum can run along any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trivium.compiler.kernel.affine import Analysis, divisions, expressions
from trivium.compiler.kernel.dtypes import INDEX
from trivium.compiler.kernel.index import Index, Quotient, Remainder, Symbol, Variable, variable
from trivium.compiler.kernel.structure import Block, Load, Loop, Position, Register, walk


def split_indices(loop: Loop) -> None:
    """Splits each index of a reduction that is only divided, by numbers that divide one another, into its digits."""
    placed = [i for i in walk(loop.body) if expressions(i)]
    if not any(any(divisions(i)) for i in placed) or not all(isinstance(i, Load | Position) for i in placed):
        return
    analysis = Analysis(loop.body)
    every = [analysis.address(i.buffer, i.indices) for i in placed if isinstance(i, Load)]
    every += [i.index for i in placed if isinstance(i, Position)]
    atoms = [atom for expression in every for atom in expression.divisions()]
    extents, indices = list[int | Register](), list[Register]()
    places, registers = dict[Symbol, Index](), dict[Symbol, Index]()
    for index, extent in zip(loop.indices, loop.extents, strict=True):
        cuts = _cuts(atoms, index, extent) if isinstance(extent, int) else []
        if not cuts:
            extents.append(extent)
            indices.append(index)
            continue
        weights = [*cuts, 1]
        digits = [Variable(whole // part) for whole, part in zip([extent, *cuts], weights, strict=True)]  # type: ignore[operator]
        own = [Register(INDEX) for _ in digits]
        places[index] = Index(dict(zip(digits, weights, strict=True)))
        registers.update(zip(digits, map(variable, own), strict=True))
        extents += [digit.extent for digit in digits]
        indices += own
    if not places:
        return
    for i in placed:
        if isinstance(i, Load):
            i.indices = tuple(each.replace(places.get).replace(registers.get) for each in i.indices)
        elif isinstance(i, Position):
            i.index = i.index.replace(places.get).replace(registers.get)
    loop.extents, loop.body.parameters = tuple(extents), indices
    used = {operand for i in walk(loop.body) for operand in i.operands}.union(*_yielded(loop.body))
    for index in used.intersection(places):
        place = places[index].replace(registers.get)
        loop.body.instructions.insert(0, Position(place, index))  # type: ignore[arg-type]


def _yielded(block: Block) -> Iterator[list[Register]]:
    yield block.yields
    yield from (inner.yields for i in walk(block) for inner in i.blocks)


def _cuts(atoms: Sequence[Quotient | Remainder], index: Register, extent: int) -> Sequence[int]:
    """Returns the numbers that `atoms` divide an index by, the largest first, of which each divides the one before it;
    none if it is divided in other ways, or not at all."""
    found = set[int]()
    for atom in atoms:
        if index not in atom.dividend.symbols:
            continue
        inner = atom.dividend.sole
        scale = inner.divisor if isinstance(inner, Quotient) and inner.dividend.sole is index else 1
        if scale == 1 and inner is not index:
            return []
        found |= {scale * atom.divisor} if isinstance(atom, Quotient) else {scale, scale * atom.divisor}
    cuts = sorted(found - {1, extent}, reverse=True)
    divide = all(whole % part == 0 for whole, part in zip([extent, *cuts], cuts, strict=False))
    return cuts if divide else []
