"""Values of which only the first places along a dimension are used: a classifier that reads one token of a text, or of
an image, needs the last layer for no other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.dimensions import along, on_parts
from trivium.compiler.passes.manager import Pass, blocks
from trivium.ir.builder import Rewriter
from trivium.ir.core import Block, Operation, Value
from trivium.ir.declare import Op
from trivium.ir.func import Module
from trivium.ir.ops import DotGeneral, Slice
from trivium.ir.types import TensorType

LEAST = 2
"""How many times as many places as are used a product must have to be computed for these only."""

Extents = tuple[int, ...]


@dataclass(frozen=True)
class FirstPlaces(Pass):
    """Afterwards, no product has twice as many rows, columns or batches as are used, where those that are used come
    first, and ops between a product and a slice of it can be computed for parts of their operands."""

    NAME: ClassVar[str] = "first-places"

    def run(self, module: Module) -> bool:
        return any([_change(block) for block in blocks(module)])


def _change(block: Block) -> bool:
    used = _Used(block)
    products = [op for op in used.parts if isinstance(op, DotGeneral)]
    if not any(math.prod(used.extents[op.result]) * LEAST <= op.result.type.size for op in products):
        return False
    _write(block, used)
    return True


class _Used:
    """How many places are used, along each dimension of the values of a block. `parts` are the ops that can be computed
    for these places, with the extents along those dimensions of which fewer are used."""

    def __init__(self, block: Block):
        self.extents: dict[Value, Extents] = {}
        self.parts: dict[Operation, dict[int, int]] = {}
        for value in block.terminator.operands:
            self._use(value)
        for op in reversed(list(block)):
            if op is not block.terminator:
                self._op(op)

    def _use(self, value: Value, extents: Sequence[int] | None = None) -> None:
        if isinstance(value.type, TensorType):
            found = value.type.static_shape if extents is None else tuple(extents)
            self.extents[value] = tuple(map(max, found, self.extents.get(value, found)))

    def _op(self, op: Operation) -> None:
        results = [self.extents[result] for result in op.results if result in self.extents]
        if results and isinstance(op, Slice):
            self.parts[op] = _fewer(op, results[0])
            self._use(op.operand, _limits(op, results[0]))
        elif results and isinstance(op, Op) and _is_uniform(op):
            wanted = tuple(map(max, results[0], *results))
            self.parts[op] = {d: n for d, n in _fewer(op, wanted).items() if along(op, d) is not None}
            for value, extents in zip(op.operands, needed(op, self.parts[op]), strict=True):
                self._use(value, extents)
        else:
            for value in op.operands:
                self._use(value)
        for value in (value for region in op.regions for value in region.free_values()):
            self._use(value)


def needed(op: Operation, extents: Mapping[int, int]) -> list[Extents]:
    """Returns how many places of its operands an op needs for results with these extents along some dimensions."""
    found = [list(value.type.static_shape) for value in op.operands]
    for dimension, extent in extents.items():
        for shape, place in zip(found, along(op, dimension) or (), strict=True):
            if place is not None:
                shape[place] = extent
    return list(map(tuple, found))


def _limits(op: Slice, extents: Sequence[int]) -> Extents:
    """Returns where a slice ends of which fewer places are used."""
    of_slice = zip(op.start_indices, op.limit_indices, op.strides, op.result.type.static_shape, extents, strict=True)
    return tuple(
        limit if n == extent else start + max(0, n - 1) * stride + 1 for start, limit, stride, extent, n in of_slice
    )


def _fewer(op: Operation, extents: Sequence[int]) -> dict[int, int]:
    shape = op.results[0].type.static_shape
    return {d: n for d, (n, extent) in enumerate(zip(extents, shape, strict=True)) if n < extent}


def _is_uniform(op: Op) -> bool:
    """Whether all results of an op on tensors have the same extents."""
    kinds = [value.type for value in (*op.results, *op.operands)]
    return all(isinstance(x, TensorType) for x in kinds) and len({value.type.shape for value in op.results}) == 1


def _write(block: Block, used: _Used) -> None:
    """Writes the ops again of which fewer places are used, and those that use them."""
    parts: dict[Value, Value] = {}
    old: list[Operation] = []
    for op in list(block):
        extents = used.parts.get(op, {})
        if not extents and not any(value in parts for value in op.operands):
            continue
        assert isinstance(op, Op), "other ops use all places"
        rewriter = Rewriter(op)
        if isinstance(op, Slice):
            limits = _limits(op, used.extents[op.result])
            operand = _part(rewriter, parts.get(op.operand, op.operand), limits)
            made: Operation = Slice(operand, op.start_indices, limits, op.strides)
        else:
            pairs = zip(op.operands, needed(op, extents), strict=True)
            made = on_parts(op, extents, [_part(rewriter, parts.get(value, value), n) for value, n in pairs])
        rewriter.add(made)
        if extents:
            parts.update(zip(op.results, made.results, strict=True))
            old.append(op)
        else:
            rewriter.replace(*made.results)
    for op in reversed(old):
        op.erase()


def _part(rewriter: Rewriter, value: Value, extents: Extents) -> Value:
    """Returns the first places of a value."""
    if value.type.static_shape == extents:
        return value
    return rewriter.add(Slice(value, (0,) * len(extents), extents, (1,) * len(extents)))
