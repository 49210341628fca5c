"""Tiling: a value that is too large for the caches, and that only carries the result of one product to the next, never
exists as a whole. A loop computes it in tiles, and with each tile that part of the second product which needs it.

Attention is the case that matters: its scores grow with the square of the sequence, everything else with the sequence.
Each tile is computed by the same ops as the whole, so the results are the same, except that products may sum up in
another order, which the specification leaves open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeGuard

from trivium.compiler.passes.dimensions import along, on_parts, with_extent
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.target import TileSizes
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder, Rewriter, region
from trivium.ir.core import Block, Operation, Value
from trivium.ir.declare import Op
from trivium.ir.func import Module
from trivium.ir.types import I64, TensorType, tensor


@dataclass(frozen=True)
class Tile(Pass):
    """Afterwards, no value between two products is larger than `sizes.largest` bytes if it can be computed in tiles."""

    sizes: TileSizes
    NAME: ClassVar[str] = "tile"

    def run(self, module: Module) -> bool:
        return any([self._tile(block, self.sizes.largest) for block in list(blocks(module))])

    def _tile(self, block: Block, largest: int) -> bool:
        """Tiles along one dimension; the bodies of the loops, whose values may still be large, along further ones."""
        changed = False
        for op in reversed(list(block)):
            if isinstance(op, ops.DotGeneral) and op.block is block:
                chain = self._find(op, largest)
                if chain is not None:
                    self._tile(_emit(chain, self._extent(chain)), self.sizes.tile)
                    changed = True
        return changed

    def _find(self, last: ops.DotGeneral, largest: int) -> _Chain | None:
        """Returns a chain that ends with a product and that holds a value larger than `largest` bytes, if there is
        one."""
        if max(map(_nbytes, last.operands)) <= largest:
            return None
        for dimension, extent in enumerate(last.result.type.static_shape):
            chain = _collect(last, dimension) if extent > 1 else None
            if chain is not None and chain.nbytes > largest and _pays(chain) and self._extent(chain) < extent:
                return chain
        return None

    def _extent(self, chain: _Chain) -> int:
        """Returns the extent of a tile, such that all tiles have about the size that is aimed at, and none is smaller
        than what each of them reads as a whole."""
        least = 1 if chain.is_batching else self.sizes.rows
        size = max(self.sizes.tile, sum(map(_nbytes, chain.wholes)))
        wanted = max(size * chain.extent // chain.nbytes, least)
        return math.ceil(chain.extent / math.ceil(chain.extent / wanted))


@dataclass
class _Chain:
    """The ops that are computed in tiles, which are parts of `dimension` of the result of the last product."""

    last: ops.DotGeneral
    dimension: int
    members: dict[Operation, int] = field(default_factory=dict)
    """The ops, from the last product to the first one, and the dimension of their results that the tiles divide."""
    parts: dict[Value, int] = field(default_factory=dict)
    """The operands of which each tile needs a part, and the dimension along which it does."""
    wholes: set[Value] = field(default_factory=set)
    """The operands that each tile needs as a whole; some of which it may need a part as well."""

    @property
    def extent(self) -> int:
        return self.last.result.type.static_shape[self.dimension]

    @property
    def is_batching(self) -> bool:
        return self.dimension < len(self.last.dot_dimension_numbers.lhs_batching_dimensions)

    @property
    def nbytes(self) -> int:
        """The size of the largest value that will not exist as a whole."""
        return max((_nbytes(value) for op in self.inner for value in op.results), default=0)

    @property
    def inner(self) -> list[Operation]:
        """The members before the last product, the last one first."""
        return [op for op in self.members if op is not self.last]

    @property
    def sliced(self) -> list[Value]:
        """The values of which every tile needs a part, but which are there before the loop."""
        computed = {value for op in self.members for value in op.results}
        return [value for value in self.parts if value not in computed]


def _pays(chain: _Chain) -> bool:
    """Whether a product makes a value that is larger than the result: only then memory is saved."""
    products = [op for op in chain.inner if isinstance(op, ops.DotGeneral)]
    return any(_nbytes(op.result) > _nbytes(chain.last.result) for op in products)


def _collect(last: ops.DotGeneral, dimension: int) -> _Chain | None:
    """Returns the chain whose tiles are parts of a dimension of the last product; None if a value would be needed along
    two of its dimensions."""
    chain = _Chain(last, dimension)
    op: Operation | None = last
    waiting: set[Operation] = {last}
    while op is not None and waiting:
        if op in waiting:
            waiting.remove(op)
            if not _divide(op, chain, waiting):
                return None
        op = op.previous
    return chain


def _divide(op: Operation, chain: _Chain, waiting: set[Operation]) -> bool:
    """Adds an op to the chain if it can be computed in tiles, and the ops of the block that compute its parts to those
    that wait for the same. Returns whether each value is needed along one of its dimensions only."""
    last = chain.last
    places = {chain.dimension} if op is last else {chain.parts[value] for value in op.results if value in chain.parts}
    if len(places) > 1 or not (op is last or _joins(op, chain)):
        return True
    (place,) = places
    needed = () if _counts(op, place) else along(op, place)
    if needed is None:
        return True
    chain.members[op] = place
    for operand, divided in zip(op.operands, needed, strict=True):
        if divided is None:
            chain.wholes.add(operand)
        elif chain.parts.setdefault(operand, divided) != divided:
            return False
        elif (source := operand.defining_op) is not None and source.block is last.block:
            waiting.add(source)
    return True


def _joins(op: Operation, chain: _Chain) -> bool:
    """Whether an op, whose users have been considered, can be computed tile by tile: nothing else needs its results.
    Products with small results stay before the loop, where both factors are at hand at once."""
    if not op.is_pure or not all(isinstance(kind, TensorType) for kind in (*op.result_types, *op.operand_types)):
        return False
    if any(value in chain.wholes or not chain.members.keys() >= set(value.users) for value in op.results):
        return False
    return not isinstance(op, ops.DotGeneral) or _nbytes(op.result) > _nbytes(chain.last.result)


def _nbytes(value: Value) -> int:
    kind = value.type
    return kind.size * kind.dtype.itemsize if isinstance(kind, TensorType) else 0


def _emit(chain: _Chain, size: int) -> Block:
    """Replaces the last product by a loop over tiles. Returns the body of the loop."""
    rewriter = Rewriter(chain.last)
    count, result = math.ceil(chain.extent / size), chain.last.result
    kind = result.type
    zero = rewriter.add(ops.Constant(DenseElements.splat(0, kind)))
    types = [tensor(of=I64), kind]

    def goes_on(b: Builder, turn: Value, _: Value) -> Value:
        return b.add(ops.Compare(turn, number(b, count), comparison_direction="LT"))

    def body(b: Builder, turn: Value, whole: Value) -> list[Value]:
        # The last tile begins early enough to end with the dimension: it repeats what the tile before has computed.
        begin = b.add(ops.Multiply(turn, number(b, size)))
        start = b.add(ops.Minimum(begin, number(b, chain.extent - size)))
        part = _tile_of(b, chain, start, size)
        updated = b.add(ops.DynamicUpdateSlice(whole, part, _at(b, kind.rank, chain.dimension, start)))
        return [b.add(ops.Add(turn, number(b, 1))), updated]

    location = chain.last.location
    regions = region(types, goes_on, location), region(types, body, location)
    results = rewriter.add(ops.While([number(rewriter, 0), zero], *regions))
    rewriter.replace(results[1])
    for op in chain.inner:
        op.erase()
    return regions[1].block


def number(b: Builder, number: int) -> Value:
    return b.add(ops.Constant(DenseElements.splat(number, tensor(of=I64))))


def _at(b: Builder, rank: int, dimension: int, start: Value) -> list[Value]:
    """Returns the indices of a box that begins at `start` along a dimension, and at zero along the others."""
    return [start if d == dimension else number(b, 0) for d in range(rank)]


def _tile_of(b: Builder, chain: _Chain, start: Value, size: int) -> Value:
    """Adds the ops that compute a tile. Returns its part of the last product."""
    tiles: dict[Value, Value] = {}
    for value in chain.sliced:
        dimension = chain.parts[value]
        sizes = with_extent(value.type.static_shape, dimension, size)
        indices = _at(b, value.type.rank, dimension, start)
        tiles[value] = b.add(ops.DynamicSlice(value, indices, slice_sizes=sizes))
    for op, dimension in reversed(chain.members.items()):
        with b.at(op.location):
            results = _member(b, op, dimension, tiles, start, size)
        tiles.update(zip(op.results, results, strict=True))
    return tiles[chain.last.result]


def _member(
    b: Builder, op: Operation, dimension: int, tiles: dict[Value, Value], start: Value, size: int
) -> Sequence[Value]:
    """Adds a member of the chain, computed on tiles."""
    if _counts(op, dimension):
        return [_counted(b, op.result.type, dimension, start, size)]
    dimensions = along(op, dimension)
    assert isinstance(op, Op)
    assert dimensions is not None
    operands = [o if needed is None else tiles[o] for o, needed in zip(op.operands, dimensions, strict=True)]
    new = on_parts(op, {dimension: size}, operands)
    b.add(new)
    return new.results


def _counts(op: Operation, dimension: int) -> TypeGuard[ops.Iota]:
    return isinstance(op, ops.Iota) and op.iota_dimension == dimension


def _counted(b: Builder, kind: TensorType, dimension: int, start: Value, size: int) -> Value:
    """Returns the part of an iota that begins at `start`."""
    kind = kind.with_shape(with_extent(kind.static_shape, dimension, size))
    whole = kind.with_element(I64)
    counted = b.add(ops.Iota(iota_dimension=dimension, result=whole))
    offset = b.add(ops.BroadcastInDim(start, broadcast_dimensions=(), result=whole))
    return b.add(ops.Convert(b.add(ops.Add(counted, offset)), result=kind))
