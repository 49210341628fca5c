"""From ops to kernels: one rule per op, in the file of its family, registered in the tables of `rules`."""

from trivium.compiler.lowering import (  # noqa: F401 (imported so that they declare their rules)
    chlo,
    collectives,
    contraction,
    control,
    elementwise,
    fourier,
    host,
    indexing,
    random,
    reduction,
    segments,
    shape,
    sorting,
    windows,
)
from trivium.compiler.lowering.rules import (
    BRANCHING,
    ELEMENT,
    INDEXING,
    KERNEL,
    REPEATING,
    STEP,
    has_lowering,
    is_elementwise,
    kernel_rule,
    updated_in_place,
)

elementwise.declare_by_name()

__all__ = [
    "BRANCHING",
    "ELEMENT",
    "INDEXING",
    "KERNEL",
    "REPEATING",
    "STEP",
    "has_lowering",
    "is_elementwise",
    "kernel_rule",
    "updated_in_place",
]
