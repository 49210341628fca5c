"""Predicates and queries on values, for patterns."""

from __future__ import annotations

from typing import Any

import numpy as np

from trivium.ir.core import Value
from trivium.ir.declare import COMMUTATIVE, Op
from trivium.ir.ops import BroadcastInDim, Constant, Maximum, Minimum
from trivium.ir.types import is_complex

SHORT = 4096
"""The number of elements up to which constants are searched for elements that differ."""


def constant(value: Value) -> np.ndarray | None:
    """Returns the array of a constant, else `None`."""
    op = value.defining_op
    return op.value.array if isinstance(op, Constant) else None


def splat(value: Value) -> Any:
    """Returns the single element that a constant, or the broadcast of a scalar constant, repeats; else `None`."""
    op = value.defining_op
    if isinstance(op, BroadcastInDim):
        op = op.operand.defining_op
    if isinstance(op, Constant) and (op.value.is_splat or (op.value.array.size <= SHORT and op.value.is_uniform)):
        return op.value.array.reshape(-1)[0]
    return None


def is_splat_of(value: Value, number: float) -> bool:
    """Whether every element is `number`. Zeros of different signs are different."""
    element = splat(value)
    if element is None or element != number:
        return False
    if element.dtype.kind in "biu" or number != 0:
        return True
    return not np.iscomplexobj(element) and bool(np.signbit(np.float64(element)) == np.signbit(number))


def is_integer(value: Value) -> bool:
    """Whether the elements are integers or booleans."""
    return value.type.dtype.kind in "biu"


def static(value: Value) -> bool:
    return value.type.is_static


def is_commutative(op: Op) -> bool:
    """Whether the op computes the same bits with its operands exchanged. Complex maxima do not: zeros of either sign
    are equal, and which of two NaN remains depends on the order."""
    ordered = isinstance(op, Maximum | Minimum) and is_complex(op.lhs.type.element_type)
    return op.has_trait(COMMUTATIVE) and not ordered
