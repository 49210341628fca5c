"""Constant folding: an op whose operands are all constants becomes a constant, by the op's own meaning (`evaluate`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.manager import Pass
from trivium.compiler.passes.rewriting import replace
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Operation
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.func import Module
from trivium.ir.interpreter import FAILURES
from trivium.ir.known import STAYING, evaluate_known
from trivium.ir.ops import (
    Abs,
    Add,
    BroadcastInDim,
    Ceil,
    Clamp,
    Concatenate,
    Constant,
    Convert,
    Divide,
    DynamicSlice,
    Floor,
    Gather,
    Iota,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Pad,
    Remainder,
    Reshape,
    Reverse,
    RoundNearestAfz,
    RoundNearestEven,
    Select,
    Sign,
    Slice,
    Sqrt,
    Subtract,
    Transpose,
)
from trivium.ir.ops.quantization import evaluate_op
from trivium.ir.types import TensorType, is_boolean, is_float, is_integer

_STAYING = Constant | Iota | STAYING
_PICKING = Slice | DynamicSlice | Gather | Reshape
_MOVING = Constant | Iota | _PICKING | BroadcastInDim | Concatenate | Pad | Reverse | Transpose | Select
_ROUNDING = Ceil | Floor | RoundNearestAfz | RoundNearestEven | Convert | Sign
_ALIKE = _MOVING | _ROUNDING | Abs | Add | Clamp | Divide | Maximum | Minimum | Multiply | Negate | Remainder | Sqrt
_ALIKE |= Subtract
"""The ops whose floats are the same, to the last bit, if they are computed when the program runs. Sums of many numbers
and most functions are rounded otherwise there."""


@dataclass(frozen=True)
class FoldConstants(Pass):
    """Afterwards, no pure op without regions has only constant operands, unless its result would have more than `limit`
    elements, or more elements than both its operands and `small`: repeating elements, as a broadcast does, costs
    nothing in a kernel.

    An op on splats is computed once, for one element. `iota` is kept: a kernel computes it faster than it reads it. An
    op that reads more than `read` elements is also kept, unless it only picks some of them.

    Integers that are rounded from at most `places` numbers, which follow from `iota`, are constants too: such as the
    places that resizing reads, which may follow a rule. The program may compute these numbers as well, for weights that
    belong to the places, so they must be the same there.
    """

    limit: int = 1 << 14
    small: int = 64
    read: int = 1 << 20
    places: int = 1 << 12
    NAME: ClassVar[str] = "fold"

    def run(self, module: Module) -> bool:
        changed = False
        for function in module.functions.values():
            # In program order, so that users of new constants are folded in the same pass.
            for op in list(function.walk()):
                if op.block is not None and self.folds(op):
                    changed |= _fold_if_defined(op)  # type: ignore[arg-type]
                elif isinstance(op, Convert) and op.block is not None and _rounds(op):
                    changed |= _fold_places(op, self.places)
        return changed

    def folds(self, op: Operation) -> bool:
        """Whether the pass folds an op."""
        if not isinstance(op, Op) or isinstance(op, _STAYING) or not op.is_pure or op.regions or not op.operands:
            return False
        if not all(isinstance(value.defining_op, Constant) for value in op.operands):
            return False
        results = [kind for kind in op.result_types if isinstance(kind, TensorType) and kind.is_static]
        if len(results) != len(op.results) or not results:
            return False
        given = sum(kind.size for kind in op.operand_types if isinstance(kind, TensorType))
        made = sum(kind.size for kind in results)
        if given > self.read and not isinstance(op, _PICKING):
            return _keeps_splats(op)
        return made <= min(self.limit, max(given, self.small)) or _keeps_splats(op)


def _fold_if_defined(op: Op) -> bool:
    """Folds an op if it can be evaluated. An op that fails is kept: it fails at run time, if it runs at all."""
    try:
        with np.errstate(all="ignore"):  # overflow is what the program would compute
            return fold(op)
    except FAILURES:
        return False


def _rounds(op: Convert) -> bool:
    """Whether an op makes integers of floats."""
    return is_integer(op.result.type.element_type) and is_float(op.operand.type.element_type)


def _fold_places(op: Convert, most: int) -> bool:
    """Folds an op that depends on constants alone, with all ops that it follows from."""
    if not _is_computed_alike(op, most):
        return False
    try:
        with np.errstate(all="ignore"):
            array = evaluate_known(op.result, most)
    except FAILURES:
        return False
    if array is None or not op.result.type.is_static:
        return False
    replace(op, (Constant(value=DenseElements(array, op.result.type), location=op.location).result,))
    return True


def _is_computed_alike(op: Operation, most: int) -> bool:
    """Whether an op follows from few ops, all of which compute the same floats whenever they are evaluated."""
    followed, open_ops = {op}, [op]
    while open_ops:
        current = open_ops.pop()
        if not isinstance(current, _ALIKE) and any(_has_floats(kind) for kind in current.result_types):
            return False
        for value in current.operands:
            if value.defining_op is None or len(followed) > most:
                return False
            if value.defining_op not in followed:
                followed.add(value.defining_op)
                open_ops.append(value.defining_op)
    return True


def _has_floats(kind: object) -> bool:
    return isinstance(kind, TensorType) and not is_integer(kind.element_type) and not is_boolean(kind.element_type)


def _keeps_splats(op: Op) -> bool:
    """Whether the result is a splat because the operands are."""
    kept = op.has_trait(ELEMENTWISE) or isinstance(op, BroadcastInDim | Reshape)
    return kept and all(_elements(value).is_splat for value in op.operands)


def fold(op: Op) -> bool:
    """Replaces the results of an op whose operands are constants by constants."""
    if _keeps_splats(op):
        types = [kind.with_shape(()) for kind in op.result_types]  # type: ignore[attr-defined]
        values = [_elements(value).array.reshape(-1)[:1].reshape(()) for value in op.operands]
        scalar = values[0] if isinstance(op, BroadcastInDim | Reshape) else _only(evaluate_op(op, values))
        folded = [DenseElements.splat(np.asarray(scalar, dtype=types[0].dtype), op.result_types[0])]  # type: ignore[arg-type]
    else:
        results = evaluate_op(op, [_elements(value).array for value in op.operands])
        results = results if isinstance(results, tuple) else (results,)
        folded = [
            DenseElements(np.asarray(array), kind)  # type: ignore[arg-type]
            for array, kind in zip(results, op.result_types, strict=True)
        ]
    replace(op, tuple(Constant(value=elements, location=op.location).results[0] for elements in folded))
    return True


def _only(result: object) -> object:
    return result[0] if isinstance(result, tuple) else result


def _elements(value) -> DenseElements:
    return value.defining_op.value
