"""Ops of CHLO that have no lowering to kernels, or not for all types."""

from __future__ import annotations

from trivium.compiler.lowering.complex import knows
from trivium.compiler.passes.decompositions.table import Unplaced, is_static, pattern
from trivium.ir.declare import OPS
from trivium.ir.decompositions import DECOMPOSITIONS, decompose
from trivium.ir.ops import (
    BesselI1e,
    BroadcastBinary,
    BroadcastCompare,
    BroadcastComplex,
    BroadcastSelect,
    ChloConstant,
    ConstantLike,
    Mulhi,
    NextAfter,
    Polygamma,
    RaggedDot,
    Scan,
    Zeta,
)
from trivium.ir.types import F32, F64, is_complex


@pattern(*(op for op in OPS.values() if issubclass(op, BroadcastBinary)))
@pattern(BroadcastCompare, BroadcastComplex, BroadcastSelect, ChloConstant, ConstantLike, Scan)
@pattern(BesselI1e, Mulhi, Polygamma, Zeta)
def chlo(op):
    """Replaces the op by its meaning in terms of StableHLO's ops."""
    return decompose(op, Unplaced()) if is_static(op) else None


@pattern(*(op for op in DECOMPOSITIONS if len(op.OPERANDS) == 1 and not issubclass(op, ConstantLike)))
def of_complex_numbers(op):
    """Replaces the op by its meaning on the parts of complex numbers, if kernels do not support it on them."""
    is_pair = is_complex(op.operand_types[0].element_type)
    return decompose(op, Unplaced()) if is_pair and not knows(op) and is_static(op) else None


@pattern(RaggedDot)
def ragged_dot(op):
    """Kernels add up segments of rows themselves."""
    is_known = op.adds_rows() and op.lhs.type.size > 0 and op.result.type.size > 0
    return None if is_known or not is_static(op) else decompose(op, Unplaced())


@pattern(NextAfter)
def next_after(op):
    """Kernels compute the neighbours of f32 and f64 themselves."""
    known = op.x.type.element_type in (F32, F64)
    return None if known or not is_static(op) else decompose(op, Unplaced())
