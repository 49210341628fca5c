"""Common subexpression elimination: of several pure ops that compute the same from the same operands, the first one is
kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from trivium.compiler.passes.manager import Pass
from trivium.compiler.passes.patterns.matching import is_commutative
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Block, Operation
from trivium.ir.declare import Op
from trivium.ir.func import Module

LARGE = 1 << 16
"""The number of elements above which constants are compared by their memory, not by their contents: hashing weights
costs more than it saves."""


@dataclass(frozen=True)
class CommonSubexpressions(Pass):
    """Afterwards, no two pure ops of one block, or of a block and one around it, compute the same. Ops with regions are
    not changed."""

    NAME: ClassVar[str] = "cse"

    def run(self, module: Module) -> bool:
        changed = [_eliminate(block, {}) for function in module.functions.values() for block in function.body.blocks]
        return any(changed)


def _eliminate(block: Block, known: dict[Any, Operation]) -> bool:
    """Eliminates in a block. `known` contains the ops of the blocks around it; the ops of this block are forgotten at
    its end."""
    changed = False
    here: dict[Any, Operation] = {}
    for op in block:
        for region in op.regions:
            for inner in region.blocks:
                changed |= _eliminate(inner, {**known, **here})
        if op.regions or not op.is_pure or not op.results:
            continue
        key = _key(op)
        first = here.get(key) or known.get(key)
        if first is None:
            here[key] = op
            continue
        for old, new in zip(op.results, first.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
        changed = True
    return changed


def _key(op: Operation) -> Any:
    operands = tuple(map(id, op.operands))
    if isinstance(op, Op) and is_commutative(op):
        operands = tuple(sorted(operands))
    attributes = tuple([(name, _attribute_key(value)) for name, value in sorted(op.attributes.items())])
    extra = frozenset(op.extra.items()) if op.extra else None
    return type(op), operands, attributes, extra, op.result_types


def _attribute_key(value: Any) -> Any:
    if isinstance(value, DenseElements) and value.array.size > LARGE and not value.is_splat:
        return id(value.array.base), value.array.__array_interface__["data"], value.array.strides, value.type
    return value
