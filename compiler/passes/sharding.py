"""Sharding: hints on how values are divided among devices. A program for one device does not need them; a partitioner
reads them before this pass removes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.manager import Pass
from trivium.compiler.passes.rewriting import PatternSet, rewrite_to_fixpoint
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.ops import CustomCall, Reshard, ShardingConstraint

HINTS = PatternSet()
CALLS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "LayoutConstraint")


@HINTS.pattern(ShardingConstraint, Reshard)
def sharding(op: ShardingConstraint | Reshard) -> Value | None:
    """sharding_constraint(x) == x, on one device"""
    return op.input if op.input.type is op.result.type else None


@HINTS.pattern(CustomCall)
def sharding_call(op: CustomCall) -> tuple[Value, ...] | None:
    """custom_call @Sharding(x) == x, on one device"""
    return tuple(op.inputs) if op.call_target_name in CALLS and op.operand_types == op.result_types else None


@dataclass(frozen=True)
class DropSharding(Pass):
    """Afterwards, no hint of static shape is left."""

    NAME: ClassVar[str] = "drop-sharding"

    def run(self, module: Module) -> bool:
        return rewrite_to_fixpoint(module, HINTS)
