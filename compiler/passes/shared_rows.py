"""Grids of rows and columns that overlap, as bilinear resizing reads them: what a program computes from some columns of
each row that it takes, it computes once for every row there is, and takes rows of the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.dimensions import along, on_parts, with_extent
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.passes.patterns.gathering import joined_indices, repeated, takes_rows
from trivium.ir.builder import Rewriter
from trivium.ir.core import Block, Value
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.func import Module
from trivium.ir.ops import Gather, GatherDimensionNumbers, Reshape, Transpose


@dataclass(frozen=True)
class SharedRows(Pass):
    """Afterwards, no elementwise op has several operands that are taken at the same places of a dimension, unless these
    are fewer places than the dimension has: what they are taken from are its operands, and its result is taken."""

    NAME: ClassVar[str] = "shared-rows"

    def run(self, module: Module) -> bool:
        return any([_change(block) for block in blocks(module)])


@dataclass(frozen=True)
class _Taken:
    """A value that consists of elements of `source`: dimension d of the value is `dimensions[d]` of the source, of
    which it has the elements at `places[d]`, or all if there are none. Places are vectors, apart from dimensions of
    extent 1."""

    source: Value
    dimensions: tuple[int, ...]
    places: Mapping[int, Value]

    def extent(self, dimension: int) -> int:
        """Returns how many elements the source has along a dimension of the value."""
        return self.source.type.static_shape[self.dimensions[dimension]]

    def transposed(self, permutation: Sequence[int]) -> _Taken:
        places = {new: self.places[old] for new, old in enumerate(permutation) if old in self.places}
        return _Taken(self.source, tuple(self.dimensions[old] for old in permutation), places)

    def emit(self, rewriter: Rewriter, whole: Mapping[int, int]) -> Value:
        """Returns the value, with all elements along the dimensions that `whole` has."""
        value = self.source
        if self.dimensions != tuple(range(value.type.rank)):
            value = rewriter.add(Transpose(value, self.dimensions))
        for dimension, places in self.places.items():
            if dimension not in whole:
                value = _take(rewriter, value, dimension, places)
        return value


def _change(block: Block) -> bool:
    taken: dict[Value, _Taken] = {}
    shared: set[Value] = set()
    for op in list(block):
        if isinstance(op, Transpose) and op.operand in taken:
            taken[op.result] = taken[op.operand].transposed(op.permutation)
        elif isinstance(op, Gather):
            if (found := _gathered(op, taken)) is not None:
                taken[op.result] = found
        elif isinstance(op, Op) and op.has_trait(ELEMENTWISE) and len(op.results) == 1:
            _share(op, taken, shared)
    return bool(shared)


# Computing before elements are taken


def _share(op: Op, taken: dict[Value, _Taken], shared: set[Value]) -> None:
    """Computes an op before its operands are taken, if these are several, from a grid, or were computed so."""
    given = {value: taken[value] for value in op.operands if value in taken}
    if not (len(given) > 1 or shared.intersection(given) or any(len(each.places) > 1 for each in given.values())):
        return
    first = next(iter(given.values()))
    extents = {d: first.extent(d) for d in first.places}
    common = {
        d: places
        for d, places in first.places.items()
        if extents[d] <= places.type.size and all(_fits(v, d, places, extents[d], given) for v in op.operands)
    }
    if not common:
        return
    rewriter, whole = Rewriter(op), {d: extents[d] for d in common}
    new = on_parts(op, whole, [_whole(value, whole, given, rewriter) for value in op.operands])
    rewriter.add(new)
    found = _Taken(new.results[0], tuple(range(new.results[0].type.rank)), common)
    value = found.emit(rewriter, {})
    taken[value] = found
    shared.add(value)
    rewriter.replace(value)


def _fits(value: Value, dimension: int, places: Value, extent: int, taken: Mapping[Value, _Taken]) -> bool:
    """Whether a value is taken at these places of a dimension of this extent, or is the same along the dimension."""
    if value in taken:
        return taken[value].places.get(dimension) is places and taken[value].extent(dimension) == extent
    if not value.type.rank:
        return True
    needed = along(value.defining_op, dimension) if value.defining_op is not None else None
    return needed is not None and all(each is None for each in needed)


def _whole(value: Value, whole: Mapping[int, int], taken: Mapping[Value, _Taken], rewriter: Rewriter) -> Value:
    """Returns what a value is taken from along the dimensions of `whole`, or as much of it as these extents take."""
    if value in taken:
        return taken[value].emit(rewriter, whole)
    if not value.type.rank:
        return value
    op = value.defining_op
    assert isinstance(op, Op), "it has the same elements along these dimensions"
    part = on_parts(op, whole, op.operands)
    rewriter.add(part)
    return part.results[0]


def _take(rewriter: Rewriter, value: Value, dimension: int, places: Value) -> Value:
    count, rank, shape = places.type.size, value.type.rank, value.type.static_shape
    vector = rewriter.add(Reshape(places, result=places.type.with_shape((count,))))
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(d for d in range(rank) if d != dimension),
        collapsed_slice_dims=(dimension,),
        start_index_map=(dimension,),
        index_vector_dim=1,
    )
    return rewriter.add(Gather(value, vector, numbers, with_extent(shape, dimension, 1)))


# What a gather takes


def _gathered(op: Gather, taken: Mapping[Value, _Taken]) -> _Taken | None:
    """Returns what a gather of rows, of columns, or of both takes, if the places along each dimension are a vector."""
    if not takes_rows(op):
        return None
    numbers, result, mapped = op.dimension_numbers, op.result.type, op.dimension_numbers.start_index_map
    batch = [d for d in range(result.rank) if d not in numbers.offset_dims]
    vectors = _vectors(op)
    base = taken.get(op.operand) or _plain(op.operand)
    if len(vectors) < len(mapped) or len(vectors) < len(batch) or any(d in base.places for d in mapped):
        return None
    along_batch = {batch[place]: d for d, place in zip(mapped, vectors, strict=True)}
    kept = iter(d for d in range(op.operand.type.rank) if d not in mapped)
    turned = base.transposed([along_batch[d] if d in along_batch else next(kept) for d in range(result.rank)])
    own = {batch[place]: vector for place, vector in vectors.items()}
    return _Taken(turned.source, turned.dimensions, {**turned.places, **own})


def _plain(value: Value) -> _Taken:
    """Returns a value, or the transpose of another one, as all elements of a source."""
    made = value.defining_op
    if isinstance(made, Transpose):
        return _plain(made.operand).transposed(made.permutation)
    return _Taken(value, tuple(range(value.type.rank)), {})


def _vectors(op: Gather) -> dict[int, Value]:
    """Returns the places along each mapped dimension, if they are a vector, by the batch dimension that they vary
    along, in the order of the mapped dimensions."""
    vector = op.dimension_numbers.index_vector_dim
    found: dict[int, Value] = {}
    for part in joined_indices(op):
        root, varying = repeated(part)
        is_one = vector == part.type.rank or part.type.shape[vector] == 1
        if is_one and len(varying) == 1:
            found[varying[0] - (varying[0] > vector)] = root
    return found
