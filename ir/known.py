"""Values that are known without running a program, because they follow from its constants."""

from __future__ import annotations

import numpy as np

from trivium.ir.core import Operation, Value
from trivium.ir.declare import Op
from trivium.ir.func import Call
from trivium.ir.interpreter import Interpreter
from trivium.ir.ops import Constant, CustomCall, Reduce, Reshard, ShardingConstraint
from trivium.ir.ops.quantization import evaluate_op
from trivium.ir.types import IntegerType, TensorType

STAYING = Call | CustomCall | ShardingConstraint | Reshard
"""What is not evaluated ahead: calls, which are left to the inliner or to the registered target, and what a partitioner
reads."""

MOST_KNOWN = 1 << 27
"""The number of elements up to which a value is computed."""

MOST_REDUCED = 1 << 12
"""The number of integers up to which a reduction is computed."""


def evaluate_known(value: Value, most: int = MOST_KNOWN) -> np.ndarray | None:
    """Returns the array of a value that depends on constants alone, by evaluating the ops that compute it; `None` for
    others, and if one of these values has more than `most` elements."""
    arrays: dict[Value, np.ndarray] = {}
    stack = [value]
    while stack:
        current = stack[-1]
        op = current.defining_op
        if current in arrays:
            stack.pop()
        elif op is None or _is_too_large(current, most):
            return None
        elif isinstance(op, Constant):
            arrays[current] = op.value.array
        elif not _is_foldable(op):
            return None
        elif missing := [operand for operand in op.operands if operand not in arrays]:
            stack.extend(missing)
        else:
            assert isinstance(op, Op)
            regions = [Interpreter().callable(region) for region in op.regions]
            results = evaluate_op(op, [arrays[operand] for operand in op.operands], regions)
            results = results if isinstance(results, tuple | list) else (results,)
            arrays.update(zip(op.results, map(np.asarray, results), strict=True))
    return arrays[value]


def _is_too_large(value: Value, most: int) -> bool:
    return isinstance(value.type, TensorType) and value.type.is_static and value.type.size > most


def _is_foldable(op: Operation) -> bool:
    if op.regions and not (isinstance(op, Reduce) and _is_exact(op)):
        return False
    return op.is_pure and not isinstance(op, STAYING)


def _is_exact(op: Reduce) -> bool:
    """Whether a reduction folds few integers, in any order with the same result, by nothing from outside of it."""
    kinds = [value.type for value in op.inputs]
    is_small = all(x.is_static and x.size <= MOST_REDUCED and isinstance(x.element_type, IntegerType) for x in kinds)
    return is_small and not op.body.free_values()
