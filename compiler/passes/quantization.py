"""Quantized elements become the integers that they are stored as. Ops that compute with the numbers that these express
get these numbers, computed by ordinary ops; ops that only move elements move integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trivium.compiler.passes.manager import Pass
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Rewriter
from trivium.ir.core import Operation, Value
from trivium.ir.declare import EXPRESSED, Op
from trivium.ir.func import Module
from trivium.ir.ops import (
    Add,
    BroadcastInDim,
    Clamp,
    Constant,
    Convert,
    Divide,
    Multiply,
    Reduce,
    ReduceWindow,
    RoundNearestEven,
    Scatter,
    SelectAndScatter,
    Subtract,
    UniformDequantize,
    UniformQuantize,
)
from trivium.ir.ops.numerics import convert
from trivium.ir.ops.quantization import with_types
from trivium.ir.types import (
    I32,
    I64,
    QuantizedType,
    TensorType,
    TupleType,
    element_type_of,
    expressed,
    is_quantized,
    stored,
)

Kinds = dict[Value, Any]
"""The original types of values that were quantized."""


@dataclass(frozen=True)
class ExpandQuantized(Pass):
    """Afterwards, no value has quantized elements. The arithmetic is that of `trivium.ir.ops.quantization`, step by
    step."""

    NAME: ClassVar[str] = "expand-quantized"

    def run(self, module: Module) -> bool:
        ops = list(module.walk())
        kinds = {value: value.type for value in _values(ops) if integers(value.type) is not value.type}
        for value in kinds:
            value.type = integers(value.type)
        for op in ops:
            if isinstance(op, Op):
                _expand(op, kinds)
        for function in module.functions.values() if kinds else ():
            if not function.is_declaration:
                function.refresh_type()
        return bool(kinds)


def _values(ops: Sequence[Operation]) -> Iterator[Value]:
    for op in ops:
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.arguments


def integers(kind: Any) -> Any:
    """Returns a type with stored integers in place of quantized elements."""
    if isinstance(kind, TupleType):
        return TupleType(tuple(map(integers, kind.types)))
    # By the dtype: `u8`, which only quantized types have, becomes `ui8`.
    return kind.with_element(element_type_of(kind.dtype)) if stored(kind) is not kind else kind


def _expand(op: Op, kinds: Kinds) -> None:
    if op.has_trait(EXPRESSED) and any(value in kinds for value in (*op.operands, *op.results)):
        rewriter = Rewriter(op)
        operands = [_dequantized(rewriter, value, kinds) for value in op.operands]
        types = [kinds.get(value, value.type) for value in op.results]
        if not isinstance(op, UniformQuantize | UniformDequantize):
            twin = with_types(op, operands, map(expressed, types))
            rewriter.add(twin)
            operands = list(twin.results)
        results = [_quantized(rewriter, value, kind) for value, kind in zip(operands, types, strict=True)]
        kinds.update((new, kind) for new, kind in zip(results, types, strict=True) if is_quantized(kind.element_type))
        rewriter.replace(*results)
    elif isinstance(op, Constant) and op.result in kinds:
        op.attributes["value"] = DenseElements(op.value.array.view(op.result.type.dtype))
    elif isinstance(op, Reduce | ReduceWindow | Scatter | SelectAndScatter):
        _promote(op, kinds)


def _promote(op: Any, kinds: Kinds) -> None:
    """Requantizes operands that are reduced in a type other than their own. The operand that `select` compares is not
    changed."""
    start = 1 if isinstance(op, SelectAndScatter) else 0
    rewriter = Rewriter(op)
    for index, value in list(enumerate(op.operands))[start:]:
        place = (index - (isinstance(op, Scatter) and index > len(op.results))) % len(op.results)
        mine, wanted = kinds.get(value), kinds.get(op.results[place])
        if mine is not None and wanted is not None and mine.element_type is not wanted.element_type:
            number = _dequantized(rewriter, value, kinds)
            op.set_operand(index, _quantized(rewriter, number, value.type.with_element(wanted.element_type)))


# Arithmetic


def _dequantized(rewriter: Rewriter, value: Value, kinds: Kinds) -> Value:
    """Returns the numbers that a value expresses; the value itself if it is not quantized."""
    kind = kinds.get(value)
    if kind is None:
        return value
    element, numbers = kind.element_type, expressed(kind)
    scales, zero_points = _parameters(kind)
    if np.any(zero_points):
        wide = kind.with_element(I64 if element.storage_type.width > 16 else I32)
        value = rewriter.add(Convert(value, result=wide))
        value = rewriter.add(Subtract(value, _spread(rewriter, zero_points, wide)))
    value = rewriter.add(Convert(value, result=numbers))
    return rewriter.add(Multiply(value, _spread(rewriter, scales, numbers)))


def _quantized(rewriter: Rewriter, value: Value, kind: TensorType) -> Value:
    """Returns the integers that a type stores numbers as; the numbers themselves if the type is not quantized."""
    element, numbers = kind.element_type, value.type
    if not isinstance(element, QuantizedType):
        return value
    scales, zero_points = _parameters(kind)
    value = rewriter.add(Divide(value, _spread(rewriter, scales, numbers)))
    if np.any(zero_points):
        value = rewriter.add(Add(value, _spread(rewriter, zero_points, numbers)))
    least, greatest = (
        rewriter.add(Constant(convert(limit, numbers.dtype))) for limit in (element.storage_min, element.storage_max)
    )
    value = rewriter.add(RoundNearestEven(rewriter.add(Clamp(least, value, greatest))))
    return rewriter.add(Convert(value, result=integers(kind)))


def _parameters(kind: TensorType) -> tuple[np.ndarray, np.ndarray]:
    scales, zero_points = kind.element_type.parameters(kind.static_shape)
    return np.asarray(scales), np.asarray(zero_points)


def _spread(rewriter: Rewriter, array: np.ndarray, kind: TensorType) -> Value:
    """Returns parameters as numbers of a type, one for each element of a tensor."""
    constant = rewriter.add(Constant(convert(array, kind.dtype)))
    dimensions = tuple(range(array.ndim))
    return rewriter.add(BroadcastInDim(constant, dimensions, result=kind))
