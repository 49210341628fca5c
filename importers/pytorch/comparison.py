"""Comparisons, tests and logic: numbers in, booleans out."""

from __future__ import annotations

from trivium.importers.pytorch.context import Context, Number, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import IntegerType, is_boolean, is_complex, is_float

Scalar = Value | Number

DIRECTIONS = ("eq", "ne", "ge", "gt", "le", "lt")
LOGIC = {"and": ops.And, "or": ops.Or, "xor": ops.Xor}


def _register() -> None:
    for name in DIRECTIONS:
        for overload in ("Tensor", "Scalar"):
            rule.add(f"aten.{name}.{overload}", lambda ctx, x, other, *, name=name: _compare(ctx, name, x, other))
    for name, op in LOGIC.items():
        rule.add(f"aten.logical_{name}.default", lambda ctx, x, other, *, op=op: _logical(ctx, op, x, other))


def _compare(ctx: Context, direction: str, x: Value, other: Scalar) -> Value:
    return ctx.compare(direction.upper(), *ctx.promoted(x, other))


def _logical(ctx: Context, op: type, x: Value, other: Value) -> Value:
    return ctx.binary(op, ctx.not_zero(x), ctx.not_zero(other))


_register()


@rule("aten.logical_not.default")
def logical_not(ctx: Context, x: Value) -> Value:
    """logical_not(Tensor self) -> Tensor"""
    return ctx.add(ops.Not(ctx.not_zero(x)))


@rule("aten.bitwise_not.default")
def bitwise_not(ctx: Context, x: Value) -> Value:
    """bitwise_not(Tensor self) -> Tensor"""
    return ctx.add(ops.Not(x))


@rule("aten.isnan.default")
def isnan(ctx: Context, x: Value) -> Value:
    """isnan(Tensor self) -> Tensor"""
    return ctx.compare("NE", x, x)


@rule("aten.isinf.default")
def isinf(ctx: Context, x: Value) -> Value:
    """isinf(Tensor self) -> Tensor"""
    kind = x.type.element_type
    if is_complex(kind):
        return ctx.binary(ops.Or, *(isinf(ctx, ctx.add(part(x))) for part in (ops.Real, ops.Imag)))
    if not is_float(kind):
        return ctx.full(ctx.extents(x), False, ctx.result.element_type)
    return ctx.compare("EQ", ctx.add(ops.Abs(x)), ctx.full_like(x, float("inf")))


@rule("aten.isfinite.default")
def isfinite(ctx: Context, x: Value) -> Value:
    """isfinite(Tensor self) -> Tensor"""
    kind = x.type.element_type
    if is_complex(kind):
        return ctx.binary(ops.And, *(isfinite(ctx, ctx.add(part(x))) for part in (ops.Real, ops.Imag)))
    if not is_float(kind):
        return ctx.full(ctx.extents(x), True, ctx.result.element_type)
    return ctx.add(ops.IsFinite(x))


@rule("aten.signbit.default")
def signbit(ctx: Context, x: Value) -> Value:
    """signbit(Tensor self) -> Tensor"""
    kind = x.type.element_type
    if is_boolean(kind):
        return ctx.full(ctx.extents(x), False, ctx.result.element_type)
    if is_float(kind):
        x = ctx.add(ops.BitcastConvert(x, result=x.type.with_element(IntegerType(kind.width))))
    # The primitive of that name returns numbers.
    return ctx.convert(ctx.compare("LT", x, ctx.full_like(x, 0)), ctx.result.element_type)
