"""Ops that compute each element separately. If a scalar operation of kernels has the name of the op, it is applied
directly; other ops have their rules here, and complex numbers in `complex`."""

from __future__ import annotations

from functools import reduce
from typing import Any

from trivium.compiler.kernel import Register, bit_width
from trivium.compiler.kernel.ops import OPERATIONS
from trivium.compiler.lowering import complex as complex_numbers
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Indices, constant
from trivium.compiler.lowering.rules import element, has_lowering, is_elementwise
from trivium.compiler.lowering.scalars import Scalar, dtype_of, is_pair
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.declare import OPS, Op
from trivium.ir.ops.conversion import ComparisonType


def operand_at(ctx: LoweringContext, value: Value, indices: Indices) -> Any:
    """Returns the element of an operand, which may have rank 0 and then applies everywhere."""
    return ctx.element(value, indices if value.type.rank else ())


def apply(ctx: LoweringContext, op: Op, indices: Indices) -> Scalar:
    """Applies the scalar operation of the same name."""
    operands = [operand_at(ctx, operand, indices) for operand in op.operands]
    if is_pair(op.operands[0].type.element_type):
        return complex_numbers.apply(ctx.b, op.short_name(), operands)
    return ctx.b.apply(op.short_name(), *operands)


@element(ops.Select)
def select(ctx: LoweringContext, op: ops.Select, indices: Indices) -> Scalar:
    pred = operand_at(ctx, op.pred, indices)
    on_true, on_false = ctx.element(op.on_true, indices), ctx.element(op.on_false, indices)
    return each(lambda true, false: ctx.b.select(pred, true, false), on_true, on_false)


def each(function: Any, *scalars: Any) -> Any:
    """Applies `function` to each part of complex scalars, or to real scalars."""
    if isinstance(scalars[0], tuple):
        return tuple(function(*part) for part in zip(*scalars, strict=True))
    return function(*scalars)


@element(ops.Compare)
def compare(ctx: LoweringContext, op: ops.Compare, indices: Indices) -> Register:
    lhs, rhs = ctx.element(op.lhs, indices), ctx.element(op.rhs, indices)
    direction = op.comparison_direction.value
    if isinstance(lhs, tuple) and isinstance(rhs, tuple):
        return complex_numbers.compare(ctx.b, direction, lhs, rhs)
    assert not isinstance(lhs, tuple)
    assert not isinstance(rhs, tuple)
    return ctx.b.compare(direction, lhs, rhs, total_order=op.compare_type is ComparisonType.TOTALORDER)


@element(ops.Convert)
def convert(ctx: LoweringContext, op: ops.Convert, indices: Indices) -> Scalar:
    operand, kind = ctx.element(op.operand, indices), op.result.type.element_type
    return converted(ctx, operand, kind)


def converted(ctx: LoweringContext, operand: Scalar, kind: Any) -> Scalar:
    """Converts a scalar to another element type."""
    dtype = dtype_of(kind)
    if isinstance(operand, tuple):
        real, imaginary = (ctx.b.convert(part, dtype) for part in operand)
        return (real, imaginary) if is_pair(kind) else real
    real = ctx.b.convert(operand, dtype)
    return (real, ctx.b.constant(0.0, dtype)) if is_pair(kind) else real


@element(ops.ReducePrecision)
def reduce_precision(ctx: LoweringContext, op: ops.ReducePrecision, indices: Indices) -> Register:
    attributes = {"exponent_bits": op.exponent_bits, "mantissa_bits": op.mantissa_bits}
    return ctx.b.apply("reduce_precision", ctx.real(op.operand, indices), **attributes)


@element(ops.Complex)
def make_complex(ctx: LoweringContext, op: ops.Complex, indices: Indices) -> Scalar:
    return ctx.real(op.lhs, indices), ctx.real(op.rhs, indices)


@element(ops.Real)
def real(ctx: LoweringContext, op: ops.Real, indices: Indices) -> Register:
    operand = ctx.element(op.operand, indices)
    return operand[0] if isinstance(operand, tuple) else operand


@element(ops.Imag)
def imaginary(ctx: LoweringContext, op: ops.Imag, indices: Indices) -> Register:
    operand = ctx.element(op.operand, indices)
    return operand[1] if isinstance(operand, tuple) else ctx.b.constant(0.0, operand.dtype)


@element(ops.Map)
def map_(ctx: LoweringContext, op: ops.Map, indices: Indices) -> Scalar:
    return ctx.region(op.computation, [ctx.element(operand, indices) for operand in op.inputs])[0]


@element(ops.BitcastConvert)
def bitcast_convert(ctx: LoweringContext, op: ops.BitcastConvert, indices: Indices) -> Scalar:
    """Splits or joins elements along the last dimension if the widths differ."""
    source, target = (dtype_of(value.type.element_type) for value in (op.operand, op.result))
    if op.operand.type.rank == op.result.type.rank:
        return each(lambda part: bits(ctx, part, target), ctx.element(op.operand, indices))
    widths = bit_width(source), bit_width(target)
    if widths[0] < widths[1]:
        return _join(ctx, op, indices, target)
    whole = bits(ctx, ctx.real(op.operand, indices[:-1]), f"ui{widths[0]}")
    place = ctx.b.convert(ctx.position(indices[-1] * widths[1]), whole.dtype)
    part = ctx.b.convert(ctx.b.apply("shift_right_logical", whole, place), f"ui{widths[1]}")
    return bits(ctx, part, target)


def _join(ctx: LoweringContext, op: ops.BitcastConvert, indices: Indices, target: str) -> Register:
    pieces: list[Register] = []
    for place in range(op.operand.type.shape[-1]):
        piece = ctx.real(op.operand, (*indices, constant(place)))
        width = bit_width(piece.dtype)
        word = ctx.b.convert(bits(ctx, piece, f"ui{width}"), f"ui{bit_width(target)}")
        pieces.append(ctx.b.apply("shift_left", word, place * width) if place else word)
    return bits(ctx, reduce(lambda one, other: ctx.b.apply("or", one, other), pieces), target)


def bits(ctx: LoweringContext, operand: Register, dtype: str) -> Register:
    """Returns the same bits as another type of that width."""
    return operand if operand.dtype == dtype else ctx.b.apply("bitcast_convert", operand, dtype=dtype)


def declare_by_name() -> None:
    """Declares the rules of ops that are a single scalar operation."""
    for op in list(OPS.values()):
        if is_elementwise(op) and op.short_name() in OPERATIONS and not has_lowering(op):
            element(op)(apply)
