"""Which programs are dynamic, that is, compiled only when they are called, because then their shapes are known."""

from __future__ import annotations

from typing import Any

from trivium.ir.core import Operation, Value
from trivium.ir.func import Module
from trivium.ir.ops import DynamicConv, DynamicGather, DynamicPad, RealDynamicSlice
from trivium.ir.types import TensorType, TupleType

Shape = tuple[int, ...]

_BY_VALUE = DynamicConv | DynamicGather | DynamicPad | RealDynamicSlice
"""Ops whose compilation needs the values of operands, even if all types are static."""


def is_dynamic(module: Module) -> bool:
    """Whether any value of `main`, or of a function that it calls, has an unknown extent or replaces an attribute."""
    return any(
        isinstance(op, _BY_VALUE) or not all(is_static(value.type) for value in defined(op)) for op in module.walk()
    )


def defined(op: Operation) -> list[Value]:
    """Returns the results of an op and the arguments of its regions."""
    inner = (argument for region in op.regions for block in region.blocks for argument in block.arguments)
    return [*op.results, *inner]


def is_static(kind: Any) -> bool:
    """Whether every extent in a type is known."""
    if isinstance(kind, TupleType):
        return all(map(is_static, kind.types))
    return not isinstance(kind, TensorType) or kind.is_static
