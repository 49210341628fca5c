"""The table of decompositions, and the vocabulary of their rules: that of `trivium.ir.decompositions`, and more for ops
that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trivium.compiler.passes.patterns.dynamic import DYNAMIC
from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder, region
from trivium.ir.core import Block, Operation, Value
from trivium.ir.declare import Op
from trivium.ir.decompositions.tensors import Scope, Tensor
from trivium.ir.types import TensorType, Type

DECOMPOSITIONS = PatternSet(DYNAMIC)
pattern = DECOMPOSITIONS.pattern


class Unplaced(Builder):
    """Builds ops that are not in a block: the rewrite inserts those that its results need, and may rewrite them
    further."""

    def __init__(self) -> None:
        super().__init__(Block())

    def add(self, op: Operation) -> Any:
        found = super().add(op)
        op.detach()
        return found


def operands_of(op: Op) -> tuple[Tensor, ...]:
    """Returns the operands, in a scope whose ops are not in a block."""
    scope = Scope(Unplaced())
    return tuple(Tensor(value, scope) for value in op.operands)


def is_static(op: Operation) -> bool:
    return all(isinstance(kind, TensorType) and kind.is_static for kind in (*op.operand_types, *op.result_types))


# Values that are not yet in a block


def result(op: Operation) -> Value:
    return op.results[0]


def splat(value: float, kind: TensorType) -> Value:
    return result(ops.Constant(DenseElements.splat(np.asarray(value, kind.dtype), kind)))


def converted(value: Value, kind: TensorType) -> Value:
    return value if value.type is kind else result(ops.Convert(value, result=kind))


# Tensors


def constant(like: Tensor, array: np.ndarray) -> Tensor:
    """Returns an array as a tensor with the element type of another one."""
    return like.of(ops.Constant(DenseElements(np.ascontiguousarray(array.astype(like.type.dtype)))))


def broadcast(x: Tensor, shape: Sequence[int], dimensions: Sequence[int]) -> Tensor:
    """Broadcasts `x` along `dimensions` of a larger shape."""
    return x.of(ops.BroadcastInDim(x.value, tuple(dimensions), result=x.type.with_shape(shape)))


def reshape(x: Tensor, *shape: int) -> Tensor:
    return x if x.type.shape == shape else x.of(ops.Reshape(x.value, result=x.type.with_shape(shape)))


def transpose(x: Tensor, *permutation: int) -> Tensor:
    return x if permutation == tuple(range(x.type.rank)) else x.of(ops.Transpose(x.value, permutation))


def reverse(x: Tensor, axis: int) -> Tensor:
    return x.of(ops.Reverse(x.value, (axis,)))


def part(x: Tensor, axis: int, start: int, limit: int, stride: int = 1) -> Tensor:
    """Returns the elements from `start` to `limit` of one axis."""
    shape = x.type.static_shape
    if (start, limit, stride) == (0, shape[axis], 1):
        return x
    bounds = [(start, limit, stride) if each == axis else (0, extent, 1) for each, extent in enumerate(shape)]
    starts, limits, strides = zip(*bounds, strict=True)
    return x.of(ops.Slice(x.value, starts, limits, strides))


def joined(axis: int, *parts: Tensor) -> Tensor:
    """Joins the parts along an axis."""
    first, *others = parts
    return first.of(ops.Concatenate([each.value for each in parts], axis)) if others else first


def padded(x: Tensor, axis: int, extent: int) -> Tensor:
    """Appends zeros to the elements of an axis, up to an extent."""
    after = [extent - have if each == axis else 0 for each, have in enumerate(x.type.static_shape)]
    none, zero = (0,) * len(after), splat(0, x.type.with_shape(()))
    return x.of(ops.Pad(x.value, zero, none, tuple(after), none)) if any(after) else x


def reduced(x: Tensor, axes: Sequence[int], combine: type[Op] = ops.Add) -> Tensor:
    """Sums along the axes, or combines the elements by another op whose neutral element is 0."""
    if not axes:
        return x
    scalar = x.type.with_shape(())
    body = region([scalar, scalar], lambda builder, one, other: builder.add(combine(one, other)))
    (found,) = x.of(ops.Reduce([x.value], [splat(0, scalar)], tuple(axes), body))
    return found


def dot(lhs: Tensor, rhs: Tensor, numbers: ops.DotDimensionNumbers, kind: Type | None = None) -> Tensor:
    """Returns a product with the element type of the factors, or of type `kind`."""
    product = ops.DotGeneral(lhs.value, rhs.value, numbers)
    if kind is not None and product.result.type.element_type is not kind:
        product = ops.DotGeneral(lhs.value, rhs.value, numbers, result=product.result.type.with_element(kind))
    return lhs.of(product)
