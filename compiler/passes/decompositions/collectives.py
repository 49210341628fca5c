"""Reductions across devices of numbers below a byte and of floats of 8 bits, which the runtimes of devices do not
combine: it is done with wider numbers, and the result is converted back."""

from __future__ import annotations

from typing import Any

from trivium.compiler.passes.decompositions.table import converted, is_static, pattern, result
from trivium.ir.builder import region
from trivium.ir.core import Value
from trivium.ir.declare import Op
from trivium.ir.ops import Add, AllReduce, And, Maximum, Minimum, Multiply, Or, ReduceScatter, Xor
from trivium.ir.types import F32, I1, I8, UI8, FloatType, IntegerType, TensorType, Type

_COMBINERS = (Add, And, Maximum, Minimum, Multiply, Or, Xor)


@pattern(AllReduce)
def all_reduce(op):
    """all_reduce(x) == convert(all_reduce(convert(x)))"""
    return _widened(op, op.operands[0], op.results[0].type) if len(op.operands) == 1 else None


@pattern(ReduceScatter)
def reduce_scatter(op):
    """reduce_scatter(x) == convert(reduce_scatter(convert(x)))"""
    return _widened(op, op.operand, op.result.type)


def _widened(op: AllReduce | ReduceScatter, operand: Value, kind: TensorType) -> Value | None:
    """Sums and products of integers wrap to the same bits in the end. Floats are rounded once, at the end."""
    if not is_static(op) or operand.type.element_type is not kind.element_type:
        return None
    wide = _wide(kind.element_type)
    body = op.computation.block
    only, *others = body
    if (
        wide is None
        or len(others) != 1
        or not isinstance(only, _COMBINERS)
        or set(only.operands) != set(body.arguments)
    ):
        return None
    scalar = TensorType((), wide)
    combine: type[Op] = type(only)
    computation = region([scalar, scalar], lambda builder, one, other: builder.add(combine(one, other)))
    given = converted(operand, operand.type.with_element(wide))
    where: dict[str, Any] = {
        "replica_groups": op.replica_groups,
        "channel_handle": op.channel_handle,
        "use_global_device_ids": op.use_global_device_ids,
    }
    if isinstance(op, AllReduce):
        found: Op = AllReduce([given], computation=computation, results=[kind.with_element(wide)], **where)
    else:
        where["scatter_dimension"] = op.scatter_dimension
        found = ReduceScatter(given, computation=computation, result=kind.with_element(wide), **where)
    return converted(result(found), kind)


def _wide(element: Type) -> Type | None:
    if isinstance(element, IntegerType) and element is not I1 and element.width < 8:
        return I8 if element.is_signed else UI8
    return F32 if isinstance(element, FloatType) and element.width <= 8 else None
