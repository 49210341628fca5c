"""Loop-invariant code motion: what a loop computes anew in every iteration, from values that never change, is computed
once, before the loop. Only what is worth storing moves, with what it is computed from: the rest is cheaper inside the
kernels that read it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.costs import element_cost, is_marked_contraction, is_reduction
from trivium.compiler.passes.manager import Pass
from trivium.ir.core import Block, BlockArgument, Operation, Value
from trivium.ir.func import Module
from trivium.ir.ops import Fft, ReduceWindow, Sort, While

EXPENSIVE = 4.0
"""The cost of an element from which it is stored rather than computed again."""


@dataclass(frozen=True)
class HoistInvariants(Pass):
    """Afterwards, no body of a `while` computes anything expensive that is the same in every iteration."""

    NAME: ClassVar[str] = "hoist"

    def run(self, module: Module) -> bool:
        changed = [_hoist_in(block) for function in module.functions.values() for block in function.body.blocks]
        return any(changed)


def _hoist_in(block: Block) -> bool:
    """Hoists from the loops of a block, the inner ones first: what leaves those may leave the outer ones too."""
    changed = False
    for op in list(block):
        for region in op.regions:
            for inner in region.blocks:
                changed |= _hoist_in(inner)
        if isinstance(op, While):
            changed |= _hoist_from(op)
    return changed


def _hoist_from(loop: While) -> bool:
    body, fixed = loop.body.block, fixed_arguments(loop)
    assert loop.block is not None
    invariant: dict[Operation, None] = {}
    for op in body:
        changes = any(varies(value, body, fixed, invariant) for value in _read(op))
        if op is not body.last and op.is_pure and not changes:
            invariant[op] = None
    moved = _with_sources([op for op in invariant if _is_expensive(op)], invariant)
    for op in (op for op in invariant if op in moved):
        loop.block.insert(op.detach(), before=loop)
        for inner in op.walk():
            for index, operand in enumerate(inner.operands):
                if operand in fixed:
                    inner.set_operand(index, fixed[operand])
    return bool(moved)


def fixed_arguments(loop: While) -> dict[Value, Value]:
    """Returns the arguments of the body that it returns unchanged, with what they are."""
    returned = loop.body.terminator.operands
    triples = zip(loop.body.arguments, returned, loop.operand, strict=True)
    return {argument: init for argument, value, init in triples if argument is value}


def _read(op: Operation) -> list[Value]:
    return [*op.operands, *(value for region in op.regions for value in region.free_values())]


def varies(value: Value, body: Block, fixed: Mapping[Value, Value], invariant: Container[Operation] = ()) -> bool:
    """Whether a value may differ from iteration to iteration."""
    if isinstance(value, BlockArgument):
        return value.block is body and value not in fixed
    op = value.defining_op
    return op is not None and op.block is body and op not in invariant


def _is_expensive(op: Operation) -> bool:
    if isinstance(op, Sort | Fft | ReduceWindow) or is_marked_contraction(op) or is_reduction(op):
        return True
    return element_cost(op) >= EXPENSIVE


def _with_sources(roots: list[Operation], invariant: dict[Operation, None]) -> set[Operation]:
    """Returns ops, and all of the invariant ones that they are computed from."""
    found, waiting = set(roots), list(roots)
    while waiting:
        for value in _read(waiting.pop()):
            source = value.defining_op
            if source is not None and source in invariant and source not in found:
                found.add(source)
                waiting.append(source)
    return found
