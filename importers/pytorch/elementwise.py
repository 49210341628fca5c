"""Elementwise arithmetic: one number in, one number out, with PyTorch's promotion and its rules for integer
operands."""

from __future__ import annotations

import math

from trivium.importers.emit import accumulation_type
from trivium.importers.pytorch.checking import check_divisor
from trivium.importers.pytorch.context import Context, Number, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, ComplexType, is_boolean, is_complex, is_float, is_integer

Scalar = Value | Number

# Ops that become one op of the language, computed in the element type of the result.
UNARY = {
    "aten.acos.default": ops.Acos,
    "aten.acosh.default": ops.Acosh,
    "aten.asin.default": ops.Asin,
    "aten.asinh.default": ops.Asinh,
    "aten.atan.default": ops.Atan,
    "aten.atanh.default": ops.Atanh,
    "aten.cos.default": ops.Cosine,
    "aten.cosh.default": ops.Cosh,
    "aten.erf.default": ops.Erf,
    "aten.erfc.default": ops.Erfc,
    "aten.erfinv.default": ops.ErfInv,
    "aten.exp.default": ops.Exponential,
    "aten.expm1.default": ops.ExponentialMinusOne,
    "aten.lgamma.default": ops.Lgamma,
    "aten.log.default": ops.Log,
    "aten.log1p.default": ops.LogPlusOne,
    "aten.neg.default": ops.Negate,
    "aten.rsqrt.default": ops.Rsqrt,
    "aten.sigmoid.default": ops.Logistic,
    "aten.sin.default": ops.Sine,
    "aten.sinh.default": ops.Sinh,
    "aten.sqrt.default": ops.Sqrt,
    "aten.tan.default": ops.Tan,
    "aten.tanh.default": ops.Tanh,
}
# The same, but integers are left unchanged.
ROUNDING = {
    "aten.ceil.default": ops.Ceil,
    "aten.floor.default": ops.Floor,
    "aten.round.default": ops.RoundNearestEven,
}
BINARY = {
    "aten.atan2.default": ops.Atan2,
    "aten.bitwise_and.Scalar": ops.And,
    "aten.bitwise_and.Tensor": ops.And,
    "aten.bitwise_left_shift.Tensor": ops.ShiftLeft,
    "aten.bitwise_left_shift.Tensor_Scalar": ops.ShiftLeft,
    "aten.bitwise_left_shift.Scalar_Tensor": ops.ShiftLeft,
    "aten.bitwise_or.Scalar": ops.Or,
    "aten.bitwise_or.Tensor": ops.Or,
    "aten.bitwise_xor.Scalar": ops.Xor,
    "aten.bitwise_xor.Tensor": ops.Xor,
    "aten.__lshift__.Scalar": ops.ShiftLeft,
    "aten.__lshift__.Tensor": ops.ShiftLeft,
    "aten.maximum.default": ops.Maximum,
    "aten.minimum.default": ops.Minimum,
    "aten.mul.Scalar": ops.Multiply,
    "aten.mul.Tensor": ops.Multiply,
    "aten.__and__.Scalar": ops.And,
    "aten.__and__.Tensor": ops.And,
    "aten.__or__.Scalar": ops.Or,
    "aten.__or__.Tensor": ops.Or,
    "aten.__xor__.Scalar": ops.Xor,
    "aten.__xor__.Tensor": ops.Xor,
}


def _register() -> None:
    for name, op in UNARY.items():
        rule.add(name, lambda ctx, x, *, op=op: ctx.add(op(ctx.convert(x, ctx.result.element_type))))
    for name, op in ROUNDING.items():
        rule.add(name, lambda ctx, x, *, op=op: ctx.add(op(x)) if is_float(x.type.element_type) else x)
    for name, op in BINARY.items():
        rule.add(name, lambda ctx, x, other, *, op=op: binary(ctx, op, x, other))


def binary(ctx: Context, op: type, x: Scalar, other: Scalar) -> Value:
    """Returns an op of two operands, of which one may be a number, in the result's type."""
    kind = ctx.result.element_type
    wide = accumulation_type(kind)
    if wide is kind or op not in (ops.Multiply, ops.Divide) or (isinstance(x, Value) and isinstance(other, Value)):
        return ctx.binary(op, ctx.tensor(x, kind), ctx.tensor(other, kind))
    return ctx.convert(ctx.binary(op, *widened(ctx, x, other)), kind)


def widened(ctx: Context, *operands: Scalar) -> list[Value]:
    """Returns operands in 32 bits if the result has 16: PyTorch rounds tensors to these, but not a number that is
    combined with one."""
    kind = ctx.result.element_type
    wide = accumulation_type(kind)
    return [ctx.convert(ctx.convert(x, kind), wide) if isinstance(x, Value) else ctx.tensor(x, wide) for x in operands]


_register()


# Sums, products, quotients


@rule("aten.add.Tensor", "aten.add.Scalar")
def add(ctx: Context, x: Scalar, other: Scalar, alpha: Number = 1) -> Value:
    """add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"""
    return _sum(ctx, ops.Add, x, other, alpha)


@rule("aten.sub.Tensor", "aten.sub.Scalar")
def sub(ctx: Context, x: Scalar, other: Scalar, alpha: Number = 1) -> Value:
    """sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"""
    return _sum(ctx, ops.Subtract, x, other, alpha)


@rule("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(ctx: Context, x: Scalar, other: Scalar, alpha: Number = 1) -> Value:
    """rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"""
    return _sum(ctx, ops.Subtract, other, x, alpha)


def _sum(ctx: Context, op: type, x: Scalar, other: Scalar, alpha: Number) -> Value:
    """Returns the sum or difference of `x` and `alpha * other`, rounded once."""
    if alpha == 1:
        return binary(ctx, op, x, other)
    x, other, factor = widened(ctx, x, other, alpha)
    return ctx.convert(ctx.binary(op, x, ctx.times(other, factor)), ctx.result.element_type)


@rule("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor")
def div(ctx: Context, x: Scalar, other: Scalar) -> Value:
    """div.Tensor(Tensor self, Tensor other) -> Tensor"""
    return binary(ctx, ops.Divide, x, other)


@rule("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(ctx: Context, x: Scalar, other: Scalar, *, rounding_mode: str | None) -> Value:
    """div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor"""
    if rounding_mode is None:
        return div(ctx, x, other)
    if rounding_mode == "floor":
        return floor_divide(ctx, x, other)
    check_divisor(ctx, other)
    return trunc(ctx, binary(ctx, ops.Divide, x, other))


@rule("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(ctx: Context, x: Scalar, other: Scalar) -> Value:
    """floor_divide(Tensor self, Tensor other) -> Tensor"""
    kind = ctx.result.element_type
    if is_float(kind):
        return ctx.convert(_floor_of_quotient(ctx, *widened(ctx, x, other)), kind)
    x, other = ctx.tensor(x, kind), ctx.tensor(other, kind)
    check_divisor(ctx, other)
    quotient = ctx.over(x, other)
    if not kind.is_signed:
        return quotient
    inexact = ctx.compare("NE", ctx.times(quotient, other), x)
    below = ctx.binary(ops.And, inexact, _signs_differ(ctx, x, other))
    return ctx.minus(quotient, ctx.convert(below, kind))


def _floor_of_quotient(ctx: Context, x: Value, other: Value) -> Value:
    """Follows the steps of PyTorch (and Python): 1 // 0.1 is 9, though 1 / 0.1 rounds to 10, and 1 // -inf is -1."""
    quotient = ctx.over(x, other)
    rest = ctx.binary(ops.Remainder, x, other)
    exact = ctx.over(ctx.minus(x, rest), other)
    nonzero = ctx.compare("NE", rest, ctx.full_like(rest, 0))
    one = ctx.full_like(exact, 1)
    below = ctx.binary(ops.And, nonzero, _signs_differ(ctx, rest, other))
    exact = ctx.select(below, ctx.minus(exact, one), exact)
    floor = ctx.add(ops.Floor(exact))
    nearer = ctx.compare("GT", ctx.minus(exact, floor), ctx.full_like(exact, 0.5))
    floor = ctx.select(nearer, ctx.plus(floor, one), floor)
    # A zero has the sign of the quotient.
    floor = ctx.select(_is_zero(ctx, exact), ctx.times(quotient, ctx.full_like(quotient, 0)), floor)
    return ctx.select(_is_zero(ctx, other), quotient, floor)


@rule("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(ctx: Context, x: Scalar, other: Scalar) -> Value:
    """remainder.Tensor(Tensor self, Tensor other) -> Tensor"""
    kind = ctx.result.element_type
    x, other = ctx.tensor(x, kind), ctx.tensor(other, kind)
    check_divisor(ctx, other)
    rest = ctx.binary(ops.Remainder, x, other)
    if is_integer(kind) and not kind.is_signed:
        return rest
    # The sign is that of the divisor.
    wrong = ctx.binary(ops.And, ctx.compare("NE", rest, ctx.full_like(rest, 0)), _signs_differ(ctx, rest, other))
    return ctx.select(wrong, ctx.plus(rest, other), rest)


@rule("aten.digamma.default")
def digamma(ctx: Context, x: Value) -> Value:
    """digamma(Tensor self) -> Tensor"""
    x = ctx.convert(x, ctx.result.element_type)
    # At the pole at zero PyTorch knows the side: the sign of zero. At the other poles it does not (NaN).
    pole = ctx.over(ctx.full_like(x, -1), x)
    return ctx.select(_is_zero(ctx, x), pole, ctx.add(ops.Digamma(x)))


@rule("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(ctx: Context, x: Scalar, other: Scalar) -> Value:
    """fmod.Tensor(Tensor self, Tensor other) -> Tensor"""
    check_divisor(ctx, other)
    return binary(ctx, ops.Remainder, x, other)


def _is_zero(ctx: Context, x: Value) -> Value:
    return ctx.compare("EQ", x, ctx.full_like(x, 0))


def _is_negative(ctx: Context, x: Value) -> Value:
    return ctx.compare("LT", x, ctx.full_like(x, 0))


def _signs_differ(ctx: Context, x: Value, other: Value) -> Value:
    return ctx.compare("NE", _is_negative(ctx, x), _is_negative(ctx, other))


@rule(
    *(f"aten.bitwise_right_shift.{overload}" for overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")),
    *("aten.__rshift__.Tensor", "aten.__rshift__.Scalar"),
)
def bitwise_right_shift(ctx: Context, x: Scalar, other: Scalar) -> Value:
    """bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor"""
    signed = ctx.result.element_type.is_signed
    return binary(ctx, ops.ShiftRightArithmetic if signed else ops.ShiftRightLogical, x, other)


# Rounding, signs, parts


@rule("aten.round.decimals")
def round_decimals(ctx: Context, x: Value, *, decimals: int) -> Value:
    """round.decimals(Tensor self, *, int decimals) -> Tensor"""
    if not is_float(x.type.element_type):
        return x
    scale = ctx.scalar(10.0 ** abs(decimals), x.type.element_type)
    up, down = (ctx.times, ctx.over) if decimals >= 0 else (ctx.over, ctx.times)
    return down(ctx.add(ops.RoundNearestEven(up(x, scale))), scale)


@rule("aten.trunc.default", "aten.fix.default")
def trunc(ctx: Context, x: Value) -> Value:
    """trunc(Tensor self) -> Tensor"""
    if not is_float(x.type.element_type):
        return x
    return ctx.select(_is_negative(ctx, x), ctx.add(ops.Ceil(x)), ctx.add(ops.Floor(x)))


@rule("aten.frac.default")
def frac(ctx: Context, x: Value) -> Value:
    """frac(Tensor self) -> Tensor"""
    return ctx.minus(x, trunc(ctx, x))


@rule("aten.abs.default")
def absolute(ctx: Context, x: Value) -> Value:
    """abs(Tensor self) -> Tensor"""
    kind = x.type.element_type
    unsigned = is_boolean(kind) or (is_integer(kind) and not kind.is_signed)
    return x if unsigned else ctx.add(ops.Abs(x))


@rule("aten.sign.default", "aten.sgn.default")
def sign(ctx: Context, x: Value) -> Value:
    """sign(Tensor self) -> Tensor"""
    kind = x.type.element_type
    if is_boolean(kind):
        return x
    if is_integer(kind) and not kind.is_signed:
        return ctx.convert(ctx.compare("NE", x, ctx.full_like(x, 0)), kind)
    found = ctx.add(ops.Sign(x))
    if not is_float(kind):
        return found
    # PyTorch's sign of NaN, and of -0, is 0.
    has_sign = ctx.binary(ops.Or, _is_negative(ctx, x), ctx.compare("GT", x, ctx.full_like(x, 0)))
    return ctx.select(has_sign, found, ctx.full_like(x, 0))


@rule("aten.reciprocal.default")
def reciprocal(ctx: Context, x: Value) -> Value:
    """reciprocal(Tensor self) -> Tensor"""
    return binary(ctx, ops.Divide, 1, x)


@rule("aten.log2.default", "aten.log10.default")
def log_of_base(ctx: Context, x: Value) -> Value:
    """log2(Tensor self) -> Tensor"""
    kind, base = ctx.result.element_type, 2 if "log2" in ctx.op else 10
    x = ctx.convert(x, kind)
    if is_complex(kind):
        parts = (ctx.add(part(ctx.add(ops.Log(x)))) for part in (ops.Real, ops.Imag))
        return ctx.add(ops.Complex(*(ctx.times(part, ctx.scalar_like(1 / math.log(base), part)) for part in parts)))
    # In double precision, so that the logarithms of powers of the base are integers, as in PyTorch.
    wide = ctx.convert(x, F64)
    logarithm = ctx.times(ctx.add(ops.Log(wide)), ctx.scalar(1 / math.log(base), F64))
    if kind is F64:
        whole = ctx.add(ops.RoundNearestEven(logarithm))
        power = ctx.binary(ops.Power, ctx.scalar(float(base), F64), whole)
        logarithm = ctx.select(ctx.compare("EQ", power, wide), whole, logarithm)
    return ctx.convert(logarithm, kind)


@rule("aten.exp2.default")
def exp2(ctx: Context, x: Value) -> Value:
    """exp2(Tensor self) -> Tensor"""
    return binary(ctx, ops.Power, 2, x)


@rule("aten.square.default")
def square(ctx: Context, x: Value) -> Value:
    """square(Tensor self) -> Tensor"""
    return ctx.times(x, x)


@rule("aten.real.default", "aten.imag.default")
def part(ctx: Context, x: Value) -> Value:
    """real(Tensor(a) self) -> Tensor(a)"""
    if not is_complex(x.type.element_type):
        return x
    return ctx.add((ops.Real if "real" in ctx.op else ops.Imag)(x))


@rule("aten.angle.default")
def angle(ctx: Context, x: Value) -> Value:
    """angle(Tensor self) -> Tensor"""
    if is_complex(x.type.element_type):
        return ctx.add(ops.Atan2(ctx.add(ops.Imag(x)), ctx.add(ops.Real(x))))
    x = ctx.convert(x, ctx.result.element_type)
    half_turn = ctx.select(_is_negative(ctx, x), ctx.full_like(x, math.pi), ctx.full_like(x, 0))
    return ctx.select(ctx.compare("EQ", x, x), half_turn, x)


@rule("aten.complex.default", "aten.polar.default")
def complex_(ctx: Context, real: Value, imag: Value) -> Value:
    """complex(Tensor real, Tensor imag) -> Tensor"""
    real, imag = (ctx.broadcast(x, ctx.shape) for x in (real, imag))
    if "polar" in ctx.op:
        length, angle = real, imag
        real = ctx.times(length, ctx.add(ops.Cosine(angle)))
        imag = ctx.times(length, ctx.add(ops.Sine(angle)))
    return ctx.add(ops.Complex(real, imag))


@rule("aten._neg_view.default")
def neg_view(ctx: Context, x: Value) -> Value:
    """_neg_view(Tensor(a) self) -> Tensor(a)"""
    return ctx.add(ops.Negate(x))


@rule("aten._conj.default", "aten.conj_physical.default", "aten._conj_physical.default")
def conj(ctx: Context, x: Value | Number) -> Value:
    """conj_physical(Tensor self) -> Tensor"""
    if not isinstance(x, Value):
        x = ctx.tensor(x, ctx.result_types[0].element_type)
    if not is_complex(x.type.element_type):
        return x
    return ctx.add(ops.Complex(ctx.add(ops.Real(x)), ctx.add(ops.Negate(ctx.add(ops.Imag(x))))))


@rule("aten.view_as_complex.default")
def view_as_complex(ctx: Context, x: Value) -> Value:
    """view_as_complex(Tensor(a) self) -> Tensor(a)"""
    last = x.type.rank - 1
    real, imag = (ctx.squeeze(ctx.slice(x, last, i, i + 1), [last]) for i in range(2))
    return ctx.add(ops.Complex(real, imag))


@rule("aten.view_as_real.default")
def view_as_real(ctx: Context, x: Value) -> Value:
    """view_as_real(Tensor(a) self) -> Tensor(a)"""
    assert isinstance(x.type.element_type, ComplexType)
    parts = [ctx.unsqueeze(ctx.add(op(x)), [x.type.rank]) for op in (ops.Real, ops.Imag)]
    return ctx.concatenate(parts, x.type.rank)


# Ops with more operands


@rule("aten.where.self", "aten.where.Scalar", "aten.where.ScalarSelf", "aten.where.ScalarOther")
def where(ctx: Context, condition: Value, x: Scalar, other: Scalar) -> Value:
    """where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"""
    kind = ctx.result.element_type
    condition = ctx.not_zero(condition)
    return ctx.select(condition, ctx.tensor(x, kind), ctx.tensor(other, kind))


@rule("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(ctx: Context, x: Value, mask: Value, value: Scalar) -> Value:
    """masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor"""
    return ctx.shaped(ctx.select(mask, ctx.tensor(value, x.type.element_type), x))


@rule("aten.clamp.default", "aten.clamp.Tensor")
def clamp(ctx: Context, x: Value, min: Scalar | None = None, max: Scalar | None = None) -> Value:
    """clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"""
    # The upper bound is applied last: it wins if the bounds cross.
    result = ctx.shaped(x)
    result = result if min is None else _bounded(ctx, ops.Maximum, result, min)
    return result if max is None else _bounded(ctx, ops.Minimum, result, max)


def _bounded(ctx: Context, op: type, x: Value, bound: Scalar) -> Value:
    """Returns `x`, or the bound if that is larger (`Maximum`) or smaller (`Minimum`). A number that equals `x` leaves
    it unchanged: the sign of zero is that of `x`."""
    kind = x.type.element_type
    limit = ctx.tensor(bound, kind)
    if isinstance(bound, Value) or not is_float(kind) or math.isnan(bound.real):
        return ctx.binary(op, x, limit)
    beyond = ctx.compare("LT" if op is ops.Maximum else "GT", x, limit)
    return ctx.select(beyond, limit, x)


@rule("aten.clamp_min.default", "aten.clamp_min.Tensor")
def clamp_min(ctx: Context, x: Value, min: Scalar) -> Value:
    """clamp_min(Tensor self, Scalar min) -> Tensor"""
    return clamp(ctx, x, min)


@rule("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(ctx: Context, x: Value, max: Scalar) -> Value:
    """clamp_max(Tensor self, Scalar max) -> Tensor"""
    return clamp(ctx, x, None, max)


@rule("aten.addcmul.default", "aten.addcdiv.default")
def addcmul(ctx: Context, x: Value, tensor1: Value, tensor2: Value, *, value: Number = 1) -> Value:
    """addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"""
    op = ops.Multiply if "addcmul" in ctx.op else ops.Divide
    x, one, other, factor = widened(ctx, x, tensor1, tensor2, value)
    product = ctx.binary(op, one, other)
    return ctx.convert(ctx.plus(x, product if value == 1 else ctx.times(product, factor)), ctx.result.element_type)


@rule("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(ctx: Context, x: Value, end: Value, weight: Scalar) -> Value:
    """lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor"""
    x, end, weight = widened(ctx, x, end, weight)
    return ctx.convert(ctx.plus(x, ctx.times(weight, ctx.minus(end, x))), ctx.result.element_type)
