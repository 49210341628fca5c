"""From ops to kernels: one rule an op, in the file of its family, filed in the tables of `rules`."""

from trivium.compiler.lowering import contraction, control, elementwise, indexing, reduction, shape
from trivium.compiler.lowering.rules import (
    ELEMENT,
    IN_PLACE,
    INDEXING,
    KERNEL,
    REPEATING,
    STEP,
    has_lowering,
    is_elementwise,
)

elementwise._declare_by_name()

__all__ = ["ELEMENT", "INDEXING", "IN_PLACE", "KERNEL", "REPEATING", "STEP", "has_lowering", "is_elementwise"]
